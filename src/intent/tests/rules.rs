//! The rules one by one.

use std::future::Future;
use std::time::Duration;

use super::super::stripes::PATIENCE;
use super::super::{Guard, IntentLock, NotWeaker, Place};
use super::{forms, is_idle, poll, with_held};
use crate::limit::Bypass;
use crate::modes::Mode;
use crate::modes::Mode::{Is, Ix, S, Six, U, X};
use crate::sync::Arc;
use crate::wait::WaiterState;

#[test]
fn every_pair_of_modes() {
    for first in Mode::ALL {
        for second in Mode::ALL {
            for lock in forms() {
                let guard = lock.lock(first).wait();
                let other = lock.try_lock(second);
                assert_eq!(other.is_ok(), first.compatible(second), "{first} {second}");
                drop(other);
                let mut wait = lock.lock(second);
                assert_eq!(poll(&mut wait).is_ready(), first.compatible(second));
                drop((guard, wait));
                is_idle(&lock);
            }
        }
    }
}

#[test]
fn every_downgrade() {
    for (held, to) in Mode::ALL
        .map(|held| Mode::ALL.map(|to| (held, to)))
        .concat()
    {
        for lock in forms() {
            let mut guard = lock.lock(held).wait();
            let outcome = guard.downgrade(to);
            let refused = NotWeaker { held, asked: to };
            assert_eq!(
                outcome,
                if held.covers(to) {
                    Ok(())
                } else {
                    Err(refused)
                }
            );
            let now = if held.covers(to) { to } else { held };
            assert_eq!(guard.mode(), now);
            for other in Mode::ALL {
                assert_eq!(lock.try_lock(other).is_ok(), now.compatible(other));
            }
            drop(guard);
            is_idle(&lock);
        }
    }
}

#[test]
fn a_downgrade_serves() {
    for lock in forms() {
        let mut guard = lock.lock(Six).wait();
        let mut wait = lock.lock(S);
        assert!(poll(&mut wait).is_pending());
        guard.downgrade(S).unwrap();
        assert!(poll(&mut wait).is_ready());
        drop((guard, wait));
        is_idle(&lock);
    }
}

/// First come, first served, where nobody may be overtaken; compatible waiters go on together.
#[test]
fn strict_order() {
    for lock in forms() {
        let lock = lock.with_bypass(Bypass::AtMost(0));
        let first = lock.lock(S).wait();
        let mut writer = lock.lock(X);
        assert!(poll(&mut writer).is_pending());
        let mut readers: Vec<_> = (0..3).map(|_| lock.lock(S)).collect();
        assert!(readers.iter_mut().all(|wait| poll(wait).is_pending()));
        assert!(lock.try_lock(Is).is_err());
        drop(first);
        assert!(readers.iter_mut().all(|wait| poll(wait).is_pending()));
        assert!(matches!(
            lock.snapshot().waiters[0].state,
            WaiterState::Granted
        ));
        let std::task::Poll::Ready(guard) = poll(&mut writer) else {
            panic!("granted");
        };
        drop(guard);
        let guards = readers.iter_mut().map(poll);
        assert!(
            guards
                .collect::<Vec<_>>()
                .iter()
                .all(|guard| guard.is_ready())
        );
        drop((writer, readers));
        is_idle(&lock);
    }
}

/// "waiting upgradable vs plain readers": a waiter for U does not hold up readers.
#[test]
fn readers_pass_a_waiting_update() {
    for lock in forms() {
        let lock = lock.with_bypass(Bypass::AtMost(0));
        let first = lock.lock(U).wait();
        let mut second = lock.lock(U);
        assert!(poll(&mut second).is_pending());
        for _ in 0..100 {
            drop(lock.try_lock(S).unwrap());
            drop(lock.try_lock(Is).unwrap());
        }
        drop(first);
        assert!(poll(&mut second).is_ready());
    }
}

fn states(lock: &IntentLock) -> Vec<WaiterState> {
    let waiters = lock.snapshot().waiters.into_iter();
    waiters.map(|waiter| waiter.state).collect()
}

/// A waiter that conflicts with a notified one ahead is not notified.
/// That holds however often the queue is served.
#[test]
fn who_is_told_keeps_those_behind() {
    let lock = IntentLock::new();
    let first = lock.lock(X).wait();
    let mut waits = [lock.lock(X), lock.lock(S)];
    let mut leaves = lock.lock(S);
    assert!(waits.iter_mut().all(|wait| poll(wait).is_pending()));
    assert!(poll(&mut leaves).is_pending());
    drop(first);
    let [told, waiting] = [WaiterState::Notified, WaiterState::Waiting];
    assert_eq!(states(&lock), [told, waiting, waiting]);
    drop(leaves);
    assert_eq!(states(&lock), [told, waiting]);
}

