//! The holds of one owner, where they stand: in slots, with an index by hash where there are many.
//!
//! Invariants:
//! 1. `free` has the slots without a hold; there is none if there is no hold.
//! 2. The index has every hold if there are more than a few slots, else it is empty.
//! 3. `idle` is the hold of a root that is kept and not used.
//! 4. An id stays what it is until its hold is removed, or `compact` is called.

use std::mem;

use hashbrown::HashTable;

use super::hold::{Hold, HoldId, HoldKind};

/// So many slots are looked through instead.
const FEW: usize = 8;

pub(super) struct Slots<K> {
    slots: Vec<Option<Hold<K>>>,
    free: Vec<HoldId>,
    index: HashTable<HoldId>,
    pub(super) idle: Option<HoldId>,
}

impl<K> Slots<K> {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            index: HashTable::new(),
            idle: None,
        }
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, key: &K) -> Option<HoldId>
    where
        K: Eq,
    {
        let is_it = |slot: &Option<Hold<K>>| {
            let hold = slot.as_ref().filter(|hold| hold.hash == hash);
            hold.is_some_and(|hold| hold.key == *key)
        };
        if self.slots.len() <= FEW {
            let at = self.slots.iter().position(is_it);
            return at.map(|at| at as HoldId);
        }
        let found = self.index.find(hash, |&id| is_it(&self.slots[id as usize]));
        found.copied()
    }

    #[inline]
    pub(super) fn get(&self, id: HoldId) -> &Hold<K> {
        self.slots[id as usize]
            .as_ref()
            .expect("a hold that was found")
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: HoldId) -> &mut Hold<K> {
        self.slots[id as usize]
            .as_mut()
            .expect("a hold that was found")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (HoldId, &Hold<K>)> {
        let all = self.slots.iter().enumerate();
        all.filter_map(|(id, slot)| Some((id as HoldId, slot.as_ref()?)))
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, hold: Hold<K>) -> HoldId {
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = Some(hold);
            self.enter(id);
            return id;
        }
        let id = self.slots.len() as HoldId;
        self.slots.push(Some(hold));
        if id as usize >= FEW {
            self.enter_new(id);
        }
        id
    }

    /// By invariant 2.
    #[cold]
    fn enter_new(&mut self, id: HoldId) {
        let first = if id as usize == FEW { 0 } else { id };
        (first..=id).for_each(|id| self.enter(id));
    }

    #[inline]
    fn enter(&mut self, id: HoldId) {
        if self.slots.len() > FEW && self.slots[id as usize].is_some() {
            let slots = &self.slots;
            let hash = |&id: &HoldId| slots[id as usize].as_ref().map_or(0, |hold| hold.hash);
            self.index.insert_unique(hash(&id), id, hash);
        }
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, id: HoldId) -> Hold<K> {
        if self.slots.len() > FEW {
            let hash = self.get(id).hash;
            let found = self.index.find_entry(hash, |&at| at == id);
            if let Ok(found) = found {
                found.remove();
            }
        }
        let place = id as usize;
        let gone = if place + 1 == self.slots.len() && place < FEW {
            self.slots.pop().flatten()
        } else {
            self.free.push(id);
            self.slots[id as usize].take()
        };
        if self.free.len() == self.slots.len() {
            self.clear();
        }
        gone.expect("a hold that was found")
    }

    /// Leaves none.
    pub(super) fn take_all(&mut self) -> Vec<Hold<K>> {
        let all = mem::replace(self, Self::new()).slots;
        all.into_iter().flatten().collect()
    }

    /// By invariant 1, with room for a few.
    #[inline]
    fn clear(&mut self) {
        if self.free.capacity().max(self.slots.capacity()) > FEW {
            *self = Self::new();
        } else {
            self.slots.clear();
            self.free.clear();
        }
    }

    /// Gives memory back where most of it is not used. Other ids stand for the holds then.
    #[inline]
    pub(super) fn compact(&mut self) {
        let (room, len) = (self.slots.len(), self.slots.len() - self.free.len());
        if room > FEW && len <= room / 8 {
            self.move_together();
        }
    }

    #[cold]
    fn move_together(&mut self) {
        let Self {
            slots: old, idle, ..
        } = mem::replace(self, Self::new());
        let mut ids = vec![0; old.len()];
        for (id, slot) in old.into_iter().enumerate() {
            if let Some(hold) = slot {
                ids[id] = self.insert(hold);
            }
        }
        for hold in self.slots.iter_mut().flatten() {
            match &mut hold.kind {
                HoldKind::Real { parent, .. } => {
                    *parent = parent.map(|parent| ids[parent as usize])
                }
                HoldKind::Covered { by } => *by = ids[*by as usize],
                HoldKind::Kept { .. } => {}
            }
        }
        self.idle = idle.map(|idle| ids[idle as usize]);
    }
}
