//! What the scheduler adds to a task: claimed one at a time or several, submitted one at a time or
//! many, and begun by a worker that rests.
//!
//!     cargo bench --bench scheduler
//!
//! Two workers, each pinned to a processor by its first task; times are wall time per task. How to
//! choose the claims: see `Builder::claims`, and the figures in `src/scheduler/state.rs`.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use conversant::scheduler::{Caller, CallerOptions, Place, Scheduler};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Dependent multiplications.
fn work(steps: u64) {
    let mut x = black_box(1u64);
    for _ in 0..steps {
        x = x.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    }
    black_box(x);
}

fn steps_per_microsecond() -> u64 {
    let steps = 100_000;
    let runs = (0..99).map(|_| {
        let start = Instant::now();
        work(steps);
        start.elapsed().as_nanos() as u64
    });
    steps * 1_000 / runs.min().expect("some").max(1)
}

/// A scheduler whose two workers are running, and its caller.
fn two_workers(claims: u32) -> (Scheduler, Caller) {
    let builder = Scheduler::builder().workers(2).claims(claims);
    let scheduler = builder.build().unwrap();
    let caller = scheduler.caller("bench", CallerOptions::default()).unwrap();
    let meet = Arc::new(Barrier::new(2));
    for processor in 0..2 {
        let meet = Arc::clone(&meet);
        let pin = move || {
            let mut set = CpuSet::new();
            set.set(processor);
            // Without a second processor the worker runs anywhere.
            sched_setaffinity(None, &set).ok();
            meet.wait();
            Ok::<_, ()>(())
        };
        caller.exec(pin).unwrap().detach();
    }
    caller.synchronize().wait().unwrap();
    (scheduler, caller)
}

const BACKLOG: u64 = 10_000;

/// Times a backlog from the moment at which it may start until it is done.
fn drain(c: &mut Criterion) {
    let microsecond = steps_per_microsecond();
    for (name, steps) in [("nothing", 0), ("1 us", microsecond)] {
        let mut group = c.benchmark_group(format!("drain a backlog, each task {name}"));
        group.throughput(Throughput::Elements(1)).sample_size(20);
        for claims in [1, 4, 8, 16, 32, 64] {
            let (scheduler, caller) = two_workers(claims);
            group.bench_function(BenchmarkId::new("claims", claims), |b| {
                b.iter_custom(|iterations| {
                    let mut took = Duration::ZERO;
                    let rounds = iterations.div_ceil(BACKLOG);
                    for _ in 0..rounds {
                        let hold = scheduler.hold();
                        let tasks = (0..BACKLOG).map(|_| {
                            move || {
                                work(steps);
                                Ok::<_, ()>(())
                            }
                        });
                        drop(caller.exec_all(Place::new(), tasks).unwrap());
                        let start = Instant::now();
                        drop(hold);
                        let summary = caller.synchronize().wait().unwrap();
                        took += start.elapsed();
                        assert_eq!(summary.ok, BACKLOG);
                    }
                    took.mul_f64(iterations as f64 / (rounds * BACKLOG) as f64)
                });
            });
        }
        group.finish();
    }
}

/// Two threads submit while the workers work.
fn feed(c: &mut Criterion) {
    let mut group = c.benchmark_group("two threads submit, each task nothing");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    for claims in [1, 16] {
        let (_scheduler, caller) = two_workers(claims);
        group.bench_function(BenchmarkId::new("claims", claims), |b| {
            b.iter_custom(|iterations| {
                let start = Instant::now();
                std::thread::scope(|scope| {
                    for _ in 0..2 {
                        scope.spawn(|| {
                            for _ in 0..iterations.div_ceil(2) {
                                caller.exec(|| ()).unwrap().detach();
                            }
                        });
                    }
                });
                caller.synchronize().wait().unwrap();
                start.elapsed()
            });
        });
    }
    group.finish();
}

/// Submitting alone: nothing starts meanwhile.
fn submit(c: &mut Criterion) {
    let mut group = c.benchmark_group("submit");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    let (scheduler, caller) = two_workers(16);
    for batch in [1, 32, 1_000] {
        group.bench_function(BenchmarkId::new("at once", batch), |b| {
            b.iter_custom(|iterations| {
                let mut took = Duration::ZERO;
                let rounds = iterations.div_ceil(BACKLOG);
                for _ in 0..rounds {
                    let hold = scheduler.hold();
                    let start = Instant::now();
                    for _ in 0..BACKLOG / batch {
                        let task = || ();
                        match batch {
                            1 => caller.exec(task).unwrap().detach(),
                            _ => {
                                let tasks = (0..batch).map(|_| task);
                                drop(caller.exec_all(Place::new(), tasks).unwrap());
                            }
                        }
                    }
                    took += start.elapsed();
                    drop(hold);
                    caller.synchronize().wait().unwrap();
                }
                let tasks = rounds * (BACKLOG / batch * batch);
                took.mul_f64(iterations as f64 / tasks as f64)
            });
        });
    }
    group.finish();
}

/// Times a submission until its task begins, after the workers had nothing to do for a while.
fn begin(c: &mut Criterion) {
    let mut group = c.benchmark_group("a worker begins after it had nothing to do");
    group.sample_size(20);
    let (_scheduler, caller) = two_workers(16);
    let began = Arc::new(AtomicU64::new(0));
    for idle in [0, 5, 20, 100] {
        group.bench_function(BenchmarkId::new("us", idle), |b| {
            b.iter_custom(|iterations| {
                let origin = Instant::now();
                let mut took = Duration::ZERO;
                for _ in 0..iterations {
                    let rest = Instant::now();
                    while rest.elapsed() < Duration::from_micros(idle) {
                        std::hint::spin_loop();
                    }
                    began.store(0, SeqCst);
                    let begins = Arc::clone(&began);
                    let before = origin.elapsed();
                    let task = move || {
                        begins.store(origin.elapsed().as_nanos() as u64, SeqCst);
                        Ok::<_, ()>(())
                    };
                    caller.exec(task).unwrap().detach();
                    let at = loop {
                        match began.load(SeqCst) {
                            0 => std::hint::spin_loop(),
                            at => break Duration::from_nanos(at),
                        }
                    };
                    took += at - before;
                }
                took
            });
        });
    }
    group.finish();
}

criterion_group!(benches, drain, feed, submit, begin);
criterion_main!(benches);
