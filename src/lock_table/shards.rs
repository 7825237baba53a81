//! The index of all resources that somebody holds or waits for, in shards with a lock each.
//!
//! State: an entry per resource, found by its hash. A *quiet* one has its holders in place: nobody
//! waits for it, and who takes or releases it needs the lock of its shard and nothing else. One
//! that somebody waits for is *busy*: its holders and its queue are in the wait table, under its
//! lock.
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
//! one half of it. Whoever meets a busy entry without the wait table unlocks, and begins anew with
//! it.
//!
//! The lock of a shard is that of a group, on which nobody sleeps: a pair is one read-modify-write.
//! It is held for a few steps and the user's `Eq`; who looks at all of the table holds all of them
//! for longer, and who needs one meanwhile gives its processor away.
//!
//! Invariants:
//! 1. There is an entry exactly while the resource has a holder or a request; who keeps an intent
//!    (`bias`) is a holder.
//! 2. An entry becomes busy, and quiet again, only under the lock of the wait table.
//! 3. Nothing of the user's runs in here but `Eq` where an entry is looked for, which
//!    changes nothing. Names that are
//!    no longer needed are given out, to be dropped unlocked; none is cloned.

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

/// On cache lines of its own, and of the pairs in which they are fetched.
#[repr(align(128))]
struct Shard<K>(Lock<Index<K>>);

/// So many stand in place when they are locked: a resource has seldom more ancestors.
const FEW: usize = 4;

/// Some of the shards, locked: each with its number.
pub(super) struct Locked<'a, K> {
    few: [Option<(usize, Guard<'a, Index<K>>)>; FEW],
    more: Vec<(usize, Guard<'a, Index<K>>)>,
}

// Only `Eq` is the user's under these locks: if it panics, nothing has changed.
impl<K> UnwindSafe for Shards<K> {}
impl<K> RefUnwindSafe for Shards<K> {}

impl<K> Shards<K> {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Shard(Lock::new(Index::new()))))
    }

    /// The shards of these hashes.
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

    /// The shard of a resource.
    #[inline]
    pub(super) fn lock_one(&self, hash: u64) -> Guard<'_, Index<K>> {
        self.0[shard_of(hash)].0.lock()
    }

    /// How many entries somebody holds or waits for, in one shard after the other.
    pub(super) fn in_use(&self) -> usize {
        let shards = self.0.iter();
        shards.map(|shard| shard.0.lock().in_use()).sum()
    }

    /// How many entries there are, if nobody is at any shard: what `Debug` uses.
    pub(super) fn try_len(&self) -> Option<usize> {
        let lens = self
            .0
            .iter()
            .map(|shard| Some(shard.0.try_lock()?.entries.len()));
        lens.sum()
    }

    /// Lowers what an owner holds of these, or takes it away, if none of them is busy, and does
    /// what is due about what it keeps; else changes nothing and says false.
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

    /// Whether that is all there is.
    pub(super) fn is_all(&self) -> bool {
        self.few.iter().flatten().count() + self.more.len() == SHARDS
    }

    /// Those that are locked.
    pub(super) fn indices(&mut self) -> impl Iterator<Item = &mut Index<K>> {
        self.all().map(|(_, guard)| &mut **guard)
    }
}

/// The shard of a hash that is spread: by the upper bits of the half by whose lower bits the index
/// goes.
#[inline]
fn shard_of(hash: u64) -> usize {
    (hash >> 27) as usize % SHARDS
}
