//! Names whose parents change: each name is still entered once.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use super::super::{LockError, LockTable, Owner, ReleaseError, Resource};
use crate::modes::Mode::{self, Is, Ix, S, Six, U, X};

thread_local! {
    static PARENTS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// Each call of `parent` takes the last of the list; after the list, the name is a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Fickle(u32);

impl Resource for Fickle {
    fn parent(&self) -> Option<Self> {
        let next = PARENTS.with_borrow_mut(Vec::pop);
        next.filter(|&parent| parent > 0).map(Fickle)
    }
}

#[test]
fn a_name_that_is_once_its_own_ancestor_is_refused() {
    // The parent is asked for twice, because the first look may be all that there is to do.
    for parents in [&[1][..], &[0, 1], &[1, 2, 2], &[1, 3, 2, 2], &[2, 1, 2]] {
        let locks = LockTable::new();
        let mut owner = locks.owner(0);
        let answers = || PARENTS.set(parents.to_vec());
        answers();
        let tried = owner.try_lock(&Fickle(1), X);
        assert_eq!(tried, Err(LockError::OwnAncestor), "{parents:?}");
        answers();
        let many = owner.lock_many([(Fickle(1), S), (Fickle(2), X)]).wait();
        assert_eq!(many, Err(LockError::OwnAncestor), "{parents:?}");
        answers();
        let waited = owner.first_free_or_wait([Fickle(1)], X).wait();
        assert_eq!(waited, Err(LockError::OwnAncestor));
        PARENTS.take();
        drop(owner);
        assert!(locks.is_empty());
    }
}

/// All hierarchies that three names can claim within two requests.
#[test]
fn whatever_the_parents_each_name_is_locked_once() {
    for answers in 0..4_u32.pow(6) {
        let locks = LockTable::new();
        let (mut a, mut b) = (locks.owner(0), locks.owner(0));
        PARENTS.set((0..6).map(|n| answers / 4_u32.pow(n) % 4).collect());
        let one = a.try_lock(&Fickle(1), X);
        assert!(matches!(one, Ok(()) | Err(LockError::OwnAncestor)));
        let many = [(Fickle(3), S), (Fickle(2), X), (Fickle(1), S)];
        let many = a.lock_many(many).wait();
        assert!(matches!(many, Ok(()) | Err(LockError::OwnAncestor)));
        PARENTS.take();
        let held: BTreeSet<Fickle> = a.holdings().map(|(name, ..)| *name).collect();
        assert_eq!(held.len(), a.holdings().count(), "{answers}");
        let real = a.holdings().filter(|(.., real)| *real).count();
        assert_eq!(locks.len(), real, "{answers}");
        for name in [Fickle(1), Fickle(2)] {
            let mode = a.holdings().find(|(held, ..)| **held == name);
            let excludes = mode.is_some_and(|(_, mode, real)| real && mode == X);
            let taken = b.try_lock(&name, Is);
            assert!(!excludes || taken.is_err(), "{answers}: {name:?}");
        }
        drop((a, b));
        assert!(locks.is_empty(), "{answers}");
    }
}

/// Gives these ancestors to what is locked next. The parent is asked for twice, because the first
/// look may be all that there is to do.
fn below(ancestors: &[u32]) {
    let parents = ancestors.iter().rev().chain(&ancestors[..1]);
    PARENTS.set([0].iter().chain(parents).copied().collect());
}

/// A covered hold is deeper than its cover, wherever the cover says that it is. So the covered hold
/// is given back first.
#[test]
fn what_is_covered_goes_before_its_cover() {
    let locks = LockTable::new();
    let mut a = locks.owner(0);
    let savepoint = a.savepoint();
    below(&[2, 3]);
    take(&mut a, Fickle(1), X);
    below(&[1]);
    take(&mut a, Fickle(4), S);
    assert_eq!(a.holdings().filter(|(.., real)| !real).count(), 1);
    a.release_to(savepoint).unwrap();
    assert!(locks.is_empty());
}

#[test]
fn what_is_covered_covers_nothing() {
    let locks = LockTable::new();
    let mut a = locks.owner(0);
    let savepoint = a.savepoint();
    PARENTS.take();
    take(&mut a, Fickle(1), X);
    take(&mut a, Fickle(2), X);
    below(&[1]);
    take(&mut a, Fickle(3), S);
    a.release(&Fickle(2)).unwrap();
    // The name has been moved away from its cover.
    below(&[3]);
    take(&mut a, Fickle(4), S);
    assert_eq!((a.held(&Fickle(3)), locks.len()), (Some(S), 3));
    a.release_to(savepoint).unwrap();
    assert!(locks.is_empty());
}

/// One request names it as a root, and as a child of another root.
#[test]
fn a_root_is_below_nothing() {
    for name in 3..40 {
        let locks = LockTable::new();
        let mut a = locks.owner(0);
        let savepoint = a.savepoint();
        PARENTS.take();
        take(&mut a, Fickle(1), S);
        take(&mut a, Fickle(2), X);
        a.release(&Fickle(1)).unwrap();
        PARENTS.set(vec![2, 0]);
        let twice = [(Fickle(name), S), (Fickle(name), S)];
        assert_eq!(a.lock_many(twice).wait(), Ok(()));
        a.release_to(savepoint).unwrap();
        assert!(locks.is_empty());
    }
}

thread_local! {
    static MOVED: Cell<bool> = const { Cell::new(false) };
}

/// A directory that is in another, before or after a move, and files in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Name {
    Root,
    MovedOut,
    MovedIn,
    File,
    Other,
}

