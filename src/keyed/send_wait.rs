//! Sends by key that wait for room.
//!
//! A wait has the group of its key made, and keeps it by a pin: it has room in that very
//! group. The map keeps a group with such a pin.

use std::hash::{BuildHasher, Hash};

use crate::queue::{Pinned, SendError, SendReason, Sending, Steps, bound_of};
use crate::shown::shows;
use crate::wait::Wait;

use super::Keyed;

/// The wait of [`Keyed::send_wait`]; with its tier, if one is said.
pub type KeyedSendWait<'a, K, T, S> =
    Sending<'a, (Option<u32>, ToKey<'a, K, T, S>), T, Result<(), SendError<T>>>;

/// The key to which a message goes.
pub struct ToKey<'a, K, T, S> {
    keyed: &'a Keyed<K, T, S>,
    hash: u64,
    /// `None` once the map has it.
    key: Option<K>,
    /// The key's, once it is needed.
    group: Option<Pinned<T>>,
}

shows!(impl<K, T, S> ToKey<'_, K, T, S>, |to| has_group: to.group.is_some());

impl<K: Hash + Eq, T, S: BuildHasher> Keyed<K, T, S> {
    /// As [`send`](Self::send), as soon as there is room, by all that is said
    /// of [`Conversation::send_wait`](crate::queue::Conversation::send_wait).
    /// [`in_tier`](Wait::in_tier) says a tier.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message, if the queue is closed, or the thread may
    /// not wait; the key is dropped.
    pub fn send_wait(&self, key: K, message: T) -> Wait<KeyedSendWait<'_, K, T, S>> {
        let to = ToKey {
            keyed: self,
            hash: self.hasher.hash_one(&key),
            key: Some(key),
            group: None,
        };
        let capacity = &self.queue().capacity;
        let mut steps = Steps::new(|(tier, to): (_, ToKey<'_, K, T, S>), message, granted| {
            match granted.and_then(|granted| Ok((granted, to.group()?))) {
                Ok((granted, group)) => {
                    let queue = to.keyed.queue();
                    queue.send_one_granted((group, tier), message, granted, ())
                }
                Err(reason) => Err(SendError { message, reason }),
            }
        });
        steps.prepare = |(_, to)| to.find();
        steps.bound = |(_, to), which| {
            to.find();
            bound_of(to.group.as_ref()?, which)
        };
        Sending::wait(capacity, 1, ((None, to), message), steps)
    }
}

impl<K: Hash + Eq, T, S: BuildHasher> ToKey<'_, K, T, S> {
    /// Finds the group of its key, or has it made, unless the queue is closed. The user's
    /// `Eq` may panic.
    fn find(&mut self) {
        if self.group.is_some() {
            return;
        }
        let (keyed, hash) = (self.keyed, self.hash);
        let shard = keyed.shards.map(hash).lock();
        if let Ok((group, shard, unneeded)) = keyed.group_of(shard, hash, &mut self.key) {
            // The map has a pin while its shard is locked.
            self.group = group.pin(&mut group.lock());
            drop(shard);
            drop(unneeded);
        }
        keyed.queue().trim(true);
    }

    fn group(&self) -> Result<&Pinned<T>, SendReason> {
        self.group.as_ref().ok_or(SendReason::Closed)
    }
}
