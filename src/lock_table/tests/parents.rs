//! Names whose parents are not what they were: each is entered once all the same.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::super::{LockTable, Resource, TryLockError};
use crate::modes::Mode::{Is, S, X};

thread_local! {
    static PARENTS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// Its parent is the next in the list, the last first; after that it is a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Fickle(u32);

impl Resource for Fickle {
    fn parent(&self) -> Option<Self> {
        let next = PARENTS.with_borrow_mut(Vec::pop);
        next.filter(|&parent| parent > 0).map(Fickle)
    }
}

#[test]
fn a_name_that_is_once_its_own_ancestor_is_locked_once() {
    let paths = [vec![1], vec![1, 1], vec![1, 2], vec![1, 3, 2], vec![2, 1]];
    for (parents, names) in paths.into_iter().zip([1, 1, 1, 1, 2]) {
        let locks = LockTable::new();
        let (mut a, mut b) = (locks.owner(0), locks.owner(0));
        PARENTS.set(parents);
        assert_eq!(a.try_lock(&Fickle(1), X), Ok(()));
        assert_eq!(locks.len(), names);
        PARENTS.take();
        let refused = Err(TryLockError::WouldBlock);
        assert_eq!(b.try_lock(&Fickle(1), Is), refused);
        assert_eq!((a.held(&Fickle(1)), a.grants(&Fickle(1))), (Some(X), 1));
        a.release(&Fickle(1)).unwrap();
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
        a.try_lock(&Fickle(1), X).unwrap();
        let many = [(Fickle(3), S), (Fickle(2), X), (Fickle(1), S)];
        assert_eq!(a.lock_many(many).wait(), Ok(()));
        PARENTS.take();
        let held: BTreeSet<Fickle> = a.holdings().map(|(name, ..)| *name).collect();
        assert_eq!(held.len(), a.holdings().count(), "{answers}");
        let real = a.holdings().filter(|(.., real)| *real).count();
        assert_eq!(locks.len(), real, "{answers}");
        for name in [Fickle(1), Fickle(2)] {
            let mode = a.holdings().find(|(held, ..)| **held == name);
            let in_table = mode.is_some_and(|(.., real)| real);
            let taken = b.try_lock(&name, Is);
            assert!(!in_table || taken.is_err(), "{answers}: {name:?}");
        }
        drop((a, b));
        assert!(locks.is_empty(), "{answers}");
    }
}
