//! A table with a bypass: who may overtake, how often, and who is told.

use std::task::Poll;

use super::super::{LockError, LockTable};
use super::{Bypass, Path, Polled, free, owners, path, take};
use crate::modes::Mode::{Is, Ix, S, Six, X};

fn lax(most: u32) -> LockTable<Path> {
    LockTable::new().with_bypass(Bypass::AtMost(most))
}

/// Another owner takes the lock and releases it.
fn overtake(locks: &LockTable<Path>, name: &Path) {
    take(&mut locks.owner(0), name, X);
}

/// How many wait, and how many were woken and have not looked.
fn counts(locks: &LockTable<Path>) -> (usize, usize) {
    let counts = locks.counts().locks;
    (counts.waiting, counts.notified)
}

#[test]
fn a_new_table_is_strict() {
    let locks = LockTable::new();
    let r = path([1]);
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &r, X);
    let waits = Polled::waits(b.lock(&r, X));
    drop(a);
    assert!(!free(&locks, &r, X));
    waits.granted();
}

#[test]
fn a_free_resource_goes_to_who_asks_first() {
    let locks = lax(4);
    let r = path([1]);
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &r, X);
    let waits = Polled::waits(b.lock(&r, X));
    assert_eq!(counts(&locks), (1, 0));
    drop(a);
    assert_eq!((waits.woken(), counts(&locks)), (1, (0, 1)));
    let view = locks.snapshot().resources;
    assert!(view[0].holders.is_empty());
    assert!(view[0].waiters[0].blocked_by.is_empty());
    overtake(&locks, &r);
    // It is told once: it has not looked since.
    assert_eq!((waits.woken(), counts(&locks)), (1, (0, 1)));
    waits.granted();
    drop(b);
    assert!(locks.is_empty());
    assert_eq!(counts(&locks), (0, 0));
}

#[test]
fn one_that_is_too_late_waits_for_the_next_release() {
    let locks = lax(4);
    let r = path([1]);
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &r, X);
    let mut waits = Polled::waits(b.lock(&r, X));
    drop(a);
    let mut quicker = locks.owner(0);
    take(&mut quicker, &r, X);
    assert!(waits.poll().is_pending());
    assert_eq!(counts(&locks), (1, 0));
    drop(quicker);
    assert_eq!((waits.woken(), counts(&locks)), (2, (0, 1)));
    waits.granted();
}

#[test]
fn at_the_bound_requests_queue_and_a_release_hands_over() {
    let locks = lax(3);
    let r = path([1]);
    let [mut a, mut b, mut c] = owners(&locks);
    take(&mut a, &r, X);
    let first = Polled::waits(b.lock(&r, X));
    drop(a);
    for _ in 0..2 {
        overtake(&locks, &r);
    }
    let mut last = locks.owner(0);
    take(&mut last, &r, X);
    let second = Polled::waits(c.lock(&r, X));
    drop(last);
    // It has it before it looks.
    assert_eq!(locks.snapshot().resources[0].waiters.len(), 1);
    assert!(!free(&locks, &r, X));
    first.granted();
    // The count begins again with each grant of the first.
    drop(b);
    for _ in 0..3 {
        overtake(&locks, &r);
    }
    assert!(!free(&locks, &r, X));
    second.granted();
}

#[test]
fn one_that_lets_pass_is_not_overtaken() {
    let locks = lax(1);
    let r = path([1]);
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &r, S);
    let waits = Polled::waits(b.lock(&r, Ix));
    for _ in 0..3 {
        assert!(free(&locks, &r, Is));
    }
    assert!(free(&locks, &r, S));
    assert!(!free(&locks, &r, S));
    drop(a);
    waits.granted();
}

#[test]
fn those_that_fit_beside_the_first_come_with_it() {
    let locks = lax(4);
    let r = path([1]);
    let [mut a, mut b, mut c, mut d] = owners(&locks);
    take(&mut a, &r, X);
    let one = Polled::waits(b.lock(&r, S));
    let two = Polled::waits(c.lock(&r, S));
    let three = Polled::waits(d.lock(&r, X));
    drop(a);
    assert_eq!((one.woken(), two.woken(), three.woken()), (1, 0, 0));
    one.granted();
    two.granted();
    assert_eq!(three.woken(), 0);
    drop((b, c));
    three.granted();
}

