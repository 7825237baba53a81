//! The plain way of a request and of a release, next to the way that knows all rules.

use std::cell::Cell;
use std::hash::{Hash, Hasher};

use super::super::{LockTable, ReleaseError, Resource};
use super::bias::{entries, settle};
use super::{free, owners, path, take};
use crate::modes::Mode::{self, Is, Ix, S, X};

/// An owner that releases everything has no children left at the root that it keeps.
#[test]
fn a_root_that_is_kept_counts_nobody_who_left() {
    let locks = LockTable::new();
    let [mut a] = owners(&locks);
    for _ in 0..3 {
        take(&mut a, &path([1, 1]), X);
        take(&mut a, &path([1, 2]), X);
        a.release_all();
    }
    // Taken and left in the plain way: the root is idle.
    take(&mut a, &path([1, 1]), X);
    a.release(&path([1, 1])).unwrap();
    assert_eq!(a.held(&path([1])), None);
    assert!(free(&locks, &path([1]), X));
}

/// A release is not plain if something rests on the hold, or if there is another grant.
#[test]
fn what_is_needed_stays() {
    let locks = LockTable::new();
    let [mut a] = owners(&locks);
    take(&mut a, &path([1]), X);
    take(&mut a, &path([1, 1]), X);
    assert_eq!(a.release(&path([1])), Err(ReleaseError::StillCovers));
    a.release_all();
    take(&mut a, &path([1]), Is);
    take(&mut a, &path([1, 1]), S);
    a.release(&path([1])).unwrap();
    assert_eq!(a.held(&path([1])), Some(Is), "for the leaf");
    a.release(&path([1, 1])).unwrap();
    take(&mut a, &path([2]), X);
    take(&mut a, &path([2]), X);
    a.release(&path([2])).unwrap();
    assert_eq!(a.held(&path([2])), Some(X), "granted twice");
    a.release(&path([2])).unwrap();
    assert!(locks.is_empty());
}

/// An owner that releases a kept root by name no longer keeps it, and can keep it again.
#[test]
fn a_root_that_is_kept_and_asked_for_by_name() {
    let locks = LockTable::new();
    let [mut a] = owners(&locks);
    for _ in 0..2 {
        settle(&mut a, &path([1, 1]));
        assert_eq!(entries(&locks), 1, "kept");
        take(&mut a, &path([1, 1]), X);
        take(&mut a, &path([1]), Is);
        a.release(&path([1, 1])).unwrap();
        a.release(&path([1])).unwrap();
        assert_eq!(entries(&locks), 0);
    }
    settle(&mut a, &path([1, 1]));
    assert!(free(&locks, &path([1]), X), "given up for another");
}

/// When the last of many holds goes, memory is given back, and the kept root moves.
#[test]
fn a_root_that_is_kept_moves_with_its_owners_holds() {
    let locks = LockTable::new();
    let [mut a, mut b] = owners(&locks);
    settle(&mut a, &path([1, 1]));
    let others = || (2..40).map(|n| path([n]));
    others().for_each(|other| take(&mut a, &other, X));
    others().for_each(|other| a.release(&other).unwrap());
    assert_eq!(entries(&locks), 1, "kept");
    take(&mut a, &path([1, 2]), X);
    assert!(b.try_lock(&path([1]), S).is_err());
    a.release_all();
    take(&mut b, &path([1]), S);
}

/// A parent falls to what its remaining children need.
#[test]
fn a_parent_falls_with_its_children() {
    let locks = LockTable::new();
    let [mut a] = owners(&locks);
    for _ in 0..3 {
        take(&mut a, &path([1, 1]), X);
        take(&mut a, &path([1, 2]), S);
        take(&mut a, &path([1, 3]), X);
        a.release(&path([1, 1])).unwrap();
        assert_eq!(a.held(&path([1])), Some(Ix));
        assert!(!free(&locks, &path([1]), S));
        a.release(&path([1, 3])).unwrap();
        assert_eq!(a.held(&path([1])), Some(Is));
        assert!(free(&locks, &path([1]), S));
        a.release(&path([1, 2])).unwrap();
        assert!(locks.is_empty());
    }
}

/// Several owners of one resource, some in place and some in the map.
#[test]
fn many_hold_one_and_leave_in_any_order() {
    let locks = LockTable::new();
    let mut all: [_; 9] = owners(&locks);
    for owner in &mut all {
        take(owner, &path([1]), S);
    }
    for (at, left) in [4, 0, 8, 2, 6, 1, 3, 7, 5].into_iter().zip((0..9).rev()) {
        all[at].release(&path([1])).unwrap();
        let snapshot = locks.snapshot();
        let holders = snapshot.resources.first().map(|one| one.holders.len());
        assert_eq!(holders.unwrap_or(0), left);
    }
    take(&mut all[0], &path([1]), X);
}

/// A parent that covers, or is held too weakly, needs more than the plain way.
#[test]
fn a_parent_that_is_not_as_needed() {
    let locks = LockTable::new();
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &path([1]), S);
    take(&mut a, &path([1, 1]), S);
    assert_eq!(locks.len(), 1, "covered");
    a.release_all();
    take(&mut a, &path([1, 1]), S);
    take(&mut a, &path([1, 2]), X);
    assert_eq!(a.held(&path([1])), Some(Ix));
    assert!(b.try_lock(&path([1]), S).is_err());
}

thread_local! {
    static HASHED: Cell<usize> = const { Cell::new(0) };
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Hashed;

impl Hash for Hashed {
    fn hash<H: Hasher>(&self, _: &mut H) {
        HASHED.set(HASHED.get() + 1);
    }
}

impl Resource for Hashed {
    fn parent(&self) -> Option<Self> {
        None
    }
}

#[test]
fn a_request_that_is_not_plain_hashes_its_resource_once() {
    let locks = LockTable::new();
    let (mut a, mut b) = (locks.owner(0), locks.owner(0));
    for (mode, hashed) in [(Mode::S, 1), (Mode::U, 2)] {
        a.try_lock(&Hashed, mode).unwrap();
        assert_eq!(HASHED.get(), hashed, "{mode}");
    }
    b.try_lock(&Hashed, Mode::X).unwrap_err();
    assert_eq!(HASHED.get(), 3);
}

thread_local! {
    static CLONES: Cell<u32> = const { Cell::new(0) };
}

/// 0 is the root of the others; their clones are counted.
#[derive(PartialEq, Eq, Hash, Debug)]
struct Counted(u32);

impl Clone for Counted {
    fn clone(&self) -> Self {
        CLONES.set(CLONES.get() + u32::from(self.0 > 0));
        Counted(self.0)
    }
}

impl Resource for Counted {
    fn parent(&self) -> Option<Self> {
        (self.0 > 0).then_some(Counted(0))
    }
}

#[test]
fn names_are_cloned_as_often_as_the_docs_say() {
    let locks = LockTable::new();
    let [mut a, mut b] = [(); 2].map(|()| locks.owner(0));
    a.try_lock(&Counted(1), X).unwrap();
    assert_eq!(CLONES.take(), 3, "two shards");
    a.try_lock(&Counted(2), X).unwrap();
    assert_eq!(CLONES.take(), 2, "one shard");
    settle(&mut b, &Counted(3));
    CLONES.set(0);
    let blocked = b
        .lock(&Counted(1), X)
        .wait_timeout(std::time::Duration::ZERO);
    assert!(blocked.is_err());
    assert_eq!(CLONES.take(), 4, "blocked");
}
