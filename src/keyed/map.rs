//! The groups of some keys, by a hash that is computed once, outside the map, and kept. Its
//! memory is within a constant factor of its entries.

use std::borrow::Borrow;

use hashbrown::HashTable;

use crate::limit::Limit;
use crate::queue::{GroupRef, Pinned, if_idle, own_capacity};

/// Limit, level and capacity of a new group.
pub(super) type Made = (Limit, u8, Limit);

pub(super) struct KeyMap<K, T> {
    entries: HashTable<Entry<K, T>>,
}

pub(super) struct Entry<K, T> {
    pub(super) hash: u64,
    pub(super) key: K,
    pub(super) group: Pinned<T>,
}

impl<K, T> KeyMap<K, T> {
    pub(super) fn new() -> Self {
        Self {
            entries: HashTable::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many groups are not idle.
    pub(super) fn busy(&self) -> usize {
        let groups = self.entries.iter().map(|entry| &entry.group);
        groups.filter(|group| if_idle(group).is_none()).count()
    }

    /// The group of a key. Calls the user's `Eq` and `Borrow`, and changes nothing.
    #[inline]
    pub(super) fn find<Q: Eq + ?Sized>(&self, hash: u64, key: &Q) -> Option<&Pinned<T>>
    where
        K: Borrow<Q>,
    {
        let is_it = |entry: &Entry<K, T>| entry.hash == hash && entry.key.borrow() == key;
        self.entries.find(hash, is_it).map(|entry| &entry.group)
    }

    /// Inserts a key that is not in the map.
    pub(super) fn insert(&mut self, entry: Entry<K, T>) {
        self.entries
            .insert_unique(entry.hash, entry, |entry| entry.hash);
    }

    /// The groups that have this capacity.
    pub(super) fn groups_like(&self, capacity: Limit) -> Vec<GroupRef<T>> {
        let groups = self.entries.iter().map(|entry| &*entry.group);
        let like = groups.filter(|group| own_capacity(group) == capacity);
        like.cloned().collect()
    }

    /// Takes out the idle groups that are still as `made` and have no other pin.
    pub(super) fn take_idle(&mut self, made: Made) -> Vec<Entry<K, T>> {
        let idle = self
            .entries
            .extract_if(|entry| if_idle(&entry.group) == Some((made, 1)));
        let idle = idle.collect();
        self.entries.shrink_to(2 * self.len(), |entry| entry.hash);
        idle
    }

    pub(super) fn take_all(&mut self) -> Vec<Entry<K, T>> {
        self.entries.drain().collect()
    }
}
