//! Cycles of waits, and which owner gives up.

use std::task::Poll;

use super::super::{Cause, Deadlock, LockError, LockTable};
use super::{Path, Polled, free, owners, path, take};
use crate::modes::Mode::{Ix, S, X};
use crate::wait::WaitCounts;

fn deadlock(poll: Poll<Result<(), LockError<Path>>>) -> Deadlock<Path> {
    match poll {
        Poll::Ready(Err(LockError::Deadlock(deadlock))) => (*deadlock).clone(),
        other => panic!("not a deadlock: {other:?}"),
    }
}

/// PITFALLS: two S holders both upgrade: one deadlock at once, the other proceeds.
#[test]
fn two_holders_of_s_that_upgrade() {
    for mode in [X, Ix] {
        let locks = LockTable::new();
        let r = path([1]);
        let [mut a, mut b] = owners(&locks);
        take(&mut a, &r, S);
        take(&mut b, &r, S);
        let first = Polled::waits(a.lock(&r, mode));
        // The younger of the two gives up: at once, and without having waited.
        let mut second = Polled::new(b.lock(&r, mode));
        let report = deadlock(second.poll());
        drop(second);
        assert_eq!(report.victim, b.id());
        assert_eq!(report.cycle.len(), 2);
        for (link, next) in report.cycle.iter().zip(report.cycle.iter().cycle().skip(1)) {
            assert_eq!((&*link.resource, link.holds), (&r, Some(S)));
            assert_eq!((link.asks, link.in_mode), (S.join(mode), S));
            assert_eq!((link.blocked_by, link.cause), (next.owner, Cause::Holds));
        }
        assert_eq!(*locks.deadlocks()[0], report);
        assert_eq!(locks.deadlocks().len(), 1);
        assert_eq!(b.held(&r), Some(S), "the victim keeps its S");
        assert_eq!(first.woken(), 0);
        b.release(&r).unwrap();
        first.granted();
    }
}

#[test]
fn two_resources_in_opposite_order() {
    let locks = LockTable::new();
    let (r, q) = (path([1, 1]), path([1, 2]));
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &r, X);
    take(&mut b, &q, X);
    let first = Polled::waits(a.lock(&q, X));
    let report = deadlock(Polled::new(b.lock(&r, X)).poll());
    let text = report.to_string();
    assert!(
        text.contains("holds X") && text.contains("[1, 1]"),
        "{text}"
    );
    assert_eq!(b.held(&r), None);
    b.release_all();
    first.granted();
}

/// An owner that retries is spared until it is done, though it holds less and is younger.
#[test]
fn a_victim_that_retries_is_not_the_victim_again() {
    let locks = LockTable::new();
    let (r, q) = (path([1, 1]), path([2, 2]));
    let [mut a, mut b] = owners(&locks);
    for (retries, victim) in [(0, b.id()), (1, a.id()), (1, b.id())] {
        if retries > 0 && victim == a.id() {
            b.retry();
        }
        assert_eq!(b.holdings().count(), 0);
        take(&mut a, &r, X);
        take(&mut b, &q, X);
        let mut first = Polled::waits(a.lock(&q, X));
        let mut second = Polled::new(b.lock(&r, X));
        let report = if victim == second.wait.op_mut().owner.id() {
            deadlock(second.poll())
        } else {
            assert!(second.poll().is_pending());
            deadlock(first.poll())
        };
        assert_eq!(report.victim, victim);
        drop((first, second));
        a.release_all();
        b.release_all();
    }
}

#[test]
fn a_priority_that_is_raised_counts_from_the_next_deadlock_on() {
    let locks = LockTable::new();
    let (r, q) = (path([1, 1]), path([2, 2]));
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &r, X);
    take(&mut b, &q, X);
    let (old, young) = (a.id(), b.priority());
    let mut waits = Polled::waits(a.lock(&q, X));
    young.set(1);
    let closes = Polled::waits(b.lock(&r, X));
    assert_eq!(deadlock(waits.poll()).victim, old);
    drop((waits, closes));
    assert_eq!((a.priority().get(), b.priority().get()), (0, 1));
}

/// The owner that closes the cycle is not the one to give up.
#[test]
fn the_victim_may_be_one_who_waits_already() {
    let locks = LockTable::new();
    let (r, q) = (path([1, 1]), path([2, 2]));
    let (mut low, mut high) = (locks.owner(-1), locks.owner(0));
    take(&mut low, &r, X);
    take(&mut high, &q, X);
    let victim = low.id();
    let mut waits = Polled::waits(low.lock(&q, X));
    let closes = Polled::waits(high.lock(&r, X));
    assert_eq!((waits.woken(), closes.woken()), (1, 0));
    let counts = locks.counts();
    assert_eq!((counts.locks.waiting, counts.locks.notified), (1, 1));
    assert_eq!((counts.contended, counts.deadlocks), (1, 1));
    // Nothing of the failed request is left, though its owner has not seen the error yet.
    for view in locks.snapshot().resources {
        assert!(view.waiters.iter().all(|waiter| waiter.owner != victim));
        let below = view.resource.0[0] == 2;
        assert!(!below || view.holders.iter().all(|&(who, _)| who != victim));
    }
    let report = deadlock(waits.poll());
    drop(waits);
    assert_eq!(
        (report.victim, low.held(&q), low.held(&path([2]))),
        (low.id(), None, None)
    );
    low.release(&r).unwrap();
    let counts = locks.counts();
    assert_eq!((counts.locks.waiting, counts.locks.notified), (0, 1));
    closes.granted();
    assert_eq!(locks.counts().locks, WaitCounts::default());
}

