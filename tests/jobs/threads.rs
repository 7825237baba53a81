//! Racing agents on real threads. No sleeps and no times: the rules hold in every interleaving.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use conversant::error::Closed;
use conversant::job_queue::{Claim, Counts, JobQueue, Place, Scope, Snapshot};
use conversant::limit::Limit;

use super::of_now;

const GROUPS: usize = 8;
const JOBS: u32 = 600;
const AGENTS: usize = 3;
const PRODUCERS: usize = 2;
/// The limit of tenants 0 and 1, to which even and odd groups belong.
const TENANT_LIMIT: u32 = 5;
const QUEUE_LIMIT: u32 = 7;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

#[derive(Clone, Copy, Debug)]
struct Job {
    group: usize,
    producer: usize,
    number: u32,
}

fn limit_of(group: usize) -> u32 {
    [1, 1, 2, 3][group % 4]
}

/// Claimed now: by group, by tenant, and in all.
#[derive(Default)]
struct InHand {
    groups: [AtomicU32; GROUPS],
    tenants: [AtomicU32; 2],
    all: AtomicU32,
}

impl InHand {
    fn enter(&self, group: usize) {
        let enter = |count: &AtomicU32, limit| {
            let others = count.fetch_add(1, Ordering::SeqCst);
            assert!(others < limit, "more than the limit of {limit}");
        };
        enter(&self.groups[group], limit_of(group));
        enter(&self.tenants[group % 2], TENANT_LIMIT);
        enter(&self.all, QUEUE_LIMIT);
    }

    fn leave(&self, group: usize) {
        self.groups[group].fetch_sub(1, Ordering::SeqCst);
        self.tenants[group % 2].fetch_sub(1, Ordering::SeqCst);
        self.all.fetch_sub(1, Ordering::SeqCst);
    }
}

type Done = [Mutex<Vec<Job>>; GROUPS];

fn place(group: usize) -> Place {
    Place::new().tenant(group as u64 % 2).group(group as u64)
}

fn produce(queue: &JobQueue<u32, Job>, producer: usize) {
    let mut random = Random(77 + producer as u64);
    for number in 0..JOBS {
        let group = random.below(GROUPS as u64) as usize;
        let job = Job {
            group,
            producer,
            number,
        };
        queue.push(number, job, place(group)).unwrap();
        if random.below(8) == 0 {
            thread::yield_now();
        }
    }
}

fn handle(claim: Claim<'_, u32, Job>, random: &mut Random, in_hand: &InHand, done: &Done) {
    let job = *claim;
    if random.below(4) == 0 {
        thread::yield_now();
    }
    let fate = random.below(10);
    if fate >= 3 {
        done[job.group].lock().unwrap().push(job);
    }
    in_hand.leave(job.group);
    match fate {
        0 => claim.give_back().unwrap(),
        1 => assert!(!claim.fail().unwrap(), "there are many attempts"),
        2 => {
            let handler = AssertUnwindSafe(move || {
                let _claim = claim;
                std::panic::resume_unwind(Box::new("on purpose"));
            });
            assert!(catch_unwind(handler).is_err());
        }
        _ => _ = claim.complete().unwrap(),
    }
}

fn work(queue: &JobQueue<u32, Job>, agent: usize, in_hand: &InHand, done: &Done) {
    let mut random = Random(1000 + agent as u64);
    loop {
        let n = 1 + random.below(4) as usize;
        let Ok(claims) = queue.claim(n).wait() else {
            return;
        };
        assert!((1..=n).contains(&claims.len()));
        for claim in &claims {
            in_hand.enter(claim.group);
        }
        for claim in claims {
            handle(claim, &mut random, in_hand, done);
        }
    }
}

fn is_idle(snapshot: &Snapshot) {
    assert_eq!(of_now(snapshot.counts), Counts::default());
    assert_eq!(
        (
            snapshot.counts.claims.waiting,
            snapshot.counts.claims.notified
        ),
        (0, 0)
    );
    assert!(snapshot.tenants.iter().all(|tenant| tenant.jobs == 0));
}