#[test]
fn one_that_leaves_passes_the_notice_on() {
    let locks = lax(4);
    let r = path([1]);
    let [mut a, mut b, mut c] = owners(&locks);
    take(&mut a, &r, X);
    let one = Polled::waits(b.lock(&r, X));
    let two = Polled::waits(c.lock(&r, X));
    drop(a);
    assert_eq!((one.woken(), two.woken()), (1, 0));
    drop(one);
    assert_eq!(counts(&locks), (0, 1));
    two.granted();
    drop((b, c));
    assert!(locks.is_empty());
}

#[test]
fn a_closed_table_refuses_one_that_is_to_retry() {
    let locks = lax(4);
    let r = path([1]);
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &r, X);
    let mut waits = Polled::waits(b.lock(&r, X));
    drop(a);
    locks.close();
    assert_eq!(counts(&locks), (0, 1));
    assert_eq!(waits.poll(), Poll::Ready(Err(LockError::Closed)));
    assert_eq!(counts(&locks), (0, 0));
}

/// The quicker one then waits for what the overtaken one holds.
#[test]
fn a_deadlock_with_one_that_overtook_is_found() {
    let locks = lax(4);
    let (r, other) = (path([1]), path([2]));
    let [mut a, mut b, mut c] = owners(&locks);
    take(&mut a, &r, X);
    take(&mut b, &other, X);
    let mut waits = Polled::waits(b.lock(&r, X));
    drop(a);
    c.priority().set(1);
    take(&mut c, &r, X);
    let quicker = Polled::waits(c.lock(&other, X));
    assert!(matches!(
        waits.poll(),
        Poll::Ready(Err(LockError::Deadlock(_)))
    ));
    drop(waits);
    drop(b);
    quicker.granted();
}

#[test]
fn only_a_grant_of_the_first_restarts_the_count() {
    let locks = lax(2);
    let r = path([1]);
    let [mut a, mut b, mut c] = owners(&locks);
    take(&mut a, &r, S);
    let first = Polled::waits(b.lock(&r, Ix));
    assert!(free(&locks, &r, S));
    take(&mut a, &r, X);
    let behind = Polled::waits(c.lock(&r, Is));
    a.downgrade(&r, S).unwrap();
    behind.granted();
    assert_eq!(first.woken(), 0);
    assert!(free(&locks, &r, S));
    assert!(!free(&locks, &r, S));
    drop(a);
    first.granted();
}

/// Each holder overtakes the waiter, and converts ahead of it when the one before has left.
#[test]
fn conversions_that_wait_restart_no_count() {
    let locks = lax(2);
    let r = path([1]);
    let [mut holder, mut b] = owners(&locks);
    take(&mut holder, &r, Ix);
    let waits = Polled::waits(b.lock(&r, S));
    for _ in 0..2 {
        let mut next = locks.owner(0);
        take(&mut next, &r, Ix);
        let converts = Polled::waits(next.lock(&r, S));
        drop(holder);
        converts.granted();
        next.downgrade(&r, Ix).unwrap();
        holder = next;
    }
    assert!(!free(&locks, &r, Ix));
    drop(holder);
    waits.granted();
}

/// Nothing is in its way, and yet it waits until the head of the queue has looked.
#[test]
fn one_behind_the_notified_has_no_blockers() {
    let locks = lax(2);
    let r = path([1]);
    let [mut a, mut b, mut c] = owners(&locks);
    take(&mut a, &r, X);
    let head = Polled::waits(b.lock(&r, Six));
    let behind = Polled::waits(c.lock(&r, Is));
    drop(a);
    assert_eq!(counts(&locks), (1, 1));
    let blockers = |at: usize| locks.snapshot().resources[0].waiters[at].blockers;
    assert_eq!((blockers(0), blockers(1)), (0, 0));
    assert_eq!(behind.woken(), 0);
    head.granted();
    behind.granted();
}