/// A waiter that waits only for a release is notified by it.
/// That holds although a waiter ahead has been notified and does not retry.
#[test]
fn a_release_is_told_past_one_that_does_not_look() {
    let lock = IntentLock::new();
    let first = lock.lock(U).wait();
    let mut waits = [lock.lock(U), lock.lock(U), lock.lock(S)];
    assert!(poll(&mut waits[0]).is_pending());
    drop(first);
    let overtaker = lock.try_lock(X).unwrap();
    assert!(waits[1..].iter_mut().all(|wait| poll(wait).is_pending()));
    assert!(poll(&mut lock.lock(Is)).is_pending(), "and it leaves again");
    drop(overtaker);
    let told = [
        WaiterState::Notified,
        WaiterState::Waiting,
        WaiterState::Notified,
    ];
    assert_eq!(states(&lock), told);
}

/// A waiter is overtaken as often as the bound allows, and not once more.
/// Then it gets the lock as soon as that is free.
#[test]
fn the_bound_is_counted() {
    for bound in [0, 1, 7, 64, 511] {
        for lock in forms() {
            let lock = lock.with_bypass(Bypass::AtMost(bound));
            let first = lock.lock(Ix).wait();
            let mut wait = lock.lock(S);
            assert!(poll(&mut wait).is_pending());
            drop(first);
            let mut overtaken = 0;
            while let Ok(guard) = lock.try_lock(Ix) {
                overtaken += 1;
                drop(guard);
                assert!(overtaken <= bound);
            }
            assert_eq!(overtaken, bound);
            assert!(lock.try_lock(Is).is_ok());
            assert!(poll(&mut wait).is_ready());
            drop(wait);
            is_idle(&lock);
        }
    }
}

#[test]
fn unbounded_never_queues_takers() {
    let lock = IntentLock::new().with_bypass(Bypass::Unbounded);
    let first = lock.lock(Ix).wait();
    let mut wait = lock.lock(S);
    assert!(poll(&mut wait).is_pending());
    assert!((0..2_000).all(|_| lock.try_lock(Ix).is_ok()));
    drop(first);
    assert!(poll(&mut wait).is_ready());
}

#[test]
fn no_trace_of_who_gave_up() {
    for bound in [0, 3] {
        for lock in forms() {
            let lock = lock.with_bypass(Bypass::AtMost(bound));
            let mut guard = lock.lock(S).wait();
            let waited = lock.lock(X).wait_timeout(Duration::from_millis(1));
            assert!(waited.is_err());
            assert!(guard.convert(X).wait_timeout(Duration::ZERO).is_ok());
            guard.downgrade(S).unwrap();
            let other = lock.lock(S).wait();
            assert!(guard.convert(X).wait_timeout(Duration::ZERO).is_err());
            assert_eq!(lock.snapshot().waiters, []);
            drop((guard, other));
            is_idle(&lock);
        }
    }
}

/// Counts that are full spill, and nothing carries into other bits.
#[test]
fn a_full_count_spills() {
    for mode in [Is, Ix, S] {
        let lock = with_held(mode, 0xFFFF);
        let mut guards: Vec<_> = (0..3).map(|_| lock.lock(mode).wait()).collect();
        assert!(
            guards
                .iter()
                .all(|guard: &Guard<_>| guard.place == Place::Spill)
        );
        assert_eq!(lock.snapshot().held(mode), 0xFFFF + 3);
        for _ in 0..0xFFFF {
            lock.release(mode, Place::Word);
        }
        for other in Mode::ALL {
            assert_eq!(lock.try_lock(other).is_ok(), mode.compatible(other));
        }
        guards.pop();
        let mut wait = lock.lock(X);
        assert!(poll(&mut wait).is_pending());
        guards.pop();
        drop(wait);
        guards[0].convert(X).wait().unwrap();
        assert_eq!(lock.snapshot().held, [0, 0, 0, 0, 0, 1]);
        drop(guards);
        is_idle(&lock);
        assert!(!lock.word.load().is_slow());
    }
}

#[test]
fn a_downgrade_spills_too() {
    let lock = with_held(Is, 0xFFFF);
    let mut guard = lock.lock(S).wait();
    guard.downgrade(Is).unwrap();
    assert_eq!(guard.place, Place::Spill);
    assert_eq!(lock.snapshot().held(Is), 0x1_0000);
    for _ in 0..0xFFFF {
        lock.release(Is, Place::Word);
    }
    assert!(lock.try_lock(X).is_err());
    drop(guard);
    is_idle(&lock);
}

#[test]
fn owned_guards_are_send() {
    fn is_send_sync<T: Send + Sync>(_: &T) {}
    let lock = Arc::new(IntentLock::striped(2));
    let guard = IntentLock::lock_owned(lock.clone(), Ix).wait();
    is_send_sync(&guard);
    is_send_sync(&*lock);
    let moved = std::thread::spawn(move || drop(guard));
    moved.join().unwrap();
    is_idle(&lock);
}

