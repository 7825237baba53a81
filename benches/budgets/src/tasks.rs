//! Tasks: submitted, run and ended.

use std::future::poll_fn;
use std::hint::black_box;
use std::sync::mpsc::{Receiver, channel};
use std::task::Poll;
use std::time::Duration;

use conversant::limit::Limit;
use conversant::scheduler::{Caller, CallerOptions, Place, Scheduler, Task};

use super::{GROUPS, Path};

pub(super) const PATHS: &[Path] = &[
    ("task-detached", |n| tasks(n, 64, 0)),
    ("task-detached-of-256", |n| tasks(n, 256, 0)),
    ("task-in-a-serial-group", |n| tasks(n, 64, 8)),
    ("task-in-64-groups", |n| tasks(n, 64, 64)),
    ("task-awaited", awaited),
    ("task-awaited@tasks::submit", awaited),
    ("task-awaited@tasks::run", awaited),
    ("task-awaited@tasks::take_outcomes", awaited),
    ("task-future", futures),
];

type Workers = Receiver<Box<dyn FnOnce() + Send>>;

/// A scheduler whose workers wait for this thread to run them.
fn scheduler() -> (Scheduler, Workers) {
    let (to_run, workers) = channel();
    let pool = move |worker| to_run.send(worker).map_err(|_| "gone".into());
    // A worker is slow here; it still claims as many tasks as elsewhere.
    let builder = Scheduler::builder().claim_time(Duration::MAX);
    let scheduler = builder.workers(1).pool(pool).build();
    (scheduler.expect("in range"), workers)
}

/// `many` tasks a round that nobody waits for, in serial groups if there are any.
fn tasks(rounds: usize, many: usize, groups: usize) -> usize {
    let (scheduler, workers) = scheduler();
    let caller = scheduler
        .caller("all", CallerOptions::default())
        .expect("open");
    let group = |_| caller.group(Limit::SERIAL, 100).expect("in range");
    let groups: Vec<_> = (0..groups).map(group).collect();
    for round in 0..rounds {
        for n in 0..many {
            let place = match groups.get(n % groups.len().max(1)) {
                Some(group) => Place::new().group(group),
                None => Place::new(),
            };
            let task = caller.exec_detached(place, move || Ok::<_, ()>(black_box(round)));
            task.expect("open");
        }
        workers.try_iter().for_each(|worker| worker());
    }
    many
}

fn awaited(rounds: usize) -> usize {
    let (scheduler, workers) = scheduler();
    let caller = scheduler
        .caller("all", CallerOptions::default())
        .expect("open");
    let mut tasks = Vec::new();
    for round in 0..rounds {
        submit(&caller, &mut tasks, round);
        run(&workers);
        take_outcomes(&mut tasks);
    }
    GROUPS
}

#[inline(never)]
fn submit(caller: &Caller, tasks: &mut Vec<Task<usize, ()>>, round: usize) {
    for _ in 0..GROUPS {
        let task = caller.exec(move || Ok::<_, ()>(black_box(round)));
        tasks.push(task.expect("open"));
    }
}

/// Includes the endings.
#[inline(never)]
fn run(workers: &Workers) {
    workers.try_iter().for_each(|worker| worker());
}

#[inline(never)]
fn take_outcomes(tasks: &mut Vec<Task<usize, ()>>) {
    for mut task in tasks.drain(..) {
        black_box(task.outcome().wait().expect("it has run"));
    }
}

/// Futures that await once, and wake themselves.
fn futures(rounds: usize) -> usize {
    let (scheduler, workers) = scheduler();
    let caller = scheduler
        .caller("all", CallerOptions::default())
        .expect("open");
    for round in 0..rounds {
        for _ in 0..GROUPS {
            let mut awaited = false;
            let once = poll_fn(move |cx| {
                if std::mem::replace(&mut awaited, true) {
                    return Poll::Ready(Ok::<_, ()>(black_box(round)));
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            });
            caller.spawn_detached(Place::new(), once).expect("open");
        }
        workers.try_iter().for_each(|worker| worker());
    }
    GROUPS
}
