//! The output files: opened before anything runs, emptied when all is well.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::escape::{self, BadInput};
use crate::options::Options;

#[derive(Debug)]
pub(crate) struct OutputFiles {
    pub(crate) log: Option<File>,
    pub(crate) trace: Option<File>,
}

/// Opens what the options name. Nothing is emptied before all are open and
/// are known to be different files, so a mistake destroys nothing.
pub(crate) fn open(options: &Options) -> Result<OutputFiles, BadInput> {
    let list = std::fs::metadata(&options.file).ok().and_then(|found| {
        let regular = found.is_file();
        regular.then(|| (found.dev(), found.ino()))
    });
    let log = one("log", options.log.as_deref())?;
    let trace = one("trace", options.trace.as_deref())?;
    let (log_is, trace_is) = (identity(log.as_ref()), identity(trace.as_ref()));
    let given_twice = |option, path: &Option<_>, other| {
        let path: &std::path::PathBuf = path.as_ref().expect("its file is open");
        let shown = escape::path(path.as_os_str());
        Err(BadInput(format!("--{option}: {shown}: is the {other} too")))
    };
    if log_is.is_some() && log_is == list {
        return given_twice("log", &options.log, "task list");
    }
    if trace_is.is_some() && trace_is == list {
        return given_twice("trace", &options.trace, "task list");
    }
    if trace_is.is_some() && trace_is == log_is {
        return given_twice("trace", &options.trace, "log");
    }
    let files = [
        ("log", &options.log, &log),
        ("trace", &options.trace, &trace),
    ];
    for (option, path, file) in files {
        if let (Some(path), Some(file)) = (path, file)
            && identity(Some(file)).is_some()
        {
            file.set_len(0).map_err(|error| bad(option, path, &error))?;
        }
    }
    Ok(OutputFiles { log, trace })
}

fn one(option: &str, path: Option<&Path>) -> Result<Option<File>, BadInput> {
    let Some(path) = path else { return Ok(None) };
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    opened.map(Some).map_err(|error| bad(option, path, &error))
}

fn bad(option: &str, path: &Path, error: &std::io::Error) -> BadInput {
    let path = escape::path(path.as_os_str());
    BadInput(format!("--{option}: {path}: {error}"))
}

/// Two names of one regular file have the same identity; a device or a pipe
/// can be named twice without harm.
fn identity(file: Option<&File>) -> Option<(u64, u64)> {
    let found = file?.metadata().ok()?;
    found.is_file().then(|| (found.dev(), found.ino()))
}
