//! G1, G2: tiers of eight tasks on two workers.
//!
//! A task adds to its worker's own count, so it touches no cache line that another worker touches.
//! In every sixteenth tier it first checks that all tasks of the earlier tiers are done and none of
//! a later tier is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, ensure};
use conversant::gate::{Ticket, TierGate};
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use crate::contender::{Cell, Entry, Sample};
use crate::race::{pin, pooled, race, wait_until, worker};
use crate::work::work;

const OURS: &str = "conversant TierGate";
const LIMIT: &str = "spin gate, tasks split";
const ONE_BY_ONE: &str = "spin gate, tasks claimed";
const CLAIMED: &str = "conversant TierGate, 4 claimed";
const RAYON: &str = "rayon scope";

const WORKERS: usize = 2;
const TASKS: usize = 8;
/// The tasks of a worker if they are split.
const SHARE: usize = TASKS / WORKERS;

pub fn cells() -> Vec<Cell> {
    let cell =
        |row, title: &str, hold| Cell::new(row, title, move || contenders(hold)).unit("tier");
    vec![
        cell("G1", "tier of 8 trivial tasks, 2 workers", 0)
            .target(OURS, 1.1, ONE_BY_ONE)
            .target(CLAIMED, 1.1, LIMIT)
            .target(CLAIMED, 1.0, RAYON),
        cell("G2", "tier of 8 tasks of 1 us, 2 workers", 1_000)
            .target(OURS, 1.08, ONE_BY_ONE)
            .target(CLAIMED, 1.08, LIMIT)
            .target(CLAIMED, 1.0, RAYON),
    ]
}

fn contenders(hold: u64) -> Vec<Entry> {
    let rayon = rayon::ThreadPoolBuilder::new()
        .num_threads(WORKERS)
        .start_handler(pin)
        .build()
        .expect("a pool");
    let next = AtomicU64::new(0);
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .on_thread_start(move || pin(next.fetch_add(1, Ordering::Relaxed) as usize))
        .build()
        .expect("a runtime");
    let ours = |name, claim, joined_before| {
        Entry::ours(name, move |ops| {
            gate(
                ops,
                hold,
                Usage {
                    claim,
                    joined_before,
                },
            )
        })
    };
    vec![
        Entry::limit(LIMIT, move |ops| split(ops, hold)),
        Entry::limit(ONE_BY_ONE, move |ops| claimed(ops, hold)),
        ours(OURS, 1, true),
        ours("conversant TierGate, joined in time", 1, false),
        ours(CLAIMED, SHARE, true),
        ours(
            "conversant TierGate, 4 claimed, joined in time",
            SHARE,
            false,
        ),
        Entry::peer(RAYON, move |ops| scope(&rayon, ops, hold)),
        Entry::peer("std Barrier, tasks split", move |ops| barrier(ops, hold)),
        Entry::peer("tokio JoinSet", move |ops| join_set(&tokio, ops, hold)),
    ]
}

/// How many tasks each worker has done, and how often one ran at the wrong time.
struct TaskLog {
    done: [CachePadded<AtomicU64>; WORKERS],
    wrong: AtomicU64,
    hold: u64,
}

impl TaskLog {
    fn new(hold: u64) -> Self {
        Self {
            done: Default::default(),
            wrong: AtomicU64::new(0),
            hold,
        }
    }

