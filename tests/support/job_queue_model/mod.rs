//! Random operations on a job queue and on a naive one, which was written from the docs alone:
//! each result, count and snapshot, and each wake-up, is compared. The random tests and the fuzzer
//! share it: `crate::random::Random` says what is done.

mod checks;
mod driver;
mod ends;
mod jobs;
mod naive;
mod pushes;
mod steps;
mod views;
mod waits;

pub(crate) use steps::run;
