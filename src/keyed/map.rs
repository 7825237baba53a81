//! The groups of some keys, by hash.
//!
//! A hash is computed once, outside, and kept. So a group can be taken out by
//! its hash and its own name, without a key and without asking the user's
//! `Eq`.
//!
//! Invariant: memory is within a constant factor of what stands here.

use hashbrown::HashTable;

use crate::dispatch::GroupKey;

/// Capacity that is not worth giving back.
const SLACK: usize = 64;

#[derive(Debug)]
pub(super) struct KeyMap<K> {
    entries: HashTable<Entry<K>>,
}

#[derive(Debug)]
struct Entry<K> {
    hash: u64,
    key: K,
    group: GroupKey,
}

impl<K> KeyMap<K> {
    pub(super) fn new() -> Self {
        Self {
            entries: HashTable::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Where the group of a key stands. Asks the user's `Eq`, and changes
    /// nothing.
    pub(super) fn find(&self, hash: u64, key: &K) -> Option<GroupKey>
    where
        K: Eq,
    {
        let is_it = |entry: &Entry<K>| entry.hash == hash && entry.key == *key;
        self.entries.find(hash, is_it).map(|entry| entry.group)
    }

    /// A key has another group now in place of one that has ended.
    pub(super) fn replace(&mut self, hash: u64, old: GroupKey, new: GroupKey) {
        let entry = self.entries.find_mut(hash, |entry| entry.group == old);
        debug_assert!(entry.is_some(), "the key was found");
        entry.into_iter().for_each(|entry| entry.group = new);
    }

    /// A key that has none comes in.
    pub(super) fn insert(&mut self, hash: u64, key: K, group: GroupKey) {
        let entry = Entry { hash, key, group };
        self.entries.insert_unique(hash, entry, |entry| entry.hash);
    }

    /// Takes a group out, unless its key has another by now.
    pub(super) fn remove(&mut self, hash: u64, group: GroupKey) -> Option<K> {
        let is_it = |entry: &Entry<K>| entry.hash == hash && entry.group == group;
        let (entry, _) = self.entries.find_entry(hash, is_it).ok()?.remove();
        let (len, capacity) = (self.entries.len(), self.entries.capacity());
        if capacity > 8 * len + SLACK {
            self.entries.shrink_to(2 * len, |entry| entry.hash);
        }
        Some(entry.key)
    }
}
