//! A service with a front end and a back end, joined by dialogs. Each request comes on a dialog
//! of its own and names its priority. The front end opens a dialog with the back end for it and
//! bumps that dialog; the answer goes back on the dialog that asked. Ends and errors cross from
//! one dialog to the other.
//!
//! ```text
//! cargo run --release --example priority_service
//! cargo run --release --example priority_service -- --second-after 99
//! cargo run --release --example priority_service -- --fail 50 --cancel 7,90 --patience 60
//! cargo run --release --example priority_service -- --threads --readers 4 --work 10
//! ```
//!
//! In virtual time everything is deterministic. With `--threads` real threads read, and only
//! what must hold is checked.

use std::num::ParseIntError;
use std::process::ExitCode;

use clap::Parser;

#[path = "priority_service/clients.rs"]
mod clients;
#[path = "priority_service/report.rs"]
mod report;
#[path = "priority_service/service.rs"]
mod service;
#[path = "priority_service/threads.rs"]
mod threads;
#[path = "priority_service/virtual_time.rs"]
mod virtual_time;

/// Requests to a front end, which has them served by a back end, the urgent
/// ones first.
#[derive(Parser, Debug)]
#[command(name = "priority_service")]
struct Options {
    /// How many requests, numbered from 0. Every tenth except 0 asks to be served first, with
    /// its own number as the level, 255 at most.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    requests: u32,
    /// How many readers the back end has.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=26))]
    readers: u32,
    /// How long a reader works on a request: seconds; with --threads milliseconds.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(..=3_600))]
    work: u64,
    /// The first reader takes request 0 when it comes; the others take their
    /// first when this one has come, or later.
    #[arg(long, default_value_t = 80, conflicts_with = "threads")]
    second_after: u32,
    /// How often in a row the oldest request may be overtaken.
    #[arg(long, default_value_t = 64)]
    bypass: u32,
    /// The work on these fails.
    #[arg(long, value_delimiter = ',', value_parser = number)]
    fail: Vec<u32>,
    /// The clients of these hang up when all has been sent.
    #[arg(long, value_delimiter = ',', value_parser = number)]
    cancel: Vec<u32>,
    /// A client hangs up if it has no answer after this many seconds.
    #[arg(long, conflicts_with = "threads", value_parser = clap::value_parser!(u64).range(1..))]
    patience: Option<u64>,
    /// Real reader threads.
    #[arg(long)]
    threads: bool,
}

fn number(text: &str) -> Result<u32, ParseIntError> {
    text.trim().parse()
}

impl Options {
    /// A number that names no request, if there is one.
    fn unknown_request(&self) -> Option<u32> {
        let named = self.fail.iter().chain(&self.cancel);
        named.copied().find(|&number| number >= self.requests)
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(number) = options.unknown_request() {
        let last = options.requests - 1;
        eprintln!("priority_service: there is no request {number}, only 0 to {last}");
        return ExitCode::from(2);
    }
    let outcome = if options.threads {
        threads::run(&options)
    } else {
        virtual_time::run(&options)
    };
    if report::print(&options, &outcome) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
