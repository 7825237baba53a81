//! The groups of some keys, by a hash that is computed once, outside the map, and kept. Its
//! memory is within a constant factor of its entries.

use std::borrow::Borrow;

use hashbrown::HashTable;

use crate::limit::Limit;
use crate::queue::{Pinned, if_idle};

/// Limit, level and capacity of a new group.
pub(super) type NewGroup = (Limit, u8, Limit);

pub(super) type KeyMap<K, T> = HashTable<Entry<K, T>>;

pub(super) struct Entry<K, T> {
    pub(super) hash: u64,
    pub(super) key: K,
    pub(super) group: Pinned<T>,
}

/// The group of a key. Calls the user's `Eq` and `Borrow`, and changes nothing.
#[inline]
pub(super) fn find<'m, K, T, Q>(map: &'m KeyMap<K, T>, hash: u64, key: &Q) -> Option<&'m Pinned<T>>
where
    K: Borrow<Q>,
    Q: Eq + ?Sized,
{
    let is_it = |entry: &Entry<K, T>| entry.hash == hash && entry.key.borrow() == key;
    map.find(hash, is_it).map(|entry| &entry.group)
}

/// Takes out the idle groups that are still as `made` and have no other pin.
pub(super) fn take_idle<K, T>(map: &mut KeyMap<K, T>, made: NewGroup) -> Vec<Entry<K, T>> {
    let idle = map.extract_if(|entry| if_idle(&entry.group) == Some((made, 1)));
    let idle = idle.collect();
    map.shrink_to(2 * map.len(), |entry| entry.hash);
    idle
}
