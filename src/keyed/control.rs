//! Control of one key: limit, level, capacity, poison; and the key of a group.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

use crate::error::{OutOfRange, Stale};
use crate::limit::Limit;
use crate::queue::{Change, GroupId, GroupRef, LaneError, checked, own_capacity};

use super::Keyed;
use super::map::find;

impl<K: Hash + Eq, T, S: BuildHasher> Keyed<K, T, S> {
    /// The group of a key, if it has outstanding messages. Use it for operations on groups by
    /// name, such as [`Queue::receive_from`](crate::queue::Queue::receive_from).
    #[must_use]
    pub fn group<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<GroupId>
    where
        K: Borrow<Q>,
    {
        let group = self.find(key)?;
        Some(self.queue().id(group.key()))
    }

    /// Bumps the group of a key, like [`Group::bump`](crate::queue::Group::bump).
    ///
    /// # Errors
    ///
    /// [`Stale`] if the key has no outstanding messages.
    pub fn bump<Q: Hash + Eq + ?Sized>(&self, key: &Q, level: u8) -> Result<(), Stale>
    where
        K: Borrow<Q>,
    {
        let group = self.find(key).ok_or(Stale)?;
        self.queue().bump(&group, level);
        Ok(())
    }

    /// Changes how many messages of a key may be in flight at once; 0 is a pause. The key need
    /// not have outstanding messages. The limit is remembered until it is set back to the
    /// common one: a group that differs is kept beside the [idle](Self::keep_idle) ones.
    ///
    /// ```
    /// # use conversant::keyed::Keyed;
    /// # use conversant::limit::Limit;
    /// # use conversant::queue::Queue;
    /// let queue = Queue::new();
    /// let orders = Keyed::new(queue.lane(1, Limit::Unlimited)?).keep_keys();
    /// orders.set_limit("anna", 0)?;
    /// orders.send("anna", 1)?;
    /// orders.send("bert", 2)?;
    /// let turn = queue.try_receive()?;
    /// assert_eq!(orders.key_of(turn.group()), Some("bert"));
    /// assert!(queue.try_receive().is_err());
    /// orders.set_limit("anna", 1)?;
    /// assert_eq!(queue.try_receive()?.next().map(|one| one.complete()), Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LaneError`] if the limit is above [`Limit::MAX`], or the key has no group and
    /// the queue is closed.
    pub fn set_limit(&self, key: K, limit: impl Into<Limit>) -> Result<(), LaneError> {
        self.change(key, Change::Limit(limit.into().checked()?))
    }

    /// Changes the level of the key's group when it is not bumped. Remembered, like
    /// [`set_limit`](Self::set_limit).
    ///
    /// # Errors
    ///
    /// [`LaneError`] if the key has no group and the queue is closed.
    pub fn set_level(&self, key: K, level: u8) -> Result<(), LaneError> {
        self.change(key, Change::Level(level))
    }

    /// Changes how many messages of a key may wait; see
    /// [`Conversation::set_capacity`](crate::queue::Conversation::set_capacity). Remembered,
    /// like [`set_limit`](Self::set_limit). [`capacity_each`](Self::capacity_each) sets one for
    /// all keys.
    ///
    /// # Errors
    ///
    /// [`LaneError`] if the capacity is above [`Limit::MAX`], or the key has no group and
    /// the queue is closed.
    pub fn set_capacity(&self, key: K, capacity: impl Into<Limit>) -> Result<(), LaneError> {
        self.change(key, Change::Capacity(checked(capacity.into())?))
    }

    /// How many messages of a key may wait.
    #[must_use]
    pub fn capacity<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Limit
    where
        K: Borrow<Q>,
    {
        let hash = self.hasher.hash_one(key);
        let shard = self.shards.map(hash).lock();
        let known = find(&shard, hash, key).map(|group| own_capacity(group));
        known.unwrap_or_else(|| self.shards.made().2)
    }

