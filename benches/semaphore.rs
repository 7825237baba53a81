//! Rows S1, S2 and S3 of docs/benchmarks.md with different bounds on overtaking. The
//! peers are in `benches/versus`.
//!
//!     cargo bench --bench semaphore
//!
//! How to choose the bound: a smaller one lets waiters go on sooner, a larger one costs less if
//! threads take turns. Pinned, with two threads and one permit held 1 us, 16 cost 1.06 times an
//! exchange-and-yield loop, 64 1.00 and 256 0.99 (medians of 60 runs of 1 ms): hence the default.
//! With more threads than processors, or many permits, it made no difference beyond the noise.
//! Threads are not pinned here, so while other jobs run the rows held 1 us say little;
//! `benches/versus` pins them.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use conversant::limit::Bypass;
use conversant::semaphore::Semaphore;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Dependent multiplications.
fn work(steps: u64) {
    let mut x = black_box(1u64);
    for _ in 0..steps {
        x = x.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    }
    black_box(x);
}

fn steps_per_microsecond() -> u64 {
    let steps = 1_000_000;
    let runs = (0..9).map(|_| {
        let start = Instant::now();
        work(steps);
        start.elapsed().as_nanos() as u64
    });
    steps * 1_000 / runs.min().expect("some").max(1)
}

fn uncontended(c: &mut Criterion) {
    let mut group = c.benchmark_group("S1 uncontended pair");
    group.throughput(Throughput::Elements(1));
    let semaphore = Semaphore::new(1).unwrap();
    group.bench_function("try_acquire", |b| {
        b.iter(|| drop(semaphore.try_acquire(1).unwrap()));
    });
    group.bench_function("acquire and wait", |b| {
        b.iter(|| drop(semaphore.acquire(1).wait().unwrap()));
    });
    group.finish();
}

/// Wall time for `ops` operations of all threads together.
fn run(semaphore: &Semaphore, threads: u64, ops: u64, hold: u64) -> Duration {
    let start = Barrier::new(threads as usize + 1);
    let each = ops.div_ceil(threads);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..each {
                        let permit = semaphore.acquire(1).wait().unwrap();
                        work(hold);
                        drop(permit);
                    }
                })
            })
            .collect();
        start.wait();
        let begun = Instant::now();
        for thread in all {
            thread.join().unwrap();
        }
        begun.elapsed()
    })
}

fn contended(c: &mut Criterion) {
    let microsecond = steps_per_microsecond();
    for (name, threads, limit, hold) in [
        ("S2 two threads, 1 permit, held 0", 2, 1, 0),
        ("S2 two threads, 1 permit, held 1 us", 2, 1, microsecond),
        ("S3 eight threads, 3 permits, held 1 us", 8, 3, microsecond),
        ("S3 eight threads, 64 permits, held 0", 8, 64, 0),
    ] {
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Elements(1));
        group.sample_size(20);
        for most in [0, 4, 16, 64, 256, 1_024] {
            let semaphore = Semaphore::new(limit).unwrap();
            let semaphore = semaphore.with_bypass(Bypass::AtMost(most));
            group.bench_with_input(
                BenchmarkId::new("bypass", most),
                &semaphore,
                |b, semaphore| {
                    b.iter_custom(|ops| run(semaphore, threads, ops, hold));
                },
            );
        }
        group.finish();
    }
}

criterion_group!(benches, uncontended, contended);
criterion_main!(benches);
