//! Threads that start together, pinned, and whether another job preempted them.

use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use core_affinity::CoreId;
use nix::sys::resource::{UsageWho, getrusage};

use crate::contender::Sample;

/// Runs `threads` threads of `ops` operations in all. Each thread calls `prepare` with its number
/// and its share, which returns the timed part. The time is from the first start to the last end.
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
        leg(body)
    };
    let legs: Vec<Leg> = thread::scope(|scope| {
        let run = &run;
        let spawn = |number| scope.spawn(move || run(number));
        let handles: Vec<_> = (0..threads).map(spawn).collect();
        let joined = handles.into_iter().map(|handle| handle.join());
        joined.map(|leg| leg.expect("a thread panicked")).collect()
    });
    let first = legs.iter().map(|leg| leg.start).min().expect("a thread");
    let last = legs.iter().map(|leg| leg.end).max().expect("a thread");
    Sample {
        took: last - first,
        ops: each * threads as u64,
        // With more threads than processors they preempt each other.
        disturbed: threads <= processors() && legs.iter().any(|leg| leg.put_off),
    }
}

/// Runs `ops` operations on this thread.
pub fn alone(ops: u64, body: impl FnOnce()) -> Sample {
    let leg = leg(body);
    Sample {
        took: leg.end - leg.start,
        ops,
        disturbed: leg.put_off,
    }
}

/// Runs `ops` operations on the threads of a pool; `body` returns how long they took.
pub fn pooled(ops: u64, body: impl FnOnce() -> Duration) -> Sample {
    let before = put_off(UsageWho::RUSAGE_SELF);
    let took = body();
    Sample {
        took,
        ops,
        disturbed: put_off(UsageWho::RUSAGE_SELF) != before,
    }
}

/// Spins; sometimes it lets another job have the processor.
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

struct Leg {
    start: Instant,
    end: Instant,
    put_off: bool,
}

fn leg(body: impl FnOnce()) -> Leg {
    let before = put_off(UsageWho::RUSAGE_THREAD);
    let start = Instant::now();
    body();
    let end = Instant::now();
    Leg {
        start,
        end,
        put_off: put_off(UsageWho::RUSAGE_THREAD) != before,
    }
}

/// How often a thread was preempted.
fn put_off(who: UsageWho) -> i64 {
    getrusage(who).map_or(0, |usage| usage.involuntary_context_switches())
}

thread_local! {
    static WORKER: Cell<usize> = const { Cell::new(0) };
}

/// The number that this thread was pinned by.
pub fn worker() -> usize {
    WORKER.get()
}

/// Pins this thread to the processor of this number, modulo the number of processors.
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
