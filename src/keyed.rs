//! Send by key: the group of a key is made with its first message, and gone
//! when nothing of it waits or is in flight.
//!
//! ```
//! use conversant::keyed::Keyed;
//! use conversant::limit::Limit;
//! use conversant::queue::Queue;
//!
//! let queue = Queue::new();
//! let orders = Keyed::new(queue.lane(1, Limit::Unlimited)?);
//! orders.send("anna", 1)?;
//! orders.send("bert", 2)?;
//! orders.send("anna", 3)?;
//! queue.close();
//!
//! let mut served = Vec::new();
//! while let Ok(mut turn) = queue.receive().wait() {
//!     while let Some(delivery) = turn.next() {
//!         served.push(delivery.complete());
//!     }
//! }
//! assert_eq!(served, [1, 3, 2]);
//! assert!(orders.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! State: a map from keys to groups, sharded by hash, each shard under a mutex;
//! the groups are the queue's.
//!
//! Protocol: a send locks the shard of its key, looks the key up, and with the
//! shard locked takes the queue's lock, under which the group is found there or
//! made, and the message put into it. An event that ends a group tells it
//! afterwards, under no lock, and the shard forgets the key. Lock order: shard,
//! then queue; never the other way.
//!
//! Invariants:
//! 1. All outstanding messages of a key are in one group: whoever makes a group
//!    for a key holds its shard, and does so only if the old one has ended, and
//!    a group ends only when nothing of it is outstanding.
//! 2. Of a key that is forgotten no group is left: it is taken out only under
//!    the name of the group that has ended, not if it has another by then.
//!
//! No code of the user's runs under a lock but `Eq` of keys, under the shard's:
//! it must not call this. If it panics, nothing has changed; nothing is sent.
//! Hashes are computed before, keys and messages dropped after.
//!
//! Memory ordering: that of the queue: what was done before a send is seen by
//! whoever receives the message.
//!
//! Cost: one hash, one uncontended lock of a shard, and a send of the queue.

mod map;
mod send_wait;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};

use crate::dispatch::GroupKey;
use crate::error::Stale;
use crate::limit::Limit;
use crate::queue::{Forget, GroupId, Home, Lane, LaneError, SendError, Shape};
use crate::rank::STANDING_LEVEL;
// As in the queue: shared ownership and no more.
use crate::sync::{Mutex, WakeArc as Arc};

use map::KeyMap;
pub use send_wait::KeyedSendWait;

/// A power of two.
const SHARDS: usize = 16;

/// Sends by key into one lane. See the [module](self).
///
/// Shared between threads by reference. Dropping it leaves what was sent to be
/// delivered.
pub struct Keyed<K: Send + 'static, T, S = RandomState> {
    lane: Lane<T>,
    shape: Shape,
    hasher: S,
    shards: Arc<Shards<K>>,
    /// By which the queue knows this keeper.
    number: u64,
}

struct Shards<K>([Mutex<KeyMap<K>>; SHARDS]);

impl<K: Send + 'static, T> Keyed<K, T> {
    /// Serial groups of the default level 100 in this lane.
    #[must_use]
    pub fn new(lane: Lane<T>) -> Self {
        let shape = Shape {
            limit: Limit::SERIAL,
            level: STANDING_LEVEL,
        };
        Self::build(lane, shape, RandomState::new())
    }
}

