//! The seam between taskrun and the scheduler: these two functions decide which task goes next.

use std::sync::Arc;

use conversant::limit::{Bypass, Limit};
use conversant::scheduler::{CallerOptions, OnFailure, Run};

use crate::input::TaskList;
use crate::options::Options;
use crate::outcome::{Finished, Ran, Verdict};
use crate::progress::Progress;
use crate::session::Session;

#[path = "engine/live.rs"]
mod live;
#[path = "engine/virtual_time.rs"]
mod virtual_time;

/// How a run went.
#[derive(Debug)]
pub(crate) struct Report {
    /// One for each row, in the order of the file.
    pub(crate) finished: Vec<Finished>,
    /// Ctrl-C came before the end.
    pub(crate) interrupted: bool,
}

/// Plays the list in virtual time, until its end or until `interrupted`.
pub(crate) fn simulate(
    list: &TaskList,
    options: &Options,
    interrupted: &dyn Fn() -> bool,
) -> Report {
    virtual_time::simulate(list, options, interrupted)
}

/// Runs the list. Everything that the readers use is shared with them.
pub(crate) fn run(
    list: &Arc<TaskList>,
    options: &Options,
    progress: &mut Progress,
    session: &Arc<Session>,
) -> Report {
    live::run(list, options, progress, session)
}

/// The outcome of every row before anything has happened.
fn not_begun(list: &TaskList) -> Vec<Finished> {
    let as_given = |arrive_ms| Finished {
        queued_us: u64::from(arrive_ms) * 1000,
        ran: None,
        verdict: Verdict::Cancelled,
    };
    let rows = list.rows.iter();
    rows.map(|row| as_given(row.arrive_ms)).collect()
}

/// The options of caller number `caller`.
fn caller_options(caller: u32, options: &Options) -> CallerOptions {
    let cap = options.cap.filter(|&cap| cap <= Limit::MAX);
    CallerOptions {
        weight: options.weights.get(&caller).copied().unwrap_or(1),
        // At most 1024 are ever in flight.
        cap: cap.map_or(Limit::Unlimited, Limit::AtMost),
        on_failure: match options.keep_going {
            true => OnFailure::Continue,
            false => OnFailure::SkipHigherTiers,
        },
        ..CallerOptions::default()
    }
}

fn bypass(options: &Options) -> Bypass {
    options.bypass.map_or(Bypass::Unbounded, Bypass::AtMost)
}

fn ran(run: Run) -> Ran {
    Ran {
        reader: run.worker,
        start_us: run.start.as_micros() as u64,
        end_us: run.end.as_micros() as u64,
    }
}

/// The options were checked when they were read.
const IN_RANGE: &str = "within the range of the options";
/// Groups and tiers were checked when the list was read.
const ADMISSIBLE: &str = "a list that was checked";
