//! The holds of one owner, where they stand: in slots, with an index by hash where there are many.
//!
//! Invariants:
//! 1. A slot has a hold if it has a key; every other is in the list of the free, once.
//! 2. The index has every hold if there are more than a few slots, else it is empty.
//! 3. `idle` is the hold of a root that is kept and not used.
//! 4. `log` has every epoch but the first of the grants of every hold.
//! 5. An id stays what it is until its hold is removed, or `compact` is called.

use std::mem;

use hashbrown::HashTable;

use super::grants::Grants;
use super::hold::{Counts, Hold, HoldId, HoldKind};
use super::name::KEPT;
use crate::modes::Mode;

/// So many slots are looked through instead.
const FEW: usize = 8;
/// Behind the last free slot.
const END: HoldId = HoldId::MAX;

pub(super) struct Slots<K> {
    slots: Vec<Hold<K>>,
    free: HoldId,
    len: usize,
    index: HashTable<HoldId>,
    /// Whether a new hold has to be entered elsewhere, too: in the index or the log.
    enters: bool,
    /// The slot that was used last, if it is there.
    recent: HoldId,
    pub(super) idle: Option<HoldId>,
    /// Of what was granted after a savepoint.
    pub(super) log: Log,
}

impl<K> Slots<K> {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: END,
            len: 0,
            index: HashTable::new(),
            enters: false,
            recent: END,
            idle: None,
            log: Log::new(),
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

    pub(super) fn iter(&self) -> impl Iterator<Item = (HoldId, &Hold<K>)> {
        let all = (0..).zip(&self.slots);
        all.filter(|(_, hold)| hold.key.is_some())
    }

    /// The hold that was made last, if it is there.
    #[inline]
    pub(super) fn recent(&self) -> Option<HoldId> {
        let hold = self.slots.get(self.recent as usize)?;
        hold.key.is_some().then_some(self.recent)
    }

    /// The root that is kept and idle, or the parent of the hold that was made last, if that is
    /// this one's.
    #[inline]
    pub(super) fn above_recent(&self, key: &K) -> Option<HoldId>
    where
        K: Eq,
    {
        let above = || match self.slots.get(self.recent as usize)?.kind {
            HoldKind::Real { parent, .. } => parent,
            _ => None,
        };
        let id = self.idle.or_else(above)?;
        let hold = self.slots.get(id as usize)?;
        hold.is_of(key).then_some(id)
    }

