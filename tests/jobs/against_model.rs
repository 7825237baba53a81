//! A job queue does at random what a naive one does.

use crate::job_queue_model::run;
use crate::random::Random;

#[test]
fn agrees_with_a_naive_queue() {
    crate::seeds::each(120, |seed, steps| run(Random(seed), steps));
}
