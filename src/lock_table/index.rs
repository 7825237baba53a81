//! One shard of the index: an entry per resource, found by its hash.
//!
//! Invariant: nothing of the user's runs in here but `Eq` in `find`, which changes nothing. Names
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

/// A resource's name: moved where others may need it when the lock is let go.
pub(super) enum Name<K> {
    Own(K),
    Shared(Arc<K>),
    /// Only within `share`.
    Moving,
}

impl<K> Index<K> {
    pub(super) fn new() -> Self {
        Self {
            entries: HashTable::new(),
            biases: Vec::new(),
            born: 0,
        }
    }

    #[inline]
    pub(super) fn find_mut(&mut self, hash: u64, key: &K) -> Option<&mut Entry<K>>
    where
        K: Eq,
    {
        let is_it = |entry: &Entry<K>| entry.id.hash == hash && *entry.name.get() == *key;
        self.entries.find_mut(hash, is_it)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: NodeId) -> Option<&mut Entry<K>> {
        self.entries.find_mut(id.hash, |entry| entry.id == id)
    }

    #[inline]
    pub(super) fn get(&self, id: NodeId) -> Option<&Entry<K>> {
        self.entries.find(id.hash, |entry| entry.id == id)
    }

    pub(super) fn is_quiet(&self, id: NodeId) -> bool {
        let entry = self.get(id);
        entry.is_some_and(|entry| matches!(entry.state, State::Quiet(_)))
    }

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

    /// Before an owner asks for this mode: revokes the biases, if somebody is in its way.
    #[inline]
    pub(super) fn make_room(
        &mut self,
        id: NodeId,
        (owner, mode): (Key, Mode),
        gone: &mut Vec<Name<K>>,
    ) {
        if !self.biases.is_empty() {
            self.revoke(id, (owner, mode), gone);
        }
    }

    #[cold]
    fn revoke(&mut self, id: NodeId, (owner, mode): (Key, Mode), gone: &mut Vec<Name<K>>) {
        let found = self.entries.find_entry(id.hash, |entry| entry.id == id);
        let Ok(mut found) = found else { return };
        let State::Quiet(holders) = &mut found.get_mut().state else {
            return;
        };
        if holders.fit(owner, mode) {
            return;
        }
        self.biases.retain(|(at, kept_by, bias)| {
            if *at == id && bias.revoke() {
                holders.set(*kept_by, None);
            }
            *at != id
        });
        if holders.is_empty() {
            gone.push(found.remove().0.name);
        }
    }

    /// Revokes those that are not used.
    pub(super) fn revoke_idle(&mut self, gone: &mut Vec<Name<K>>) {
        for at in (0..self.biases.len()).rev() {
            if self.biases[at].2.revoke_idle() {
                let (id, owner, _) = self.biases.swap_remove(at);
                gone.extend(self.lower(id, owner, None).ok().flatten());
            }
        }
    }

    /// From now on this owner, which holds no more than an intent, keeps it.
    pub(super) fn begin(&mut self, id: NodeId, owner: Key, bias: &Arc<Bias>) {
        bias.begin();
        self.biases.push((id, owner, bias.clone()));
    }

    /// An owner keeps this no more. It does not use it.
    pub(super) fn give_up(&mut self, id: NodeId, owner: Key) -> Option<Name<K>> {
        let kept = self.unlist(id, owner);
        kept.then(|| self.lower(id, owner, None).ok()).flatten()?
    }

    #[cold]
    fn unlist(&mut self, id: NodeId, owner: Key) -> bool {
        let is_it = |(at, who, _): &(NodeId, Key, _)| (*at, *who) == (id, owner);
        let at = self.biases.iter().position(is_it);
        at.is_some_and(|at| self.biases.swap_remove(at).2.revoke())
    }

    /// Lowers what an owner holds, and gives the name if that was the last of the entry; or the node
    /// if the entry is busy.
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
            debug_assert!(false, "an entry that is held");
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

    pub(super) fn remove(&mut self, id: NodeId) -> Option<Name<K>> {
        let entry = self.entries.find_entry(id.hash, |entry| entry.id == id);
        let (entry, _) = entry.ok()?.remove();
        self.shrink();
        Some(entry.name)
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
    pub(super) fn share(&mut self) -> Arc<K> {
        self.name.share()
    }
}

impl<K> Name<K> {
    #[inline]
    pub(super) fn get(&self) -> &K {
        match self {
            Self::Own(key) => key,
            Self::Shared(key) => key,
            Self::Moving => unreachable!("nobody looks meanwhile"),
        }
    }

    /// Moves it if need be: that is no code of the user's, as cloning would be.
    fn share(&mut self) -> Arc<K> {
        let shared = match mem::replace(self, Self::Moving) {
            Self::Own(key) => Arc::new(key),
            Self::Shared(key) => key,
            Self::Moving => unreachable!("nobody looks meanwhile"),
        };
        *self = Self::Shared(shared.clone());
        shared
    }
}

/// Makes the best of a poor hasher. No two hashes become one.
#[inline]
pub(super) fn spread(hash: u64) -> u64 {
    let mixed = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}
