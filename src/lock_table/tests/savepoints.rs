//! Going back to what was held at a savepoint.

use super::super::name::KEPT;
use super::super::{LockTable, Owner, ReleaseError};
use super::names::Path;
use super::{Polled, free, owners, path, take};
use crate::modes::Mode::{Is, Ix, S, Six, X};

#[test]
fn back_to_a_savepoint() {
    let locks = LockTable::new();
    let (root, one, two) = (path([1]), path([1, 1]), path([1, 2]));
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &one, S);
    let savepoint = a.savepoint();
    take(&mut a, &one, X);
    take(&mut a, &two, X);
    take(&mut a, &root, S);
    assert_eq!(a.held(&root), Some(Six));
    let waits = Polled::waits(b.lock(&one, S));
    a.release_to(savepoint).unwrap();
    assert_eq!((a.held(&one), a.grants(&one)), (Some(S), 1));
    assert_eq!((a.held(&root), a.held(&two)), (Some(Is), None));
    waits.granted();
    // Again: nothing was granted since.
    a.release_to(savepoint).unwrap();
    assert_eq!(a.held(&one), Some(S));
    take(&mut a, &two, X);
    a.release_to(savepoint).unwrap();
    assert_eq!(a.held(&two), None);
}

#[test]
fn nested_savepoints() {
    let locks = LockTable::new();
    let r = path([1]);
    let mut a = locks.owner(0);
    let start = a.savepoint();
    take(&mut a, &r, Is);
    let one = a.savepoint();
    take(&mut a, &r, S);
    let two = a.savepoint();
    take(&mut a, &r, Ix);
    assert_eq!((a.held(&r), a.grants(&r)), (Some(Six), 3));
    a.release_to(two).unwrap();
    assert_eq!((a.held(&r), a.grants(&r)), (Some(S), 2));
    a.release_to(one).unwrap();
    assert_eq!((a.held(&r), a.grants(&r)), (Some(Is), 1));
    a.release_to(start).unwrap();
    assert!(locks.is_empty());
    // Back over several savepoints at once.
    for mode in [Is, S, Ix] {
        let _ = a.savepoint();
        take(&mut a, &r, mode);
    }
    a.release_to(start).unwrap();
    assert_eq!(a.grants(&r), 0);
    assert!(locks.is_empty());
}

#[test]
fn what_was_released_or_downgraded_since_stays_so() {
    let locks = LockTable::new();
    let (r, q) = (path([1]), path([2]));
    let mut a = locks.owner(0);
    take(&mut a, &r, X);
    take(&mut a, &q, S);
    let savepoint = a.savepoint();
    a.downgrade(&r, S).unwrap();
    a.release(&q).unwrap();
    take(&mut a, &r, X);
    a.release_to(savepoint).unwrap();
    assert_eq!((a.held(&r), a.grants(&r), a.held(&q)), (Some(S), 1, None));
    // Neither mode covers the other: the strongest mode that both allow.
    let savepoint = a.savepoint();
    take(&mut a, &r, Six);
    a.downgrade(&r, Ix).unwrap();
    a.release_to(savepoint).unwrap();
    assert_eq!(a.held(&r), Some(Is));
}

#[test]
fn a_released_grant_does_not_lower_the_mode_but_the_savepoint_does() {
    let locks = LockTable::new();
    let r = path([1]);
    let mut a = locks.owner(0);
    take(&mut a, &r, S);
    let savepoint = a.savepoint();
    take(&mut a, &r, X);
    a.release(&r).unwrap();
    assert_eq!((a.held(&r), a.grants(&r)), (Some(X), 1));
    let later = a.savepoint();
    a.release_to(later).unwrap();
    assert_eq!(a.held(&r), Some(X), "it was so at the later savepoint");
    a.release_to(savepoint).unwrap();
    assert_eq!((a.held(&r), a.grants(&r)), (Some(S), 1));
}

/// What was covered by something older stays covered by it.
#[test]
fn going_back_never_uncovers() {
    let locks = LockTable::new();
    let (root, middle, leaf) = (path([1]), path([1, 2]), path([1, 2, 3]));
    let mut a = locks.owner(0);
    take(&mut a, &middle, S);
    take(&mut a, &leaf, S);
    let savepoint = a.savepoint();
    take(&mut a, &root, S);
    assert_eq!(a.release(&middle), Err(ReleaseError::StillCovers));
    take(&mut a, &root, X);
    take(&mut a, &leaf, X);
    a.release_to(savepoint).unwrap();
    assert_eq!((a.held(&root), a.held(&middle)), (Some(Is), Some(S)));
    assert_eq!(a.held(&leaf), Some(S));
    assert!(!free(&locks, &leaf, X));
    // The hold's own lock, which was needed meanwhile, stays.
    a.release(&middle).unwrap();
    assert!(!free(&locks, &leaf, X));
    a.release(&leaf).unwrap();
    assert!(locks.is_empty());
}