/// Its wait is dropped, as by a time-out, before it looks: the deadlock counts, and nobody is told.
#[test]
fn a_victim_that_never_looks_is_counted() {
    let locks = LockTable::new();
    let (r, q) = (path([1]), path([2]));
    let (mut low, mut high) = (locks.owner(-1), locks.owner(0));
    take(&mut low, &r, X);
    take(&mut high, &q, X);
    let waits = Polled::waits(low.lock(&q, X));
    let closes = Polled::waits(high.lock(&r, X));
    assert_eq!((waits.woken(), closes.woken()), (1, 0));
    drop(waits);
    assert_eq!((locks.counts().deadlocks, locks.deadlocks().len()), (1, 1));
    take(&mut low, &path([3]), X);
    low.release_all();
    closes.granted();
    assert_eq!(locks.counts().deadlocks, 1);
}

#[test]
fn fewest_locks_then_youngest() {
    let locks = LockTable::new();
    let (r, q) = (path([1]), path([2]));
    // The older owner has fewer locks.
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &r, X);
    take(&mut b, &q, X);
    take(&mut b, &path([3]), X);
    let mut first = Polled::waits(a.lock(&q, X));
    let second = Polled::waits(b.lock(&r, X));
    assert_eq!(deadlock(first.poll()).victim, locks.deadlocks()[0].victim);
    drop(first);
    drop(a);
    second.granted();
    b.release_all();
    // Both have as many locks: the younger gives up.
    let [mut a, mut b] = owners(&locks);
    take(&mut b, &q, X);
    take(&mut a, &r, X);
    let second = Polled::waits(b.lock(&r, X));
    let first = Polled::waits(a.lock(&q, X));
    assert_eq!((second.woken(), first.woken()), (1, 0));
    drop((first, second));
    assert_eq!(locks.deadlocks()[1].victim, b.id());
}

/// A waits behind B in a queue, B for H, and H for what A holds.
#[test]
fn soft_edges_close_circles() {
    let locks = LockTable::new();
    let (r, q) = (path([1]), path([2]));
    let [mut h, mut a, mut b] = owners(&locks);
    take(&mut h, &r, S);
    take(&mut a, &q, X);
    // B is first in the queue of r, for X, and waits for H. A waits behind B.
    take(&mut b, &path([3]), X);
    let waits_r = Polled::waits(b.lock_many([(r.clone(), X)]));
    let behind = Polled::waits(a.lock(&r, S));
    let reasons = &locks.snapshot().resources;
    let reasons: Vec<_> = reasons.iter().flat_map(|r| &r.waiters).collect();
    assert_eq!(reasons.len(), 2);
    // H now waits for A, which closes the cycle: H -> A -> B -> H, with A -> B soft.
    let mut last = Polled::new(h.lock(&q, X));
    let poll = last.poll();
    let report = locks.deadlocks().pop().expect("one deadlock");
    assert_eq!(report.cycle.len(), 3);
    let soft = report.cycle.iter().filter(|l| l.cause == Cause::WaitsAhead);
    assert_eq!(soft.count(), 1);
    // H and B have as many locks as A: the youngest gives up.
    assert_eq!(
        report.victim,
        report.cycle.iter().map(|l| l.owner).max().unwrap()
    );
    assert!(poll.is_pending());
    assert_eq!((waits_r.woken(), behind.woken()), (1, 1));
    drop(waits_r);
    behind.granted();
}

#[test]
fn a_chain_without_a_circle_is_no_deadlock() {
    let locks = LockTable::new();
    let mut all: Vec<_> = (0..50).map(|_| locks.owner(0)).collect();
    for (n, owner) in (0..).zip(&mut all) {
        take(owner, &path([n]), X);
    }
    let mut waits: Vec<_> = (0..)
        .zip(all.iter_mut().skip(1))
        .map(|(n, owner)| Polled::waits(owner.lock(&path([n]), X)))
        .collect();
    assert!(locks.deadlocks().is_empty());
    assert!(waits.iter_mut().all(|w| w.poll().is_pending()));
    drop(waits);
    // Once the first owner closes it, the chain is a deadlock.
    let (first, rest) = all.split_first_mut().unwrap();
    let _waits: Vec<_> = (0..)
        .zip(rest)
        .map(|(n, owner)| Polled::waits(owner.lock(&path([n]), X)))
        .collect();
    let _ = Polled::new(first.lock(&path([49]), X)).poll();
    assert_eq!(locks.deadlocks()[0].cycle.len(), 50);
}

