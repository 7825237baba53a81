//! Scheduler and simulator, and `taskrun` with the checkers of its runs.

#[path = "../support/count.rs"]
mod count;
#[path = "../support/finishes.rs"]
mod finishes;
#[path = "../support/oracle/mod.rs"]
mod oracle;

mod figures;
mod oracle_cases;
mod oracle_checkers;
mod oracle_figures;
mod oracle_taskrun;
mod random;
#[cfg(unix)]
mod taskrun_cli;
mod threads;
