//! Ancestors: intents, covered children, and what may not be uncovered.

use super::super::{LockError, LockTable, ReleaseError};
use super::{Polled, free, owners, path, take};
use crate::modes::Mode::{self, Is, Ix, S, Six, U, X};

#[test]
fn intents_go_from_root_to_leaf_and_back() {
    let locks = LockTable::new();
    let leaf = path([1, 2, 3]);
    for mode in Mode::ALL {
        let mut a = locks.owner(0);
        take(&mut a, &leaf, mode);
        let intent = mode.parent_needs();
        assert_eq!(a.held(&path([1])), Some(intent));
        assert_eq!(a.held(&path([1, 2])), Some(intent));
        assert_eq!((a.held(&leaf), a.grants(&path([1]))), (Some(mode), 0));
        assert_eq!(locks.len(), 3);
        a.release(&leaf).unwrap();
        assert!(locks.is_empty());
        assert_eq!(a.holdings().count(), 0);
    }
}

#[test]
fn a_request_that_waits_below_holds_its_intents_and_one_that_gives_up_does_not() {
    let locks = LockTable::new();
    let leaf = path([1, 2]);
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &leaf, S);
    let waits = Polled::waits(b.lock(&leaf, X));
    assert!(!free(&locks, &path([1]), S));
    drop(waits);
    assert!(free(&locks, &path([1]), S));
    assert!(b.try_lock(&leaf, X).is_err());
    assert!(free(&locks, &path([1]), S));
    assert_eq!(b.holdings().count(), 0);
}

#[test]
fn a_request_that_waits_above_has_nothing_below() {
    let locks = LockTable::new();
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &path([1]), S);
    let waits = Polled::waits(b.lock(&path([1, 2, 3]), X));
    assert_eq!(locks.len(), 1);
    drop(a);
    waits.granted();
    assert_eq!(locks.len(), 3);
}

#[test]
fn what_an_ancestor_covers_is_free_and_recorded() {
    let locks = LockTable::new();
    let (root, leaf) = (path([1]), path([1, 2, 3]));
    for (above, below) in Mode::ALL.map(|m| (m, Mode::ALL)) {
        for child in below {
            let mut a = locks.owner(0);
            take(&mut a, &root, above);
            take(&mut a, &leaf, child);
            let covered = above.covers_below(child);
            assert_eq!(
                locks.len(),
                if covered { 1 } else { 3 },
                "{child} below {above}"
            );
            assert_eq!((a.held(&leaf), a.grants(&leaf)), (Some(child), 1));
            let refused = a.release(&root);
            let expected = if covered {
                Err(ReleaseError::StillCovers)
            } else {
                Ok(())
            };
            assert_eq!(refused, expected, "{child} below {above}");
            a.release(&leaf).unwrap();
            if covered {
                a.release(&root).unwrap();
            }
            assert!(locks.is_empty());
        }
    }
}

/// It rests on the ancestor that covered it first, whatever the owner locks above that later.
#[test]
fn what_an_ancestor_covers_rests_on_that_one() {
    let locks = LockTable::new();
    let (root, middle, leaf) = (path([1]), path([1, 2]), path([1, 2, 3]));
    let mut a = locks.owner(0);
    take(&mut a, &middle, S);
    take(&mut a, &leaf, S);
    take(&mut a, &root, X);
    assert_eq!(a.release(&middle), Err(ReleaseError::StillCovers));
    assert_eq!(locks.len(), 2);
    // More than that one covers is locked in the table, although the root covers it.
    take(&mut a, &leaf, X);
    assert_eq!(locks.len(), 3);
    a.release(&middle).unwrap();
    // Intents for what is below are not granted.
    assert_eq!(a.held(&middle), Some(Ix));
    assert_eq!(a.downgrade(&middle, Is), Err(ReleaseError::NotHeld));
    take(&mut a, &middle, S);
    assert_eq!(a.held(&middle), Some(Six));
    assert_eq!(a.downgrade(&middle, Ix), Err(ReleaseError::NotWeaker));
}

/// Covered requests look at no queue: no owner that could conflict is there.
#[test]
fn covered_requests_pass_waiters() {
    let locks = LockTable::new();
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &path([1]), X);
    let waits = Polled::waits(b.lock(&path([1, 2]), X));
    take(&mut a, &path([1, 2]), X);
    take(&mut a, &path([1, 2]), S);
    assert_eq!(a.grants(&path([1, 2])), 2);
    a.release(&path([1, 2])).unwrap();
    a.release(&path([1, 2])).unwrap();
    a.release(&path([1])).unwrap();
    waits.granted();
}

