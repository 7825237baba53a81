//! Every waiting operation in random states, with wakers that panic at random.
//!
//! `CONVERSANT_SEEDS` sets the number of runs of each; 100,000 take minutes.

mod dialogs;
mod jobs;
mod locks;
mod queue;
mod scheduler;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs it for each seed, and reports the seed that failed.
fn seeds(run: impl Fn(u64)) {
    let said = std::env::var("CONVERSANT_SEEDS");
    let seeds = said.map_or(200, |said| said.parse().expect("a number"));
    let mut panics = 0;
    for seed in 0..seeds {
        crate::waker::take_panics();
        if catch_unwind(AssertUnwindSafe(|| run(seed))).is_err() {
            panic!("with the seed {seed}");
        }
        panics += crate::waker::take_panics();
    }
    assert!(
        u64::from(panics) > seeds,
        "{panics} wakers panicked in {seeds} runs"
    );
}
