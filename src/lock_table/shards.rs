//! The index of all resources that are held or waited for, in shards with a lock each.
//!
//! State: an entry per resource, found by its hash. A *quiet* entry has its holders in place:
//! nobody waits for it, and taking or releasing it needs the lock of its shard and nothing else. A
//! *busy* entry has waiters: its holders and its queue are in the wait table, under its lock.
//!
//! ```text
//!   absent <----------> quiet ----------------------> busy
//!     ^     first, last   ^    somebody must wait       |
//!     |      holder       +-----------------------------+ nobody waits any more
//!     +-------------------------------------------------+ and nobody holds it
//! ```
//!
//! Protocol: the lock of the wait table is taken before those of the shards, and these by ascending
//! number. An operation on several resources holds all of their shards at once, so that no thread
//! sees half of it. A thread that meets a busy entry without the wait table unlocks, and starts
//! again with it.
//!
//! The lock of a shard is that of a group, on which no thread sleeps: locking and unlocking cost
//! one read-modify-write. It is held for a few steps and the user's `Eq`. A thread that looks at
//! the whole table holds all of them for longer; threads that need one meanwhile yield their
//! processors.
//!
//! Invariants:
//! 1. There is an entry exactly while the resource has a holder or a request; an owner that keeps
//!    an intent (`kept`) is a holder.
//! 2. An entry becomes busy, and quiet again, only under the lock of the wait table.
//! 3. Of the user's code only `Eq` runs in here, to find an entry, and changes nothing. Names that
//!    are no longer needed are handed out, to be dropped unlocked; none is cloned.

use std::panic::{RefUnwindSafe, UnwindSafe};

use super::index::{Change, Index};
use super::kept::{Due, Kept};
use super::name::Gone;
use super::owners::OwnerKey;
use crate::group::{Guard, Lock};
use crate::sync::model_size;

/// A power of two, at most 32.
const SHARDS: usize = model_size(32, 2);

pub(super) struct Shards<K>([Shard<K>; SHARDS]);

/// On a pair of cache lines of its own, because lines are fetched in pairs.
#[repr(align(128))]
struct Shard<K>(Lock<Index<K>>);

/// How many guards have a place of their own: a resource has seldom more ancestors.
const FEW: usize = 4;

/// Some of the shards, locked: each guard with the shard's number.
pub(super) struct Locked<'a, K> {
    few: [Option<(usize, Guard<'a, Index<K>>)>; FEW],
    more: Vec<(usize, Guard<'a, Index<K>>)>,
}

// Of the user's code only `Eq` runs under these locks: if it panics, nothing has changed.
impl<K> UnwindSafe for Shards<K> {}
impl<K> RefUnwindSafe for Shards<K> {}

impl<K> Shards<K> {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Shard(Lock::new(Index::new()))))
    }

    /// Locks the shards of these hashes.
    #[inline]
    pub(super) fn lock(&self, hashes: impl Iterator<Item = u64>) -> Locked<'_, K> {
        self.lock_set(hashes.fold(0, |set, hash| set | 1 << shard_of(hash)))
    }

    pub(super) fn lock_all(&self) -> Locked<'_, K> {
        self.lock_set(u32::MAX >> (32 - SHARDS))
    }

    #[inline]
    fn lock_set(&self, mut set: u32) -> Locked<'_, K> {
        let mut next = || {
            let at = set.trailing_zeros() as usize;
            let shard = self.0.get(at)?;
            set &= set - 1;
            Some((at, shard.0.lock()))
        };
        let few = std::array::from_fn(|_| next());
        let more = std::iter::from_fn(next).collect();
        Locked { few, more }
    }

    /// Locks the shard of a resource.
    #[inline]
    pub(super) fn lock_one(&self, hash: u64) -> Guard<'_, Index<K>> {
        self.0[shard_of(hash)].0.lock()
    }

    /// How many entries are held or waited for, counted in one shard after the other.
    pub(super) fn in_use(&self) -> usize {
        let shards = self.0.iter();
        shards.map(|shard| shard.0.lock().in_use()).sum()
    }

    /// How many entries there are; none if a shard is locked. `Debug` uses it.
    pub(super) fn try_len(&self) -> Option<usize> {
        let lens = self
            .0
            .iter()
            .map(|shard| Some(shard.0.try_lock()?.entries.len()));
        lens.sum()
    }

    /// Lowers or removes what an owner holds of these entries, and does what is due about the
    /// intent that it keeps. If an entry is busy, or the intent was revoked, changes nothing and
    /// returns false.
    pub(super) fn lower(
        &self,
        owner: OwnerKey,
        changes: impl Iterator<Item = Change> + Clone,
        kept: &mut Kept,
        gone: &mut Gone<K>,
    ) -> bool {
        let keeps = kept.is_listed();
        let mut all = changes.clone();
        if let (Some((id, mode)), None) = (all.next(), all.next())
            && kept.due == Due::Nothing
        {
            let busy = self.lock_one(id.hash).set(id, owner, mode, keeps, gone);
            return busy.is_none();
        }
        let mut locked = self.lock(changes.clone().map(|(id, _)| id.hash));
        let busy = |(id, _): Change| locked.index(id.hash).is_busy(id);
        if changes.clone().any(busy) || kept.due == Due::Rest && !kept.word().rest() {
            return false;
        }
        for (id, mode) in changes {
            let index = locked.index(id.hash);
            match kept.due {
                Due::Begin(root) if root == id && mode.is_none() => {
                    index.biases.begin(id, owner, kept.word());
                }
                _ => _ = index.set(id, owner, mode, keeps, gone),
            }
        }
        kept.due = Due::Nothing;
        true
    }
}

impl<'a, K> Locked<'a, K> {
    fn all(&mut self) -> impl Iterator<Item = &mut (usize, Guard<'a, Index<K>>)> {
        self.few.iter_mut().flatten().chain(&mut self.more)
    }

    /// The shard of a hash.
    #[inline]
    pub(super) fn index(&mut self, hash: u64) -> &mut Index<K> {
        let found = self.all().find(|(at, _)| *at == shard_of(hash));
        &mut found.expect("it was asked for").1
    }

    /// Whether all shards are locked.
    pub(super) fn is_all(&self) -> bool {
        self.few.iter().flatten().count() + self.more.len() == SHARDS
    }

    /// The shards that are locked.
    pub(super) fn indices(&mut self) -> impl Iterator<Item = &mut Index<K>> {
        self.all().map(|(_, guard)| &mut **guard)
    }
}

/// The shard of a spread hash: by the upper bits of its lower half. The index goes by the lower
/// bits of that half.
#[inline]
fn shard_of(hash: u64) -> usize {
    (hash >> 27) as usize % SHARDS
}