#[test]
fn a_downgrade_that_would_uncover_a_child_is_refused() {
    let locks = LockTable::new();
    let (root, one, two) = (path([1]), path([1, 1]), path([1, 2]));
    let mut a = locks.owner(0);
    take(&mut a, &root, X);
    take(&mut a, &one, S);
    take(&mut a, &two, X);
    for mode in [Is, Ix, S, U, Six] {
        assert_eq!(
            a.downgrade(&root, mode),
            Err(ReleaseError::StillCovers),
            "{mode}"
        );
    }
    assert_eq!(a.held(&root), Some(X));
    assert!(!free(&locks, &root, Is));
    a.downgrade(&two, S).unwrap();
    for mode in [Is, Ix] {
        assert_eq!(
            a.downgrade(&root, mode),
            Err(ReleaseError::StillCovers),
            "{mode}"
        );
    }
    a.downgrade(&root, Six).unwrap();
    a.downgrade(&root, U).unwrap();
    a.downgrade(&root, S).unwrap();
    assert!(free(&locks, &one, S) && !free(&locks, &one, X));
    a.release(&one).unwrap();
    a.release(&two).unwrap();
    a.downgrade(&root, Is).unwrap();
    a.release(&root).unwrap();
    assert!(locks.is_empty());
}

#[test]
fn a_covered_child_that_asks_for_more_becomes_real() {
    let locks = LockTable::new();
    let (root, middle, leaf) = (path([1]), path([1, 2]), path([1, 2, 3]));
    let mut a = locks.owner(0);
    take(&mut a, &root, S);
    take(&mut a, &middle, S);
    take(&mut a, &leaf, S);
    assert_eq!(locks.len(), 1);
    take(&mut a, &leaf, X);
    assert_eq!(locks.len(), 3);
    // S and the intent of the child are SIX.
    assert_eq!([&root, &middle].map(|r| a.held(r)), [Some(Six); 2]);
    // Nothing is covered any more: the middle is real now, too.
    a.release(&root).unwrap();
    assert_eq!(a.held(&root), Some(Ix));
    assert!(free(&locks, &path([1, 9]), X) && !free(&locks, &path([1, 2, 9]), X));
    a.release(&middle).unwrap();
    assert_eq!(a.held(&middle), Some(Ix));
    a.release(&leaf).unwrap();
    assert_eq!(
        a.held(&leaf),
        Some(X),
        "the joined mode stays until the last release"
    );
    a.release(&leaf).unwrap();
    assert!(locks.is_empty());
}

#[test]
fn intents_fall_with_the_child_that_needed_them() {
    let locks = LockTable::new();
    let (root, one, two) = (path([1]), path([1, 1]), path([1, 2]));
    let mut a = locks.owner(0);
    take(&mut a, &one, S);
    take(&mut a, &two, X);
    assert_eq!(a.held(&root), Some(Ix));
    a.release(&two).unwrap();
    assert_eq!(a.held(&root), Some(Is));
    take(&mut a, &root, S);
    take(&mut a, &one, X);
    assert_eq!(a.held(&root), Some(Six));
    a.downgrade(&one, S).unwrap();
    assert_eq!(a.held(&root), Some(S));
    a.release(&root).unwrap();
    assert_eq!(
        a.held(&root),
        Some(Is),
        "the child was real, and needs its intent"
    );
}

/// In many tables, because each has hashes of its own.
#[test]
fn many_at_once() {
    (0..32).for_each(|_| many_of_one_table());
}

fn many_of_one_table() {
    let locks = LockTable::new();
    let [mut a, mut b] = owners(&locks);
    let (r, one, two) = (path([1]), path([1, 1]), path([1, 2]));
    let all = [
        (two.clone(), X),
        (r.clone(), S),
        (one.clone(), Is),
        (one.clone(), S),
    ];
    a.lock_many(all).wait().unwrap();
    assert_eq!(
        (a.held(&r), a.held(&one), a.held(&two)),
        (Some(Six), Some(S), Some(X))
    );
    assert_eq!((a.grants(&r), a.grants(&one)), (1, 2));
    assert_eq!(locks.len(), 3);
    // All or none.
    let mixed = [(path([2]), X), (two.clone(), S)];
    let waits = Polled::waits(b.lock_many(mixed.clone()));
    assert!(!free(&locks, &path([2]), Is));
    drop(waits);
    assert!(free(&locks, &path([2]), X));
    assert_eq!(b.holdings().count(), 0);
    let waits = Polled::waits(b.lock_many(mixed));
    drop(a);
    waits.granted();
    assert_eq!(b.held(&two), Some(S));
    b.lock_many([]).wait().unwrap();
    locks.close();
    assert_eq!(b.lock_many([]).wait(), Err(LockError::Closed));
    drop(b);
    assert!(locks.is_empty());
}

#[test]
fn keys_used_once_leave_nothing() {
    const KEYS: u32 = if cfg!(debug_assertions) {
        20_000
    } else {
        1_000_000
    };
    let locks = LockTable::new();
    let mut a = locks.owner(0);
    for n in 0..KEYS {
        take(&mut a, &path([n % 7, n]), X);
        if n % 3 == 0 {
            a.release(&path([n % 7, n])).unwrap();
        }
    }
    assert_eq!(locks.len() as u32, KEYS - KEYS.div_ceil(3) + 7);
    a.release_all();
    assert!(locks.is_empty());
    for n in 0..KEYS {
        take(&mut a, &path([n % 7, n]), X);
        a.release(&path([n % 7, n])).unwrap();
    }
    let mut locked = locks.shared.shards.lock_all();
    let room: usize = locked.indices().map(|i| i.entries.capacity()).sum();
    // At most seven entries a shard.
    assert!(room < 256);
    drop(locked);
    assert!(a.holdings().count() == 0);
}
