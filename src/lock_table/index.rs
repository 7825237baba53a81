//! One shard of the index: an entry per resource, found by its hash.
//!
//! Invariant: nothing of the user's runs in here but `Eq` where an entry is
//! looked for, which changes nothing. Names
//! that are no longer needed are given out; none is cloned.

use super::entries::{Entries, Entry, NodeId};
use super::holders::Holders;
use super::kept::Biases;
use super::name::Gone;
use super::owners::OwnerKey;
use crate::modes::Mode;
use crate::slab::Key;

#[repr(C)]
pub(super) struct Index<K> {
    /// Who keeps an intent on what.
    pub(super) biases: Biases,
    pub(super) entries: Entries<K>,
}

/// What who asks finds without the wait table: of several, the last of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Room {
    /// It can be had.
    Free,
    /// Somebody waits here: ask the wait table.
    Busy,
    /// Somebody holds a conflicting mode.
    Held,
    /// Or may only keep it: look again with all shards locked.
    Kept,
    /// The root that was kept is not any more: ask for it, too.
    Revoked,
}

/// What is to be entered in the table for an owner: what it holds there from now on.
pub(super) type Change = (NodeId, Option<Mode>);

impl<K> Index<K> {
    pub(super) const fn new() -> Self {
        Self {
            biases: Biases::new(),
            entries: Entries::new(),
        }
    }

    /// The entry, and whether an owner can have it in this mode now.
    #[inline]
    pub(super) fn look(
        &mut self,
        (hash, is_it): (u64, impl Fn(&Entry<K>) -> bool),
        (owner, mode): (OwnerKey, Mode),
    ) -> (Option<NodeId>, Room) {
        let Some(found) = self.entries.find(hash, is_it) else {
            return (None, Room::Free);
        };
        let id = found.id;
        if found.busy.is_some() {
            return (Some(id), Room::Busy);
        }
        if found.holders.fit(owner, mode) {
            return (Some(id), Room::Free);
        }
        let kept = self.biases.any_at(id);
        (Some(id), if kept { Room::Kept } else { Room::Held })
    }

    /// With all shards locked: who is in the way and keeps an intent that it does not use has it no
    /// more.
    #[cold]
    pub(super) fn revoke(
        &mut self,
        id: NodeId,
        (owner, mode): (OwnerKey, Mode),
        gone: &mut Gone<K>,
    ) -> (Option<NodeId>, Room) {
        let Some(entry) = self.entries.get_mut(id) else {
            return (None, Room::Free);
        };
        let holders = &mut entry.holders;
        for idle in self.biases.revoke_all(id) {
            holders.set(idle, None);
        }
        if holders.is_empty() {
            self.entries.remove(id, gone);
            return (None, Room::Free);
        }
        let fits = holders.fit(owner, mode);
        (Some(id), if fits { Room::Free } else { Room::Held })
    }

    pub(super) fn is_busy(&mut self, id: NodeId) -> bool {
        let entry = self.entries.get_mut(id);
        entry.is_some_and(|entry| entry.busy.is_some())
    }

    /// How many entries somebody holds or waits for: not those where all is kept and idle.
    pub(super) fn in_use(&mut self) -> usize {
        let Self { entries, biases } = self;
        let mut all_of_it = |&(id, idle): &(NodeId, usize)| {
            let entry = entries.get_mut(id);
            entry.is_some_and(|entry| entry.holders.len() == idle)
        };
        let resting = biases.all_idle().filter(&mut all_of_it).count();
        entries.len() - resting
    }

    /// Sets what an owner holds; gives the node if the entry is busy, and nothing has changed.
    /// If it may keep it and holds nothing any more, it does so no longer.
    #[inline(always)]
    pub(super) fn set(
        &mut self,
        id: NodeId,
        owner: OwnerKey,
        mode: Option<Mode>,
        keeps: bool,
        gone: &mut Gone<K>,
    ) -> Option<Key> {
        let entry = self.entries.get_mut(id)?;
        if entry.busy.is_some() {
            return entry.busy;
        }
        match mode {
            Some(_) => drop(entry.holders.set(owner, mode)),
            None => entry.holders.leave(owner),
        }
        if keeps && mode.is_none() {
            self.biases.end(id, owner);
        }
        if entry.holders.is_empty() {
            self.entries.remove(id, gone);
        }
        None
    }

    /// Nobody waits for it any more.
    pub(super) fn calm(&mut self, id: NodeId, holders: Holders, gone: &mut Gone<K>) {
        if let Some(entry) = self.entries.get_mut(id) {
            (entry.busy, entry.holders) = (None, holders);
            if entry.holders.is_empty() {
                self.entries.remove(id, gone);
            }
        }
    }
}

/// Makes the best of a poor hasher. No two hashes become one.
#[inline]
pub(super) fn spread(hash: u64) -> u64 {
    let mixed = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}
