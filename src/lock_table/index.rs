//! One shard of the index: an entry per resource, found by its hash.
//!
//! Invariant: nothing of the user's runs in here but `Eq` in `look`, which changes nothing. Names
//! that are no longer needed are given out; none is cloned.

use std::mem;

use hashbrown::HashTable;

use super::bias::Bias;
use super::holders::Holders;
use crate::modes::Mode;
use crate::slab::Key;
use crate::sync::Arc;

pub(super) struct Index<K> {
    pub(super) entries: HashTable<Entry<K>>,
    /// Who keeps an intent on what.
    biases: Vec<(NodeId, Key, Arc<Bias>)>,
    /// How many entries there ever were.
    born: u64,
}

pub(super) struct Entry<K> {
    pub(super) id: NodeId,
    pub(super) name: Name<K>,
    pub(super) state: State,
}

pub(super) enum State {
    Quiet(Holders),
    /// The node in the wait table.
    Busy(Key),
}

/// One entry, and never another one: finds it without the user's `Eq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId {
    pub(super) hash: u64,
    stamp: u64,
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
    /// The root that was kept is not any more: ask for it, too.
    Revoked,
}

/// What is to be entered in the table for an owner: what it holds of each from now on.
pub(super) type Changes = Vec<(NodeId, Option<Mode>)>;

/// A resource's name: moved where others may need it when the lock is let go.
pub(super) enum Name<K> {
    Own(K),
    Shared(Arc<K>),
    /// Only within `share`.
    Moving,
}

/// Names to be dropped with no lock held.
pub(super) struct Gone<K>(Vec<Name<K>>);

/// Longer lists are not kept for the next time.
pub(super) const KEPT: usize = 64;

impl<K> Index<K> {
    pub(super) fn new() -> Self {
        Self {
            entries: HashTable::new(),
            biases: Vec::new(),
            born: 0,
        }
    }

    /// The entry, and whether an owner can have it in this mode now. Who keeps an intent that is in
    /// the way and does not use it has it no more.
    #[inline]
    pub(super) fn look(
        &mut self,
        (hash, is_it): (u64, impl Fn(&Entry<K>) -> bool),
        (owner, mode): (Key, Mode),
        gone: &mut Gone<K>,
    ) -> (Option<NodeId>, Room) {
        let Ok(mut found) = self.entries.find_entry(hash, is_it) else {
            return (None, Room::Free);
        };
        let Entry { id, state, .. } = found.get_mut();
        let id = *id;
        let State::Quiet(holders) = state else {
            return (Some(id), Room::Busy);
        };
        if !holders.fit(owner, mode) {
            self.biases.retain(|(at, kept_by, bias)| {
                if *at == id && bias.revoke() {
                    holders.set(*kept_by, None);
                }
                *at != id
            });
            if holders.is_empty() {
                gone.push(found.remove().0.name);
                return (None, Room::Free);
            }
            if !holders.fit(owner, mode) {
                return (Some(id), Room::Held);
            }
        }
        (Some(id), Room::Free)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: NodeId) -> Option<&mut Entry<K>> {
        self.entries.find_mut(id.hash, |entry| entry.id == id)
    }

    pub(super) fn is_busy(&self, id: NodeId) -> bool {
        let entry = self.entries.find(id.hash, |entry| entry.id == id);
        entry.is_some_and(|entry| matches!(entry.state, State::Busy(_)))
    }

    /// What an owner holds of an entry that is not busy becomes this.
    #[inline]
    pub(super) fn raise(&mut self, id: NodeId, owner: Key, mode: Mode) {
        if let Some(entry) = self.get_mut(id)
            && let State::Quiet(holders) = &mut entry.state
        {
            holders.set(owner, Some(mode));
        }
    }

