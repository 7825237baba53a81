//! The costs of claims: with and without blocked jobs in front, and 1, 8 or 64 at a time.
//!
//! `cargo bench --bench job_queue`

use conversant::job_queue::{Claim, JobQueue, Place, Scope};
use conversant::limit::Limit;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

type Queue = JobQueue<u64, u64>;

const BLOCKED: [u64; 3] = [0, 10_000, 1_000_000];
const GROUPS: u64 = 1_000;
/// Waiting jobs of each group.
const DEPTH: u64 = 8;

/// Claims up to `n` jobs and completes them; pushes as many, of the same groups, behind all others.
fn round(queue: &Queue, n: usize, next: &mut u64) -> usize {
    let claims = queue.try_claim(n);
    let claimed = claims.len();
    for claim in claims {
        let group = *claim % GROUPS;
        Claim::complete(claim).expect("it has no lease");
        push(queue, next, group);
    }
    claimed
}

fn push(queue: &Queue, next: &mut u64, group: u64) {
    *next += 1;
    let place = Place::new().group(group);
    queue.push(*next, group, place).expect("the queue is open");
}

/// A thousand groups of limit 1 with jobs, behind blocked jobs with smaller keys. Half of the
/// blocked jobs are in one group whose first job is claimed, half in paused groups of eight.
fn queue(blocked: u64) -> (Queue, Vec<Claim<'static, u64, u64>>, u64) {
    let queue = Queue::new();
    let mut next = 0;
    let mut held = Vec::new();
    for n in 0..blocked / 2 {
        push(&queue, &mut next, GROUPS);
        if n == 0 {
            let claims = queue.try_claim(1).into_iter();
            held = claims.map(Claim::into_owned).collect();
        }
    }
    for n in 0..blocked / 2 {
        let group = GROUPS + 1 + n / 8;
        if n % 8 == 0 {
            let paused = queue.set_limit(Scope::group(group), Limit::AtMost(0));
            paused.expect("in range");
        }
        push(&queue, &mut next, group);
    }
    for n in 0..GROUPS * DEPTH {
        push(&queue, &mut next, n % GROUPS);
    }
    (queue, held, next)
}

fn blocked_in_front(c: &mut Criterion) {
    let mut family = c.benchmark_group("claim 8, complete, push; blocked in front");
    family.throughput(Throughput::Elements(8));
    for blocked in BLOCKED {
        let (queue, _held, mut next) = queue(blocked);
        assert_eq!(queue.counts().eligible, GROUPS);
        family.bench_function(BenchmarkId::from_parameter(blocked), |b| {
            b.iter(|| assert_eq!(round(&queue, 8, &mut next), 8));
        });
    }
    family.finish();
}

fn at_a_time(c: &mut Criterion) {
    let mut family = c.benchmark_group("claim n, complete, push; 1k groups");
    for n in [1, 8, 64] {
        let (queue, _held, mut next) = queue(0);
        family.throughput(Throughput::Elements(n as u64));
        family.bench_function(BenchmarkId::from_parameter(n), |b| {
            b.iter(|| assert_eq!(round(&queue, n, &mut next), n));
        });
    }
    family.finish();
}

/// Without pushes, until the queue is empty.
fn draining(c: &mut Criterion) {
    let mut family = c.benchmark_group("claim n and complete; 1k groups");
    for n in [1, 8, 64] {
        family.throughput(Throughput::Elements(GROUPS * DEPTH));
        family.bench_function(BenchmarkId::from_parameter(n), |b| {
            b.iter_batched(
                || queue(0).0,
                |queue| {
                    while queue.counts().eligible > 0 {
                        for claim in queue.try_claim(n) {
                            claim.complete().expect("it has no lease");
                        }
                    }
                    queue
                },
                criterion::BatchSize::PerIteration,
            );
        });
    }
    family.finish();
}

/// Jobs without a group wait. One is claimed and completed, and another is pushed: behind all
/// others, or anywhere among them.
fn order_of_keys(c: &mut Criterion) {
    for (order, is_random) in [("in order", false), ("random", true)] {
        let mut family = c.benchmark_group(format!("claim 1, complete, push; keys {order}"));
        for waiting in [1_000, 100_000, 1_000_000_u64] {
            let queue = Queue::new();
            let (mut last, mut random) = (0, 1_u64);
            let mut push = |first: u64| {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                last += 1;
                let key = match is_random {
                    true => first + (random >> 32) % (2 * waiting),
                    false => last,
                };
                queue
                    .push(key, key, Place::new())
                    .expect("the queue is open");
            };
            (0..waiting).for_each(|_| push(0));
            family.bench_function(BenchmarkId::from_parameter(waiting), |b| {
                b.iter(|| {
                    let claim = queue.try_claim(1).pop().expect("some wait");
                    push(claim.complete().expect("it has no lease").key);
                });
            });
        }
        family.finish();
    }
}

criterion_group!(
    benches,
    blocked_in_front,
    at_a_time,
    draining,
    order_of_keys
);
criterion_main!(benches);
