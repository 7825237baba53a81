//! Runs the shell commands of a task list in parallel, in the order that the
//! list demands: the crate's main job on real input.
//!
//! ```text
//! cargo run --release --example taskrun -- examples/nightly.csv
//! ```

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use crate::engine::Report;
use crate::escape::BadInput;
use crate::input::TaskList;
use crate::options::{Options, Request};
use crate::progress::Progress;
use crate::session::Session;

#[path = "taskrun/chart.rs"]
mod chart;
#[path = "taskrun/command.rs"]
mod command;
#[path = "taskrun/engine.rs"]
mod engine;
#[path = "taskrun/escape.rs"]
mod escape;
#[path = "taskrun/files.rs"]
mod files;
#[path = "taskrun/input.rs"]
mod input;
#[path = "taskrun/log.rs"]
mod log;
#[path = "taskrun/options.rs"]
mod options;
#[path = "taskrun/outcome.rs"]
mod outcome;
#[path = "taskrun/progress.rs"]
mod progress;
#[path = "taskrun/records.rs"]
mod records;
#[path = "taskrun/running.rs"]
mod running;
#[path = "taskrun/session.rs"]
mod session;
#[path = "taskrun/signals.rs"]
mod signals;
#[path = "taskrun/sink.rs"]
mod sink;
#[path = "taskrun/summary.rs"]
mod summary;
#[path = "taskrun/trace.rs"]
mod trace;

const FAILED: u8 = 1;
const BAD_INPUT: u8 = 2;
const INTERRUPTED: u8 = 130;
/// Columns if standard output is no terminal.
const WIDTH: usize = 80;

fn main() -> ExitCode {
    let code = match options::parse(std::env::args_os()) {
        Ok(Request::Show(text)) => Ok(u8::from(!print(&text))),
        Ok(Request::Run(options)) => job(options),
        Err(bad) => Err(bad),
    }
    .unwrap_or_else(|bad| {
        complain(&bad.0);
        BAD_INPUT
    });
    ExitCode::from(code)
}

fn job(mut options: Options) -> Result<u8, BadInput> {
    // Watched from the beginning, so that the log is always written.
    let watch = match options.simulate {
        true => signals::tell(INTERRUPTED).map(Watch::Simulation),
        false => Session::begin(&options).map(Watch::Run),
    };
    let watch =
        watch.map_err(|error| BadInput(format!("taskrun: signals cannot be watched: {error}")))?;
    let longest = (!options.simulate).then(command::longest);
    let list = Arc::new(input::read(&options.file, longest)?);
    options.resolve(&list)?;
    let files = files::open(&options)?;
    let report = carry_out(&list, &options, watch);
    let mut all_written = true;
    let finished = &report.finished;
    if let (Some(file), Some(path)) = (files.log, &options.log) {
        all_written &= written(path, log::write(&file, &list, finished, options.simulate));
    }
    if let (Some(file), Some(path)) = (files.trace, &options.trace) {
        all_written &= written(path, trace::write(&file, &list, finished, options.readers));
    }
    if !options.quiet {
        let width = terminal_size::terminal_size_of(io::stdout());
        let width = width.map_or(WIDTH, |(columns, _)| columns.0.into());
        let chart = chart::draw(&list, finished, options.readers, width);
        let summary = summary::describe(&list, finished, options.readers, width);
        all_written &= print(&format!("{chart}\n{summary}"));
    }
    let all_ok = !finished.iter().any(|done| done.verdict.is_failure());
    Ok(match (report.interrupted, all_ok && all_written) {
        (true, _) => INTERRUPTED,
        (false, true) => 0,
        (false, false) => FAILED,
    })
}

/// How Ctrl-C is watched.
enum Watch<F> {
    Simulation(F),
    Run(Session),
}

fn carry_out(list: &Arc<TaskList>, options: &Options, watch: Watch<impl Fn() -> bool>) -> Report {
    let session = match watch {
        Watch::Simulation(interrupted) => return engine::simulate(list, options, &interrupted),
        Watch::Run(session) => session,
    };
    let mut progress = Progress::new(list.rows.len(), options.quiet);
    let report = engine::run(list, options, &mut progress, &Arc::new(session));
    progress.end();
    report
}

/// Reports a file that could not be written in full.
fn written(path: &Path, result: io::Result<()>) -> bool {
    if let Err(error) = &result {
        let path = escape::path(path.as_os_str());
        complain(&format!("{path}: cannot be written: {error}"));
    }
    result.is_ok()
}

/// Prints to standard output. A closed output is no error: its reader wants no more lines.
fn print(text: &str) -> bool {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("standard output: {error}"));
            false
        }
        _ => true,
    }
}

/// One line on standard error; it is lost if that is closed.
fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
