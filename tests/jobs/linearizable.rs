//! Histories of a job queue under real threads, compared with its rules in their plainest form: the
//! first jobs by key whose group has room, up to N; a job that is given back returns to its place.

use crate::histories;

use std::collections::BTreeMap;

use conversant::job_queue::{JobQueue, Place, Scope};
use conversant::limit::Limit;
use histories::{Log, in_turn, is_linearizable, run};
use todc_utils::specifications::Specification;

/// Jobs are their keys; a job's group is its key modulo 3.
const GROUPS: u32 = 3;

/// Group 1 has two units, the others one.
fn limit(group: u32) -> u32 {
    1 + u32::from(group == 1)
}

#[derive(Clone, Debug)]
enum Operation {
    Push(u32),
    /// Asked for up to this many, got these.
    Claim(usize, Vec<u32>),
    Complete(u32),
    GiveBack(u32),
}

/// Whether each job is claimed.
type Plain = BTreeMap<u32, bool>;

/// The first by key that fit, by a scan of all.
fn first(jobs: &Plain, n: usize) -> Vec<u32> {
    let mut running = [0; GROUPS as usize];
    for (job, _) in jobs.iter().filter(|&(_, &claimed)| claimed) {
        running[(job % GROUPS) as usize] += 1;
    }
    let mut first = Vec::new();
    for (&job, _) in jobs.iter().filter(|&(_, &claimed)| !claimed) {
        let running = &mut running[(job % GROUPS) as usize];
        if first.len() < n && *running < limit(job % GROUPS) {
            *running += 1;
            first.push(job);
        }
    }
    first
}

struct ByKey;

impl Specification for ByKey {
    type State = Plain;
    type Operation = Operation;

    fn init() -> Plain {
        Plain::new()
    }

    fn apply(operation: &Operation, state: &Plain) -> (bool, Plain) {
        let mut next = state.clone();
        let valid = match operation {
            Operation::Push(job) => next.insert(*job, false).is_none(),
            Operation::Claim(n, jobs) => {
                next.extend(jobs.iter().map(|&job| (job, true)));
                first(state, *n) == *jobs
            }
            Operation::Complete(job) => next.remove(job) == Some(true),
            Operation::GiveBack(job) => next.insert(*job, false) == Some(true),
        };
        (valid, next)
    }
}

fn push(queue: &JobQueue<u32, u32>, jobs: impl Iterator<Item = u32>, log: &mut Log<Operation>) {
    for job in jobs {
        let place = Place::new().group(u64::from(job % GROUPS));
        log.record(
            || queue.push(job, job, place).expect("the queue is open"),
            |_| Operation::Push(job),
        );
    }
}

fn work(queue: &JobQueue<u32, u32>, log: &mut Log<Operation>) {
    for round in 0..6 {
        let n = 1 + round % 3;
        let claims = log.record(
            || queue.try_claim(n),
            |claims| Operation::Claim(n, claims.iter().map(|claim| **claim).collect()),
        );
        for claim in claims {
            let job = *claim;
            if (job as usize + round).is_multiple_of(4) {
                log.record(|| claim.give_back(), |_| Operation::GiveBack(job))
                    .expect("it has no lease");
            } else {
                log.record(|| claim.complete(), |_| Operation::Complete(job))
                    .expect("it has no lease");
            }
        }
    }
}

type Script = Box<dyn FnOnce(&mut Log<Operation>) + Send>;

#[test]
fn histories_of_a_pusher_and_two_agents() {
    for _ in 0..1_000 {
        let queue = JobQueue::new();
        let two = queue.set_limit(Scope::group(1), Limit::AtMost(2));
        two.expect("in range");
        let mut scripts: Vec<Script> = Vec::new();
        let pushed = queue.clone();
        // Smaller keys come later, and go first.
        scripts.push(Box::new(move |log| {
            push(&pushed, (6..12).chain(0..6), log);
        }));
        for _ in 0..2 {
            let queue = queue.clone();
            scripts.push(Box::new(move |log| work(&queue, log)));
        }
        let history = run(scripts);
        assert!(is_linearizable::<ByKey>(history.clone()), "{history:?}");
    }
}

/// The check rejects wrong histories.
#[test]
fn wrong_histories_are_rejected() {
    use Operation::{Claim, Complete, GiveBack, Push};
    let both = [(0, Push(0)), (0, Push(3)), (0, Push(5))];
    let wrong: [&[(usize, Operation)]; 6] = [
        // Not the first job by key.
        &[(1, Claim(1, vec![3]))],
        // More of a group than its limit.
        &[(1, Claim(1, vec![0])), (2, Claim(1, vec![3]))],
        // Short, while another group's job may run behind a blocked one.
        &[(1, Claim(3, vec![0]))],
        // A job is claimed twice.
        &[
            (1, Claim(1, vec![0])),
            (1, Complete(0)),
            (2, Claim(1, vec![0])),
        ],
        // A job that was given back is passed over.
        &[
            (1, Claim(1, vec![0])),
            (1, GiveBack(0)),
            (2, Claim(1, vec![3])),
        ],
        // Completed twice.
        &[(1, Claim(1, vec![0])), (1, Complete(0)), (2, Complete(0))],
    ];
    for operations in wrong {
        let operations = [&both[..], operations].concat();
        let rejected = !is_linearizable::<ByKey>(in_turn(&operations));
        assert!(rejected, "{operations:?}");
    }
    let right = [
        (1, Claim(3, vec![0, 5])),
        (1, Complete(0)),
        (2, Claim(3, vec![3])),
    ];
    let right = [&both[..], &right[..]].concat();
    assert!(is_linearizable::<ByKey>(in_turn(&right)));
}