    /// A task of this tier.
    fn task(&self, tier: u64) {
        if tier.is_multiple_of(16) {
            let before = tier * TASKS as u64;
            let right = before..before + TASKS as u64;
            let wrong = !right.contains(&self.done());
            self.wrong.fetch_add(u64::from(wrong), Ordering::Relaxed);
        }
        work(self.hold);
        // No other thread has this worker's number.
        let done = &self.done[worker()];
        done.store(done.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    fn done(&self) -> u64 {
        let done = self.done.iter();
        done.map(|done| done.load(Ordering::Relaxed)).sum()
    }

    fn check(&self, sample: Sample) -> Result<Sample> {
        let wrong = self.wrong.load(Ordering::Relaxed);
        ensure!(wrong == 0, "{wrong} tasks ran beside another tier");
        let (done, all) = (self.done(), sample.ops * TASKS as u64);
        ensure!(done == all, "{done} tasks of {all}");
        Ok(sample)
    }
}

/// Runs `ops` tiers; the figure is per tier, however many workers share its tasks.
fn tiers(workers: usize, ops: u64, sample: impl FnOnce(u64) -> Sample) -> Sample {
    let sample = sample(ops * workers as u64);
    Sample { ops, ..sample }
}

/// What is left of the open tier. Leaving a task and claiming the next one are one
/// compare-and-swap; the last leaver opens the next tier and claims its first task in it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TierState {
    tier: u64,
    unclaimed: u64,
    unfinished: u64,
}

impl TierState {
    fn of(word: u64) -> Self {
        Self {
            tier: word >> 16,
            unclaimed: word >> 8 & 0xff,
            unfinished: word & 0xff,
        }
    }

    fn word(self) -> u64 {
        self.tier << 16 | self.unclaimed << 8 | self.unfinished
    }

    fn open(tier: u64) -> Self {
        Self {
            tier,
            unclaimed: TASKS as u64,
            unfinished: TASKS as u64,
        }
    }

    /// What is left after a claim.
    fn claim(self) -> Option<Self> {
        let unclaimed = self.unclaimed.checked_sub(1)?;
        Some(Self { unclaimed, ..self })
    }

