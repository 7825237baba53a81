//! SEMANTICS 1D: its figures exactly, and each of its faults removed. One thread, no clock.

mod ends;
mod faults;
mod limits;
mod system_d;

use std::time::Duration;

use conversant::job_queue::{Claim, Counts, JobId, JobQueue, Place};
use conversant::limit::Limit;

use super::of_now;

type Queue = JobQueue<u32, u32>;
type Claims<'q> = Vec<Claim<'q, u32, u32>>;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn numbers(claims: &Claims<'_>) -> Vec<u32> {
    claims.iter().map(|claim| **claim).collect()
}

/// Claims `n` jobs and returns their numbers.
fn claim(queue: &Queue, n: usize) -> (Claims<'_>, Vec<u32>) {
    let claims = queue.try_claim(n);
    let numbers = numbers(&claims);
    (claims, numbers)
}

fn complete(claims: &mut Claims<'_>, number: u32) {
    let at = claims.iter().position(|claim| **claim == number);
    claims.remove(at.unwrap()).complete().unwrap();
}

/// Jobs 1..12; g1 = {1,5,9}, g3 = {3,7,11}, even jobs ungrouped.
fn twelve(limit: Limit) -> (Queue, Vec<JobId>) {
    let queue = JobQueue::builder().group_limit(limit).build().unwrap();
    let group = |n| match n % 4 {
        1 => Place::new().group("g1"),
        3 => Place::new().group("g3"),
        _ => Place::new(),
    };
    let jobs = (1..=12).map(|n| (n, n, group(n)));
    let ids = queue.push_all(jobs).unwrap();
    (queue, ids)
}

fn is_idle(queue: &Queue) {
    assert_eq!(of_now(queue.counts()), Counts::default());
    assert!(queue.snapshot().tenants.is_empty());
}
