//! What is done to one key: its limit, its level, what waits; and which key a group is of.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

use crate::error::{OutOfRange, Stale};
use crate::limit::Limit;
use crate::queue::{Change, GroupId, GroupRef, LaneError, checked};

use super::{Keyed, Shards};

impl<K: Hash + Eq, T, S: BuildHasher> Keyed<K, T, S> {
    /// The group of a key, if something of it is outstanding. What is done to groups
    /// by name, as [`Queue::resume`](crate::queue::Queue::resume),
    /// [`drain`](crate::queue::Queue::drain) or
    /// [`take_failed`](crate::queue::Queue::take_failed), is done to a key by this.
    #[must_use]
    pub fn group<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<GroupId>
    where
        K: Borrow<Q>,
    {
        let group = self.find(key)?;
        Some(self.queue().id(group.key()))
    }

    /// Bumps the group of a key, as [`Group::bump`](crate::queue::Group::bump).
    ///
    /// # Errors
    ///
    /// [`Stale`] if it has none: nothing of it is outstanding.
    pub fn bump<Q: Hash + Eq + ?Sized>(&self, key: &Q, level: u8) -> Result<(), Stale>
    where
        K: Borrow<Q>,
    {
        let group = self.find(key).ok_or(Stale)?;
        self.queue().bump(&group, level);
        Ok(())
    }

    /// Changes how many messages of a key may be in flight at once, whether anything
    /// of it is outstanding or not; 0 is a pause. It is remembered until it is set to
    /// what all keys begin with again: a group that differs is kept beside those that
    /// are [idle](Self::keep_idle).
    ///
    /// ```
    /// # use conversant::keyed::Keyed;
    /// # use conversant::limit::Limit;
    /// # use conversant::queue::Queue;
    /// let queue = Queue::new();
    /// let orders = Keyed::new(queue.lane(1, Limit::Unlimited)?);
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

    /// Changes the level at which the group of a key stands when it is not bumped. All
    /// that is said of [`set_limit`](Self::set_limit) holds.
    ///
    /// # Errors
    ///
    /// [`LaneError`] if the key has no group and the queue is closed.
    pub fn set_level(&self, key: K, level: u8) -> Result<(), LaneError> {
        self.change(key, Change::Level(level))
    }

    /// Changes how many messages of a key may wait, by all that is said of
    /// [`Conversation::set_capacity`](crate::queue::Conversation::set_capacity) and of
    /// [`set_limit`](Self::set_limit). One for all keys is set by
    /// [`capacity_each`](Self::capacity_each).
    ///
    /// # Errors
    ///
    /// [`LaneError`] if the capacity is above [`Limit::MAX`], or the key has no group and
    /// the queue is closed.
    pub fn set_capacity(&self, key: K, capacity: impl Into<Limit>) -> Result<(), LaneError> {
        self.change(key, Change::Capacity(checked(capacity.into())?))
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
    /// So many messages of each key may wait: a customer who is not served leaves room in the
    /// queue for all others. [`set_capacity`](Self::set_capacity) says another for one key.
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
    /// Cost: some 350 bytes in each group, and what
    /// [`Conversation::set_capacity`](crate::queue::Conversation::set_capacity) says; O(keys)
    /// now.
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
            // Changed under no lock of a shard: that may run wakers.
            let groups: Vec<GroupRef<T>> = map.0.lock().groups_like(before.2);
            for group in groups {
                let change = Change::Capacity(capacity);
                self.queue().change_holding(&group, change, ());
            }
        }
        Ok(self)
    }
}

impl<K: Copy, T, S> Keyed<K, T, S> {
    /// The key of a group: of a turn or a delivery, of what
    /// [is poisoned](crate::queue::Queue::poisoned), of a group in a snapshot. `None`
    /// if it is no key's of these. It is never `None` while a turn or a delivery of
    /// the group is there.
    ///
    /// A key that cannot be copied belongs into the message: cloning it would run
    /// code of yours under a lock.
    ///
    /// Cost: a short lock and a look-up. The first call costs O(keys), and from then on
    /// the first message of a key a little more, and each key a copy and some 20 bytes.
    #[must_use]
    pub fn key_of(&self, group: GroupId) -> Option<K> {
        let group = self.queue().key(group).ok()?;
        let shards: &Shards<K, T> = &self.shards;
        if shards.names.open() {
            for map in &shards.maps {
                let map = map.0.lock();
                let all = map.groups();
                all.for_each(|(group, key)| shards.names.add(group, key));
            }
            shards.names.filled();
        }
        shards.names.key_of(group)
    }
}
