//! From a key to its group, and back; a capacity for each key.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

use crate::error::{Closed, OutOfRange};
use crate::limit::Limit;
use crate::queue::{Group, GroupId, GroupRef, Pinned, if_idle, own_capacity};

use super::Keyed;
use super::map::find;

impl<K: Hash + Eq, T, S: BuildHasher> Keyed<K, T, S> {
    /// The group of a key, if a message of the key waits or is in flight, or a turn of its group
    /// lives. Use it for operations on groups by name, such as
    /// [`Queue::receive_from`](crate::queue::Queue::receive_from) and
    /// [`Queue::drain`](crate::queue::Queue::drain). As with std's maps, `key` may be any
    /// borrowed form of the key.
    ///
    /// ```
    /// # use conversant::prelude::*;
    /// let queue = Queue::builder().attempts(1).build()?;
    /// let orders = Keyed::new(queue.lane(1, Limit::Unlimited)?);
    /// orders.send(String::from("anna"), "bad")?;
    /// orders.send(String::from("anna"), "good")?;
    /// queue.try_receive()?.next().expect("the first").give_back();
    /// let anna = orders.group_id("anna").expect("two messages wait");
    /// assert_eq!(queue.take_failed(anna)?, Some("bad"));
    /// assert_eq!(queue.drain(anna)?, ["good"]);
    /// // Nothing of hers is left.
    /// assert_eq!(orders.group_id("anna"), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn group_id<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<GroupId>
    where
        K: Borrow<Q>,
    {
        let hash = self.hasher.hash_one(key);
        let shard = self.shards.map(hash).lock();
        let group = find(&shard, hash, key)?;
        let idle = if_idle(group).is_some();
        (!idle).then(|| self.queue().id(group.key()))
    }

    /// A handle of a key's group: to pause it, to bump it, to change its limit, its level or its
    /// capacity. Makes the group if the key has none. A change of the limit, the level or the
    /// capacity is remembered until it is set back to the value common to all keys: a group that
    /// differs stays, which means that it is not forgotten when the [idle](Self::keep_idle) ones
    /// are. So does a group with a living handle. A bump does not keep an idle group: to bump a key
    /// for its next message, keep the handle until you have sent that.
    ///
    /// ```
    /// # use conversant::keyed::Keyed;
    /// # use conversant::limit::Limit;
    /// # use conversant::queue::Queue;
    /// let queue = Queue::new();
    /// let orders = Keyed::new(queue.lane(1, Limit::Unlimited)?).keep_keys();
    /// orders.group("anna")?.set_limit(0)?;
    /// orders.send("anna", 1)?;
    /// orders.send("bert", 2)?;
    /// let turn = queue.try_receive()?;
    /// assert_eq!(orders.key_of(turn.group_id()), Some("bert"));
    /// assert!(queue.try_receive().is_err());
    /// orders.group("anna")?.set_limit(1)?;
    /// assert_eq!(queue.try_receive()?.next().map(|one| one.complete()), Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Closed`] if the key has no group and the queue is closed.
    pub fn group(&self, key: K) -> Result<Group<T>, Closed> {
        let hash = self.hasher.hash_one(&key);
        let mut key = Some(key);
        let pin = self.pin(hash, &mut key);
        // Under no lock, and before the pin is in the result: if the drop panics, the result
        // would not be dropped.
        drop(key);
        let pin = pin?;
        self.queue().trim(true);
        Ok(Group { pin })
    }

    /// Finds or makes the group of a key, unless the queue is closed. The user's `Eq` may panic.
    /// The caller trims, once it has stored the pin: a forgotten key may panic when it is dropped.
    pub(super) fn pin(&self, hash: u64, key: &mut Option<K>) -> Result<Pinned<T>, Closed> {
        let (group, _shard) = self.group_of(hash, key)?;
        // The map has a pin while its shard is locked.
        Ok(group.pin(&mut group.lock()).expect("the map has a pin"))
    }
}

impl<K, T, S> Keyed<K, T, S> {
    /// Lets at most `capacity` messages of each key wait: a customer who is not served leaves room
    /// in the queue for all others. [`group`](Self::group) changes the capacity of one key.
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
    /// [`OutOfRange`] above [`Limit::MAX`], or if more than 2^30 messages wait in a group that has
    /// no capacity yet.
    pub fn capacity_each(self, capacity: impl Into<Limit>) -> Result<Self, OutOfRange> {
        let capacity = capacity.into().checked("capacity")?;
        self.queue().capacity.use_parts();
        let before = self.shards.made();
        self.shards.made.lock().2 = capacity;
        for map in &self.shards.maps {
            // Changed under no shard's lock, because wakers may run.
            let map = map.0.lock();
            let groups = map.iter().map(|entry| &*entry.group);
            let like = groups.filter(|group| own_capacity(group) == before.2);
            let like: Vec<GroupRef<T>> = like.cloned().collect();
            drop(map);
            for group in like {
                self.queue().set_capacity(&group, capacity)?;
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