#[test]
fn savepoints_of_another_owner_are_refused() {
    let locks = LockTable::new();
    let [mut a, mut b] = owners(&locks);
    take(&mut a, &path([1]), X);
    let foreign = b.savepoint();
    assert_eq!(a.release_to(foreign), Err(ReleaseError::Foreign));
    assert_eq!(a.held(&path([1])), Some(X));
}

/// The record of a lock does not grow with alternate savepoints and grants.
#[test]
fn grants_and_savepoints_in_turn_stay_small() {
    let locks = LockTable::new();
    let r = path([1]);
    let mut a = locks.owner(0);
    take(&mut a, &r, Is);
    for _ in 0..1000 {
        let _ = a.savepoint();
        take(&mut a, &r, S);
        a.release(&r).unwrap();
    }
    let hold = a.find(&r).unwrap();
    assert!(a.holds.slots.get(hold).grants.earlier() < 3);
}

/// What was granted since a savepoint is remembered while it is held, and not much longer.
#[test]
fn what_is_remembered_of_savepoints_is_what_is_held() {
    let locks = LockTable::new();
    let mut a = locks.owner(0);
    let start = a.savepoint();
    take(&mut a, &path([1]), S);
    for n in 0..1000 {
        let _ = a.savepoint();
        for r in [path([2, n]), path([3]), path([2, n])] {
            take(&mut a, &r, S);
            a.release(&r).unwrap();
        }
    }
    assert!(a.holds.slots.log.len() <= KEPT);
    // A resource that is held all the time, and granted once more each time.
    let many = a.savepoint();
    for _ in 0..1000 {
        let _ = a.savepoint();
        take(&mut a, &path([1]), S);
    }
    assert_eq!(a.grants(&path([1])), 1001);
    a.release_to(many).unwrap();
    assert!(a.holds.slots.log.len() <= KEPT);
    assert_eq!(a.grants(&path([1])), 1);
    a.release_to(start).unwrap();
    assert!(locks.is_empty());
}

/// Of many grants of one resource, those that were released are forgotten at half.
#[test]
fn what_was_released_since_savepoints_is_forgotten() {
    let locks = LockTable::new();
    let r = path([1]);
    let mut a = locks.owner(0);
    take(&mut a, &r, S);
    let first = a.savepoint();
    let savepoints: Vec<_> = (0..1000)
        .map(|_| {
            take(&mut a, &r, S);
            a.savepoint()
        })
        .collect();
    assert_eq!(a.holds.slots.log.len(), 1000);
    for left in (10..=1000).rev() {
        a.release(&r).unwrap();
        assert_eq!(a.grants(&r), left);
        let log = &a.holds.slots.log;
        assert!(log.len() as u64 <= 2 * left.max(KEPT as u64));
        assert!(log.capacity() as u64 <= 8 * left.max(KEPT as u64));
    }
    // One after the other: the log has each that is left.
    a.release_to(savepoints[2]).unwrap();
    assert_eq!(a.grants(&r), 4);
    a.release_to(first).unwrap();
    assert_eq!((a.grants(&r), a.holds.slots.log.len()), (1, 0));
}

/// If most is released, the remaining holds move together.
#[test]
fn back_to_savepoints_after_most_was_released() {
    let locks = LockTable::new();
    let mut a = locks.owner(0);
    take(&mut a, &path([200]), S);
    let one = a.savepoint();
    let rows = |from, to| (from..to).map(|n| path([n]));
    rows(0, 100).for_each(|r| take(&mut a, &r, S));
    let two = a.savepoint();
    rows(100, 104).for_each(|r| take(&mut a, &r, X));
    rows(0, 98).for_each(|r| a.release(&r).unwrap());
    a.release_to(two).unwrap();
    let mut left: Vec<_> = a.holdings().map(|(r, ..)| r.clone()).collect();
    left.sort();
    assert_eq!(left, [path([98]), path([99]), path([200])]);
    a.release_to(one).unwrap();
    assert_eq!(a.holdings().count(), 1);
}

#[test]
fn a_savepoint_outlives_what_was_held() {
    let locks = LockTable::new();
    let mut a = locks.owner(0);
    let savepoint = a.savepoint();
    take_two_and_leave(&mut a);
    take_two_and_leave(&mut a);
    take(&mut a, &path([1]), X);
    a.release_to(savepoint).unwrap();
    assert!(locks.is_empty());
}

fn take_two_and_leave(owner: &mut Owner<Path>) {
    [path([1]), path([2])]
        .iter()
        .for_each(|r| take(owner, r, X));
    owner.release_all();
}

#[test]
fn owners_of_two_tables_are_told_apart() {
    let (locks, others) = (LockTable::new(), LockTable::new());
    let ([mut a], [mut b]) = (owners(&locks), owners(&others));
    let savepoint = a.savepoint();
    b.savepoint();
    take(&mut b, &path([1]), X);
    assert_eq!(b.release_to(savepoint), Err(ReleaseError::Foreign));
    assert_eq!(b.held(&path([1])), Some(X));
    assert_ne!(a.id(), b.id());
    assert_eq!((a.priority().get(), b.priority().get()), (0, 0));
}