#[test]
fn one_wait_may_close_several_circles() {
    let locks = LockTable::new();
    let (r, q) = (path([1]), path([2]));
    let [mut a, mut b] = owners(&locks);
    let mut high = locks.owner(9);
    for owner in [&mut a, &mut b] {
        take(owner, &r, S);
    }
    take(&mut high, &q, X);
    let (mut one, mut two) = (Polled::waits(a.lock(&q, X)), Polled::waits(b.lock(&q, X)));
    let last = Polled::waits(high.lock(&r, X));
    assert_eq!((one.woken(), two.woken(), last.woken()), (1, 1, 0));
    assert_ne!(deadlock(one.poll()), deadlock(two.poll()));
    assert_eq!(locks.deadlocks().len(), 2);
    drop((one, two));
    drop((a, b));
    last.granted();
}

/// The owner that both circles go through was reached from the first victim.
#[test]
fn a_circle_beside_the_victim_is_found_too() {
    let locks = LockTable::new();
    let [r, q, z] = [path([1]), path([2]), path([3])];
    let (mut start, mut both) = (locks.owner(9), locks.owner(5));
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &r, S);
    take(&mut b, &r, S);
    take(&mut both, &q, X);
    take(&mut start, &z, X);
    let (mut one, mut two) = (Polled::waits(a.lock(&q, S)), Polled::waits(b.lock(&q, S)));
    let third = Polled::waits(both.lock(&z, X));
    let last = Polled::waits(start.lock(&r, X));
    for wait in [&mut one, &mut two] {
        assert_eq!(deadlock(wait.poll()).cycle.len(), 3);
    }
    drop((one, two));
    drop((a, b));
    last.granted();
    drop(start);
    third.granted();
}

/// Each is found behind the one before, by the same search.
#[test]
fn one_wait_closes_a_crowd_of_circles() {
    const CROWD: usize = 20_000;
    let locks = LockTable::new();
    let (r, q) = (path([1]), path([2]));
    let (mut high, mut all) = (locks.owner(9), Vec::new());
    take(&mut high, &q, X);
    all.resize_with(CROWD, || locks.owner(0));
    all.iter_mut().for_each(|owner| take(owner, &r, S));
    let waits: Vec<_> = all
        .iter_mut()
        .map(|owner| Polled::waits(owner.lock(&q, X)))
        .collect();
    let last = Polled::waits(high.lock(&r, X));
    for mut wait in waits {
        assert_eq!(deadlock(wait.poll()).cycle.len(), 2);
    }
    assert_eq!(locks.counts().deadlocks, CROWD as u64);
    drop(all);
    last.granted();
}

#[test]
fn only_the_last_deadlocks_are_remembered() {
    let locks = LockTable::new();
    let r = path([1]);
    for _ in 0..40 {
        let [mut a, mut b] = owners(&locks);
        take(&mut a, &r, S);
        take(&mut b, &r, S);
        let _waits = Polled::waits(a.lock(&r, X));
        deadlock(Polled::new(b.lock(&r, X)).poll());
    }
    assert_eq!(locks.deadlocks().len(), 16);
    assert!(locks.is_empty() && free(&locks, &r, X));
}

/// Each owner has one resource, and waits for that of the next.
fn circle_of(locks: &LockTable<Path>, len: u32) {
    let mut all: Vec<_> = (0..len).map(|_| locks.owner(0)).collect();
    (0..)
        .zip(&mut all)
        .for_each(|(n, owner)| take(owner, &path([n]), X));
    let (last, rest) = all.split_last_mut().expect("there are some");
    let asked = (1..).zip(rest);
    let _waits: Vec<_> = asked
        .map(|(n, owner)| Polled::waits(owner.lock(&path([n]), X)))
        .collect();
    assert!(Polled::new(last.lock(&path([0]), X)).poll().is_ready());
}

/// However long they are.
#[test]
fn long_deadlocks_are_forgotten_sooner() {
    let locks = LockTable::new();
    for (len, remembered) in [
        (400, vec![400]),
        (400, vec![400, 400]),
        (224, vec![400, 400, 224]),
        (2, vec![400, 224, 2]),
        (1_100, vec![1_100]),
        (3, vec![3]),
    ] {
        circle_of(&locks, len);
        let lens: Vec<_> = locks.deadlocks().iter().map(|d| d.cycle.len()).collect();
        assert_eq!(lens, remembered);
    }
    assert_eq!(locks.counts().deadlocks, 6);
}

/// Each of many waiters for one lock costs a search, and no search looks at one twice.
#[test]
fn a_long_queue_is_searched_once() {
    let locks = LockTable::new();
    let r = path([1]);
    let mut holder = locks.owner(0);
    take(&mut holder, &r, X);
    let mut all: Vec<_> = (0..1000).map(|_| locks.owner(0)).collect();
    let waits: Vec<_> = all
        .iter_mut()
        .map(|o| Polled::waits(o.lock(&r, X)))
        .collect();
    assert!(locks.deadlocks().is_empty());
    drop(waits);
    assert_eq!(locks.len(), 1);
}
