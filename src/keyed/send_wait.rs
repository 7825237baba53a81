//! The wait for room of a send by key.

use std::hash::{BuildHasher, Hash};

use crate::queue::{SendError, Sending};
use crate::wait::Wait;

use super::Keyed;

/// The wait of [`Keyed::send_wait`]; with its tier, if one is said.
pub type KeyedSendWait<'a, K, T, S> =
    Sending<'a, (Option<u32>, (&'a Keyed<K, T, S>, u64, K)), T, Result<(), SendError<T>>>;

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
        let to = (self, self.hasher.hash_one(&key), key);
        let capacity = &self.queue().capacity;
        Sending::wait(
            capacity,
            1,
            ((None, to), message),
            |(tier, to), message, permits| {
                let (keyed, hash, key) = to;
                keyed.send_permitted((hash, key), tier, message, permits)
            },
        )
    }
}