impl Resource for Name {
    fn parent(&self) -> Option<Self> {
        match self {
            Name::Root => None,
            Name::MovedOut => (!MOVED.get()).then_some(Name::Root),
            Name::MovedIn => MOVED.get().then_some(Name::Root),
            Name::File => Some(Name::MovedOut),
            Name::Other => Some(Name::Root),
        }
    }
}

fn take<K: Resource + std::fmt::Debug>(owner: &mut Owner<K>, name: K, mode: Mode) {
    assert_eq!(owner.try_lock(&name, mode), Ok(()));
}

/// What is held keeps its old ancestors, also for what is locked below it later.
#[test]
fn what_is_moved_while_it_is_held_stays_where_it_was() {
    MOVED.set(false);
    let locks = LockTable::new();
    let (mut a, mut b) = (locks.owner(0), locks.owner(0));
    take(&mut a, Name::MovedOut, S);
    take(&mut b, Name::Root, Six);
    MOVED.set(true);
    let refused = Err(LockError::WouldBlock);
    assert_eq!(a.try_lock(&Name::File, U), refused);
    assert_eq!(a.held(&Name::Root), Some(Is));
    b.release_all();
    take(&mut a, Name::File, U);
    assert_eq!(a.held(&Name::Root), Some(Ix));
    a.release(&Name::MovedOut).unwrap();
    assert_eq!(b.try_lock(&Name::Root, Six), refused);
    a.release(&Name::File).unwrap();
    assert!(locks.is_empty());
    // Nothing of it is held now.
    take(&mut a, Name::File, X);
    assert_eq!(locks.len(), 2);
}

/// A parent whose intent its owner has kept, and which was revoked.
#[test]
fn what_is_moved_below_a_root_that_was_kept() {
    MOVED.set(false);
    let locks = LockTable::new();
    let mut a = locks.owner(0);
    take(&mut a, Name::Other, Six);
    a.renew();
    take(&mut a, Name::MovedIn, X);
    let savepoint = a.savepoint();
    take(&mut a, Name::Other, Six);
    a.release_to(savepoint).unwrap();
    take(&mut locks.owner(0), Name::Root, X);
    MOVED.set(true);
    let savepoint = a.savepoint();
    take(&mut a, Name::MovedIn, Six);
    a.release_to(savepoint).unwrap();
    assert_eq!((locks.len(), a.holdings().count()), (1, 1));
    take(&mut a, Name::Root, S);
    assert_eq!(a.held(&Name::Root), Some(S));
}

/// It is covered there, and the intent that was kept on it is given up.
#[test]
fn what_was_kept_as_a_root_is_covered_where_it_is_now() {
    MOVED.set(true);
    let locks = LockTable::new();
    let mut a = locks.owner(0);
    for _ in 0..2 {
        take(&mut a, Name::File, X);
        a.release(&Name::File).unwrap();
    }
    MOVED.set(false);
    take(&mut a, Name::Root, S);
    take(&mut a, Name::MovedOut, S);
    take(&mut a, Name::Other, S);
    assert_eq!(a.held(&Name::MovedOut), Some(S));
    a.release(&Name::Other).unwrap();
    assert_eq!(a.release(&Name::Root), Err(ReleaseError::StillCovers));
    assert_eq!(a.release(&Name::MovedOut), Ok(()));
    assert_eq!(a.release(&Name::Root), Ok(()));
    assert_eq!((locks.is_empty(), a.holdings().count()), (true, 0));
}
