//! Owners that begin, end and are renewed: their ids, their ages, and what they leave.

use std::collections::HashSet;
use std::task::Poll;

use super::super::{LockError, LockTable, Owner, OwnerId};
use super::bias::{entries, settle};
use super::{Path, Polled, owners, path, take};
use crate::modes::Mode::{Ix, X};

/// The victim of a deadlock between two owners that hold the same number of locks.
fn victim(older: &mut Owner<Path>, other: &mut Owner<Path>) -> OwnerId {
    let (r, q) = (path([1, 1]), path([2, 2]));
    take(older, &r, X);
    take(other, &q, X);
    let mut waits = Polled::waits(older.lock(&q, X));
    let mut closes = Polled::new(other.lock(&r, X));
    let victim = match (closes.poll(), waits.poll()) {
        (Poll::Ready(Err(LockError::Deadlock(report))), Poll::Pending)
        | (Poll::Pending, Poll::Ready(Err(LockError::Deadlock(report)))) => report.victim,
        other => panic!("not one deadlock: {other:?}"),
    };
    drop((waits, closes));
    older.release_all();
    other.release_all();
    victim
}

#[test]
fn who_is_renewed_is_the_youngest() {
    let locks = LockTable::new();
    let [mut a, mut b] = owners(&locks);
    assert_eq!(victim(&mut a, &mut b), b.id());
    // Both have waited before: it must not matter that the wait table knew of them.
    a.renew();
    assert_eq!(victim(&mut a, &mut b), a.id());
    b.renew();
    assert_eq!(victim(&mut a, &mut b), b.id());
}

#[test]
fn who_is_renewed_holds_nothing_and_keeps_its_root() {
    let locks = LockTable::new();
    let [mut a] = owners(&locks);
    settle(&mut a, &path([1, 1]));
    for leaf in 1..4 {
        take(&mut a, &path([1, leaf]), X);
        a.renew();
        assert_eq!((a.holdings().count(), entries(&locks)), (0, 1));
    }
    // More than what was granted last is held: the root, another leaf, one that was granted twice.
    for (more, mode) in [([1].as_slice(), Ix), (&[1, 2], X), (&[1, 1], X), (&[2], X)] {
        take(&mut a, &Path(more.to_vec()), mode);
        take(&mut a, &path([1, 1]), X);
        a.renew();
        let held: Vec<_> = a.holdings().collect();
        assert!(held.is_empty(), "{held:?} after {more:?}");
        assert!(locks.is_empty());
        settle(&mut a, &path([1, 1]));
    }
}

#[test]
fn owners_of_several_threads_are_told_apart() {
    let locks = LockTable::<Path>::new();
    let made: Vec<Owner<Path>> = std::thread::scope(|scope| {
        let make = |first: i32| {
            let locks = &locks;
            scope.spawn(move || (first..first + 40).map(|n| locks.owner(n)).collect())
        };
        let threads: Vec<_> = (0..20).map(|n| make(n * 100)).collect();
        let all = threads.into_iter().map(|thread| thread.join().unwrap());
        all.collect::<Vec<Vec<_>>>().into_iter().flatten().collect()
    });
    let ids: HashSet<_> = made.iter().map(Owner::id).collect();
    assert_eq!((ids.len(), locks.counts().owners), (800, 800));
    let priority = |n: usize| (n / 40 * 100 + n % 40) as i32;
    for (n, owner) in made.iter().enumerate() {
        assert_eq!(owner.priority().get(), priority(n));
        owner.priority().set(-priority(n));
    }
    for (n, owner) in made.into_iter().enumerate() {
        assert_eq!(owner.priority().get(), -priority(n));
        drop(owner);
        assert_eq!(locks.counts().owners, 799 - n);
        assert!(!ids.contains(&locks.owner(0).id()), "no id is given twice");
    }
}

/// What an owner was granted before a close fails if it has not looked since.
#[test]
fn a_close_between_a_grant_and_the_next_poll() {
    let locks = LockTable::new();
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &path([1]), X);
    let mut waits = Polled::waits(b.lock(&path([1]), X));
    a.release_all();
    assert_eq!((waits.woken(), locks.len()), (1, 1));
    locks.close();
    assert_eq!(waits.poll(), Poll::Ready(Err(LockError::Closed)));
    assert!(locks.is_empty());
}
