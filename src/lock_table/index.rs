//! One shard of the index: an entry per resource, found by its hash.
//!
//! Invariant: of the user's code only `Eq` runs in here, to find an entry, and changes nothing.
//! Names that are no longer needed are handed out; none is cloned.

use super::entries::{Entries, Entry, NodeId};
use super::holders::Holders;
use super::kept::Biases;
use super::name::Gone;
use super::owners::OwnerKey;
use crate::modes::Mode;
use crate::slab::Key;

#[repr(C)]
pub(super) struct Index<K> {
    /// The intents that owners keep, by entry.
    pub(super) biases: Biases,
    pub(super) entries: Entries<K>,
}

/// What a request finds without the wait table. For several resources, the last of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Room {
    /// The mode can be had.
    Free,
    /// Somebody waits here: ask the wait table.
    Busy,
    /// Somebody holds a conflicting mode.
    Held,
    /// Somebody may hold it or only keep it: look again with all shards locked.
    Kept,
    /// The intent on the root is not kept any more: ask for it, too.
    Revoked,
}

/// What the table must learn of an owner: what it holds of an entry from now on.
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

    /// With all shards locked: revokes the intents that are kept on an entry. Owners that do not
    /// use theirs hold it no longer. Returns what `look` does.
    #[cold]
    pub(super) fn revoke(
        &mut self,
        id: NodeId,
        request: (OwnerKey, Mode),
        gone: &mut Gone<K>,
    ) -> (Option<NodeId>, Room) {
        if let Some(entry) = self.entries.get_mut(id) {
            for idle in self.biases.revoke_all(id) {
                entry.holders.set(idle, None);
            }
            if entry.holders.is_empty() {
                self.entries.remove(id, gone);
            }
        }
        self.look((id.hash, |entry| entry.id == id), request)
    }

    pub(super) fn is_busy(&mut self, id: NodeId) -> bool {
        let entry = self.entries.get_mut(id);
        entry.is_some_and(|entry| entry.busy.is_some())
    }

    /// How many entries are held or waited for: not those whose holders are all idle.
    pub(super) fn in_use(&mut self) -> usize {
        let Self { entries, biases } = self;
        let mut all_of_it = |&(id, idle): &(NodeId, usize)| {
            let entry = entries.get_mut(id);
            entry.is_some_and(|entry| entry.holders.len() == idle)
        };
        let resting = biases.all_idle().filter(&mut all_of_it).count();
        entries.len() - resting
    }

    /// Sets what an owner holds. If the entry is busy, returns its node and changes nothing. If the
    /// owner `keeps` an intent and holds nothing here any more, it no longer keeps it here.
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

    /// Makes an entry quiet: nobody waits for it any more.
    pub(super) fn calm(&mut self, id: NodeId, holders: Holders, gone: &mut Gone<K>) {
        if let Some(entry) = self.entries.get_mut(id) {
            (entry.busy, entry.holders) = (None, holders);
            if entry.holders.is_empty() {
                self.entries.remove(id, gone);
            }
        }
    }
}

/// Mixes the bits, for a poor hasher. No two hashes become one.
#[inline]
pub(super) fn spread(hash: u64) -> u64 {
    let mixed = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}
