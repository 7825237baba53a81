//! The edges of the state word, and what is taken without a permit.
//! All else is tested from outside, in `tests/locks/semaphore_*.rs`.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::word::Word;
use super::{Permit, Semaphore};
use crate::limit::{Bypass, Limit};
use crate::turnstile::Released;
use crate::wait::WaiterState;
use crate::wait::{Op, Wait};

fn poll<O: Op>(wait: &mut Wait<O>) -> Poll<O::Output> {
    Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
}

/// Takes without a permit.
fn take(semaphore: &Semaphore, count: u32) -> bool {
    semaphore.try_acquire(count).map(Permit::pass_on).is_ok()
}

const MOST: u32 = (1 << 29) - 1;

#[test]
fn bounds_are_clipped_to_what_the_word_counts() {
    for (asked, most) in [(0, 0), (MOST - 1, MOST - 1), (MOST, MOST), (u32::MAX, MOST)] {
        let word = Word::of(1, Bypass::AtMost(asked));
        assert_eq!(word.bypass, Bypass::AtMost(most));
    }
    assert_eq!(Word::of(1, Bypass::Unbounded).bypass, Bypass::Unbounded);
}

/// The count reaches its maximum and does not carry into other bits.
#[test]
fn the_last_overtaking() {
    let word = Word::with_overtakings(5, MOST - 1, Bypass::AtMost(u32::MAX));
    assert!(word.take(1));
    assert_eq!(
        (word.load().available(), word.load().overtakings()),
        (4, MOST)
    );
    assert!(!word.take(1));
    assert_eq!(word.put(1), Released::Serve);
    assert_eq!(
        (word.load().available(), word.load().overtakings()),
        (5, MOST)
    );
}

#[test]
fn unbounded_counts_nothing() {
    let word = Word::with_overtakings(2, 0, Bypass::Unbounded);
    assert!(word.take(1));
    assert_eq!(word.load().overtakings(), 0);
    assert_eq!(word.put(1), Released::Done);
}

/// From the largest limit to the largest debt, and back.
/// Nothing carries into the flags or out of them.
#[test]
fn available_has_the_whole_range() {
    let word = Word::of(Limit::MAX, Bypass::AtMost(0));
    assert!(word.take(Limit::MAX));
    word.shift(-i64::from(Limit::MAX));
    assert_eq!(word.load().available(), -i64::from(Limit::MAX));
    assert!(!word.take(1));
    word.close();
    assert_eq!(word.put(Limit::MAX), Released::Done);
    assert_eq!(word.load().available(), 0);
    assert_eq!(word.load().overtakings(), 0);
    word.shift(i64::from(Limit::MAX));
    assert_eq!(word.load().available(), i64::from(Limit::MAX));
    assert!(word.load().is_closed() && !word.load().has_waiters());
    assert!(!word.take(1));
}

/// Releases need not serve waiters that have been notified, except at the bound.
#[test]
fn who_must_serve() {
    let word = Word::of(1, Bypass::AtMost(2));
    assert!(word.take(1));
    assert_eq!(word.put(1), Released::Done);
    assert!(!word.take_or_wait(2, 0, true));
    assert_eq!(word.put(1), Released::Serve);
    word.all_notified();
    assert_eq!(word.put(1), Released::Done);
    for _ in 0..2 {
        assert!(word.take(1));
    }
    assert_eq!(word.put(1), Released::Serve);
    assert!(!word.take(1));
    // What is available beyond what the waiters ask for may be taken.
    assert!(word.take_or_wait(1, 1, false));
    assert!(word.hand_over(1, false));
    assert_eq!(word.load().overtakings(), 0);
}

/// What the capacity of a `Queue` takes without a permit.
#[test]
fn past_the_limit_is_a_debt() {
    let semaphore = Semaphore::new(2).unwrap();
    assert!(take(&semaphore, 1));
    semaphore.acquire_past(4);
    assert_eq!(semaphore.available(), -3);
    assert!(!take(&semaphore, 1));
    semaphore.release(3);
    assert!(!take(&semaphore, 1));
    semaphore.release(1);
    assert!(take(&semaphore, 1));
    semaphore.release(2);
    assert_eq!(semaphore.available(), 2);
    semaphore.close();
    assert!(!take(&semaphore, 1));
    semaphore.acquire_past(3);
    assert_eq!(semaphore.available(), -1);
    semaphore.release(3);
    assert_eq!(semaphore.available(), 2);
}

/// A notified waiter loses its permit to a caller that takes past the limit.
/// That counts as no overtaking, and the waiter has the permit when the debt is paid.
#[test]
fn past_one_who_waits() {
    let semaphore = Semaphore::new(1).unwrap();
    let semaphore = semaphore.with_bypass(Bypass::AtMost(1));
    assert!(take(&semaphore, 1));
    let mut wait = semaphore.acquire(1);
    assert!(poll(&mut wait).is_pending());
    semaphore.release(1);
    assert_eq!(semaphore.snapshot().waiters[0].state, WaiterState::Notified);
    semaphore.acquire_past(2);
    assert_eq!(semaphore.snapshot().overtakings, 0);
    assert!(poll(&mut wait).is_pending());
    semaphore.release(1);
    assert_eq!(semaphore.snapshot().waiters[0].state, WaiterState::Waiting);
    semaphore.release(1);
    assert_eq!(semaphore.snapshot().waiters[0].state, WaiterState::Notified);
    let Poll::Ready(Ok(permit)) = poll(&mut wait) else {
        panic!("there is one");
    };
    permit.pass_on();
    assert_eq!(semaphore.available(), 0);
    semaphore.release(1);
    assert_eq!(semaphore.available(), 1);
}

/// A debt at the bound: nothing is handed over before the debt is paid.
#[test]
fn past_at_the_bound() {
    let semaphore = Semaphore::new(1).unwrap();
    let semaphore = semaphore.with_bypass(Bypass::AtMost(0));
    semaphore.acquire_past(2);
    let mut wait = semaphore.acquire(1);
    assert!(poll(&mut wait).is_pending());
    semaphore.release(1);
    assert_eq!(semaphore.snapshot().waiters[0].state, WaiterState::Waiting);
    semaphore.release(1);
    assert_eq!(semaphore.snapshot().waiters[0].state, WaiterState::Granted);
    assert!(poll(&mut wait).is_ready());
}

/// Tries without a permit overtake as often as the bound allows, and not once more.
#[test]
fn a_take_obeys_the_bound() {
    for bound in [0, 1, 7] {
        let semaphore = Semaphore::new(2).unwrap();
        let semaphore = semaphore.with_bypass(Bypass::AtMost(bound));
        assert!(take(&semaphore, 2));
        let mut wait = semaphore.acquire(2);
        assert!(poll(&mut wait).is_pending());
        semaphore.release(1);
        let mut overtaken = 0;
        while take(&semaphore, 1) {
            overtaken += 1;
            semaphore.release(1);
            assert!(overtaken <= bound);
        }
        assert_eq!(overtaken, bound);
        semaphore.release(1);
        assert!(!take(&semaphore, 1));
        assert!(poll(&mut wait).is_ready());
    }
}
