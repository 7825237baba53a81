//! The owners that have had to go to the wait table, by their ids.

use hashbrown::HashTable;

use super::index::spread;
use crate::slab::Key;

/// So many have room for good.
const FEW: usize = 16;

pub(super) struct Seats<T>(HashTable<(Key, T)>);

fn hash_of(owner: Key) -> u64 {
    spread(owner.to_bits())
}

impl<T> Seats<T> {
    pub(super) const fn new() -> Self {
        Self(HashTable::new())
    }

    pub(super) fn get(&self, owner: Key) -> Option<&T> {
        let seat = self.0.find(hash_of(owner), |(who, _)| *who == owner)?;
        Some(&seat.1)
    }

    pub(super) fn get_mut(&mut self, owner: Key) -> Option<&mut T> {
        let seat = self.0.find_mut(hash_of(owner), |(who, _)| *who == owner)?;
        Some(&mut seat.1)
    }

    /// Of one that has none.
    pub(super) fn insert(&mut self, owner: Key, state: T) {
        let hash = |(owner, _): &(Key, _)| hash_of(*owner);
        self.0.insert_unique(hash_of(owner), (owner, state), hash);
    }

    pub(super) fn remove(&mut self, owner: Key) -> Option<T> {
        let seat = self.0.find_entry(hash_of(owner), |(who, _)| *who == owner);
        let ((_, state), _) = seat.ok()?.remove();
        if self.0.len() < self.0.capacity() / 8 {
            let room = (2 * self.0.len()).max(FEW);
            self.0.shrink_to(room, |(owner, _)| hash_of(*owner));
        }
        Some(state)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(Key, T)> {
        self.0.iter()
    }
}
