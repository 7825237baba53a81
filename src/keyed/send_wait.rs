//! Sends by key that wait for room.
//!
//! A wait makes the group of its key and keeps it by a pin, because it gets room in that group. The
//! map keeps a group with such a pin.

use std::hash::{BuildHasher, Hash};

use crate::queue::{Pinned, SendError, SendReason, Sending, Steps, bound_of};
use crate::shown::shows;
use crate::wait::Wait;

use super::Keyed;

/// The wait for room for a message by key, and its tier, if one was set.
type ToSend<'a, K, T, S> =
    Sending<'a, (Option<u32>, ToKey<'a, K, T, S>), T, Result<(), SendError<T>>>;

/// The key to which a message is sent.
pub struct ToKey<'a, K, T, S> {
    keyed: &'a Keyed<K, T, S>,
    hash: u64,
    /// `None` once it is in the map, or no longer needed.
    key: Option<K>,
    /// The key's group, once it is needed.
    group: Option<Pinned<T>>,
}

shows!([K, T, S] ToKey<'_, K, T, S>, |to| has_group: to.group.is_some());

impl<K: Hash + Eq, T, S: BuildHasher> Keyed<K, T, S> {
    /// Like [`send`](Self::send), but waits for room; see
    /// [`Conversation::send_wait`](crate::queue::Conversation::send_wait).
    /// [`in_tier`](Wait::in_tier) sets the tier.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message, if the queue is closed, or the thread may not wait. The
    /// key is dropped.
    pub fn send_wait(&self, key: K, message: T) -> Wait<ToSend<'_, K, T, S>> {
        let to = ToKey {
            keyed: self,
            hash: self.hasher.hash_one(&key),
            key: Some(key),
            group: None,
        };
        let capacity = &self.queue().capacity;
        let mut steps = Steps::new(
            |(tier, to): (_, ToKey<'_, K, T, S>), message, granted| {
                let Some(group) = &to.group else {
                    let reason = SendReason::Closed;
                    return Err(SendError { message, reason });
                };
                let queue = to.keyed.queue();
                let sent = queue.send_granted((group, tier), [message], granted, ());
                sent.map_err(SendError::single)
            },
            |message, reason| Err(SendError { message, reason }),
        );
        steps.prepare = |(_, to)| to.find();
        steps.let_go = |(_, to)| drop(to.key.take());
        steps.bound = |(_, to), which| {
            to.find();
            bound_of(to.group.as_ref()?, which)
        };
        Sending::wait(capacity, 1, ((None, to), message), steps)
    }
}

impl<K: Hash + Eq, T, S: BuildHasher> ToKey<'_, K, T, S> {
    /// Finds or makes the group of the key, unless the queue is closed. The user's `Eq` may
    /// panic, and so may the drop of a key that is forgotten, or of this one.
    fn find(&mut self) {
        if self.group.is_none() && self.key.is_some() {
            self.group = self.keyed.pin(self.hash, &mut self.key).ok();
            if self.group.is_some() {
                self.keyed.queue().trim(true);
            }
        }
        // Here, and not behind the send: nothing is sent yet.
        drop(self.key.take());
    }
}
