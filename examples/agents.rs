//! Agents of different speed drain one job queue. One of them crashes half way; when its leases
//! run out, its jobs go back.
//!
//! ```text
//! cargo run --release --example agents
//! cargo run --release --example agents -- --save jobs.csv --agents 1,8,64
//! cargo run --release --example agents -- jobs.csv --group-limit 2
//! ```

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

#[path = "agents/jobs.rs"]
mod jobs;
#[path = "agents/report.rs"]
mod report;
#[path = "agents/run.rs"]
mod run;

/// Agents drain a job queue, one crashes, no job is lost.
#[derive(Parser, Debug)]
#[command(name = "agents")]
struct Options {
    /// Jobs to run: a CSV with the columns key, tenant, group (empty: none).
    file: Option<PathBuf>,
    /// How many jobs to make up, in a file of their own, if no file is given.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
    /// Where the made-up jobs are kept (default: a temporary file).
    #[arg(long, conflicts_with = "file")]
    save: Option<PathBuf>,
    /// How many jobs each agent claims at once.
    #[arg(long, value_delimiter = ',', default_value = "1,4,16,64",
          value_parser = clap::value_parser!(u32).range(1..))]
    agents: Vec<u32>,
    /// Which agent crashes when half of the jobs are done, counted from 1; 0: none.
    #[arg(long, default_value_t = 3)]
    crash: usize,
    /// How many jobs of one group may run at once.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    group_limit: u32,
    /// How many jobs of one tenant may run at once.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    tenant_limit: u32,
    /// A claim that is not finished after this many milliseconds is taken back.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    lease_ms: u64,
}

impl Options {
    fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let jobs = match jobs::load(&options) {
        Ok(jobs) => jobs,
        Err(error) => {
            eprintln!("agents: {error}");
            return ExitCode::from(2);
        }
    };
    let outcome = run::run(&options, &jobs);
    if report::print(&options, &outcome) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
