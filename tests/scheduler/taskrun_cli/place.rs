//! A directory of its own for each test, and the program run inside it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The path of taskrun: `cargo test` builds the examples next to the tests.
pub(crate) fn program() -> PathBuf {
    let test = std::env::current_exe().expect("the test knows its own path");
    let profile = test.parent().and_then(Path::parent);
    let program = profile
        .expect("target/PROFILE/deps/TEST")
        .join("examples/taskrun");
    assert!(program.exists(), "not built: cargo build --example taskrun");
    program
}

pub(crate) struct Place {
    directory: TempDir,
}

/// How a run ended, and what it wrote.
pub(crate) struct Seen {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Seen {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("output is UTF-8"),
        }
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    /// A place that holds `list.csv`.
    pub(crate) fn with(list: impl AsRef<[u8]>) -> Self {
        let place = Self::new();
        fs::write(place.path("list.csv"), list).expect("the list can be written");
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    pub(crate) fn fifo(&self, name: &str) {
        let made = Command::new("mkfifo").arg(self.path(name)).status();
        assert!(made.expect("mkfifo runs").success());
    }

    pub(crate) fn command<I>(&self, arguments: I) -> Command
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        let mut command = Command::new(program());
        command.current_dir(self.directory.path()).args(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run<I>(&self, arguments: I) -> Seen
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        self.command(arguments)
            .output()
            .expect("taskrun starts")
            .into()
    }

    /// The outcomes in `log.csv`, by id.
    pub(crate) fn outcomes(&self) -> Vec<String> {
        let log = self.read("log.csv");
        let mut rows = csv::Reader::from_reader(log.as_bytes());
        rows.records()
            .map(|row| row.expect("the log is CSV")[9].to_owned())
            .collect()
    }
}