    /// A hold with these grants, on which nothing rests.
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
        if self.enters {
            self.enter_new(id, epoch);
        }
        id
    }

    /// More grants of a hold.
    pub(super) fn grant(&mut self, id: HoldId, epoch: u64, (mode, count): (Mode, u64)) {
        if self.get_mut(id).grants.push(epoch, mode, count) {
            self.note(epoch, id);
        }
    }

    /// Its owner has a savepoint, and from now on is in an epoch after the first.
    pub(super) fn begin_log(&mut self) {
        self.enters = true;
    }

    /// As `take`: its hash and its name, and what it was.
    pub(super) fn remove(&mut self, id: HoldId) -> ((u64, K), HoldKind) {
        let hold = self.get(id);
        let (hash, kind) = (hold.hash, hold.kind);
        let key = self.take(id).expect("a hold that was found");
        ((hash, key), kind)
    }

    /// Takes a hold out of which there is one grant at most, and on which nothing rests.
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

    /// Leaves none.
    pub(super) fn take_all(&mut self) -> Vec<Hold<K>> {
        let mut all = self.replace().slots;
        all.retain(|hold| hold.key.is_some());
        all
    }

    /// Empty slots instead.
    fn replace(&mut self) -> Self {
        let enters = self.enters;
        mem::replace(
            self,
            Self {
                enters,
                ..Self::new()
            },
        )
    }

    /// One free slot more.
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
            self.enters = true;
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
        if epoch == 0 {
            return;
        }
        self.log.push((epoch, id));
        if self.log.is_full() {
            self.sweep_log();
        }
    }

    fn sweep_log(&mut self) {
        let slots = &self.slots;
        self.log
            .sweep(|(epoch, id)| slots[id as usize].grants.has(epoch));
    }

    /// Gives memory back where most of it is not used. Other ids stand for the holds then.
    #[inline]
    pub(super) fn compact(&mut self) {
        if self.slots.len() > FEW && self.len <= self.slots.len() / 8 {
            self.move_together();
        }
    }

    #[cold]
    fn move_together(&mut self) {
        self.sweep_log();
        let mut old = self.replace();
        let mut ids = vec![END; old.slots.len()];
        for (hold, id) in old.slots.iter_mut().zip(&mut ids) {
            if let Some(key) = hold.key.take() {
                *id = self.insert((hold.hash, key), hold.depth, hold.kind, (0, None));
                let moved = self.get_mut(*id);
                mem::swap(&mut moved.grants, &mut hold.grants);
                (moved.intents, moved.covers) = (hold.intents, hold.covers);
            }
        }
        for hold in &mut self.slots {
            match &mut hold.kind {
                HoldKind::Real { parent, .. } => {
                    *parent = parent.map(|parent| ids[parent as usize])
                }
                HoldKind::Covered { by } => *by = ids[*by as usize],
                HoldKind::Kept { .. } => {}
            }
        }
        self.idle = old.idle.map(|idle| ids[idle as usize]);
        self.log = old.log.moved(|id| ids[id as usize]);
    }
}

type Grant = (u64, HoldId);

/// What an owner was granted since its first savepoint, in order: so that going back to one costs
/// what was granted since, whatever else is held. For each grant that is the first of a hold in
/// its epoch, the epoch and the hold. Entries whose grants have been released are stale, and stay
/// until they are swept or popped.
///
/// Epochs do not fall. There are fewer than `limit`. At the last sweep or `shrink` half of that was
/// free, or more: so a sweep is paid for by the grants before it.
pub(super) struct Log {
    grants: Vec<Grant>,
    limit: usize,
}

impl Log {
    pub(super) const fn new() -> Self {
        Self {
            grants: Vec::new(),
            limit: KEPT,
        }
    }

    pub(super) fn push(&mut self, grant: Grant) {
        if self.grants.last() != Some(&grant) {
            self.grants.push(grant);
        }
    }

    /// Whether it has to be swept.
    pub(super) fn is_full(&self) -> bool {
        self.grants.len() >= self.limit
    }

    /// The hold of the youngest entry, which it takes out, if that is of this epoch or a later one.
    pub(super) fn pop_since(&mut self, epoch: u64) -> Option<HoldId> {
        let (_, id) = self.grants.pop_if(|(at, _)| *at >= epoch)?;
        Some(id)
    }

    /// Leaves what is not stale, once each, and gives memory back.
    pub(super) fn sweep(&mut self, is_there: impl Fn(Grant) -> bool) {
        self.grants.retain(|grant| is_there(*grant));
        self.grants.sort_unstable();
        self.grants.dedup();
        self.limit = self.room();
        self.grants.shrink_to(self.limit);
    }

    /// Gives memory back where much was popped.
    pub(super) fn shrink(&mut self) {
        self.limit = self.limit.min(self.room());
        if self.grants.capacity() > 2 * self.limit {
            self.grants.shrink_to(self.limit);
        }
    }

    /// A limit for these.
    fn room(&self) -> usize {
        KEPT.max(2 * self.grants.len())
    }

    /// With other ids for the holds.
    pub(super) fn moved(mut self, to: impl Fn(HoldId) -> HoldId) -> Self {
        self.grants.iter_mut().for_each(|(_, id)| *id = to(*id));
        self
    }

    #[cfg(all(test, not(shuttle)))]
    pub(super) fn len(&self) -> usize {
        self.grants.len()
    }
}
