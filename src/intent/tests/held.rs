//! Modes held without a guard, and guards through a handle of the user's.

use std::cell::Cell;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use super::super::{IntentLock, Place};
use super::{forms, is_idle, poll, with_held};
use crate::modes::Mode::{self, Is, Ix, S, X};
use crate::sync::Arc;

/// A lock inside another structure.
struct Table {
    lock: IntentLock,
}

/// A handle to the lock of a table, which it keeps alive.
#[derive(Clone)]
struct LockOf(Arc<Table>);

impl Deref for LockOf {
    type Target = IntentLock;

    fn deref(&self) -> &IntentLock {
        &self.0.lock
    }
}

#[test]
fn a_mode_without_its_guard_is_held_until_it_has_one_again() {
    for lock in forms() {
        for mode in Mode::ALL {
            let held = lock.lock(mode).wait().into_held();
            assert_eq!((held.mode(), lock.snapshot().held(mode)), (mode, 1));
            assert!(lock.try_lock(X).is_err());
            drop(held.into_guard(&lock).unwrap());
            is_idle(&lock);
        }
    }
}

#[test]
fn a_mode_that_spilled_is_given_back_from_there() {
    let lock = with_held(Is, 0xFFFF);
    let guard = lock.lock(Is).wait();
    assert_eq!(guard.place, Place::Spill);
    let held = guard.into_held();
    for _ in 0..0xFFFF {
        lock.release(Is, Place::Word);
    }
    assert!(lock.try_lock(X).is_err());
    drop(held.into_guard(&lock).unwrap());
    is_idle(&lock);
}

#[test]
fn another_lock_is_refused() {
    let (lock, other) = (IntentLock::new(), IntentLock::new());
    let (held, beside) = (lock.lock(S).wait().into_held(), other.lock(S).wait());
    let held = held.into_guard(&other).unwrap_err();
    assert_eq!((lock.snapshot().held(S), other.snapshot().held(S)), (1, 1));
    drop((held.into_guard(&lock).unwrap(), beside));
    is_idle(&lock);
    is_idle(&other);
}

#[test]
fn a_conversion_that_waits_is_given_up() {
    let lock = IntentLock::new();
    let (mut guard, other) = (lock.lock(S).wait(), lock.lock(S).wait());
    let mut wait = guard.convert(X);
    assert!(poll(&mut wait).is_pending());
    std::mem::forget(wait);
    let held = guard.into_held();
    assert!(lock.snapshot().waiters.is_empty());
    drop((held.into_guard(&lock).unwrap(), other));
    is_idle(&lock);
}

#[test]
fn a_guard_may_lead_to_its_lock_by_anything() {
    let table = LockOf(Arc::new(Table {
        lock: IntentLock::new(),
    }));
    let first = IntentLock::try_lock_owned(table.clone(), Ix).unwrap();
    let mut wait = IntentLock::lock_owned(table.clone(), S);
    assert!(poll(&mut wait).is_pending());
    // The handle is dropped, the mode stays held.
    let held = first.into_held();
    assert_eq!(Arc::strong_count(&table.0), 2);
    drop(held.into_guard(table.clone()).unwrap());
    let second = wait.wait();
    assert_eq!(second.lock().snapshot().held(S), 1);
    drop(second);
    is_idle(&table);
    assert_eq!(Arc::strong_count(&table.0), 1);
}

/// Leads to its lock only while the queue is not locked.
struct Unlocked(Arc<IntentLock>);

impl Deref for Unlocked {
    type Target = IntentLock;

    fn deref(&self) -> &IntentLock {
        assert!(self.0.queue.try_lock().is_some());
        &self.0
    }
}

/// Its lock cannot be reached while this is set.
struct Broken(Arc<IntentLock>, Rc<Cell<bool>>);

impl Deref for Broken {
    type Target = IntentLock;

    fn deref(&self) -> &IntentLock {
        assert!(!self.1.get());
        &self.0
    }
}

#[test]
fn a_downgrade_that_cannot_reach_its_lock_changes_nothing() {
    let (lock, broken) = (Arc::new(IntentLock::new()), Rc::default());
    let handle = Broken(Arc::clone(&lock), Rc::clone(&broken));
    let mut guard = IntentLock::lock_owned(handle, X).wait();
    broken.set(true);
    assert!(catch_unwind(AssertUnwindSafe(|| guard.downgrade(S))).is_err());
    broken.set(false);
    assert_eq!((guard.mode(), lock.snapshot().held(X)), (X, 1));
    drop(guard);
    assert_eq!(lock.snapshot().held, [0; 6]);
}

#[test]
fn a_handle_of_the_users_is_followed_under_no_lock() {
    let lock = Arc::new(with_held(Is, 0xFFFF));
    let mut guard = IntentLock::lock_owned(Unlocked(lock.clone()), S).wait();
    guard.downgrade(Is).unwrap();
    assert_eq!(guard.place, Place::Spill);
    guard.convert(Ix).wait().unwrap();
    let mut wait = guard.convert(X);
    assert!(poll(&mut wait).is_pending());
    drop(wait);
    drop(guard);
    assert_eq!(lock.snapshot().held(Is), 0xFFFF);
}
