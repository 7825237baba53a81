//! The semaphore under real threads: permits are conserved, overtaking is counted and bounded,
//! races are repeated.

use crate::semaphore;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use conversant::limit::Bypass;
use conversant::semaphore::Semaphore;
use conversant::wait::WaiterState;

use semaphore::{PolledWait, assert_idle, semaphore, take};

/// A small generator of numbers that is the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Tells the others to stop, also when a check fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Acquires and releases in every possible way; `inside` never exceeds `most`.
fn churn(semaphore: &Semaphore, seed: u64, rounds: usize, inside: &AtomicI64, most: i64) {
    let mut numbers = Numbers(seed | 1);
    for _ in 0..rounds {
        let count = 1 + numbers.below(3) as u32;
        let permit = match numbers.below(5) {
            0 => semaphore.try_acquire(count).ok(),
            1 => semaphore.acquire(count).wait().ok(),
            2 => {
                let short = Duration::from_micros(numbers.below(20));
                semaphore
                    .acquire(count)
                    .wait_timeout(short)
                    .ok()
                    .and_then(Result::ok)
            }
            // Polled up to three times, and dropped.
            3 => {
                let mut polled = PolledWait::new(semaphore, count);
                (0..numbers.below(4))
                    .find_map(|_| match polled.poll() {
                        std::task::Poll::Ready(outcome) => Some(outcome.ok()),
                        std::task::Poll::Pending => None,
                    })
                    .flatten()
            }
            _ => {
                let mut sum = semaphore.acquire(1).wait().ok();
                if let (Some(sum), Ok(more)) = (&mut sum, semaphore.try_acquire(count)) {
                    sum.merge(more).unwrap();
                }
                sum
            }
        };
        let Some(mut permit) = permit else {
            continue;
        };
        let count = i64::from(permit.count());
        assert!(inside.fetch_add(count, Ordering::Relaxed) + count <= most);
        if numbers.below(4) == 0 {
            thread::yield_now();
        }
        let part = permit.split(1);
        inside.fetch_sub(1, Ordering::Relaxed);
        drop(part);
        inside.fetch_sub(count - 1, Ordering::Relaxed);
        drop(permit);
    }
}

#[test]
fn conservation() {
    for (limit, bypass) in [
        (3, Bypass::AtMost(0)),
        (4, Bypass::AtMost(1)),
        (4, Bypass::default()),
        (5, Bypass::Unbounded),
    ] {
        let semaphore = semaphore(limit, bypass);
        let inside = AtomicI64::new(0);
        thread::scope(|scope| {
            for seed in 1..=4 {
                let (semaphore, inside) = (&semaphore, &inside);
                scope.spawn(move || {
                    churn(semaphore, seed * 0x9E37_79B9, 2_000, inside, limit.into());
                });
            }
        });
        assert_idle(&semaphore, limit);
    }
}

/// Grown and shrunk all the while: no underflow, and the last limit counts.
#[test]
fn a_storm_of_limits() {
    let semaphore = semaphore(4, Bypass::AtMost(2));
    let (inside, done) = (AtomicI64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let stop = Stop(&done);
        let storm = scope.spawn(|| {
            let mut numbers = Numbers(7);
            while !done.load(Ordering::Relaxed) {
                semaphore.set_limit(4 + numbers.below(6) as u32).unwrap();
                let snapshot = semaphore.snapshot();
                let out = i64::from(snapshot.limit) - snapshot.available;
                assert!((0..=9).contains(&out), "{snapshot:?}");
            }
        });
        let churns: Vec<_> = (1..=3)
            .map(|seed| {
                let (semaphore, inside) = (&semaphore, &inside);
                scope.spawn(move || churn(semaphore, seed * 31, 3_000, inside, 9))
            })
            .collect();
        for churn in churns {
            churn.join().unwrap();
        }
        drop(stop);
        storm.join().unwrap();
        semaphore.set_limit(5).unwrap();
    });
    assert_idle(&semaphore, 5);
    drop(take(&semaphore, 5));
}

/// A grant races a wait that gives up, a million times.
#[test]
fn a_million_cancels_race_grants() {
    const ROUNDS: usize = 500_000;
    let semaphore = semaphore(1, Bypass::AtMost(1));
    let got = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let mut polled = PolledWait::new(&semaphore, 1);
                    let polled = polled.poll();
                    if polled.is_ready() {
                        got.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert!(got.load(Ordering::Relaxed) > 0);
    assert_idle(&semaphore, 1);
}

/// A grant races a thread's time-out.
#[test]
fn time_outs_race_grants() {
    const ROUNDS: usize = 10_000;
    let semaphore = semaphore(1, Bypass::AtMost(0));
    let late = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for i in 0..ROUNDS {
                    let timeout = Duration::from_nanos((i % 8) as u64 * 1_000);
                    match semaphore.acquire(1).wait_timeout(timeout) {
                        Ok(permit) => drop(permit),
                        Err(_) => {
                            late.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    assert_idle(&semaphore, 1);
}

/// The very first wait races the very first release.
#[test]
fn first_wait_races_first_release() {
    for bypass in [Bypass::AtMost(0), Bypass::default()] {
        for _ in 0..3_000 {
            let semaphore = semaphore(1, bypass);
            let held = take(&semaphore, 1);
            let start = Barrier::new(2);
            thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    drop(semaphore.acquire(1).wait().unwrap());
                });
                start.wait();
                drop(held);
            });
            assert_idle(&semaphore, 1);
        }
    }
}

