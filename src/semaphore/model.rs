//! Loom models of the semaphore, of at most three threads with main.
//! `explore` prints the bound of preemptions of each model (none: every interleaving) and the
//! number of interleavings. A lost wake-up shows as a deadlock, which loom reports.
//!
//! Not modelled: the retries of a thread before it enters the queue, and its watching, which change
//! nothing; and deadlines, which pass at once (`sync`).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::{AcquireError, Permit, Semaphore};
use crate::limit::Bypass;
use crate::sync::{Arc, AtomicUsize, Ordering, explore, spawn};
use crate::wait::{Op, Wait};

fn semaphore(limit: u32, bypass: u32) -> Arc<Semaphore> {
    let semaphore = Semaphore::new(limit).unwrap();
    Arc::new(semaphore.with_bypass(Bypass::AtMost(bypass)))
}

fn poll<O: Op>(wait: &mut Wait<O>) -> Poll<O::Output> {
    Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
}

/// Takes without a permit.
fn take(semaphore: &Semaphore, count: u32) -> bool {
    semaphore.try_acquire(count).map(Permit::pass_on).is_ok()
}

/// Nobody waits, nobody holds a permit, and the state says the same.
fn is_idle(semaphore: &Semaphore, limit: u32) {
    let snapshot = semaphore.snapshot();
    assert_eq!(snapshot.waiters.len(), 0);
    assert_eq!(snapshot.overtakings, 0);
    assert_eq!(snapshot.available, i64::from(limit));
    assert_eq!(snapshot.limit, limit);
    assert!(!semaphore.word.load().has_waiters());
}

/// Adds one under a permit. Relaxed: only the semaphore orders the additions.
fn add(sum: &AtomicUsize) {
    let before = sum.load(Ordering::Relaxed);
    sum.store(before + 1, Ordering::Relaxed);
}

#[test]
fn one_permit_excludes_and_publishes() {
    explore(
        "semaphore_one_permit_excludes_and_publishes",
        Some(3),
        || {
            let semaphore = semaphore(1, 1);
            let sum = Arc::new(AtomicUsize::new(0));
            let others: Vec<_> = (0..2)
                .map(|_| {
                    let (semaphore, sum) = (semaphore.clone(), sum.clone());
                    spawn(move || {
                        let permit = semaphore.acquire(1).wait().unwrap();
                        add(&sum);
                        drop(permit);
                    })
                })
                .collect();
            let permit = semaphore.acquire(1).wait().unwrap();
            add(&sum);
            drop(permit);
            for other in others {
                other.join().unwrap();
            }
            assert_eq!(sum.load(Ordering::Relaxed), 3);
            is_idle(&semaphore, 1);
        },
    );
}

#[test]
fn first_wait_races_first_release() {
    explore("semaphore_first_wait_races_first_release", None, || {
        let semaphore = semaphore(1, 1);
        let permit = semaphore.try_acquire(1).unwrap();
        let waiter = semaphore.clone();
        let waiter = spawn(move || drop(waiter.acquire(1).wait().unwrap()));
        drop(permit);
        waiter.join().unwrap();
        is_idle(&semaphore, 1);
    });
}

/// A notified waiter retries while another thread overtakes it, again and again.
/// The mark must be cleared by the compare-and-swap that found nothing.
#[test]
fn looked_in_vain() {
    explore("semaphore_looked_in_vain", Some(4), || {
        let semaphore = semaphore(1, 8);
        let permit = semaphore.try_acquire(1).unwrap();
        let waiter = semaphore.clone();
        let waiter = spawn(move || drop(waiter.acquire(1).wait().unwrap()));
        drop(permit);
        for _ in 0..2 {
            drop(semaphore.try_acquire(1));
        }
        waiter.join().unwrap();
        is_idle(&semaphore, 1);
    });
}

/// A waiter that is not polled is overtaken once, whichever threads try and whenever.
#[test]
fn overtaken_up_to_the_bound() {
    explore("semaphore_overtaken_up_to_the_bound", Some(3), || {
        let semaphore = semaphore(1, 1);
        let permit = semaphore.try_acquire(1).unwrap();
        let mut wait = semaphore.acquire(1);
        assert!(poll(&mut wait).is_pending());
        let others: Vec<_> = (0..2)
            .map(|_| {
                let semaphore = semaphore.clone();
                spawn(move || {
                    let tries = (0..2).map(|_| usize::from(semaphore.try_acquire(1).is_ok()));
                    tries.sum::<usize>()
                })
            })
            .collect();
        drop(permit);
        let taken = others.into_iter().map(|other| other.join().unwrap());
        assert!(taken.sum::<usize>() <= 1);
        assert!(matches!(poll(&mut wait), Poll::Ready(Ok(_))));
        drop(wait);
        is_idle(&semaphore, 1);
    });
}

/// At the bound every release hands over, and every claim is queued.
#[test]
fn hand_over() {
    explore("semaphore_hand_over", Some(3), || {
        let semaphore = semaphore(1, 0);
        let permit = semaphore.try_acquire(1).unwrap();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let semaphore = semaphore.clone();
                spawn(move || drop(semaphore.acquire(1).wait().unwrap()))
            })
            .collect();
        drop(permit);
        for other in others {
            other.join().unwrap();
        }
        is_idle(&semaphore, 1);
    });
}