#[test]
fn racing_agents_keep_limits_order_and_every_job() {
    let queue = JobQueue::<u32, Job>::builder()
        .attempts(Limit::Unlimited)
        .build()
        .unwrap();
    for group in 0..GROUPS {
        let scope = Scope::group_of(group as u64 % 2, group as u64);
        queue
            .set_limit(scope, Limit::AtMost(limit_of(group)))
            .unwrap();
    }
    for tenant in 0..2u64 {
        queue
            .set_limit(Scope::tenant(tenant), Limit::AtMost(TENANT_LIMIT))
            .unwrap();
    }
    queue
        .set_limit(Scope::Queue, Limit::AtMost(QUEUE_LIMIT))
        .unwrap();
    let (in_hand, done) = (InHand::default(), Done::default());
    thread::scope(|scope| {
        for agent in 0..AGENTS {
            let (queue, in_hand, done) = (&queue, &in_hand, &done);
            scope.spawn(move || work(queue, agent, in_hand, done));
        }
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                scope.spawn({
                    let queue = &queue;
                    move || produce(queue, producer)
                })
            })
            .collect();
        producers
            .into_iter()
            .for_each(|producer| producer.join().unwrap());
        queue.close();
    });
    is_idle(&queue.snapshot());
    let mut all = 0;
    for (group, done) in done.iter().enumerate() {
        let done = done.lock().unwrap();
        all += done.len();
        let mut last = BTreeMap::new();
        for job in done.iter() {
            let before = last.insert(job.producer, job.number);
            // With more than one unit, completions may cross.
            assert!(
                limit_of(group) > 1 || before < Some(job.number),
                "{before:?} {job:?}"
            );
        }
    }
    assert_eq!(all, PRODUCERS * JOBS as usize);
}

/// Some agents die with claims; a clock that any thread advances brings the jobs back.
#[test]
fn leases_return_what_dead_agents_held_and_each_job_is_done_once() {
    let lease = Duration::from_secs(3);
    let queue = JobQueue::builder()
        .attempts(Limit::Unlimited)
        .lease(lease)
        .build()
        .unwrap();
    let jobs = (0..JOBS as usize).map(|n| (n, n, place(n % GROUPS)));
    queue.push_all(jobs).unwrap();
    queue.close();
    let clock = AtomicU64::new(0);
    let done: Vec<AtomicU32> = (0..JOBS).map(|_| AtomicU32::new(0)).collect();
    thread::scope(|scope| {
        for agent in 0..AGENTS {
            let (queue, clock, done) = (&queue, &clock, &done);
            scope.spawn(move || {
                let mut random = Random(5 + agent as u64);
                loop {
                    let now = clock.fetch_add(1, Ordering::SeqCst);
                    queue.advance(Duration::from_secs(now));
                    let left = of_now(queue.counts());
                    if left == Counts::default() {
                        return;
                    }
                    for mut claim in queue.try_claim(3) {
                        match random.below(6) {
                            // This claim never comes back by itself.
                            0 => std::mem::forget(claim),
                            1 => _ = claim.extend(Duration::from_secs(now + 5)),
                            _ => {
                                let number = *claim;
                                if claim.complete().is_ok() {
                                    done[number].fetch_add(1, Ordering::SeqCst);
                                }
                            }
                        }
                    }
                }
            });
        }
    });
    assert!(done.iter().all(|times| times.load(Ordering::SeqCst) == 1));
    is_idle(&queue.snapshot());
}

/// Two claimers that check and count: never more than the limit, at any moment.
#[test]
fn two_claimers_of_one_group_never_exceed_its_limit() {
    for _ in 0..300 {
        let queue = JobQueue::new();
        queue
            .push_all((0..4).map(|n| (n, n, Place::new().group("g"))))
            .unwrap();
        let start = Arc::new(Barrier::new(2));
        let claims: Vec<_> = [(), ()]
            .map(|()| {
                let (queue, start) = (queue.clone(), start.clone());
                thread::spawn(move || {
                    start.wait();
                    let claims = queue.try_claim(4).into_iter();
                    claims.map(Claim::into_owned).collect::<Vec<_>>()
                })
            })
            .into_iter()
            .flat_map(|claimer| claimer.join().unwrap())
            .collect();
        assert_eq!(claims.len(), 1);
    }
}

/// A push races the last completion, and a close the last claim: no job is stranded.
#[test]
fn a_push_runs_beside_the_last_completion_and_is_refused_beside_the_close() {
    for _ in 0..300 {
        let queue = JobQueue::new();
        queue.push(1, 1, Place::new().group("g")).unwrap();
        let last = queue.try_claim(1).remove(0).into_owned();
        let completer = thread::spawn(move || last.complete().unwrap());
        let pusher = thread::spawn({
            let queue = queue.clone();
            move || {
                queue.push(2, 2, Place::new().group("g")).unwrap();
                queue.close();
            }
        });
        let claims = queue.claim(1).wait().unwrap();
        assert_eq!(*claims[0], 2);
        completer.join().unwrap();
        pusher.join().unwrap();
        claims
            .into_iter()
            .for_each(|claim| _ = claim.complete().unwrap());
        assert!(matches!(queue.claim(1).wait(), Err(Closed)));
    }
}
