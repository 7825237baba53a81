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
//! 1. There is an entry exactly while the resource has a holder or a request; who keeps an intent
//!    (`bias`) is a holder.
//! 2. An entry becomes busy, and quiet again, only under the lock of the wait table.
//! 3. Nothing of the user's runs in here but `Eq` in `find`, which changes nothing. Names that are
//!    no longer needed are given out, to be dropped unlocked; none is cloned.

use std::panic::{RefUnwindSafe, UnwindSafe};

use super::bias::{Bias, Due};
use super::index::{Entry, Index, Name, NodeId, State};
use crate::modes::Mode;
use crate::slab::Key;
use crate::sync::{Arc, Mutex, MutexGuard};

/// A power of two, at most 32.
const SHARDS: usize = 32;

pub(super) struct Shards<K>([Shard<K>; SHARDS]);

/// On cache lines of its own, and of the pairs in which they are fetched.
#[repr(align(128))]
struct Shard<K>(Mutex<Index<K>>);

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

// Only `Eq` is the user's under these locks: if it panics, nothing has changed.
impl<K> UnwindSafe for Shards<K> {}
impl<K> RefUnwindSafe for Shards<K> {}

impl<K> Shards<K> {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Shard(Mutex::new(Index::new()))))
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

    /// The shard of a resource.
    #[inline]
    pub(super) fn lock_one(&self, hash: u64) -> MutexGuard<'_, Index<K>> {
        self.0[shard_of(hash)].0.lock()
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

    /// [`Index::lower`] of one. What is kept rests with it; if it cannot, nothing has changed.
    #[inline]
    pub(super) fn lower_one(
        &self,
        owner: Key,
        (id, mode): (NodeId, Option<Mode>),
        rests: Option<&Bias>,
    ) -> Option<Option<Name<K>>> {
        let mut index = self.lock_one(id.hash);
        if let Some(bias) = rests
            && (!index.is_quiet(id) || !bias.rest())
        {
            return None;
        }
        index.lower(id, owner, mode).ok()
    }

    /// [`Index::give_up`].
    pub(super) fn give_up(&self, owner: Key, id: NodeId) -> Option<Name<K>> {
        self.lock_one(id.hash).give_up(id, owner)
    }

    /// Lowers what an owner holds of these, or takes it away, if none of them is busy; else changes
    /// nothing and says false.
    #[inline]
    pub(super) fn lower(
        &self,
        owner: Key,
        changes: &[(NodeId, Option<Mode>)],
        (due, bias): (Due, &Arc<Bias>),
        deferred: &mut Vec<Name<K>>,
    ) -> bool {
        let mut locked = self.lock(changes.iter().map(|(id, _)| *id).collect());
        let quiet = |(id, _): &(NodeId, _)| locked.at(id.hash).is_quiet(*id);
        if !changes.iter().all(quiet) || due == Due::Rest && !bias.rest() {
            return false;
        }
        for &(id, mode) in changes {
            if due == Due::Begin(id) {
                locked.index(id.hash).begin(id, owner, bias);
                continue;
            }
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

    /// The entry of a resource.
    #[inline]
    pub(super) fn find(&self, hash: u64, key: &K) -> Option<NodeId>
    where
        K: Eq,
    {
        let is_it = |entry: &Entry<K>| entry.id.hash == hash && *entry.name.get() == *key;
        let entry = self.at(hash).entries.find(hash, is_it)?;
        Some(entry.id)
    }

    #[inline]
    pub(super) fn get(&self, id: NodeId) -> Option<&Entry<K>> {
        self.at(id.hash).get(id)
    }

    /// [`Index::make_room`].
    #[inline]
    pub(super) fn make_room(&mut self, id: NodeId, asks: (Key, Mode), gone: &mut Vec<Name<K>>) {
        self.index(id.hash).make_room(id, asks, gone);
    }

    /// So that only what is used is left: for those who look.
    pub(super) fn revoke_idle(&mut self, gone: &mut Vec<Name<K>>) {
        let two = self.first.iter_mut().chain(&mut self.second);
        let all = two.chain(&mut self.rest);
        all.for_each(|index| index.revoke_idle(gone));
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: NodeId) -> Option<&mut Entry<K>> {
        self.index(id.hash).get_mut(id)
    }

    /// Makes the entry of a resource that has none.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, name: K, owner: Key, mode: Mode) -> NodeId {
        self.index(hash).insert(hash, name, owner, mode)
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
        self.index(id.hash).remove(id)
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

impl NodeId {
    pub(super) fn set(self) -> Set {
        Set(Set::bit(self.hash))
    }
}

impl Set {
    #[inline]
    pub(super) fn add(&mut self, hash: u64) {
        self.0 |= Self::bit(hash);
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
