//! Threads that start together, pinned, and whether another job disturbed them.

use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use core_affinity::CoreId;
use nix::sys::resource::{UsageWho, getrusage};

use crate::contender::Sample;

/// Runs `ops` operations in all on `threads` threads. `prepare` is called on each with the thread's
/// number and its share, and returns what is timed: from the first start to the last end.
pub fn race<B: FnOnce()>(
    threads: usize,
    ops: u64,
    prepare: impl Fn(usize, u64) -> B + Sync,
) -> Sample {
    let each = ops.div_ceil(threads as u64).max(1);
    if threads == 1 {
        pin(0);
        return alone(each, prepare(0, each));
    }
    let ready = AtomicUsize::new(0);
    let run = |number: usize| {
        pin(number);
        let body = prepare(number, each);
        ready.fetch_add(1, Ordering::AcqRel);
        wait_until(|| ready.load(Ordering::Acquire) == threads);
        time(body)
    };
    let timings: Vec<Timing> = thread::scope(|scope| {
        let run = &run;
        let spawn = |number| scope.spawn(move || run(number));
        let handles: Vec<_> = (0..threads).map(spawn).collect();
        let joined = handles.into_iter().map(|handle| handle.join());
        joined
            .map(|timing| timing.expect("a thread panicked"))
            .collect()
    });
    let first = timings
        .iter()
        .map(|timing| timing.start)
        .min()
        .expect("a thread");
    let last = timings
        .iter()
        .map(|timing| timing.end)
        .max()
        .expect("a thread");
    Sample {
        took: last - first,
        ops: each * threads as u64,
        // If there are more threads than processors, they disturb each other.
        disturbed: threads <= processors() && timings.iter().any(|timing| timing.preempted),
    }
}

/// Runs `ops` operations on this thread.
pub fn alone(ops: u64, body: impl FnOnce()) -> Sample {
    let timing = time(body);
    Sample {
        took: timing.end - timing.start,
        ops,
        disturbed: timing.preempted,
    }
}

/// Runs `ops` operations on the threads of a pool; `body` returns how long they took.
pub fn pooled(ops: u64, body: impl FnOnce() -> Duration) -> Sample {
    let before = preemptions(UsageWho::RUSAGE_SELF);
    let took = body();
    Sample {
        took,
        ops,
        disturbed: preemptions(UsageWho::RUSAGE_SELF) != before,
    }
}

/// Spins, and yields the processor now and then.
pub fn wait_until(open: impl Fn() -> bool) {
    let mut tries = 0_u32;
    while !open() {
        tries += 1;
        match tries % 256 {
            0 => thread::yield_now(),
            _ => spin_loop(),
        }
    }
}

struct Timing {
    start: Instant,
    end: Instant,
    preempted: bool,
}

fn time(body: impl FnOnce()) -> Timing {
    let before = preemptions(UsageWho::RUSAGE_THREAD);
    let start = Instant::now();
    body();
    let end = Instant::now();
    Timing {
        start,
        end,
        preempted: preemptions(UsageWho::RUSAGE_THREAD) != before,
    }
}

/// How often a thread was preempted.
fn preemptions(who: UsageWho) -> i64 {
    getrusage(who).map_or(0, |usage| usage.involuntary_context_switches())
}

thread_local! {
    static WORKER: Cell<usize> = const { Cell::new(0) };
}

/// The number with which this thread was pinned.
pub fn worker() -> usize {
    WORKER.get()
}

/// Pins this thread to processor `number`, modulo the number of processors.
pub fn pin(number: usize) {
    WORKER.set(number);
    let id = number % processors();
    core_affinity::set_for_current(CoreId { id });
}

pub fn processors() -> usize {
    static COUNT: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    // Read once: a pinned thread sees only its own processor.
    *COUNT.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}
