//! Loom models of the lock, of at most three threads with main.
//! `explore` prints the bound of preemptions of each model (none: every interleaving) and the
//! number of interleavings. A lost wake-up shows as a deadlock, which loom reports.
//!
//! Not modelled: the retries of a thread before it enters the queue, which change nothing; more
//! than one stripe; and deadlines, which pass at once (`sync`).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::{Deadlock, IntentLock};
use crate::limit::Bypass;
use crate::modes::Mode;
use crate::sync::{Arc, AtomicUsize, Ordering, explore, spawn};
use crate::wait::{Op, Wait};

fn lock(stripes: Option<usize>, bypass: u32) -> Arc<IntentLock> {
    let lock = stripes.map_or_else(IntentLock::new, IntentLock::striped);
    Arc::new(lock.with_bypass(Bypass::AtMost(bypass)))
}

fn poll<O: Op>(wait: &mut Wait<O>) -> Poll<O::Output> {
    Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
}

/// Nobody waits, nobody holds a mode, and the state says the same.
fn is_idle(lock: &IntentLock) {
    let snapshot = lock.snapshot();
    assert_eq!(snapshot.held, [0; 6]);
    assert_eq!((snapshot.waiters.len(), snapshot.overtakings), (0, 0));
    assert!(!lock.word.load().has_waiters());
}

/// Adds one under a mode that excludes all others that add. Relaxed: only the lock orders them.
fn add(sum: &AtomicUsize) {
    let before = sum.load(Ordering::Relaxed);
    sum.store(before + 1, Ordering::Relaxed);
}

/// Each thread adds one under X; all additions are seen.
fn exclusive_sum(lock: &Arc<IntentLock>, modes: [Mode; 2], mine: Mode) {
    let sum = Arc::new(AtomicUsize::new(0));
    let others = modes.map(|mode| {
        let (lock, sum) = (lock.clone(), sum.clone());
        spawn(move || {
            let guard = lock.lock(mode).wait();
            add(&sum);
            drop(guard);
        })
    });
    let guard = lock.lock(mine).wait();
    add(&sum);
    drop(guard);
    for other in others {
        other.join().unwrap();
    }
    assert_eq!(sum.load(Ordering::Relaxed), 3);
    is_idle(lock);
}

#[test]
fn excludes_and_publishes() {
    explore("intent_excludes_and_publishes", Some(3), || {
        exclusive_sum(&lock(None, 1), [Mode::X, Mode::Six], Mode::X);
    });
}

/// Nobody is overtaken, and everything is handed over.
#[test]
fn hand_over() {
    explore("intent_hand_over", Some(3), || {
        exclusive_sum(&lock(None, 0), [Mode::X, Mode::U], Mode::X);
    });
}

fn s_s_ix_with_cancel(name: &str, bypass: u32, preemptions: Option<usize>) {
    explore(name, preemptions, move || {
        let lock = lock(None, bypass);
        let first = IntentLock::try_lock_owned(lock.clone(), Mode::S).unwrap();
        // IX waits for S, and a later S waits for IX if nobody may be overtaken.
        let mut fickle = lock.lock(Mode::Ix);
        assert!(poll(&mut fickle).is_pending());
        let second = lock.clone();
        let second = spawn(move || drop(second.lock(Mode::S).wait()));
        let holder = spawn(move || drop(first));
        drop(fickle);
        second.join().unwrap();
        holder.join().unwrap();
        is_idle(&lock);
    });
}

#[test]
fn s_s_ix_cancel() {
    s_s_ix_with_cancel("intent_s_s_ix_cancel", 1, Some(3));
}

#[test]
fn s_s_ix_cancel_strict() {
    s_s_ix_with_cancel("intent_s_s_ix_cancel_strict", 0, Some(3));
}

