//! Send by key: the first message of a key makes its group. When nothing of the group waits or
//! is in flight, it is idle. Idle groups are kept for the next messages of their keys, up to a
//! [bound](Keyed::keep_idle), and then forgotten.
//!
//! ```
//! use conversant::keyed::Keyed;
//! use conversant::limit::Limit;
//! use conversant::queue::Queue;
//!
//! let queue = Queue::new();
//! let orders = Keyed::new(queue.lane(1, Limit::Unlimited)?).keep_keys();
//! for (key, order) in [("anna", 1), ("bert", 2), ("anna", 3)] {
//!     orders.send(key.to_string(), order)?;
//! }
//! queue.close();
//!
//! let mut served = Vec::new();
//! // In a task: `queue.receive().await`.
//! while let Ok(mut turn) = queue.receive().wait() {
//!     let key = orders.key_of(turn.group_id()).expect("all keys are kept");
//!     while let Some(delivery) = turn.next() {
//!         served.push(format!("{key} {}", delivery.complete()));
//!     }
//! }
//! assert_eq!(served, ["anna 1", "anna 3", "bert 2"]);
//! assert!(orders.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Memory ordering: that of the queue. Cost: one hash, one uncontended lock of a shard, and a send
//! of the queue.
//!
//! No user code runs under a lock except `Eq` and `Borrow` of keys, under the shard's lock:
//! these must call neither this `Keyed` nor its queue. If one of them panics, nothing has changed
//! and nothing is sent. If the drops of two keys panic that are forgotten together, the process
//! aborts.

// State: a map from keys to groups, sharded by hash, each shard under a mutex. The groups are
// the queue's; the map pins them.
//
// Protocol: a send locks the shard of its key, makes the group if there is none, and sends
// under the shard's lock. While more than `keep_idle` groups are kept, a send that makes one
// more and a receive that finds nothing may forget all idle groups, except those whose limit,
// level or capacity was changed, or for which a send waits. Lock order: shard, then the
// queue's, or `names`.
//
// Invariants:
// 1. All outstanding messages of a key are in one group: a group is put into the map, and an
//    idle one taken out, only under the lock of its key's shard.
// 2. The map has one pin of each of its groups.

mod control;
mod map;
mod names;
mod send_wait;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, RandomState};
use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::Closed;
use crate::limit::{DEFAULT_LEVEL, Limit};
use crate::queue::{
    GroupRef, KEPT_IDLE, Lane, LaneError, Observer, SendError, SendReason, Shared, if_idle,
};
// Only for shared ownership: it synchronizes nothing.
use crate::shown::shows;
use crate::sync::{Apart, Mutex, MutexGuard, OnceLock, WakeArc as Arc, model_size, unique};

use map::{Entry, KeyMap, NewGroup, find, take_idle};
use names::{Names, Tables};

/// A power of two.
const SHARDS: usize = model_size(64, 4);

/// Sends by key into one lane. See the [module](self).
///
/// Threads share it by reference. When it is dropped, messages already sent are still
/// delivered.
#[must_use = "dropping it forgets its keys"]
pub struct Keyed<K, T, S = RandomState> {
    lane: Lane<T>,
    hasher: S,
    shards: Arc<Shards<K, T>>,
    /// The number of this observer in the queue.
    number: u64,
    /// The bound on idle groups.
    few: usize,
}

type Shard<'a, K, T> = MutexGuard<'a, KeyMap<K, T>>;

/// The promise of callers of [`Keyed::group_of`].
const KEY: &str = "a key without a group is here";

struct Shards<K, T> {
    maps: [Apart<Mutex<KeyMap<K, T>>>; SHARDS],
    queue: crate::sync::Arc<Shared<T>>,
    /// None unless the keys are kept.
    names: OnceLock<Box<dyn Names<K>>>,
    made: Mutex<NewGroup>,
}

impl<K: Send + 'static, T: Send + 'static> Keyed<K, T> {
    /// Serial groups of the [`DEFAULT_LEVEL`] in this lane. [`with`](Keyed::with) sets another limit
    /// or level for each key.
    pub fn new(lane: Lane<T>) -> Self {
        Self::build(lane, Limit::SERIAL, DEFAULT_LEVEL, RandomState::new())
    }
}

impl<K: Send + 'static, T: Send + 'static, S> Keyed<K, T, S> {
    /// Groups of this limit and standing level; `hasher` hashes the keys, as a [`RandomState`] does
    /// in [`new`](Keyed::new).
    ///
    /// # Errors
    ///
    /// [`LaneError`] if the limit is above [`Limit::MAX`] or the queue is closed.
    pub fn with(
        lane: Lane<T>,
        limit: impl Into<Limit>,
        level: u8,
        hasher: S,
    ) -> Result<Self, LaneError> {
        let limit = limit.into();
        // Checks that such a group can be made.
        drop(lane.group(limit, level)?);
        Ok(Self::build(lane, limit, level, hasher))
    }

