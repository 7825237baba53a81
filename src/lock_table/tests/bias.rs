//! The intent on a root that an owner keeps: it is invisible, and nobody waits for it.

use std::cell::Cell;
use std::fmt::Debug;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Waker};

use super::super::{Lock, LockError, LockTable, Owner, Resource, ResourceView};
use super::bad_use::{FUSE, burn};
use super::{Path, Polled, free, owners, path, take};
use crate::modes::Mode::{Is, Ix, S, X};
use crate::wait::Wait;

const BLOCKED: Result<(), LockError<Path>> = Err(LockError::WouldBlock);

/// How many entries there are, those of kept intents included.
pub(super) fn entries(locks: &LockTable<Path>) -> usize {
    locks.shared.shards.try_len().expect("nobody is there")
}

/// Leaves the root twice in a row, so that its intent is kept.
pub(super) fn settle<K: Resource + Debug>(owner: &mut Owner<K>, leaf: &K) {
    for _ in 0..2 {
        owner.try_lock(leaf, X).unwrap();
        owner.release(leaf).unwrap();
    }
}

#[test]
fn what_is_left_twice_is_kept_and_nobody_sees_it() {
    let locks = LockTable::new();
    let [mut a] = owners(&locks);
    take(&mut a, &path([1, 1]), X);
    a.release(&path([1, 1])).unwrap();
    assert_eq!(entries(&locks), 0, "once is not enough");
    take(&mut a, &path([1, 2]), X);
    a.release_all();
    assert_eq!(entries(&locks), 1, "kept");
    assert_eq!((a.held(&path([1])), a.holdings().count()), (None, 0));
    take(&mut a, &path([1, 1]), X);
    assert_eq!((entries(&locks), a.held(&path([1]))), (2, Some(Ix)));
    assert_eq!(a.holdings().count(), 2);
    a.release_all();
    assert_eq!(entries(&locks), 1, "kept again");
    assert!(locks.snapshot().resources.is_empty() && locks.is_empty());
    assert_eq!(entries(&locks), 1, "whoever looks");
    drop(a);
    assert_eq!(entries(&locks), 0, "it goes with its owner");
}

#[test]
fn who_conflicts_takes_it_away() {
    let locks = LockTable::new();
    let [mut a, mut b, mut c] = owners(&locks);
    settle(&mut a, &path([1, 1]));
    settle(&mut b, &path([1, 2]));
    take(&mut b, &path([1, 2]), X);
    // The intent of A is idle, and that of B is used.
    assert_eq!(c.try_lock(&path([1]), S), BLOCKED);
    b.release_all();
    take(&mut c, &path([1]), S);
    for owner in [&mut a, &mut b] {
        assert_eq!(owner.try_lock(&path([1, 3]), X), BLOCKED);
        assert_eq!(owner.held(&path([1])), None);
        take(owner, &path([1, 3]), S);
    }
    c.release_all();
    assert_eq!(a.try_lock(&path([1, 3]), X), BLOCKED);
    drop((a, b));
    assert_eq!(entries(&locks), 0);
}

#[test]
fn what_is_used_is_waited_for() {
    let locks = LockTable::new();
    let [mut a, mut b, mut c] = owners(&locks);
    settle(&mut a, &path([1, 1]));
    take(&mut a, &path([1, 1]), X);
    let waits = Polled::waits(b.lock(&path([1]), X));
    let behind = Polled::waits(c.lock(&path([1, 2]), X));
    a.release(&path([1, 1])).unwrap();
    waits.granted();
    b.release_all();
    behind.granted();
    drop((a, c));
    assert_eq!(entries(&locks), 0);
}

#[test]
fn a_leaf_that_is_not_free_leaves_it_idle() {
    let locks = LockTable::new();
    let [mut a, mut b] = owners(&locks);
    settle(&mut a, &path([1, 1]));
    take(&mut b, &path([1, 1]), X);
    assert_eq!(a.try_lock(&path([1, 1]), X), BLOCKED);
    assert_eq!(a.held(&path([1])), None);
    let waits = Polled::waits(a.lock(&path([1, 1]), X));
    b.release_all();
    waits.granted();
    assert!(!free(&locks, &path([1]), S));
    a.release_all();
    assert!(free(&locks, &path([1]), S));
}