/// The first S stays: only the cancel can let the second S go on.
#[test]
fn cancel_serves() {
    explore("intent_cancel_serves", None, || {
        let lock = lock(None, 0);
        let first = lock.try_lock(Mode::S).unwrap();
        let mut fickle = lock.lock(Mode::Ix);
        assert!(poll(&mut fickle).is_pending());
        let second = lock.clone();
        let second = spawn(move || drop(second.lock(Mode::S).wait()));
        drop(fickle);
        second.join().unwrap();
        drop(first);
        is_idle(&lock);
    });
}

/// A wait that times out races a release and another wait, which goes on.
#[test]
fn timeout_races_grant() {
    explore("intent_timeout_races_grant", Some(3), || {
        let lock = lock(None, 1);
        let first = lock.try_lock(Mode::S).unwrap();
        let hasty = lock.clone();
        let hasty = spawn(move || {
            let hour = Duration::from_secs(3600);
            drop(hasty.lock(Mode::Ix).wait_timeout(hour));
        });
        let steady = lock.clone();
        let steady = spawn(move || drop(steady.lock(Mode::X).wait()));
        drop(first);
        hasty.join().unwrap();
        steady.join().unwrap();
        is_idle(&lock);
    });
}

/// A notified waiter retries while others overtake it.
/// UNNOTIFIED must be set by the compare-and-swap that saw the conflict.
#[test]
fn looked_in_vain() {
    explore("intent_looked_in_vain", Some(4), || {
        let lock = lock(None, 8);
        let first = lock.try_lock(Mode::Ix).unwrap();
        let waiter = lock.clone();
        let waiter = spawn(move || drop(waiter.lock(Mode::S).wait()));
        drop(first);
        for _ in 0..2 {
            drop(lock.try_lock(Mode::Ix));
        }
        waiter.join().unwrap();
        is_idle(&lock);
    });
}

/// A conversion waits for a reader that releases, with another reader behind it.
#[test]
fn conversion_against_release() {
    explore("intent_conversion_against_release", Some(3), || {
        let lock = lock(None, 1);
        let mut mine = lock.try_lock(Mode::S).unwrap();
        let other = IntentLock::try_lock_owned(lock.clone(), Mode::S).unwrap();
        let holder = spawn(move || drop(other));
        let behind = lock.clone();
        let behind = spawn(move || drop(behind.lock(Mode::S).wait()));
        mine.convert(Mode::X).wait().unwrap();
        assert_eq!(lock.snapshot().held(Mode::S), 0);
        drop(mine);
        holder.join().unwrap();
        behind.join().unwrap();
        is_idle(&lock);
    });
}

/// Two readers both convert to change.
/// One is refused, and the other goes on when that one releases.
#[test]
fn conversion_against_conversion() {
    explore("intent_conversion_against_conversion", Some(3), || {
        let lock = lock(None, 1);
        let guards = [(), ()].map(|()| IntentLock::try_lock_owned(lock.clone(), Mode::S).unwrap());
        let others = guards.map(|mut guard| {
            spawn(move || {
                let refused = guard.convert(Mode::X).wait();
                assert_eq!(refused.is_ok(), guard.mode() == Mode::X);
                refused
            })
        });
        let results = others.map(|other| other.join().unwrap());
        let refused = results.iter().filter(|result| result.is_err()).count();
        assert!(refused <= 1);
        let expected = Deadlock {
            held: Mode::S,
            asked: Mode::X,
            other_held: Mode::S,
            other_asked: Mode::X,
        };
        assert!(
            results
                .into_iter()
                .flat_map(Result::err)
                .all(|why| why == expected)
        );
        is_idle(&lock);
    });
}