    fn build(lane: Lane<T>, limit: Limit, level: u8, hasher: S) -> Self {
        let shards = Arc::new(Shards {
            maps: std::array::from_fn(|_| Apart(Mutex::new(KeyMap::new()))),
            queue: lane.shared().clone(),
            names: OnceLock::new(),
            made: Mutex::new((limit, level, Limit::Unlimited)),
        });
        let number = unique();
        lane.shared().register(number, &shards, false);
        let keyed = Self {
            lane,
            hasher,
            shards,
            number,
            few: 0,
        };
        keyed.keep_idle(KEPT_IDLE)
    }
}

impl<K, T, S> Keyed<K, T, S> {
    /// Sets how many groups may be kept, 1,024 by default. When there are more, all idle ones are
    /// forgotten but those that [stay](Self::group). If more than half as many are busy or stay
    /// then, twice their number may be kept until the next time. All `Keyed` of one queue share the
    /// sum of their bounds.
    ///
    /// A kept group costs some 70 bytes besides its place in the map, making one several times a
    /// send: set this to the number of keys that come back. To forget takes 64 locks of each `Keyed`.
    pub fn keep_idle(mut self, groups: usize) -> Self {
        // The queue sums the bounds of all its `Keyed`.
        let few = groups.min(u32::MAX as usize);
        let before = std::mem::replace(&mut self.few, few);
        self.queue().keep_idle(few, before);
        self
    }

    /// Keeps a copy of each key while its group is kept, for [`key_of`](Self::key_of). Call it
    /// before the first send: keys of groups that exist already are not kept.
    ///
    /// Cost: a copy and some 40 bytes for each group, when it is made.
    pub fn keep_keys(self) -> Self
    where
        K: Clone + Send + Sync + 'static,
    {
        let names = || -> Box<dyn Names<K>> { Box::new(Tables::new()) };
        self.shards.names.get_or_init(names);
        self
    }

    #[inline]
    fn queue(&self) -> &Shared<T> {
        &self.shards.queue
    }

    /// The lane: to change its cap, or to make other groups in it.
    #[must_use = "it only gives the lane"]
    pub fn lane(&self) -> &Lane<T> {
        &self.lane
    }

