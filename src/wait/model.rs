//! Loom models of waiting. For each, `explore` prints the bound of preemptions (none: every
//! interleaving) and how many interleavings there were.
//!
//! A lost wake-up shows as a deadlock, which loom reports.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::gate::Gate;
use super::parker::Parker;
use crate::sync::{Arc, AtomicUsize, Ordering, WakeArc, explore, spawn};

/// Polls once. Gives back a permit that it gets; otherwise drops the wait.
fn try_and_drop(gate: &Arc<Gate>) {
    let mut wait = pin!(Gate::pass(gate));
    let mut cx = Context::from_waker(Waker::noop());
    if wait.as_mut().poll(&mut cx).is_ready() {
        gate.open(1);
    }
}

#[test]
fn parker_token_first_or_sleep_first() {
    explore("parker_token_first_or_sleep_first", None, || {
        let parker = WakeArc::new(Parker::new());
        let word = Arc::new(AtomicUsize::new(0));
        let waker = Waker::from(parker.clone());
        let there = word.clone();
        let other = spawn(move || {
            there.store(1, Ordering::Relaxed);
            waker.wake();
        });
        parker.sleep(None);
        assert_eq!(word.load(Ordering::Relaxed), 1);
        other.join().unwrap();
    });
}

#[test]
fn parker_two_wakers() {
    explore("parker_two_wakers", Some(3), || {
        let parker = WakeArc::new(Parker::new());
        let words = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let others: Vec<_> = (0..2)
            .map(|i| {
                let waker = Waker::from(parker.clone());
                let words = words.clone();
                spawn(move || {
                    words[i].store(1, Ordering::Relaxed);
                    waker.wake_by_ref();
                })
            })
            .collect();
        while words.iter().any(|word| word.load(Ordering::Relaxed) == 0) {
            parker.sleep(None);
        }
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn first_wait() {
    explore("first_wait", None, || {
        let gate = Gate::new();
        let waiter = gate.clone();
        let waiter = spawn(move || Gate::pass(&waiter).wait());
        gate.open(1);
        waiter.join().unwrap();
        assert_eq!((gate.permits(), gate.waiters()), (0, 0));
    });
}

#[test]
fn notify_races_cancel() {
    explore("notify_races_cancel", Some(3), || {
        let gate = Gate::new();
        let fickle = gate.clone();
        let fickle = spawn(move || try_and_drop(&fickle));
        let steady = gate.clone();
        let steady = spawn(move || Gate::pass(&steady).wait());
        gate.open(1);
        fickle.join().unwrap();
        steady.join().unwrap();
        assert_eq!((gate.permits(), gate.waiters()), (0, 0));
    });
}

#[test]
fn two_notifications_one_waiter_dropped() {
    explore("two_notifications_one_waiter_dropped", Some(3), || {
        let gate = Gate::new();
        let mut fickle = Box::pin(Gate::pass(&gate));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(fickle.as_mut().poll(&mut cx).is_pending());
        let steady = gate.clone();
        let steady = spawn(move || Gate::pass(&steady).wait());
        let opener = gate.clone();
        let opener = spawn(move || {
            opener.open(1);
            opener.open(1);
        });
        drop(fickle);
        opener.join().unwrap();
        steady.join().unwrap();
        assert_eq!((gate.permits(), gate.waiters()), (1, 0));
    });
}

#[test]
fn two_waiters_one_hands_on() {
    explore("two_waiters_one_hands_on", Some(3), || {
        let gate = Gate::new();
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let gate = gate.clone();
                spawn(move || {
                    Gate::pass(&gate).wait();
                    gate.open(1);
                })
            })
            .collect();
        gate.open(1);
        for waiter in waiters {
            waiter.join().unwrap();
        }
        assert_eq!((gate.permits(), gate.waiters()), (1, 0));
    });
}

/// In the model a deadline passes at once (`sync`). A permit that comes before the last look is
/// taken; one that comes after it goes to the other waiter.
#[test]
fn timeout_races_grant() {
    explore("timeout_races_grant", Some(3), || {
        let gate = Gate::new();
        let hasty = gate.clone();
        let hasty = spawn(move || {
            let hour = Duration::from_secs(3600);
            if Gate::pass(&hasty).wait_timeout(hour).is_ok() {
                hasty.open(1);
            }
        });
        let steady = gate.clone();
        let steady = spawn(move || Gate::pass(&steady).wait());
        gate.open(1);
        hasty.join().unwrap();
        steady.join().unwrap();
        assert_eq!((gate.permits(), gate.waiters()), (0, 0));
    });
}

/// A future polled on one thread and finished on another: the second waker is
/// the one that must be woken.
#[test]
fn moved_between_polls() {
    explore("moved_between_polls", None, || {
        let gate = Gate::new();
        let mut wait = Gate::pass(&gate);
        let mut cx = Context::from_waker(Waker::noop());
        let first = std::pin::Pin::new(&mut wait).poll(&mut cx);
        assert_eq!(first, Poll::Pending);
        let waiter = spawn(move || wait.wait());
        gate.open(1);
        waiter.join().unwrap();
        assert_eq!((gate.permits(), gate.waiters()), (0, 0));
    });
}
