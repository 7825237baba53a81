//! The entries of one shard, by their hashes.
//!
//! One entry stands in front of the table of the others. Most shards have only that one: then all
//! that changes with the entry is on one cache line, next to the line of the lock, if names have at
//! most eight bytes. On the line of the lock, threads that wait for the lock would take it away.
//!
//! Invariant: a stamp is given to one entry only, and a free slot has none. So an id names one
//! entry, and finds it without the user's `Eq`.

use std::mem;

use hashbrown::HashTable;

use super::holders::Holders;
use super::name::{Gone, Name};
use super::owners::OwnerKey;
use crate::modes::Mode;
use crate::slab::Key;

/// The table keeps room for this many, once it has had any.
const FEW: usize = 4;
/// The stamp of a free slot.
const NO_STAMP: u64 = 0;

/// `born` begins a cache line, after the lock and the fields before it, here and in `Index`.
#[repr(C)]
pub(super) struct Entries<K> {
    rest: HashTable<Entry<K>>,
    /// How many entries there ever were.
    pub(super) born: u64,
    front: Entry<K>,
}

/// The fields that change with a first or last holder come first.
#[repr(C)]
pub(super) struct Entry<K> {
    pub(super) id: NodeId,
    pub(super) name: Name<K>,
    /// Its node in the wait table, while somebody waits for it.
    pub(super) busy: Option<Key>,
    /// Empty while it is busy.
    pub(super) holders: Holders,
}

/// Names one entry, and never another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId {
    stamp: u64,
    pub(super) hash: u64,
}

impl<K> Entry<K> {
    /// A free slot.
    const fn new() -> Self {
        Self {
            id: NodeId {
                stamp: NO_STAMP,
                hash: 0,
            },
            name: Name::None,
            busy: None,
            holders: Holders::new(),
        }
    }

    #[inline]
    fn is_free(&self) -> bool {
        self.id.stamp == NO_STAMP
    }

    /// Becomes an entry with one holder.
    #[inline(always)]
    fn begin(&mut self, id: NodeId, name: K, owner: OwnerKey, mode: Mode) {
        self.id = id;
        self.name = Name::Own(name);
        self.holders.set_first(owner, mode);
    }

    #[inline]
    pub(super) fn is(&self, hash: u64, key: &K) -> bool
    where
        K: Eq,
    {
        self.id.hash == hash && self.name.is(key)
    }

    /// Whether an owner can have it in this mode, and nobody waits.
    #[inline]
    pub(super) fn has_room(&self, owner: OwnerKey, mode: Mode) -> bool {
        self.busy.is_none() && self.holders.fit(owner, mode)
    }
}

impl<K> Entries<K> {
    pub(super) const fn new() -> Self {
        Self {
            rest: HashTable::new(),
            born: NO_STAMP,
            front: Entry::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rest.len() + usize::from(!self.front.is_free())
    }

    /// How many there is room for.
    #[cfg(all(test, not(shuttle)))]
    pub(super) fn capacity(&self) -> usize {
        self.rest.capacity()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry<K>> {
        let front = Some(&mut self.front).filter(|entry| !entry.is_free());
        front.into_iter().chain(&mut self.rest)
    }

    /// The entry with this hash for which `is_it` holds.
    #[inline]
    pub(super) fn find(
        &mut self,
        hash: u64,
        is_it: impl Fn(&Entry<K>) -> bool,
    ) -> Option<&mut Entry<K>> {
        if is_it(&self.front) {
            return Some(&mut self.front);
        }
        match self.rest.is_empty() {
            true => None,
            false => self.find_in_rest(hash, is_it),
        }
    }

    #[inline(never)]
    fn find_in_rest(
        &mut self,
        hash: u64,
        is_it: impl Fn(&Entry<K>) -> bool,
    ) -> Option<&mut Entry<K>> {
        self.rest.find_mut(hash, is_it)
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, id: NodeId) -> Option<&mut Entry<K>> {
        self.find(id.hash, |entry| entry.id.stamp == id.stamp)
    }

    /// Makes the entry of a resource that has none.
    #[inline(always)]
    pub(super) fn insert(&mut self, hash: u64, name: K, owner: OwnerKey, mode: Mode) -> NodeId {
        self.born += 1;
        let stamp = self.born;
        let id = NodeId { stamp, hash };
        if self.front.is_free() {
            self.front.begin(id, name, owner, mode);
        } else {
            self.insert_in_rest(id, name, owner, mode);
        }
        id
    }

    #[inline(never)]
    fn insert_in_rest(&mut self, id: NodeId, name: K, owner: OwnerKey, mode: Mode) {
        let mut entry = Entry::new();
        entry.begin(id, name, owner, mode);
        self.rest
            .insert_unique(id.hash, entry, |entry| entry.id.hash);
    }

    /// Removes an entry that nobody holds or waits for.
    #[inline(always)]
    pub(super) fn remove(&mut self, id: NodeId, gone: &mut Gone<K>) {
        if self.front.id.stamp == id.stamp {
            self.front.id.stamp = NO_STAMP;
            gone.push(mem::replace(&mut self.front.name, Name::None));
        } else {
            self.remove_from_rest(id, gone);
        }
    }

    #[inline(never)]
    fn remove_from_rest(&mut self, id: NodeId, gone: &mut Gone<K>) {
        let found = self
            .rest
            .find_entry(id.hash, |entry| entry.id.stamp == id.stamp);
        let Ok(found) = found else { return };
        let (entry, _) = found.remove();
        debug_assert!(entry.holders.is_empty() && entry.busy.is_none());
        gone.push(entry.name);
        if self.rest.len() < self.rest.capacity() / 8 {
            let room = (2 * self.rest.len()).max(FEW);
            self.rest.shrink_to(room, |entry| entry.id.hash);
        }
    }
}