    /// How many keys have messages that wait or are in flight, or a turn that lives. Forgets the
    /// other groups, except those that [stay](Self::group). While others send and receive, the
    /// number may be one that was true at no moment.
    ///
    /// Cost: O(keys).
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.forget_idle();
        let is_busy = |entry: &&Entry<K, T>| if_idle(&entry.group).is_none();
        let busy = |map: &Apart<Mutex<KeyMap<K, T>>>| map.0.lock().iter().filter(is_busy).count();
        self.shards.maps.iter().map(busy).sum()
    }

    /// Whether [`len`](Self::len) is 0. Like it, this forgets idle groups and costs O(keys).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Hash + Eq, T, S: BuildHasher> Keyed<K, T, S> {
    /// Sends a message to the group of a key. Messages of one key are delivered in order. The tier
    /// is that of the group's last message (0 in a new group).
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message, if the queue is closed, or the queue, the group or the
    /// lane is full. The key is dropped: to keep it, use [`send_ref`](Self::send_ref).
    #[inline]
    pub fn send(&self, key: K, message: T) -> Result<(), SendError<T>> {
        let hash = self.hasher.hash_one(&key);
        self.send_to_known(hash, &key, message)
            .or_else(|message| self.send_rarely(hash, key, None, message))
    }

    /// As [`send`](Self::send), by reference: the key is copied if its group must be made, and
    /// where a send does not just put its message in: with tiers, capacities and the like.
    ///
    /// ```
    /// # use conversant::keyed::Keyed;
    /// # use conversant::limit::Limit;
    /// # use conversant::queue::Queue;
    /// let queue = Queue::new();
    /// let orders: Keyed<String, _> = Keyed::new(queue.lane(1, Limit::Unlimited)?);
    /// orders.send_ref("anna", 1)?;
    /// # assert_eq!(orders.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    #[inline]
    pub fn send_ref<Q>(&self, key: &Q, message: T) -> Result<(), SendError<T>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        self.send_to_known(hash, key, message)
            .or_else(|message| self.send_rarely(hash, key.to_owned(), None, message))
    }

    /// As [`send`](Self::send), in a tier.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send); and if the key's last message was sent in a higher tier, while
    /// anything of the key is outstanding or a turn of it lives: this one could wait for ever.
    pub fn send_in(&self, key: K, tier: u32, message: T) -> Result<(), SendError<T>> {
        let hash = self.hasher.hash_one(&key);
        self.send_rarely(hash, key, Some(tier), message)
    }

    /// Sends to the group of a key, if there is one that takes a plain send; else returns the
    /// message.
    #[inline]
    fn send_to_known<Q>(&self, hash: u64, key: &Q, message: T) -> Result<(), T>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let shard = self.shards.map(hash).lock();
        let Some(group) = find(&shard, hash, key) else {
            return Err(message);
        };
        let posted = Shared::send_at_once(group, || self.queue(), message)?;
        drop(shard);
        self.queue().posted(posted);
        Ok(())
    }

    #[cold]
    fn send_rarely(
        &self,
        hash: u64,
        key: K,
        tier: Option<u32>,
        message: T,
    ) -> Result<(), SendError<T>> {
        let mut key = Some(key);
        let Ok((group, shard)) = self.group_of(hash, &mut key) else {
            // Before there is a result, which would leak if this panics.
            drop(key);
            let reason = SendReason::Closed;
            return Err(SendError { message, reason });
        };
        let sent = self.queue().send_one((&group, tier), message, shard);
        self.queue().trim(true);
        drop(key);
        sent
    }

    /// The group of a key, with its shard locked. Makes the group if there is none. Takes the key
    /// if it goes into the map; otherwise, and if an `Eq` panics, the key stays with the caller, who
    /// drops it under no lock.
    #[cold]
    fn group_of(
        &self,
        hash: u64,
        key: &mut Option<K>,
    ) -> Result<(GroupRef<T>, Shard<'_, K, T>), Closed> {
        let map = self.shards.map(hash);
        loop {
            let shard = map.lock();
            if let Some(group) = find(&shard, hash, key.as_ref().expect(KEY)) {
                return Ok((GroupRef::clone(group), shard));
            }
            drop(shard);
            // The queue may run wakers here, so no lock is held. The group is dropped under none
            // too, even if an `Eq` panics.
            let (limit, level, capacity) = self.shards.made();
            let group = self.lane.add_group(limit, level).map_err(|_| Closed)?;
            if capacity != Limit::Unlimited {
                _ = self.queue().set_capacity(&group, capacity); // No error: nothing waits.
            }
            let names = self.shards.names.get();
            let name = names.map(|names| names.copy(key.as_ref().expect(KEY)));
            let mut shard = map.lock();
            if find(&shard, hash, key.as_ref().expect(KEY)).is_some() {
                // Another thread was quicker: its group is found above.
                continue;
            }
            let (made, key) = (GroupRef::clone(&group), key.take().expect(KEY));
            if let (Some(names), Some(name)) = (names, name) {
                names.add(made.key(), name);
            }
            shard.insert_unique(hash, Entry { hash, key, group }, |entry| entry.hash);
            self.queue().keep();
            return Ok((made, shard));
        }
    }
}

// Only `Eq` and `Borrow` run under a shard's lock: if one panics, nothing has changed.
impl<K, T> UnwindSafe for Shards<K, T> {}
impl<K, T> RefUnwindSafe for Shards<K, T> {}

impl<K, T> Shards<K, T> {
    #[inline]
    fn map(&self, hash: u64) -> &Mutex<KeyMap<K, T>> {
        // The top bits: the map in a shard uses the low ones.
        &self.maps[(hash >> 32) as usize % SHARDS].0
    }

    fn made(&self) -> NewGroup {
        *self.made.lock()
    }

    /// Forgets idle groups. Under no lock.
    fn forget_idle(&self) {
        self.forget_in_all(|map| take_idle(map, self.made()));
    }

    /// Forgets what `take` takes out of each map. Under no lock.
    fn forget_in_all(&self, take: impl Fn(&mut KeyMap<K, T>) -> Vec<Entry<K, T>>) {
        // Dropped at the end, because the drop of a key may panic.
        let mut forgotten = Vec::new();
        for map in &self.maps {
            let taken = take(&mut map.0.lock());
            let mut groups = taken.iter().map(|entry| entry.group.key());
            let names = self.names.get().map(|names| names.remove(&mut groups));
            self.queue.let_go(taken.len());
            forgotten.push((taken, names));
        }
    }
}

impl<K: Send, T: Send> Observer for Shards<K, T> {
    fn trim(&self) {
        self.forget_idle();
    }
}

impl<K, T, S> Drop for Keyed<K, T, S> {
    fn drop(&mut self) {
        self.queue().unregister(self.number);
        self.queue().keep_idle(0, self.few);
        self.shards.forget_in_all(|map| map.drain().collect());
    }
}

shows! {
    [K, T, S] Keyed<K, T, S>, |keyed|
    lane: keyed.lane, limit: keyed.shards.made().0, level: keyed.shards.made().1
}
