//! The job queue, and the example that uses it.

#[path = "../support/count.rs"]
mod count;
#[path = "../support/finishes.rs"]
mod finishes;
#[path = "../support/histories/mod.rs"]
mod histories;
#[path = "../support/job_queue_model/mod.rs"]
mod job_queue_model;
#[path = "../support/random.rs"]
mod random;
#[path = "../support/seeds.rs"]
mod seeds;

mod against_model;
mod agents_cli;
mod dead;
mod figures;
mod linearizable;
mod panics;
mod part_room;
mod parts;
mod retries;
mod room;
mod status;
mod threads;
mod ticker;
mod tickers;
mod unique;

use std::time::Duration;

use conversant::job_queue::{Claim, Counts};

/// The claims, with a lease until this time.
fn until<K, J: Clone>(mut claims: Vec<Claim<'_, K, J>>, then: Duration) -> Vec<Claim<'_, K, J>> {
    for claim in &mut claims {
        claim.extend(then).unwrap();
    }
    claims
}

/// The counts without those that count from the beginning on.
fn of_now(mut counts: Counts) -> Counts {
    (counts.pushed, counts.completed, counts.removed) = (0, 0, 0);
    (counts.returned, counts.dropped) = (0, 0);
    counts
}
