//! E1 to E6: tasks of a scheduler, compared with those of pools. C6: with many workers.
//!
//! One thread submits, two workers run, or more. Each task counts itself on its worker's own cache line; the
//! time ends when all have run. A task in a group also checks that it is the next of its group.

mod serial;

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Poll};
use std::time::Instant;

use anyhow::{Result, ensure};
use conversant::limit::Limit;
use conversant::scheduler::{Caller, CallerOptions, Group, Place, Scheduler};
use crossbeam_utils::CachePadded;

use crate::contender::{Cell, Entry, Sample};
use crate::race::{pin, pooled, wait_until, worker};
use crate::work::work;

const WORKERS: usize = 2;
const MOST_WORKERS: usize = 64;
const MICROSECOND: u64 = 1_000;
/// The default of a scheduler.
const CLAIMS: u32 = 32;
/// Groups of E3.
const GROUPS: usize = 64;
/// Tasks that are submitted in one call.
const BATCH: u64 = 256;
/// Tasks whose outcomes are awaited before more are submitted.
const WINDOW: u64 = 1_000;

const OURS: &str = "conversant Scheduler";
const BATCHED: &str = "conversant Scheduler, 256 at once";
const RAYON: &str = "rayon spawn";
const TOKIO: &str = "tokio spawn";
const STRANDS: &str = "rayon strands of boxed closures";
const ONE: &str = "1 caller";

pub fn cells() -> Vec<Cell> {
    let cell =
        |row, title: &str, build: fn() -> Vec<Entry>| Cell::new(row, title, build).unit("task");
    vec![
        cell("E1", "trivial tasks, detached", || detached(0, WORKERS))
            .target(OURS, 1.2, RAYON)
            .target(BATCHED, 0.6, RAYON),
        cell("E2", "outcomes awaited in order", awaited).target(OURS, 0.8, TOKIO),
        cell("E3", "64 serial groups", serial::serial).target(OURS, 1.0, STRANDS),
        cell("E4", "tasks of 1 us, detached", || {
            detached(MICROSECOND, WORKERS)
        })
        .target(OURS, 1.05, RAYON),
        cell("E5", "futures that await once, detached", futures).target(OURS, 1.3, TOKIO),
        cell(
            "E6",
            "callers with weights, a cap for every other, 256 levels",
            callers,
        )
        .target("6 callers", 1.3, ONE)
        .target("64 callers", 1.3, ONE),
        cell("C6", "trivial tasks, detached, 8 workers", || {
            detached(0, 8)
        }),
        cell("C6", "trivial tasks, detached, 64 workers", || {
            detached(0, MOST_WORKERS)
        }),
    ]
}

/// How many tasks each worker has run.
struct Count([CachePadded<AtomicU64>; MOST_WORKERS]);