    fn finish(self) -> Self {
        let unfinished = self.unfinished - 1;
        match unfinished {
            0 => Self::open(self.tier + 1),
            _ => Self { unfinished, ..self },
        }
    }
}

/// Tasks are claimed one by one; a worker that finds none spins.
fn claimed(ops: u64, hold: u64) -> Result<Sample> {
    let log = TaskLog::new(hold);
    let word = CachePadded::new(AtomicU64::new(TierState::open(0).word()));
    // Finishes a task if it has one; claims one if there is any.
    let step = |has: bool| {
        let mut now = word.load(Ordering::Acquire);
        loop {
            let left = TierState::of(now);
            let left = if has { left.finish() } else { left };
            let claimed = left.claim().filter(|_| left.tier < ops);
            let next = claimed.unwrap_or(left).word();
            let task = claimed.map(|left| left.tier);
            if next == now {
                return (task, left.tier);
            }
            let (ok, lost) = (Ordering::AcqRel, Ordering::Acquire);
            match word.compare_exchange_weak(now, next, ok, lost) {
                Ok(_) => return (task, left.tier),
                Err(other) => now = other,
            }
        }
    };
    let sample = tiers(WORKERS, ops, |all| {
        race(WORKERS, all, |_, _| {
            || {
                let mut has = false;
                loop {
                    let (task, open) = step(has);
                    has = task.is_some();
                    match task {
                        Some(tier) => log.task(tier),
                        None if open >= ops => break,
                        None => {
                            wait_until(|| TierState::of(word.load(Ordering::Acquire)).tier > open)
                        }
                    }
                }
            }
        })
    });
    log.check(sample)
}

/// Each worker has its half of every tier, and reports once that it is done with it.
fn split(ops: u64, hold: u64) -> Result<Sample> {
    let log = TaskLog::new(hold);
    let done = CachePadded::new(AtomicU64::new(0));
    let sample = tiers(WORKERS, ops, |all| {
        race(WORKERS, all, |_, _| {
            let (log, done) = (&log, &done);
            move || {
                for tier in 0..ops {
                    wait_until(|| done.load(Ordering::Acquire) >= tier * WORKERS as u64);
                    (0..SHARE).for_each(|_| log.task(tier));
                    done.fetch_add(1, Ordering::AcqRel);
                }
            }
        })
    });
    log.check(sample)
}

/// How a gate is used.
#[derive(Clone, Copy)]
struct Usage {
    /// The tasks that a worker does with one ticket.
    claim: usize,
    /// The tickets are joined before the time is taken; otherwise the workers join them, a few
    /// tiers ahead of their turn.
    joined_before: bool,
}

/// Each worker has its half of the tickets, and goes from one straight to the next.
fn gate(ops: u64, hold: u64, usage: Usage) -> Result<Sample> {
    const AHEAD: u64 = 16;
    let log = TaskLog::new(hold);
    let gate = TierGate::new();
    let number = |tier: u64| u32::try_from(tier).expect("few tiers");
    let join = |tier: u64| (0..SHARE / usage.claim).map(move |_| (tier, number(tier)));
    let join = |tier: u64| join(tier).map(|(tier, number)| (tier, gate.join_ref(number)));
    let ahead = if usage.joined_before {
        ops
    } else {
        AHEAD.min(ops)
    };
    // All of them before any worker enters: a tier without tickets would be skipped.
    let own = |_| Mutex::new((0..ahead).flat_map(join).collect::<VecDeque<_>>());
    let all_tickets: Vec<_> = (0..WORKERS).map(own).collect();
    let sample = tiers(WORKERS, ops, |all| {
        race(WORKERS, all, |worker, _| {
            let mut tickets = std::mem::take(&mut *all_tickets[worker].lock());
            let (log, join) = (&log, &join);
            move || {
                let mut joined = ahead;
                let mut inside: Option<Ticket<&TierGate>> = None;
                while let Some((tier, mut ticket)) = tickets.pop_front() {
                    let entered = inside
                        .take()
                        .is_some_and(|last| last.leave_for(&mut ticket));
                    if !entered {
                        ticket.enter().wait();
                    }
                    (0..usage.claim).for_each(|_| log.task(tier));
                    if joined < ops && tier + AHEAD == joined {
                        // Before it leaves, so that the tier will have all its tickets.
                        tickets.extend(join(joined));
                        joined += 1;
                    }
                    inside = Some(ticket);
                }
            }
        })
    });
    log.check(sample)
}

fn scope(pool: &rayon::ThreadPool, ops: u64, hold: u64) -> Result<Sample> {
    let log = TaskLog::new(hold);
    let whole = || {
        let (start, log) = (Instant::now(), &log);
        for tier in 0..ops {
            rayon::scope(|scope| {
                (0..TASKS).for_each(|_| scope.spawn(move |_| log.task(tier)));
            });
        }
        start.elapsed()
    };
    let sample = pooled(ops, || pool.install(whole));
    log.check(sample)
}

fn barrier(ops: u64, hold: u64) -> Result<Sample> {
    let log = TaskLog::new(hold);
    let barrier = std::sync::Barrier::new(WORKERS);
    let sample = tiers(WORKERS, ops, |all| {
        race(WORKERS, all, |_, _| {
            let (log, barrier) = (&log, &barrier);
            move || {
                for tier in 0..ops {
                    (0..SHARE).for_each(|_| log.task(tier));
                    barrier.wait();
                }
            }
        })
    });
    log.check(sample)
}

fn join_set(runtime: &tokio::runtime::Runtime, ops: u64, hold: u64) -> Result<Sample> {
    let log = Arc::new(TaskLog::new(hold));
    let inside = log.clone();
    let whole = async move {
        let start = Instant::now();
        for tier in 0..ops {
            let mut set = tokio::task::JoinSet::new();
            for _ in 0..TASKS {
                let log = inside.clone();
                set.spawn(async move { log.task(tier) });
            }
            while let Some(done) = set.join_next().await {
                done.expect("no task panics");
            }
        }
        start.elapsed()
    };
    let joined = || runtime.block_on(runtime.spawn(whole));
    log.check(pooled(ops, || joined().expect("it does not panic")))
}