/// What was handed to a waiter that is dropped goes to the next.
#[test]
fn hand_over_races_cancel() {
    explore("semaphore_hand_over_races_cancel", Some(4), || {
        let semaphore = semaphore(1, 0);
        let permit = Semaphore::try_acquire_owned(semaphore.clone(), 1).unwrap();
        let mut fickle = semaphore.acquire(1);
        assert!(poll(&mut fickle).is_pending());
        let steady = semaphore.clone();
        let steady = spawn(move || drop(steady.acquire(1).wait().unwrap()));
        let holder = spawn(move || drop(permit));
        drop(fickle);
        holder.join().unwrap();
        steady.join().unwrap();
        is_idle(&semaphore, 1);
    });
}

/// The front asks for more than there is, the next waiter for less.
/// When the front is cancelled nothing is released, and yet the next must go on.
#[test]
fn large_front_cancelled() {
    explore("semaphore_large_front_cancelled", None, || {
        let semaphore = semaphore(2, 0);
        let permit = semaphore.try_acquire(1).unwrap();
        let mut large = semaphore.acquire(2);
        assert!(poll(&mut large).is_pending());
        let small = semaphore.clone();
        let small = spawn(move || drop(small.acquire(1).wait().unwrap()));
        drop(large);
        small.join().unwrap();
        drop(permit);
        is_idle(&semaphore, 2);
    });
}

#[test]
fn timeout_races_grant() {
    explore("semaphore_timeout_races_grant", Some(3), || {
        let semaphore = semaphore(1, 1);
        let permit = semaphore.try_acquire(1).unwrap();
        let hasty = semaphore.clone();
        let hasty = spawn(move || {
            let hour = Duration::from_secs(3600);
            drop(hasty.acquire(1).wait_timeout(hour));
        });
        let steady = semaphore.clone();
        let steady = spawn(move || drop(steady.acquire(1).wait().unwrap()));
        drop(permit);
        hasty.join().unwrap();
        steady.join().unwrap();
        is_idle(&semaphore, 1);
    });
}

/// Two releases of one permit each; one waiter asks for both, another for one.
#[test]
fn two_sizes() {
    explore("semaphore_two_sizes", Some(2), || {
        let semaphore = semaphore(2, 1);
        let first = semaphore.try_acquire(1).unwrap();
        let second = semaphore.try_acquire(1).unwrap();
        let others: Vec<_> = [2, 1]
            .map(|count| {
                let semaphore = semaphore.clone();
                spawn(move || drop(semaphore.acquire(count).wait().unwrap()))
            })
            .into();
        drop(first);
        drop(second);
        for other in others {
            other.join().unwrap();
        }
        is_idle(&semaphore, 2);
    });
}

/// The limit falls below what a waiter asks for, which fails; another goes on.
#[test]
fn lower() {
    explore("semaphore_lower", Some(3), || {
        let semaphore = semaphore(2, 1);
        let permit = semaphore.try_acquire(1).unwrap();
        let large = semaphore.clone();
        let large = spawn(move || large.acquire(2).wait().map(drop));
        let small = semaphore.clone();
        let small = spawn(move || drop(small.acquire(1).wait().unwrap()));
        semaphore.set_limit(1).unwrap();
        drop(permit);
        let large = large.join().unwrap();
        assert!(matches!(large, Ok(()) | Err(AcquireError::AboveLimit)));
        small.join().unwrap();
        is_idle(&semaphore, 1);
    });
}

/// A debt, and a rise of the limit that pays it and frees one more permit.
#[test]
fn lower_and_raise() {
    explore("semaphore_lower_and_raise", None, || {
        let semaphore = semaphore(2, 1);
        let both = semaphore.try_acquire(2).unwrap();
        let waiter = semaphore.clone();
        let waiter = spawn(move || drop(waiter.acquire(1).wait().unwrap()));
        let other = semaphore.clone();
        let other = spawn(move || {
            other.set_limit(1).unwrap();
            other.set_limit(3).unwrap();
        });
        // Only the rise can let it go on.
        waiter.join().unwrap();
        other.join().unwrap();
        drop(both);
        is_idle(&semaphore, 3);
    });
}

/// A thread takes past the limit what a waiter has a right to, and releases it without a permit.
/// The waiter gets it then, if it had not got it before.
#[test]
fn past_races_a_waiter() {
    explore("semaphore_past_races_a_waiter", Some(4), || {
        let semaphore = semaphore(1, 1);
        assert!(take(&semaphore, 1));
        let waiter = semaphore.clone();
        let waiter = spawn(move || drop(waiter.acquire(1).wait().unwrap()));
        let other = semaphore.clone();
        let other = spawn(move || {
            other.acquire_past(1);
            other.release(1);
        });
        semaphore.release(1);
        waiter.join().unwrap();
        other.join().unwrap();
        is_idle(&semaphore, 1);
    });
}

#[test]
fn close() {
    explore("semaphore_close", Some(3), || {
        let semaphore = semaphore(1, 1);
        let permit = semaphore.try_acquire(1).unwrap();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let semaphore = semaphore.clone();
                spawn(move || semaphore.acquire(1).wait().map(drop))
            })
            .collect();
        semaphore.close();
        drop(permit);
        for other in others {
            let result = other.join().unwrap();
            assert!(matches!(result, Ok(()) | Err(AcquireError::Closed)));
        }
        is_idle(&semaphore, 1);
    });
}
