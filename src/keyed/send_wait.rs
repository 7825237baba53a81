//! The wait for room of a send by key.

use std::hash::{BuildHasher, Hash};

use crate::queue::{Pending, Permits, SendError, Sending};
use crate::wait::{Wait, sealed};

use super::Keyed;

/// One message by key, while it waits for room.
pub struct ByKey<'a, K, T, S> {
    keyed: &'a Keyed<K, T, S>,
    hash: u64,
    key: K,
    tier: Option<u32>,
    message: T,
}

/// The wait of [`Keyed::send_wait`].
pub type KeyedSendWait<'a, K, T, S> = Sending<'a, ByKey<'a, K, T, S>>;

impl<K, T, S> sealed::Sealed for ByKey<'_, K, T, S> {}

impl<K: Hash + Eq, T, S: BuildHasher> Pending for ByKey<'_, K, T, S> {
    type Message = T;
    type Sent = ();
    type Refused = SendError<T>;

    fn send(self, permits: Permits<'_>) -> Result<(), SendError<T>> {
        let key = (self.hash, self.key);
        self.keyed
            .send_permitted(key, self.tier, self.message, permits)
    }

    fn into_message(self) -> T {
        self.message
    }
}

impl<K: Hash + Eq, T, S: BuildHasher> Keyed<K, T, S> {
    /// As [`send`](Self::send), as soon as the queue has room, by all that is said
    /// of [`Conversation::send_wait`](crate::queue::Conversation::send_wait).
    /// [`in_tier`](Wait::in_tier) says a tier.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message, if the queue is closed, or the thread may
    /// not wait; the key is dropped.
    pub fn send_wait(&self, key: K, message: T) -> Wait<KeyedSendWait<'_, K, T, S>> {
        let by_key = ByKey {
            keyed: self,
            hash: self.hasher.hash_one(&key),
            key,
            tier: None,
            message,
        };
        Sending::wait(&self.queue().capacity, 1, by_key)
    }
}

impl<K: Hash + Eq, T, S: BuildHasher> Wait<KeyedSendWait<'_, K, T, S>> {
    /// Sends it in this tier. See [`Keyed::send_in`].
    pub fn in_tier(mut self, tier: u32) -> Self {
        if let Some(by_key) = &mut self.op_mut().pending {
            by_key.tier = Some(tier);
        }
        self
    }
}