#[test]
fn other_modes_other_roots_and_the_root_itself() {
    let locks = LockTable::new();
    let [mut a, mut b] = owners(&locks);
    let leaf = path([1, 1]);
    settle(&mut a, &leaf);
    // It does not hold more than is needed.
    take(&mut a, &leaf, S);
    assert_eq!(a.held(&path([1])), Some(Is));
    take(&mut b, &path([1]), S);
    b.release_all();
    a.release_all();
    settle(&mut a, &leaf);
    take(&mut a, &path([1]), Is);
    take(&mut b, &path([1]), S);
    drop(b);
    a.release_all();
    settle(&mut a, &leaf);
    // A root that is left twice in a row takes the place of the kept one.
    settle(&mut a, &path([2, 1]));
    settle(&mut a, &path([2, 1]));
    assert_eq!(entries(&locks), 1);
    take(&mut a, &leaf, X);
    take(&mut a, &path([2]), X);
    a.release(&path([2])).unwrap();
    a.release(&leaf).unwrap();
    assert!(free(&locks, &path([1]), X) && free(&locks, &path([2]), X));
}

#[test]
fn several_at_once_and_savepoints() {
    let locks = LockTable::new();
    let [mut a, mut b] = owners(&locks);
    let all = [1, 2, 3].map(|n| (path([1, n]), X));
    for _ in 0..4 {
        a.lock_many(all.clone()).wait().unwrap();
        assert_eq!((locks.len(), a.held(&path([1]))), (4, Some(Ix)));
        assert_eq!(b.try_lock(&path([1]), S), BLOCKED);
        let savepoint = a.savepoint();
        take(&mut a, &path([1]), S);
        a.release_to(savepoint).unwrap();
        assert_eq!(a.held(&path([1])), Some(Ix));
        a.release_all();
    }
    for _ in 0..4 {
        let savepoint = a.savepoint();
        a.lock_many(all.clone()).wait().unwrap();
        a.release_to(savepoint).unwrap();
    }
    assert_eq!(entries(&locks), 1);
    take(&mut b, &path([1]), X);
    drop((a, b));
    assert_eq!(entries(&locks), 0);
}

/// A root whose mode is first lowered, and which is then left, in one call.
#[test]
fn it_is_kept_in_the_mode_that_was_needed_last() {
    let locks = LockTable::new();
    let [mut a] = owners(&locks);
    for _ in 0..2 {
        let savepoint = a.savepoint();
        take(&mut a, &path([1, 1]), S);
        take(&mut a, &path([1, 2]), X);
        a.release_to(savepoint).unwrap();
    }
    assert_eq!(entries(&locks), 1);
    take(&mut a, &path([1, 1]), S);
    assert!(free(&locks, &path([1]), S));
    drop(a);
    assert_eq!(entries(&locks), 0);
}

/// The release that gives one root up for another finds a waiter.
#[test]
fn it_is_given_up_beside_one_who_waits() {
    let locks = LockTable::new();
    let [mut a, mut b] = owners(&locks);
    settle(&mut a, &path([1, 1]));
    take(&mut a, &path([2, 1]), X);
    a.release(&path([2, 1])).unwrap();
    take(&mut a, &path([2, 1]), X);
    let waits = Polled::waits(b.lock(&path([2, 1]), X));
    a.release(&path([2, 1])).unwrap();
    waits.granted();
    b.release_all();
    assert_eq!(entries(&locks), 0);
}

/// A snapshot shows the owners that use the root, and leaves the others as they are.
#[test]
fn who_looks_passes_over_it() {
    let locks = LockTable::new();
    let [mut a, mut b, mut c, mut d] = owners(&locks);
    let mut all = [&mut a, &mut b, &mut c, &mut d];
    for (n, owner) in (1..).zip(&mut all) {
        settle(owner, &path([1, n]));
    }
    let seen = |roots: usize| {
        let snapshot = locks.snapshot();
        let root = |view: &&ResourceView<Path>| view.resource == path([1]);
        let holders = snapshot.resources.iter().filter(root);
        let holders: Vec<usize> = holders.map(|view| view.holders.len()).collect();
        assert_eq!(snapshot.resources.len(), locks.len());
        assert_eq!(holders, if roots > 0 { vec![roots] } else { vec![] });
    };
    seen(0);
    for (n, owner) in (1..).zip(&mut all) {
        take(owner, &path([1, 9 + n]), X);
        seen(n as usize);
    }
    for owner in all {
        owner.release_all();
    }
    seen(0);
    assert_eq!(entries(&locks), 1);
    drop(a);
    take(&mut b, &path([1]), Is);
    seen(1);
    take(&mut c, &path([2]), X);
    assert_eq!(locks.len(), 2);
    drop((b, c, d));
    assert_eq!(entries(&locks), 0);
}

