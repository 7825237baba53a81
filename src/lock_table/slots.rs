//! The holds of one owner, in slots, with an index by hash if there are many.
//!
//! Invariants:
//! 1. A slot has a hold if it has a key; every other slot is in the free list, once.
//! 2. The index has every hold if there are more than a few slots, else it is empty.
//! 3. `log` has every epoch, except the first one, of the grants of every hold.
//! 4. An id stays what it is until its hold is removed, or `compact` is called.
//! 5. `earlier` is the sum of the earlier entries of all grants. After `compact` the log has at most
//!    `KEPT` entries, or twice as many as there are holds and earlier entries.

use std::mem;

use hashbrown::HashTable;

use super::entries::NodeId;
use super::grants::Grants;
use super::hold::{Counts, Hold, HoldId, HoldKind};
use super::name::KEPT;
use crate::modes::Mode;
use crate::slab::shrink;

/// Up to this many slots are searched without the index.
const FEW: usize = 8;
/// The end of the free list.
const END: HoldId = HoldId::MAX;

pub(super) struct Slots<K> {
    slots: Vec<Hold<K>>,
    free: HoldId,
    len: usize,
    index: HashTable<HoldId>,
    /// The slot that was filled last, if it is there; it may be free again.
    recent: HoldId,
    /// The root whose intent is kept, used or idle.
    pub(super) kept: Option<HoldId>,
    /// The grants since the first savepoint, in order: so that going back to a savepoint costs what
    /// was granted since, whatever else is held. For the first grant of a hold in each epoch, it
    /// has the epoch and the hold. Epochs do not fall. Entries whose grants have been released are
    /// stale; they stay until they are swept or popped.
    pub(super) log: Vec<(u64, HoldId)>,
    earlier: usize,
}

