//! The index of all resources that somebody holds or waits for, in shards with a lock each.
//!
//! State: an entry per resource, found by its hash. A *quiet* one has its holders in place: nobody
//! waits for it, and who takes or releases it needs the lock of its shard and nothing else. One that
//! somebody waits for is *busy*: its holders and its queue are in the wait table, under its lock.
//!
//! ```text
//!   absent <----------> quiet ----------------------> busy
//!     ^     first, last   ^    somebody must wait       |
//!     |      holder       +-----------------------------+ nobody waits any more
//!     +-------------------------------------------------+ and nobody holds it
//! ```
//!
//! Protocol: the lock of the wait table is taken before those of the shards, and these by ascending
//! number. An operation on several resources holds all of their shards at once, so that nobody sees
//! one half of it. Whoever meets a busy entry without the wait table unlocks, and begins anew with it.
//!
//! Invariants:
//! 1. There is an entry exactly while the resource has a holder or a request.
//! 2. An entry becomes busy, and quiet again, only under the lock of the wait table.
//! 3. Nothing of the user's runs in here but `Eq` in `find`, which changes nothing. Names that are
//!    no longer needed are given out, to be dropped unlocked; none is cloned.

use std::mem;

use hashbrown::HashTable;

use super::holders::Holders;
use crate::modes::Mode;
use crate::slab::Key;
use crate::sync::{Arc, Mutex, MutexGuard};

/// A power of two, at most 32.
const SHARDS: usize = 32;

pub(super) struct Shards<K>([Shard<K>; SHARDS]);

/// On cache lines of its own, and of the pairs in which they are fetched.
#[repr(align(128))]
struct Shard<K>(Mutex<Index<K>>);

pub(super) struct Index<K> {
    entries: HashTable<Entry<K>>,
    /// How many entries there ever were.
    born: u64,
}

pub(super) struct Entry<K> {
    id: NodeId,
    name: Name<K>,
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
    hash: u64,
    stamp: u64,
}

/// A resource's name: moved where others may need it when the lock is let go.
pub(super) enum Name<K> {
    Own(K),
    Shared(Arc<K>),
    /// Only within `share`.
    Moving,
}

/// Which shards an operation needs.
#[derive(Clone, Copy, Default)]
pub(super) struct Set(u32);

/// Some of the shards, locked.
pub(super) struct Locked<'a, K> {
    set: Set,
    // By ascending number; only paths that are long, or lists, need more than two.
    first: Option<MutexGuard<'a, Index<K>>>,
    second: Option<MutexGuard<'a, Index<K>>>,
    rest: Vec<MutexGuard<'a, Index<K>>>,
}

impl<K> Shards<K> {
    pub(super) fn new() -> Self {
        let shard = |_| {
            Shard(Mutex::new(Index {
                entries: HashTable::new(),
                born: 0,
            }))
        };
        Self(std::array::from_fn(shard))
    }

    #[inline]
    pub(super) fn lock(&self, set: Set) -> Locked<'_, K> {
        let mut left = set.0;
        let mut next = || {
            let shard = self.0.get(left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(shard.0.lock())
        };
        let (first, second) = (next(), next());
        let mut rest = Vec::new();
        while let Some(guard) = next() {
            rest.push(guard);
        }
        Locked {
            set,
            first,
            second,
            rest,
        }
    }

    /// All shards.
    pub(super) fn lock_all(&self) -> Locked<'_, K> {
        self.lock(Set(u32::MAX))
    }

    /// How many entries there are, if nobody is at any shard: what `Debug` uses.
    pub(super) fn try_len(&self) -> Option<usize> {
        let lens = self
            .0
            .iter()
            .map(|shard| Some(shard.0.try_lock()?.entries.len()));
        lens.sum()
    }

    /// Lowers what an owner holds of these, or takes it away, if none of them is busy; else changes
    /// nothing and says false.
    #[inline]
    pub(super) fn lower(
        &self,
        owner: Key,
        changes: &[(NodeId, Option<Mode>)],
        deferred: &mut Vec<Name<K>>,
    ) -> bool {
        if let [(id, mode)] = *changes {
            let mut index = self.0[id.shard()].0.lock();
            let lowered = index.lower(id, owner, mode);
            drop(index);
            return lowered.map(|name| deferred.extend(name)).is_ok();
        }
        let mut locked = self.lock(changes.iter().map(|(id, _)| *id).collect());
        let quiet = |(id, _): &(NodeId, _)| {
            let entry = locked.get(*id);
            entry.is_some_and(|entry| matches!(entry.state, State::Quiet(_)))
        };
        if !changes.iter().all(quiet) {
            return false;
        }
        for &(id, mode) in changes {
            deferred.extend(locked.lower(id, owner, mode).ok().flatten());
        }
        true
    }
}