    /// Makes the entry of a resource that has none.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, name: K, owner: Key, mode: Mode) -> NodeId {
        self.born += 1;
        let id = NodeId {
            hash,
            stamp: self.born,
        };
        let entry = Entry {
            id,
            name: Name::Own(name),
            state: State::Quiet(Holders::one(owner, mode)),
        };
        self.entries
            .insert_unique(hash, entry, |entry| entry.id.hash);
        id
    }

    /// Revokes those that are not used.
    pub(super) fn revoke_idle(&mut self, gone: &mut Gone<K>) {
        for at in (0..self.biases.len()).rev() {
            if self.biases[at].2.revoke_idle() {
                let (id, owner, _) = self.biases.swap_remove(at);
                if let Ok(Some(name)) = self.lower(id, owner, None) {
                    gone.push(name);
                }
            }
        }
    }

    /// From now on this owner, which holds no more than an intent, keeps it.
    pub(super) fn begin(&mut self, id: NodeId, owner: Key, bias: &Arc<Bias>) {
        bias.begin();
        self.biases.push((id, owner, bias.clone()));
    }

    #[cold]
    fn unlist(&mut self, id: NodeId, owner: Key) {
        let is_it = |(at, who, _): &(NodeId, Key, _)| (*at, *who) == (id, owner);
        if let Some(at) = self.biases.iter().position(is_it) {
            self.biases.swap_remove(at).2.revoke();
        }
    }

    /// Lowers what an owner holds, and gives the name if that was the last of the entry; or the node
    /// if the entry is busy. What the owner kept may have been taken away before.
    #[inline(always)]
    pub(super) fn lower(
        &mut self,
        id: NodeId,
        owner: Key,
        mode: Option<Mode>,
    ) -> Result<Option<Name<K>>, Key> {
        if mode.is_none() && !self.biases.is_empty() {
            self.unlist(id, owner);
        }
        let found = self.entries.find_entry(id.hash, |entry| entry.id == id);
        let Ok(mut found) = found else {
            return Ok(None);
        };
        let holders = match &mut found.get_mut().state {
            State::Quiet(holders) => holders,
            State::Busy(node) => return Err(*node),
        };
        let alone = mode.is_none() && holders.only(owner);
        if !alone {
            holders.set(owner, mode);
            if !holders.is_empty() {
                return Ok(None);
            }
        }
        let (gone, _) = found.remove();
        self.shrink();
        Ok(Some(gone.name))
    }

    /// Nobody waits for it any more. Gives the name if nobody holds it either.
    pub(super) fn calm(&mut self, id: NodeId, holders: Holders) -> Option<Name<K>> {
        let mut found = self
            .entries
            .find_entry(id.hash, |entry| entry.id == id)
            .ok()?;
        if !holders.is_empty() {
            found.get_mut().state = State::Quiet(holders);
            return None;
        }
        let (gone, _) = found.remove();
        self.shrink();
        Some(gone.name)
    }

    /// Room for a few stays, so that what comes and goes does not allocate.
    #[inline]
    fn shrink(&mut self) {
        let (len, capacity) = (self.entries.len(), self.entries.capacity());
        if capacity > 3 && len < capacity / 8 + usize::from(capacity < 8) {
            self.entries.shrink_to(len * 2, |entry| entry.id.hash);
        }
    }
}

impl<K> Entry<K> {
    /// Moves the name if need be: that is no code of the user's, as cloning would be.
    pub(super) fn share(&mut self) -> Arc<K> {
        let shared = match mem::replace(&mut self.name, Name::Moving) {
            Name::Own(key) => Arc::new(key),
            Name::Shared(key) => key,
            Name::Moving => unreachable!("nobody looks meanwhile"),
        };
        self.name = Name::Shared(shared.clone());
        shared
    }
}

impl<K: Eq> Name<K> {
    #[inline]
    pub(super) fn is(&self, name: &K) -> bool {
        match self {
            Self::Own(key) => key == name,
            Self::Shared(key) => **key == *name,
            Self::Moving => unreachable!("nobody looks meanwhile"),
        }
    }
}

impl<K> Gone<K> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    #[inline]
    pub(super) fn push(&mut self, name: Name<K>) {
        if mem::needs_drop::<K>() || !matches!(name, Name::Own(_)) {
            self.0.push(name);
        }
    }

    /// With no lock held.
    #[inline]
    pub(super) fn drop_all(&mut self) {
        if !self.0.is_empty() {
            self.drop_names();
        }
    }

    #[cold]
    fn drop_names(&mut self) {
        // Taken out, as a drop may panic.
        let mut names = mem::take(&mut self.0);
        names.clear();
        if names.capacity() <= KEPT {
            self.0 = names;
        }
    }
}

/// Makes the best of a poor hasher. No two hashes become one.
#[inline]
pub(super) fn spread(hash: u64) -> u64 {
    let mixed = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}
