//! Who there is: an id for each owner, its priority and its age.
//!
//! A thread that makes an owner enters it in a part of its own, so that owners come and go without
//! a lock that all share; the count that gives the age is all that they share.

use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::group::{Guard, Lock};
use crate::slab::{Key, Slab};
use crate::sync::{Apart, AtomicU64, Ordering, thread_number};

/// A power of two.
const PARTS: usize = 16;

/// Who gives up in a deadlock goes by these.
#[derive(Clone, Copy)]
pub(super) struct Standing {
    pub(super) priority: i32,
    /// The younger, the higher.
    pub(super) born: u64,
}

pub(super) struct Owners {
    parts: [Apart<Lock<Slab<Standing>>>; PARTS],
    born: Apart<AtomicU64>,
}

// Nothing of the user's runs under these locks.
impl UnwindSafe for Owners {}
impl RefUnwindSafe for Owners {}

impl Owners {
    pub(super) fn new() -> Self {
        Self {
            parts: std::array::from_fn(|_| Apart(Lock::new(Slab::new()))),
            born: Apart(AtomicU64::new(0)),
        }
    }

    fn number(&self) -> u64 {
        // Relaxed: of two the one that is made later is counted later, as by every counter.
        self.born.0.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn register(&self, priority: i32) -> Key {
        let born = self.number();
        let part = thread_number() as usize % PARTS;
        let key = self.parts[part]
            .0
            .lock()
            .insert(Standing { priority, born });
        let bits = key.to_bits();
        assert!(
            key.index() < u32::MAX / PARTS as u32,
            "there are too many owners"
        );
        let index = u64::from(key.index()) * PARTS as u64 + part as u64;
        Key::from_bits(bits >> 32 << 32 | index).expect("a key has a generation")
    }

    /// The part of an owner, and its key there.
    fn part(&self, owner: Key) -> (Guard<'_, Slab<Standing>>, Key) {
        let (bits, index) = (owner.to_bits(), owner.index() as usize);
        let key = bits >> 32 << 32 | (index / PARTS) as u64;
        let key = Key::from_bits(key).expect("a key has a generation");
        (self.parts[index % PARTS].0.lock(), key)
    }

    pub(super) fn unregister(&self, owner: Key) {
        let (mut part, key) = self.part(owner);
        part.remove(key);
    }

    pub(super) fn get(&self, owner: Key) -> Option<Standing> {
        let (part, key) = self.part(owner);
        part.get(key).copied()
    }

    /// It is the youngest.
    pub(super) fn renew(&self, owner: Key) {
        let (mut part, key) = self.part(owner);
        if let Some(standing) = part.get_mut(key) {
            standing.born = self.number();
        }
    }

    /// False if the owner is gone.
    pub(super) fn set_priority(&self, owner: Key, priority: i32) -> bool {
        let (mut part, key) = self.part(owner);
        let standing = part.get_mut(key);
        standing
            .map(|standing| standing.priority = priority)
            .is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.0.lock().len()).sum()
    }
}
