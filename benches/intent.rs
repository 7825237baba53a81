//! Rows L1 to L5 of docs/benchmarks.md, in one word and striped, compared with parking_lot's
//! `RwLock`. `benches/versus` compares with the peers.
//!
//!     cargo bench --bench intent
//!
//! Every figure is wall time for one operation of all threads together.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use conversant::intent::IntentLock;
use conversant::lock_table::{LockTable, Resource};
use conversant::modes::Mode;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use parking_lot::RwLock;

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

fn forms() -> [(&'static str, IntentLock); 3] {
    [
        ("one word", IntentLock::new()),
        ("striped", IntentLock::striped(16)),
        ("striped for readers", IntentLock::striped_for_readers(16)),
    ]
}

/// The lower bound: a word that counts and checks.
fn count(word: &AtomicU64) {
    loop {
        let now = word.load(Ordering::Relaxed);
        if now >> 63 == 0 {
            let next =
                word.compare_exchange_weak(now, now + 1, Ordering::Acquire, Ordering::Relaxed);
            if next.is_ok() {
                return;
            }
        }
    }
}

fn uncontended(c: &mut Criterion) {
    let mut group = c.benchmark_group("L1 uncontended pair");
    group.throughput(Throughput::Elements(1));
    for (form, lock) in forms() {
        for mode in [Mode::Is, Mode::Ix, Mode::S, Mode::X] {
            group.bench_function(BenchmarkId::new(form, mode), |b| {
                b.iter(|| drop(lock.lock(black_box(mode)).wait()));
            });
        }
    }
    let word = AtomicU64::new(0);
    group.bench_function("count word", |b| {
        b.iter(|| {
            count(&word);
            word.fetch_sub(1, Ordering::Release);
        });
    });
    let peer = RwLock::new(());
    group.bench_function("parking_lot read", |b| b.iter(|| drop(peer.read())));
    group.finish();
}

/// Wall time for `ops` operations of two threads together.
fn run(ops: u64, op: impl Fn(u64) + Sync) -> Duration {
    let start = Barrier::new(3);
    let each = ops.div_ceil(2);
    std::thread::scope(|scope| {
        let both: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    (0..each).for_each(&op);
                })
            })
            .collect();
        start.wait();
        let begun = Instant::now();
        for thread in both {
            thread.join().unwrap();
        }
        begun.elapsed()
    })
}

/// How many operations of one kind come in a row in L4.
const PHASE: u64 = 1_000;

fn two_threads(c: &mut Criterion) {
    let microsecond = steps_per_microsecond();
    type Modes = fn(u64) -> Mode;
    let shapes: [(&str, Modes, u64); 6] = [
        ("L2 S beside S", |_| Mode::S, 0),
        ("L2 IX beside IX", |_| Mode::Ix, 0),
        ("L3 IX beside IX held 1 us", |_| Mode::Ix, microsecond),
        ("L4 S and IX in phases", phases, 0),
        ("L5 X", |_| Mode::X, 0),
        ("L5 X held 1 us", |_| Mode::X, microsecond),
    ];
    for (shape, mode, hold) in shapes {
        let mut group = c.benchmark_group(shape);
        group.throughput(Throughput::Elements(1));
        for (form, lock) in forms() {
            group.bench_function(form, |b| {
                b.iter_custom(|ops| {
                    run(ops, |i| {
                        let guard = lock.lock(mode(i)).wait();
                        work(hold);
                        drop(guard);
                    })
                });
            });
        }
        let peer = RwLock::new(());
        group.bench_function("parking_lot", |b| {
            b.iter_custom(|ops| {
                run(ops, |i| {
                    if mode(i) == Mode::S {
                        let guard = peer.read();
                        work(hold);
                        drop(guard);
                    } else {
                        let guard = peer.write();
                        work(hold);
                        drop(guard);
                    }
                })
            });
        });
        group.finish();
    }
}

fn phases(i: u64) -> Mode {
    if (i / PHASE).is_multiple_of(2) {
        Mode::S
    } else {
        Mode::Ix
    }
}

const CROWD: usize = 10_000;

/// Every wait of a crowd begins, then all leave, in this order or the last first.
fn come_and_leave<W: Future + Unpin>(waits: impl Iterator<Item = W>, in_order: bool) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut waits: Vec<W> = waits.collect();
    for wait in &mut waits {
        assert!(Pin::new(wait).poll(&mut cx).is_pending());
    }
    if in_order {
        waits.into_iter().for_each(drop);
    } else {
        waits.into_iter().rev().for_each(drop);
    }
}

/// Which waits leave first.
const ORDERS: [(&str, bool); 2] = [("the last first", false), ("the first first", true)];

fn crowd(c: &mut Criterion) {
    let mut group = c.benchmark_group("10,000 begin to wait and leave");
    group.throughput(Throughput::Elements(CROWD as u64));
    for (form, lock) in forms() {
        let _held = lock.lock(Mode::X).wait();
        for (order, in_order) in ORDERS {
            group.bench_function(BenchmarkId::new(form, order), |b| {
                b.iter(|| come_and_leave((0..CROWD).map(|_| lock.lock(Mode::S)), in_order));
            });
        }
    }
    for (held, asked) in [(Mode::X, Mode::X), (Mode::Ix, Mode::S)] {
        let table = LockTable::new();
        let mut first = table.owner(0);
        first.lock(&Row, held).wait().expect("nobody has it");
        let mut owners: Vec<_> = (0..CROWD).map(|_| table.owner(0)).collect();
        for (order, in_order) in ORDERS {
            let form = format!("lock table, {asked} behind {held}");
            group.bench_function(BenchmarkId::new(form, order), |b| {
                b.iter(|| {
                    let waits = owners.iter_mut().map(|owner| owner.lock(&Row, asked));
                    come_and_leave(waits, in_order);
                });
            });
        }
    }
    group.finish();
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Row;

impl Resource for Row {
    fn parent(&self) -> Option<Self> {
        None
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .sample_size(20);
    targets = uncontended, two_threads, crowd
}
criterion_main!(benches);