impl<K: Send + 'static, T, S> Keyed<K, T, S> {
    /// Groups of this limit and standing level, and keys hashed by `hasher`.
    ///
    /// # Errors
    ///
    /// [`LaneError`] if the limit is above [`Limit::MAX`] or the queue closed.
    pub fn with(lane: Lane<T>, limit: Limit, level: u8, hasher: S) -> Result<Self, LaneError> {
        let shape = Shape { limit, level };
        lane.try_shape(shape)?;
        Ok(Self::build(lane, shape, hasher))
    }

    fn build(lane: Lane<T>, shape: Shape, hasher: S) -> Self {
        let shards = std::array::from_fn(|_| Mutex::new(KeyMap::new()));
        let shards = Arc::new(Shards(shards));
        let number = lane.move_in(shards.clone());
        Self {
            lane,
            shape,
            hasher,
            shards,
            number,
        }
    }

    /// The lane: to change its cap, or to make other groups in it.
    #[must_use]
    pub fn lane(&self) -> &Lane<T> {
        &self.lane
    }

    /// How many keys have a group now. Counts shard by shard: while others
    /// send and receive, the sum may never have been true.
    ///
    /// Cost: O(keys).
    #[must_use]
    pub fn len(&self) -> usize {
        // What has ended is told of first.
        self.lane.catch_up();
        self.shards.0.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Whether no key has a group.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Hash + Eq + Send + 'static, T, S: BuildHasher> Keyed<K, T, S> {
    /// Sends a message to the group of a key, in the tier of the group's last
    /// message (0 in a new group). Messages of one key are delivered in the
    /// order in which they were sent.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message, if the queue is closed or full.
    pub fn send(&self, key: K, message: T) -> Result<(), SendError<T>> {
        self.post(key, None, message)
    }

    /// As [`send`](Self::send), in a tier.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send); and if an earlier message of the key is
    /// outstanding in a higher tier, for which this one would wait for ever.
    pub fn send_in(&self, key: K, tier: u32, message: T) -> Result<(), SendError<T>> {
        self.post(key, Some(tier), message)
    }

    /// How many messages of a key wait.
    #[must_use]
    pub fn waiting(&self, key: &K) -> usize {
        let group = self.find(key);
        group.map_or(0, |group| self.lane.waiting_in(group))
    }

    /// Bumps the group of a key, as [`Group::bump`](crate::queue::Group::bump).
    ///
    /// # Errors
    ///
    /// [`Stale`] if it has none: nothing of it is outstanding.
    pub fn bump(&self, key: &K, level: u8) -> Result<(), Stale> {
        let group = self.find(key).ok_or(Stale)?;
        let bumped = self.lane.bump_group(group, level);
        bumped.then_some(()).ok_or(Stale)
    }

    /// The group of a key, if it has one: to bump, watch or receive from it.
    #[must_use]
    pub fn group(&self, key: &K) -> Option<GroupId> {
        let group = self.find(key)?;
        self.lane.group_id(group)
    }

    fn find(&self, key: &K) -> Option<GroupKey> {
        let hash = self.hasher.hash_one(key);
        self.shards.shard(hash).lock().find(hash, key)
    }

    fn post(&self, key: K, tier: Option<u32>, message: T) -> Result<(), SendError<T>> {
        let hash = self.hasher.hash_one(&key);
        let home = Home {
            number: self.number,
            place: hash,
        };
        // What is left of it is dropped last, under no lock.
        let mut key = Some(key);
        let mut shard = self.shards.shard(hash).lock();
        let known = key.as_ref().and_then(|key| shard.find(hash, key));
        let placed = |new: Option<GroupKey>| {
            match (known, new) {
                (_, None) => {}
                (Some(old), Some(new)) => shard.replace(hash, old, new),
                (None, Some(new)) => {
                    let key = key.take().expect("a message is placed once");
                    shard.insert(hash, key, new);
                }
            }
            // Before any waker runs.
            drop(shard);
        };
        let sending = (tier, message);
        self.lane
            .send_to(known, (home, self.shape), sending, placed)
    }
}

impl<K> Shards<K> {
    fn shard(&self, hash: u64) -> &Mutex<KeyMap<K>> {
        // The top bits: the map in a shard uses the low ones.
        &self.0[(hash >> 32) as usize % SHARDS]
    }
}

impl<K: Send> Forget for Shards<K> {
    fn forget(&self, hash: u64, group: GroupKey) {
        // The guard is gone before the key.
        let key = self.shard(hash).lock().remove(hash, group);
        drop(key);
    }
}

impl<K: Send + 'static, T, S> Drop for Keyed<K, T, S> {
    fn drop(&mut self) {
        drop(self.lane.move_out(self.number));
    }
}

impl<K: Send + 'static, T, S> fmt::Debug for Keyed<K, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed")
            .field("lane", &self.lane)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}