/// Stripes are used again once nobody wants another mode.
/// A guard that converts leaves its stripe for good.
#[test]
fn stripes_open_again() {
    let lock = IntentLock::striped(4);
    let place = |guard: &Guard<&IntentLock>| guard.place;
    let mut guard = lock.lock(Ix).wait();
    assert!(matches!(place(&guard), Place::Stripe(_)));
    assert!(lock.try_lock(S).is_err());
    guard.convert(S).wait().unwrap();
    assert_eq!(place(&guard), Place::Word);
    let weak = lock.lock(Is).wait();
    assert_eq!(place(&weak), Place::Word);
    drop(guard);
    // Not at once: another mode may be wanted again.
    for _ in 0..PATIENCE {
        assert_eq!(place(&lock.lock(Ix).wait()), Place::Word);
    }
    let again = lock.lock(Ix).wait();
    assert!(matches!(place(&again), Place::Stripe(_)));
    drop((again, weak));
    is_idle(&lock);
}

/// Stripes for readers take S, and are shut by IX.
#[test]
fn stripes_for_readers_take_s() {
    let lock = IntentLock::striped_for_readers(4);
    let place = |mode| lock.lock(mode).wait().place;
    let reading = lock.lock(S).wait();
    assert!(matches!(reading.place, Place::Stripe(_)));
    assert!(matches!(place(Is), Place::Stripe(_)));
    assert_eq!(lock.snapshot().held(S), 1);
    assert!(lock.try_lock(Ix).is_err() && lock.try_lock(Six).is_err());
    let update = lock.try_lock(U).unwrap();
    assert_eq!(place(S), Place::Word);
    drop(reading);
    assert!(lock.try_lock(Ix).is_err(), "U is held");
    drop(update);
    assert_eq!(place(Ix), Place::Word);
    for _ in 0..PATIENCE {
        assert_eq!(place(S), Place::Word);
    }
    let mut again = lock.lock(S).wait();
    assert!(matches!(again.place, Place::Stripe(_)));
    again.downgrade(Is).unwrap();
    assert!(lock.try_lock(Ix).is_ok() && lock.try_lock(X).is_err());
    drop(again);
    is_idle(&lock);
}

/// A waker is dropped under no lock, whether it is replaced or its wait is dropped.
/// Here the drop of the waker takes the lock to look at the state.
#[test]
fn wakers_are_dropped_under_no_lock() {
    struct Looks(Arc<IntentLock>);
    impl std::task::Wake for Looks {
        fn wake(self: std::sync::Arc<Self>) {}
    }
    impl Drop for Looks {
        fn drop(&mut self) {
            assert_eq!(self.0.snapshot().overtakings, 0);
        }
    }
    for lock in forms().map(Arc::new) {
        let guard = lock.lock(X).wait();
        let mut wait = lock.lock(S);
        for _ in 0..3 {
            let waker = std::task::Waker::from(std::sync::Arc::new(Looks(lock.clone())));
            let mut cx = std::task::Context::from_waker(&waker);
            let polled = std::pin::Pin::new(&mut wait).poll(&mut cx);
            assert!(polled.is_pending());
        }
        drop(wait);
        drop(guard);
        is_idle(&lock);
    }
}

/// A waiter that was handed the lock counts as notified until it collects it.
#[test]
fn counts_say_who_holds_and_who_waits() {
    for lock in forms() {
        let lock = lock.with_bypass(Bypass::AtMost(0));
        let (is, ix) = (lock.lock(Is).wait(), lock.lock(Ix).wait());
        let mut waits = [lock.lock(X), lock.lock(X)];
        assert!(waits.iter_mut().all(|wait| poll(wait).is_pending()));
        let counts = lock.counts();
        assert_eq!(counts.held, lock.snapshot().held);
        assert_eq!((counts.locks.waiting, counts.locks.notified), (2, 0));
        drop((is, ix));
        let counts = lock.counts();
        assert_eq!((counts.locks.waiting, counts.locks.notified), (1, 1));
        drop(waits);
        is_idle(&lock);
    }
}

/// What is held would let the waiter go on, but a waiter ahead does not.
#[test]
fn one_polled_for_nothing_passes_nobody() {
    for lock in forms() {
        let lock = lock.with_bypass(Bypass::AtMost(0));
        let reader = lock.lock(S).wait();
        let (mut writer, mut behind) = (lock.lock(Ix), lock.lock(S));
        for _ in 0..2 {
            assert!(poll(&mut writer).is_pending() && poll(&mut behind).is_pending());
        }
        drop(writer);
        assert!(poll(&mut behind).is_ready());
        drop((reader, behind));
        is_idle(&lock);
    }
}
