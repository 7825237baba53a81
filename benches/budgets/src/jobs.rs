//! Jobs: pushed, claimed and completed.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Waker};

use conversant::job_queue::{Claim, JobQueue, Place};

use super::{GROUPS, Path};

pub(super) const PATHS: &[Path] = &[
    ("job-claim-1", |n| jobs(n, 1)),
    ("job-claim-one", jobs_one_by_one),
    ("job-claim-64", |n| jobs(n, 64)),
    ("job-claim-64-all-at-once", jobs_at_once),
    ("job-beside-1000-waits", jobs_beside_waits),
    ("job-beside-1000-deaths", jobs_beside_deaths),
];

/// Jobs of groups of limit 1. When a job is claimed, another of its group is pushed behind all
/// others, and the job is completed.
fn jobs(rounds: usize, n: usize) -> usize {
    let queue = JobQueue::new();
    let push = |key| {
        let place = Place::new().group(key % GROUPS as u64);
        queue.push(key, key, place).expect("open");
    };
    let deep = 8 * GROUPS as u64;
    (0..deep).for_each(push);
    for _ in 0..rounds * GROUPS / n {
        for claim in queue.try_claim(n) {
            push(*claim + deep);
            let done = claim.complete();
            black_box(done.expect("it has no lease"));
        }
    }
    GROUPS
}

/// As `jobs`, with groups by handle and a claim without a list. The jobs have a type of their own:
/// see below.
fn jobs_one_by_one(rounds: usize) -> usize {
    let queue = JobQueue::<u64, (u64,)>::new();
    let tenant = queue.tenant(0);
    let groups: Vec<_> = (0..GROUPS as u64).map(|name| tenant.group(name)).collect();
    let push = |key: u64| {
        groups[key as usize % GROUPS]
            .push(key, (key,))
            .expect("open")
    };
    let deep = 8 * GROUPS as u64;
    (0..deep).for_each(|key| _ = push(key));
    for _ in 0..rounds * GROUPS {
        let claim = queue.try_claim_one().expect("some wait");
        push(claim.0 + deep);
        black_box(claim.complete().expect("it has no lease"));
    }
    GROUPS
}

/// All jobs of a claim are pushed under one lock, and finished under one; groups by handle.
fn jobs_at_once(rounds: usize) -> usize {
    let queue = JobQueue::new();
    let tenant = queue.tenant(0);
    let groups: Vec<_> = (0..GROUPS as u64).map(|name| tenant.group(name)).collect();
    let push = |keys: &mut dyn Iterator<Item = u64>| {
        let place = |key| groups[key as usize % GROUPS].place();
        let pushed = queue.push_all(keys.map(|key| (key, key, place(key))));
        pushed.expect("open");
    };
    let deep = 8 * GROUPS as u64;
    push(&mut (0..deep));
    for _ in 0..rounds {
        let claims = queue.try_claim(GROUPS);
        push(&mut claims.iter().map(|claim| **claim + deep));
        black_box(Claim::complete_all(claims));
    }
    GROUPS
}

/// One tenant's jobs, while a thousand other tenants are waited for. The jobs have a type of their
/// own: otherwise the other paths would be compiled differently.
fn jobs_beside_waits(rounds: usize) -> usize {
    let queue = JobQueue::<u64, [u64; 1]>::new();
    let tenants: Vec<_> = (1..=1_000).map(|name| queue.tenant(name)).collect();
    let mut cx = Context::from_waker(Waker::noop());
    let mut waits: Vec<_> = tenants.iter().map(|tenant| tenant.claim(1)).collect();
    for wait in &mut waits {
        assert!(Pin::new(wait).poll(&mut cx).is_pending());
    }
    let own = queue.tenant(0);
    for key in 0..(rounds * GROUPS) as u64 {
        own.push(key, [key]).expect("open");
        let claim = own.try_claim(1).pop().expect("it is due");
        black_box(claim.complete().expect("it has no lease"));
    }
    drop(waits);
    GROUPS
}

/// Jobs, while a thousand dead ones have been told to a thousand waits that have not looked.
fn jobs_beside_deaths(rounds: usize) -> usize {
    let queue = JobQueue::<u64, [u64; 2]>::new();
    let mut waits: Vec<_> = (0..1_000).map(|_| queue.next_dead()).collect();
    let mut cx = Context::from_waker(Waker::noop());
    for wait in &mut waits {
        assert!(Pin::new(wait).poll(&mut cx).is_pending());
    }
    for _ in &waits {
        queue.push(0, [0; 2], Place::new()).expect("open");
        let claim = queue.try_claim_one().expect("it is due");
        claim.fail_for_good().expect("it has no lease");
    }
    for key in 0..(rounds * GROUPS) as u64 {
        queue.push(key, [key; 2], Place::new()).expect("open");
        let claim = queue.try_claim_one().expect("it is due");
        black_box(claim.complete().expect("it has no lease"));
    }
    drop(waits);
    GROUPS
}
