//! One owner that holds more than a few, in every order: it holds what a map says.

use std::collections::BTreeMap;

use super::super::{LockTable, Resource};
use crate::modes::Mode::{self, Ix, S, X};

/// Three levels, with few hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name(u32);

impl std::hash::Hash for Name {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.0 % 13).hash(state);
    }
}

impl Resource for Name {
    fn parent(&self) -> Option<Self> {
        (self.0 > 0).then_some(Name(if self.0.is_multiple_of(10) {
            0
        } else {
            self.0 / 10 * 10
        }))
    }
}

fn held(owner: &super::super::Owner<Name>) -> BTreeMap<Name, Mode> {
    owner
        .holdings()
        .map(|(name, mode, _)| (*name, mode))
        .collect()
}

#[test]
fn leaves_come_and_go_in_any_order() {
    let locks = LockTable::new();
    let mut owner = locks.owner(0);
    // Each step reaches every leaf. A few are held, then many, then few again.
    for (count, step) in [(7, 1), (200, 7), (300, 11), (5, 3), (300, 299)] {
        let leaves: Vec<u32> = (0..count).map(|n| 11 + n).filter(|n| n % 10 > 0).collect();
        for n in &leaves {
            owner.try_lock(&Name(*n), X).unwrap();
        }
        let mut expected: BTreeMap<Name, Mode> = leaves.iter().map(|n| (Name(*n), X)).collect();
        expected.insert(Name(0), Ix);
        expected.extend(leaves.iter().map(|n| (Name(n / 10 * 10), Ix)));
        assert_eq!(held(&owner), expected);
        let len = leaves.len();
        for at in 0..len - 1 {
            owner
                .release(&Name(leaves[at * step % len]))
                .unwrap_or_else(|e| panic!("{at}: {e}"));
            assert_eq!(owner.held(&Name(0)), Some(Ix));
        }
        let last = Name(leaves[(len - 1) * step % len]);
        let left = [(Name(0), Ix), (last.parent().unwrap(), Ix), (last, X)];
        assert_eq!(held(&owner), BTreeMap::from(left));
        // The parents have their intents only: S on the leaf is not covered, and they go with it.
        owner.try_lock(&last, S).unwrap();
        owner.release(&last).unwrap();
        owner.release(&last).unwrap();
        assert!(held(&owner).is_empty() && locks.is_empty());
    }
}

#[test]
fn all_go_at_once_and_others_come() {
    let locks = LockTable::new();
    let mut owner = locks.owner(0);
    for count in [40, 3, 9, 100, 8, 9] {
        for n in (0..count).map(|n| 11 + n) {
            owner.try_lock(&Name(n), S).unwrap();
            assert_eq!(owner.held(&Name(n)), Some(S));
        }
        owner.release_all();
        assert!(held(&owner).is_empty() && locks.is_empty());
    }
}