impl Count {
    fn one(&self) {
        // No other thread has this worker's number.
        let own = &self.0[worker()];
        own.store(own.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    fn all(&self) -> u64 {
        self.0.iter().map(|own| own.load(Ordering::Acquire)).sum()
    }
}

/// From the first submission until all have run.
fn timed(ops: u64, submit: impl FnOnce(&Arc<Count>)) -> Result<Sample> {
    let count = Arc::new(Count(std::array::from_fn(|_| CachePadded::default())));
    let sample = pooled(ops, || {
        let start = Instant::now();
        submit(&count);
        wait_until(|| count.all() >= ops);
        start.elapsed()
    });
    ensure!(count.all() == ops, "{} tasks of {ops}", count.all());
    Ok(sample)
}

fn task(count: &Arc<Count>, hold: u64) -> impl FnOnce() + Send + 'static {
    let count = Arc::clone(count);
    move || {
        work(hold);
        count.one();
    }
}

/// As our scheduler takes tasks.
fn fallible(task: impl FnOnce()) -> impl FnOnce() -> Result<(), ()> {
    move || {
        task();
        Ok(())
    }
}

fn rayon(workers: usize) -> rayon::ThreadPool {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(workers);
    pool.start_handler(pin).build().expect("a pool")
}

fn tokio(workers: usize) -> tokio::runtime::Runtime {
    let next = AtomicU64::new(0);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .on_thread_start(move || pin(next.fetch_add(1, Ordering::Relaxed) as usize))
        .build()
        .expect("a runtime")
}

/// With running workers, each pinned to a processor.
fn scheduler(workers: usize, claims: u32) -> Scheduler {
    let builder = Scheduler::builder().workers(workers as u32).claims(claims);
    let scheduler = builder.build().expect("in range");
    let caller = caller(&scheduler, CallerOptions::default());
    let barrier = Arc::new(Barrier::new(workers));
    for number in 0..workers {
        let barrier = Arc::clone(&barrier);
        let meet = move || {
            pin(number);
            barrier.wait();
        };
        caller.exec(fallible(meet)).expect("open").detach();
    }
    caller.synchronize().wait().expect("they come");
    scheduler
}

fn caller(scheduler: &Scheduler, options: CallerOptions) -> Caller {
    scheduler.caller("bench", options).expect("open")
}

fn detached(hold: u64, workers: usize) -> Vec<Entry> {
    let (rayon, tokio) = (rayon(workers), tokio(workers));
    let ours = |name: &str, claims| {
        let scheduler = scheduler(workers, claims);
        let caller = caller(&scheduler, CallerOptions::default());
        Entry::ours(name, move |ops| {
            // It goes with the last run.
            let _keep = &scheduler;
            timed(ops, |count| {
                for _ in 0..ops {
                    let task = fallible(task(count, hold));
                    caller.exec_detached(Place::new(), task).expect("open");
                }
            })
        })
    };
    vec![
        ours(OURS, CLAIMS),
        ours("conversant Scheduler, exact order", 1),
        batched(hold, workers),
        Entry::peer(RAYON, move |ops| {
            timed(ops, |count| {
                (0..ops).for_each(|_| rayon.spawn(task(count, hold)));
            })
        }),
        Entry::peer(TOKIO, move |ops| {
            timed(ops, |count| {
                for _ in 0..ops {
                    let task = task(count, hold);
                    drop(tokio.spawn(async move { task() }));
                }
            })
        }),
    ]
}

fn batched(hold: u64, workers: usize) -> Entry {
    let scheduler = scheduler(workers, CLAIMS);
    let caller = caller(&scheduler, CallerOptions::default());
    Entry::ours(BATCHED, move |ops: u64| {
        let ops = ops.next_multiple_of(BATCH);
        let _keep = &scheduler;
        timed(ops, |count| {
            for _ in 0..ops / BATCH {
                let batch = (0..BATCH).map(|_| fallible(task(count, hold)));
                caller.exec_all_detached(Place::new(), batch).expect("open");
            }
        })
    })
}

fn awaited() -> Vec<Entry> {
    let (rayon, tokio) = (rayon(WORKERS), tokio(WORKERS));
    let scheduler = scheduler(WORKERS, CLAIMS);
    let caller = caller(&scheduler, CallerOptions::default());
    vec![
        Entry::ours(OURS, move |ops| {
            let _keep = &scheduler;
            windows(ops, |n| {
                let task = caller.exec(move || Ok::<_, ()>(n)).expect("open");
                move || {
                    let mut task = task;
                    let outcome = task.outcome().wait().expect("nobody is in its way");
                    match outcome.verdict {
                        conversant::scheduler::Verdict::Ok(n) => n,
                        _ => u64::MAX,
                    }
                }
            })
        }),
        Entry::peer("rayon spawn, std mpsc", move |ops| {
            windows(ops, |n| {
                let (sender, receiver) = mpsc::channel();
                rayon.spawn(move || sender.send(n).expect("somebody waits"));
                move || receiver.recv().expect("it has run")
            })
        }),
        Entry::peer(TOKIO, move |ops| {
            windows(ops, |n| {
                let task = tokio.spawn(async move { n });
                let runtime = tokio.handle().clone();
                move || runtime.block_on(task).expect("it does not panic")
            })
        }),
    ]
}

/// Submits some tasks, and awaits them in order.
fn windows<W: FnOnce() -> u64>(ops: u64, submit: impl Fn(u64) -> W) -> Result<Sample> {
    let ops = ops.next_multiple_of(WINDOW);
    let mut wrong = 0;
    let sample = pooled(ops, || {
        let start = Instant::now();
        for first in (0..ops).step_by(WINDOW as usize) {
            let some = first..first + WINDOW;
            let waits: Vec<W> = some.clone().map(&submit).collect();
            let results = waits.into_iter().map(|wait| wait());
            wrong += some.zip(results).filter(|(n, result)| n != result).count();
        }
        start.elapsed()
    });
    ensure!(wrong == 0, "{wrong} outcomes of other tasks");
    Ok(sample)
}

/// Is woken while it is polled for the first time, and ready when polled again.
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

async fn yields(task: impl FnOnce()) {
    Yield(false).await;
    task();
}

fn futures() -> Vec<Entry> {
    let tokio = tokio(WORKERS);
    let scheduler = scheduler(WORKERS, CLAIMS);
    let caller = caller(&scheduler, CallerOptions::default());
    vec![
        Entry::ours(OURS, move |ops| {
            let _keep = &scheduler;
            timed(ops, |count| {
                for _ in 0..ops {
                    let future = yields(task(count, 0));
                    let future = async move {
                        future.await;
                        Ok::<_, ()>(())
                    };
                    caller.spawn_detached(Place::new(), future).expect("open");
                }
            })
        }),
        Entry::peer(TOKIO, move |ops| {
            timed(ops, |count| {
                for _ in 0..ops {
                    drop(tokio.spawn(yields(task(count, 0))));
                }
            })
        }),
    ]
}

fn callers() -> Vec<Entry> {
    let some = [(ONE, 1), ("6 callers", 6), ("64 callers", 64)];
    some.map(|(name, count)| many_callers(name, count)).into()
}

/// The callers have groups without limit, at 256 levels in all.
fn many_callers(name: &str, count: usize) -> Entry {
    const LEVELS: usize = 256;
    let scheduler = scheduler(WORKERS, CLAIMS);
    let options = |n: usize| CallerOptions {
        weight: 1 + n as u32 % 4,
        cap: match n % 2 {
            0 => Limit::Unlimited,
            _ => Limit::AtMost(64),
        },
        ..CallerOptions::default()
    };
    let callers: Vec<_> = (0..count)
        .map(|n| {
            let caller = caller(&scheduler, options(n));
            let own = (n..LEVELS).step_by(count).map(|level| level as u8);
            let group = |level| caller.group(Limit::Unlimited, level).expect("in range");
            let groups: Vec<Group> = own.map(group).collect();
            (caller, groups)
        })
        .collect();
    Entry::ours(name, move |ops| {
        let _keep = &scheduler;
        timed(ops, |done| {
            for n in 0..ops as usize {
                let (caller, groups) = &callers[n % count];
                let place = Place::new().group(&groups[n / count % groups.len()]);
                let task = fallible(task(done, 0));
                caller.exec_detached(place, task).expect("open");
            }
        })
    })
}