/// A waiter that is not polled is overtaken once, whichever threads try.
#[test]
fn overtaken_up_to_the_bound() {
    explore("intent_overtaken_up_to_the_bound", Some(3), || {
        let lock = lock(None, 1);
        let first = lock.try_lock(Mode::Ix).unwrap();
        let mut wait = lock.lock(Mode::S);
        assert!(poll(&mut wait).is_pending());
        let others = [(), ()].map(|()| {
            let lock = lock.clone();
            spawn(move || {
                let tries = (0..2).map(|_| usize::from(lock.try_lock(Mode::Ix).is_ok()));
                tries.sum::<usize>()
            })
        });
        drop(first);
        let taken: usize = others.into_iter().map(|other| other.join().unwrap()).sum();
        assert!(taken <= 1);
        assert!(poll(&mut wait).is_ready());
        drop(wait);
        is_idle(&lock);
    });
}

/// Both handshake fences: IX in its stripe and X in the word must not miss each other.
/// And what is done under one of the two is seen under the other.
#[test]
fn striped_weak_against_strong() {
    explore("intent_striped_weak_against_strong", Some(3), || {
        let lock = lock(Some(1), 1);
        let sum = Arc::new(AtomicUsize::new(0));
        let (weak, its) = (lock.clone(), sum.clone());
        let weak = spawn(move || {
            let guard = weak.lock(Mode::Ix).wait();
            add(&its);
            drop(guard);
        });
        let guard = lock.lock(Mode::X).wait();
        add(&sum);
        drop(guard);
        // This opens the stripes again: a claim that enters one then sees what was done under X.
        drop(lock.lock(Mode::Ix).wait());
        weak.join().unwrap();
        assert_eq!(sum.load(Ordering::Relaxed), 2);
        is_idle(&lock);
    });
}

/// The same without waiters, in every interleaving.
/// One thread takes `weak` in a stripe, the other `strong` in the word.
fn handshake(name: &str, lock: fn() -> IntentLock, weak: Mode, strong: Mode) {
    explore(name, None, move || {
        let lock = Arc::new(lock());
        let holders = Arc::new(AtomicUsize::new(0));
        let hold = |lock: &IntentLock, holders: &AtomicUsize, mode| {
            if let Ok(guard) = lock.try_lock(mode) {
                assert_eq!(holders.fetch_add(1, Ordering::Relaxed), 0);
                holders.fetch_sub(1, Ordering::Relaxed);
                drop(guard);
            }
        };
        let (other, its) = (lock.clone(), holders.clone());
        let other = spawn(move || hold(&other, &its, weak));
        hold(&lock, &holders, strong);
        other.join().unwrap();
        is_idle(&lock);
    });
}

#[test]
fn striped_handshake() {
    let lock = || IntentLock::striped(1);
    handshake("intent_striped_handshake", lock, Mode::Ix, Mode::S);
}

#[test]
fn striped_handshake_of_readers() {
    let lock = || IntentLock::striped_for_readers(1);
    handshake(
        "intent_striped_handshake_of_readers",
        lock,
        Mode::S,
        Mode::Ix,
    );
}

/// IX leaves its stripe while X and S wait for that: the mark is seen.
#[test]
fn striped_leave_serves() {
    explore("intent_striped_leave_serves", Some(3), || {
        let lock = lock(Some(1), 1);
        let first = IntentLock::try_lock_owned(lock.clone(), Mode::Ix).unwrap();
        let strong = lock.clone();
        let strong = spawn(move || drop(strong.lock(Mode::X).wait()));
        let weak = spawn(move || drop(first));
        drop(lock.lock(Mode::Is).wait());
        weak.join().unwrap();
        strong.join().unwrap();
        is_idle(&lock);
    });
}

/// A holder in a stripe converts while another thread waits for S.
#[test]
fn striped_conversion() {
    explore("intent_striped_conversion", Some(3), || {
        let lock = lock(Some(1), 1);
        let mut guard = lock.try_lock(Mode::Ix).unwrap();
        let strong = lock.clone();
        let strong = spawn(move || drop(strong.lock(Mode::S).wait()));
        guard.convert(Mode::S).wait().unwrap();
        assert_eq!(guard.mode(), Mode::Six);
        drop(guard);
        strong.join().unwrap();
        is_idle(&lock);
    });
}
