//! Plain tests of the lock; the races are in `model`.

mod conversions;
mod held;
mod naive;
mod rules;
mod threads;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::IntentLock;
use super::bits::ONE;
use super::word::Word;
use crate::modes::Mode;
use crate::wait::{Op, Wait};

/// A lock with this many holders of a mode.
fn with_held(mode: Mode, count: u64) -> IntentLock {
    let mut lock = IntentLock::new();
    let held = count * ONE[mode as usize];
    lock.word = Word::new(held, IntentLock::DEFAULT_BYPASS);
    lock
}

fn poll<O: Op>(wait: &mut Wait<O>) -> Poll<O::Output> {
    Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
}

/// The lock in both forms.
fn forms() -> [IntentLock; 4] {
    [
        IntentLock::new(),
        IntentLock::striped(1),
        IntentLock::striped(4),
        IntentLock::striped_for_readers(2),
    ]
}

fn is_idle(lock: &IntentLock) {
    let snapshot = lock.snapshot();
    assert_eq!(snapshot.held, [0; 6], "{lock:?}");
    assert_eq!(snapshot.overtakings, 0);
    assert!(snapshot.waiters.is_empty());
    assert!(!lock.word.load().has_waiters());
    assert!(lock.try_lock(Mode::X).is_ok());
}
