//! Sends by key that wait for room.
//!
//! Where groups or lanes have capacities a wait has the group of its key made, and keeps it
//! by a pin: it has room in that very group. The map keeps a group with such a pin.

use std::hash::{BuildHasher, Hash};

use crate::queue::{Pinned, SendError, SendReason, Sending, bound_of};
use crate::semaphore::Semaphore;
use crate::shown::shows;
use crate::sync::Arc;
use crate::wait::Wait;

use super::{Keyed, Permitted};

/// The wait of [`Keyed::send_wait`]; with its tier, if one is said.
pub type KeyedSendWait<'a, K, T, S> =
    Sending<'a, (Option<u32>, ToKey<'a, K, T, S>), T, Result<(), SendError<T>>>;

/// The key to which a message goes.
pub struct ToKey<'a, K, T, S> {
    keyed: &'a Keyed<K, T, S>,
    hash: u64,
    /// `None` once its group is here, or the queue was found closed.
    key: Option<K>,
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
        let wait = Sending::wait(
            capacity,
            1,
            ((None, to), message),
            |(tier, to), message, permits, admitted| match permits {
                Ok(permits) => to.send((tier, message), (permits, admitted)),
                Err(reason) => Err(SendError { message, reason }),
            },
        );
        wait.within(|(_, to), which| to.bound(which))
    }
}

impl<K: Hash + Eq, T, S: BuildHasher> ToKey<'_, K, T, S> {
    /// The semaphore of the capacity of the key's group or of the lane, as things are now.
    fn bound(&mut self, which: usize) -> Option<Arc<Semaphore>> {
        let (keyed, hash) = (self.keyed, self.hash);
        if let Some(key) = self.key.take() {
            let shard = keyed.shards.map(hash).lock();
            if let Ok((group, shard, known)) = keyed.group_of(shard, (hash, key)) {
                // The map has a pin while its shard is locked.
                self.group = group.pin(&mut group.lock());
                drop(shard);
                drop(known);
            }
            keyed.queue().trim(true);
        }
        bound_of(self.group.as_ref()?, which)
    }

    fn send(
        self,
        (tier, message): (Option<u32>, T),
        permitted: Permitted<'_>,
    ) -> Result<(), SendError<T>> {
        if let Some(key) = self.key {
            let to = (self.hash, key);
            return self.keyed.send_as(to, (tier, message), Some(permitted));
        }
        let Some(group) = self.group else {
            let reason = SendReason::Closed;
            return Err(SendError { message, reason });
        };
        let (to, (permits, admitted)) = ((&*group, tier), permitted);
        let queue = self.keyed.queue();
        let sent = queue.send_permitted(to, [message], Ok(permits), Some(admitted), ());
        sent.map_err(SendError::single)
    }
}
