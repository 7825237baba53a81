//! Random operations on a job queue and on a naive one, which was written from the docs alone:
//! each result, count and snapshot, and each wake-up, is compared.

mod checks;
mod driver;
mod ends;
mod jobs;
mod naive;
mod pushes;
mod steps;
mod views;
mod waits;

#[test]
fn agrees_with_a_naive_queue() {
    crate::seeds::each(120, steps::run);
}