/// Waits that are made and dropped again and again leave no queued waiter.
#[test]
fn aborted_waits_leave_nobody_in_line() {
    let semaphore = semaphore(2, Bypass::default());
    let held = take(&semaphore, 2);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for i in 0..5_000u32 {
                    drop(PolledWait::waiting(&semaphore, 1 + i % 2));
                }
            });
        }
    });
    assert!(semaphore.snapshot().waiters.is_empty());
    drop(held);
    assert_idle(&semaphore, 2);
}

/// However many threads acquire: queued waiters are overtaken at most as often as the bound says
/// for each grant up to their own.
#[test]
fn overtaking_is_bounded_by_count() {
    for (most, limit) in [(0, 1), (1, 1), (3, 1), (16, 2), (64, 1)] {
        let semaphore = semaphore(limit, Bypass::AtMost(most));
        let held = take(&semaphore, limit);
        let mut waiters: Vec<_> = (0..3)
            .map(|_| PolledWait::waiting(&semaphore, limit))
            .collect();
        let (overtakings, done) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            let _stop = Stop(&done);
            for _ in 0..3 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        if let Ok(permit) = semaphore.try_acquire(1) {
                            overtakings.fetch_add(1, Ordering::Relaxed);
                            drop(permit);
                        }
                    }
                });
            }
            drop(held);
            for (grants, waiter) in (1..).zip(&mut waiters) {
                // Waits until it is handed over, which will surely come.
                // The waker is called after that, without the lock.
                let granted = |state| state == WaiterState::Granted;
                while !granted(semaphore.snapshot().waiters[0].state) || waiter.wakes.count() == 0 {
                    assert!(semaphore.snapshot().overtakings <= most);
                    assert!(overtakings.load(Ordering::Relaxed) <= grants * u64::from(most));
                    thread::yield_now();
                }
                let seen = overtakings.load(Ordering::Relaxed);
                assert!(
                    seen <= grants * u64::from(most),
                    "{seen} for {grants} grants"
                );
                drop(waiter.woken().unwrap());
            }
        });
    }
}

/// Strict order holds for threads: each that blocks is served in its turn.
#[test]
fn blocked_threads_are_served_in_order() {
    let semaphore = semaphore(1, Bypass::AtMost(0));
    let held = take(&semaphore, 1);
    let order = std::sync::Mutex::new(Vec::new());
    thread::scope(|scope| {
        for i in 0..8 {
            let (semaphore, order) = (&semaphore, &order);
            scope.spawn(move || {
                let permit = semaphore.acquire(1).wait().unwrap();
                order.lock().unwrap().push(i);
                drop(permit);
            });
            semaphore::when_waiting(semaphore, i + 1);
        }
        drop(held);
    });
    assert_eq!(order.into_inner().unwrap(), Vec::from_iter(0..8));
}

/// What a thread does under a permit is visible under the next.
#[test]
fn permits_publish() {
    let semaphore = semaphore(1, Bypass::AtMost(4));
    let sum = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let permit = semaphore.acquire(1).wait().unwrap();
                    let before = sum.load(Ordering::Relaxed);
                    sum.store(before + 1, Ordering::Relaxed);
                    drop(permit);
                }
            });
        }
    });
    assert_eq!(sum.into_inner(), 80_000);
    assert_idle(&semaphore, 1);
}

/// Closed in the middle of everything: all threads come back, and all permits too.
#[test]
fn closed_under_way() {
    for round in 0..200 {
        let semaphore = semaphore(2, Bypass::AtMost(round % 3));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while let Ok(permit) = semaphore.acquire(2).wait() {
                        drop(permit);
                    }
                });
            }
            // Each may cost a time slice next to three busy threads.
            for _ in 0..round % 20 {
                thread::yield_now();
            }
            semaphore.close();
        });
        assert_idle(&semaphore, 2);
    }
}

/// Each change of the limit is one step: none is lost in another.
#[test]
fn raised_and_lowered_at_once() {
    let semaphore = semaphore(1000, Bypass::AtMost(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..500).for_each(|_| semaphore.raise(2).unwrap()));
            scope.spawn(|| (0..500).for_each(|_| semaphore.lower(1)));
        }
    });
    assert_eq!(semaphore.limit(), 2000);
    assert_idle(&semaphore, 2000);
}