impl<K> Locked<'_, K> {
    #[inline]
    fn index(&mut self, hash: u64) -> &mut Index<K> {
        let below = self.set.0 & (Set::bit(hash) - 1);
        let guard = match below.count_ones() as usize {
            0 => self.first.as_mut(),
            1 => self.second.as_mut(),
            more => self.rest.get_mut(more - 2),
        };
        guard.expect("its shard is in the set")
    }

    #[inline]
    fn at(&self, hash: u64) -> &Index<K> {
        let below = self.set.0 & (Set::bit(hash) - 1);
        let guard = match below.count_ones() as usize {
            0 => self.first.as_ref(),
            1 => self.second.as_ref(),
            more => self.rest.get(more - 2),
        };
        guard.expect("its shard is in the set")
    }

    /// The entry of a resource, with its id.
    #[inline]
    pub(super) fn find(&self, hash: u64, key: &K) -> Option<(NodeId, &State)>
    where
        K: Eq,
    {
        let hash = spread(hash);
        let is_it = |entry: &Entry<K>| entry.id.hash == hash && *entry.name.get() == *key;
        let entry = self.at(hash).entries.find(hash, is_it)?;
        Some((entry.id, &entry.state))
    }

    #[inline]
    pub(super) fn get(&self, id: NodeId) -> Option<&Entry<K>> {
        self.at(id.hash)
            .entries
            .find(id.hash, |entry| entry.id == id)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: NodeId) -> Option<&mut Entry<K>> {
        let index = self.index(id.hash);
        index.entries.find_mut(id.hash, |entry| entry.id == id)
    }

    /// Makes the entry of a resource that has none.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, name: K, owner: Key, mode: Mode) -> NodeId {
        let hash = spread(hash);
        let index = self.index(hash);
        index.born += 1;
        let id = NodeId {
            hash,
            stamp: index.born,
        };
        let entry = Entry {
            id,
            name: Name::Own(name),
            state: State::Quiet(Holders::one(owner, mode)),
        };
        index
            .entries
            .insert_unique(hash, entry, |entry| entry.id.hash);
        id
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

    /// Lowers what an owner holds, and gives the name if that was the last of the entry; or the node
    /// if the entry is busy.
    #[inline]
    pub(super) fn lower(
        &mut self,
        id: NodeId,
        owner: Key,
        mode: Option<Mode>,
    ) -> Result<Option<Name<K>>, Key> {
        self.index(id.hash).lower(id, owner, mode)
    }

    pub(super) fn remove(&mut self, id: NodeId) -> Option<Name<K>> {
        let index = self.index(id.hash);
        let entry = index.entries.find_entry(id.hash, |entry| entry.id == id);
        let (entry, _) = entry.ok()?.remove();
        index.shrink();
        Some(entry.name)
    }

    pub(super) fn len(&self) -> usize {
        self.indices().map(|index| index.entries.len()).sum()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry<K>> {
        let two = self.first.iter_mut().chain(&mut self.second);
        let all = two.chain(&mut self.rest);
        all.flat_map(|guard| guard.entries.iter_mut())
    }

    #[cfg(all(test, not(shuttle)))]
    pub(super) fn capacity(&self) -> usize {
        self.indices().map(|index| index.entries.capacity()).sum()
    }

    fn indices(&self) -> impl Iterator<Item = &Index<K>> {
        let all = self.first.iter().chain(&self.second).chain(&self.rest);
        all.map(|guard| &**guard)
    }
}

impl<K> Index<K> {
    #[inline]
    fn lower(
        &mut self,
        id: NodeId,
        owner: Key,
        mode: Option<Mode>,
    ) -> Result<Option<Name<K>>, Key> {
        let found = self.entries.find_entry(id.hash, |entry| entry.id == id);
        let Ok(mut found) = found else {
            debug_assert!(false, "an entry that is held");
            return Ok(None);
        };
        let holders = match &mut found.get_mut().state {
            State::Quiet(holders) => holders,
            State::Busy(node) => return Err(*node),
        };
        holders.set(owner, mode);
        if mode.is_some() || !holders.is_empty() {
            return Ok(None);
        }
        let (gone, _) = found.remove();
        self.shrink();
        Ok(Some(gone.name))
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

impl NodeId {
    #[inline]
    fn shard(self) -> usize {
        shard_of(self.hash)
    }

    pub(super) fn set(self) -> Set {
        Set(Set::bit(self.hash))
    }
}

impl<K> Name<K> {
    #[inline]
    fn get(&self) -> &K {
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

impl Set {
    #[inline]
    pub(super) fn add(&mut self, hash: u64) {
        self.0 |= Self::bit(spread(hash));
    }

    #[inline]
    fn bit(hash: u64) -> u32 {
        1 << shard_of(hash)
    }
}

impl FromIterator<NodeId> for Set {
    #[inline]
    fn from_iter<I: IntoIterator<Item = NodeId>>(ids: I) -> Self {
        Self(ids.into_iter().fold(0, |set, id| set | id.set().0))
    }
}

/// The shard of a hash that is spread: by other bits than those that the index goes by.
#[inline]
fn shard_of(hash: u64) -> usize {
    (hash >> 40) as usize % SHARDS
}

/// Makes the best of a poor hasher. No two hashes become one.
#[inline]
pub(super) fn spread(hash: u64) -> u64 {
    let mixed = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}