/// A request that conflicts on the old root does not touch what its owner keeps now.
#[test]
fn who_gives_one_up_keeps_another() {
    let locks = LockTable::new();
    let [mut a, mut b, mut c] = owners(&locks);
    settle(&mut a, &path([1, 1]));
    settle(&mut b, &path([1, 2]));
    settle(&mut a, &path([2, 1]));
    settle(&mut a, &path([2, 1]));
    take(&mut b, &path([1, 2]), X);
    assert_eq!(c.try_lock(&path([1]), S), BLOCKED);
    take(&mut a, &path([2, 1]), X);
    a.renew();
    take(&mut c, &path([2]), S);
}

#[test]
fn a_request_that_is_not_polled_gives_nothing_up() {
    let locks = LockTable::new();
    let [mut a] = owners(&locks);
    settle(&mut a, &path([1, 1]));
    // S is not the mode of the kept intent.
    drop(a.lock_many([(path([1]), S)]));
    assert_eq!(entries(&locks), 1);
    a.lock_many([(path([1]), S)]).wait().unwrap();
    a.release_all();
    assert_eq!(entries(&locks), 0);
}

thread_local! {
    static MOVED: Cell<bool> = const { Cell::new(false) };
}

/// 1 is in 0, and 0 is in 2 after a move. Its `Clone` panics when the fuse has burnt down.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Brittle(u32);

impl Clone for Brittle {
    fn clone(&self) -> Self {
        burn();
        Brittle(self.0)
    }
}

impl Resource for Brittle {
    fn parent(&self) -> Option<Self> {
        match self.0 {
            1 => Some(Brittle(0)),
            0 if MOVED.get() => Some(Brittle(2)),
            _ => None,
        }
    }
}

/// Polls with a fuse; whether the poll panicked.
fn burns(fuse: u32, wait: &mut Wait<Lock<'_, Brittle>>) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    FUSE.set(fuse);
    let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(wait).poll(&mut cx)));
    FUSE.set(u32::MAX);
    polled.is_err()
}

#[test]
fn a_clone_that_panics_gives_nothing_up() {
    let mut panics = 0;
    for fuse in 0..9 {
        let locks = LockTable::new();
        let [mut a, mut b, mut c] = [(); 3].map(|()| locks.owner(0));
        settle(&mut a, &Brittle(1));
        b.try_lock(&Brittle(1), X).unwrap();
        let mut wait = a.lock(&Brittle(1), X);
        panics += u32::from(burns(fuse, &mut wait));
        b.release_all();
        wait.wait().unwrap();
        let beside = c.try_lock(&Brittle(0), X);
        assert_eq!(beside, Err(LockError::WouldBlock), "fuse {fuse}");
    }
    assert!(panics > 3, "{panics}");
}

#[test]
fn a_clone_that_panics_where_it_is_covered_gives_nothing_up() {
    let mut panics = 0;
    for fuse in 0..9 {
        MOVED.set(false);
        let locks = LockTable::new();
        let mut a = locks.owner(0);
        settle(&mut a, &Brittle(1));
        MOVED.set(true);
        a.try_lock(&Brittle(2), S).unwrap();
        let mut wait = a.lock(&Brittle(0), S);
        let burnt = burns(fuse, &mut wait);
        panics += u32::from(burnt);
        match burnt {
            true => wait.wait().unwrap(),
            false => drop(wait),
        }
        a.try_lock(&Brittle(3), S).unwrap();
        assert_eq!(a.release(&Brittle(0)), Ok(()), "fuse {fuse}");
    }
    assert!(panics > 1, "{panics}");
}