impl<K> Slots<K> {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: END,
            len: 0,
            index: HashTable::new(),
            recent: END,
            kept: None,
            log: Vec::new(),
            earlier: 0,
        }
    }

    #[inline(always)]
    pub(super) fn find(&self, hash: u64, key: &K) -> Option<HoldId>
    where
        K: Eq,
    {
        if self.len == 0 {
            return None;
        }
        if self.slots.len() > FEW {
            return self.find_by_index(hash, key);
        }
        let mut slots = self.slots.iter();
        let at = slots.position(|hold| hold.hash == hash && hold.is_of(key));
        at.map(|at| at as HoldId)
    }

    #[inline(never)]
    fn find_by_index(&self, hash: u64, key: &K) -> Option<HoldId>
    where
        K: Eq,
    {
        let is_it = |id: &HoldId| {
            let hold = &self.slots[*id as usize];
            hold.hash == hash && hold.is_of(key)
        };
        self.index.find(hash, is_it).copied()
    }

    #[inline]
    pub(super) fn get(&self, id: HoldId) -> &Hold<K> {
        &self.slots[id as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: HoldId) -> &mut Hold<K> {
        &mut self.slots[id as usize]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ids of all slots.
    pub(super) fn ids(&self) -> std::ops::Range<HoldId> {
        0..self.slots.len() as HoldId
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (HoldId, &Hold<K>)> + Clone {
        let all = self.ids().zip(&self.slots);
        all.filter(|(_, hold)| hold.key.is_some())
    }

    /// All entries that the table has for the owner.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> + Clone {
        let real = self.iter().filter_map(|(_, hold)| hold.real());
        real.map(|(node, _)| node)
    }

    /// The hold that was made last, if it is still there.
    #[inline]
    pub(super) fn recent(&self) -> Option<HoldId> {
        let hold = self.slots.get(self.recent as usize)?;
        hold.key.is_some().then_some(self.recent)
    }

    /// The parent of the hold that was made last, gone or not, if the parent has this name.
    #[inline]
    pub(super) fn above_recent(&self, key: &K) -> Option<HoldId>
    where
        K: Eq,
    {
        let HoldKind::Real { parent, .. } = self.slots.get(self.recent as usize)?.kind else {
            return None;
        };
        parent.filter(|&id| self.get(id).is_of(key))
    }

    /// Makes a hold with these grants, on which nothing rests.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        (hash, key): (u64, K),
        depth: u32,
        kind: HoldKind,
        (epoch, asked): (u64, Option<(Mode, u64)>),
    ) -> HoldId {
        if self.free == END {
            self.grow();
        }
        let id = self.free;
        let hold = &mut self.slots[id as usize];
        self.free = mem::replace(&mut hold.depth, depth);
        (hold.hash, hold.key, hold.kind) = (hash, Some(key), kind);
        hold.grants.begin(epoch, asked);
        self.recent = id;
        self.len += 1;
        if self.slots.len() > FEW || epoch > 0 {
            self.enter_new(id, epoch);
        }
        id
    }

    /// Adds grants to a hold.
    pub(super) fn grant(&mut self, id: HoldId, epoch: u64, (mode, count): (Mode, u64)) {
        if self.change(id, |grants| grants.push(epoch, mode, count)) {
            self.note(epoch, id);
        }
    }

    /// Changes the grants of a hold.
    #[inline]
    pub(super) fn change<R>(&mut self, id: HoldId, change: impl FnOnce(&mut Grants) -> R) -> R {
        let grants = &mut self.slots[id as usize].grants;
        let before = grants.earlier();
        let result = change(grants);
        self.earlier = self.earlier - before + grants.earlier();
        result
    }

    /// Removes a hold that has one grant at most, and on which nothing rests.
    #[inline(always)]
    pub(super) fn take(&mut self, id: HoldId) -> Option<K> {
        if self.slots.len() > FEW {
            self.strike(id);
        }
        let hold = &mut self.slots[id as usize];
        debug_assert!(!hold.intents.any() && !hold.covers.any());
        hold.grants.end();
        let key = hold.key.take();
        hold.depth = mem::replace(&mut self.free, id);
        self.len -= 1;
        key
    }

    /// Adds a free slot.
    #[cold]
    fn grow(&mut self) {
        let id = self.slots.len() as HoldId;
        self.slots.push(Hold {
            hash: 0,
            key: None,
            depth: END,
            kind: HoldKind::Covered { by: END },
            grants: Grants::default(),
            intents: Counts::default(),
            covers: Counts::default(),
        });
        self.free = id;
        if self.slots.len() == FEW + 1 {
            // By invariant 2.
            (0..id).for_each(|id| self.enter(id));
        }
    }

    #[cold]
    fn enter(&mut self, id: HoldId) {
        let hash = |&id: &HoldId| self.slots[id as usize].hash;
        self.index.insert_unique(hash(&id), id, hash);
    }

    #[cold]
    fn strike(&mut self, id: HoldId) {
        let hash = self.slots[id as usize].hash;
        if let Ok(found) = self.index.find_entry(hash, |&at| at == id) {
            found.remove();
        }
    }

    #[cold]
    fn enter_new(&mut self, id: HoldId, epoch: u64) {
        if self.slots.len() > FEW {
            self.enter(id);
        }
        if self.get(id).own().is_some() {
            self.note(epoch, id);
        }
    }

    fn note(&mut self, epoch: u64, id: HoldId) {
        if epoch > 0 && self.log.last() != Some(&(epoch, id)) {
            self.log.push((epoch, id));
        }
    }

    /// Removes stale entries and duplicates.
    #[cold]
    fn sweep_log(&mut self) {
        let is_there = |&(epoch, id): &(u64, HoldId)| self.slots[id as usize].grants.has(epoch);
        self.log.retain(is_there);
        self.log.sort_unstable();
        self.log.dedup();
        shrink(&mut self.log, KEPT);
    }

    /// Gives memory back if most of it is not used. The holds then have other ids.
    #[inline]
    pub(super) fn compact(&mut self) {
        if self.slots.len() > FEW && self.len <= self.slots.len() / 8 {
            self.move_together();
        }
        // Since the last sweep at least half as many have been granted or released.
        if self.log.len() > KEPT.max(2 * (self.len + self.earlier)) {
            self.sweep_log();
        }
    }

    #[cold]
    fn move_together(&mut self) {
        self.sweep_log();
        let mut next = 0;
        let id_of = |hold: &Hold<K>| {
            let id = next;
            next += HoldId::from(hold.key.is_some());
            id
        };
        let ids: Vec<HoldId> = self.slots.iter().map(id_of).collect();
        let moved = |id: HoldId| ids[id as usize];
        self.slots.retain(|hold| hold.key.is_some());
        self.slots.shrink_to_fit();
        for hold in &mut self.slots {
            match &mut hold.kind {
                HoldKind::Real { parent, .. } => *parent = parent.map(moved),
                HoldKind::Covered { by } => *by = moved(*by),
            }
        }
        (self.free, self.recent) = (END, END);
        self.kept = self.kept.map(moved);
        self.log.iter_mut().for_each(|(_, id)| *id = moved(*id));
        self.index = HashTable::new();
        if self.slots.len() > FEW {
            (0..next).for_each(|id| self.enter(id));
        }
    }
}