    /// Like [`Queue::resume`](crate::queue::Queue::resume); false too if the key has no
    /// outstanding messages.
    pub fn resume<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        let group = self.find(key);
        group.is_some_and(|group| self.queue().resume(group.key()) == Ok(true))
    }

    /// Like [`Queue::drain`](crate::queue::Queue::drain): what waits of a key, in order.
    pub fn drain<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Vec<T>
    where
        K: Borrow<Q>,
    {
        let group = self.find(key);
        let drained = group.and_then(|group| self.queue().drain(group.key()).ok());
        drained.unwrap_or_default()
    }

    /// Like [`Queue::take_failed`](crate::queue::Queue::take_failed): the message that poisoned
    /// the group of a key, if one did.
    ///
    /// ```
    /// # use conversant::prelude::*;
    /// let queue = Queue::builder().attempts(1).build()?;
    /// let orders = Keyed::new(queue.lane(1, Limit::Unlimited)?);
    /// orders.send("anna", "bad")?;
    /// orders.send("anna", "good")?;
    /// queue.try_receive()?.next().expect("the first").give_back();
    /// assert_eq!(orders.take_failed("anna"), Some("bad"));
    /// assert_eq!(orders.drain("anna"), ["good"]);
    /// // Nothing of hers is left.
    /// assert_eq!((orders.take_failed("anna"), orders.resume("anna")), (None, false));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take_failed<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
    {
        self.queue().take_failed(self.find(key)?.key()).ok()?
    }

    fn change(&self, key: K, change: Change) -> Result<(), LaneError> {
        let hash = self.hasher.hash_one(&key);
        let (mut key, shard) = (Some(key), self.shards.map(hash).lock());
        let (group, shard, _unneeded) = self.group_of(shard, hash, &mut key)?;
        // The shard is unlocked within the event, before any waker runs.
        self.queue().change_holding(&group, change, shard);
        self.queue().trim(true);
        Ok(())
    }
}

impl<K, T, S> Keyed<K, T, S> {
    /// Lets at most `capacity` messages of each key wait: a customer who is not served leaves
    /// room in the queue for all others. [`set_capacity`](Self::set_capacity) sets another
    /// capacity for one key.
    ///
    /// ```
    /// use conversant::keyed::Keyed;
    /// use conversant::prelude::*;
    /// use conversant::queue::SendReason;
    ///
    /// let queue = Queue::builder().capacity(100).build()?;
    /// let orders = Keyed::new(queue.lane(1, Limit::Unlimited)?).capacity_each(2)?;
    /// orders.send("dead", 1)?;
    /// orders.send("dead", 2)?;
    /// let refused = orders.send("dead", 3).unwrap_err();
    /// assert_eq!((refused.message, refused.reason), (3, SendReason::GroupFull));
    /// orders.send("alive", 4)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Cost: O(keys) now; some 650 bytes in each group, and the cost of
    /// [`Conversation::set_capacity`](crate::queue::Conversation::set_capacity).
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`].
    pub fn capacity_each(self, capacity: impl Into<Limit>) -> Result<Self, OutOfRange> {
        let capacity = checked(capacity.into())?;
        self.queue().capacity.use_parts();
        let before = self.shards.made();
        self.shards.made.lock().2 = capacity;
        for map in &self.shards.maps {
            // Changed under no shard's lock, since wakers may run.
            let map = map.0.lock();
            let groups = map.iter().map(|entry| &*entry.group);
            let like = groups.filter(|group| own_capacity(group) == before.2);
            let like: Vec<GroupRef<T>> = like.cloned().collect();
            drop(map);
            for group in like {
                let change = Change::Capacity(capacity);
                self.queue().change_holding(&group, change, ());
            }
        }
        Ok(self)
    }
}

impl<K: Clone, T, S> Keyed<K, T, S> {
    /// The key of a group: of a turn or a delivery, of a
    /// [poisoned](crate::queue::Queue::poisoned) group, of a group in a snapshot. `None` if the
    /// group belongs to no key of this `Keyed`, or the [keys are not kept](Self::keep_keys).
    /// Otherwise never `None` while a turn or a delivery of the group lives.
    ///
    /// Cost: a short lock, a look-up and a copy of the key.
    #[must_use]
    pub fn key_of(&self, group: GroupId) -> Option<K> {
        let group = self.queue().key(group).ok()?;
        // Copied and dropped under no lock.
        let key = self.shards.names.get()?.key_of(group)?;
        Some(K::clone(&key))
    }
}
