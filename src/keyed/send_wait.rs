//! Sends by key that wait for room.
//!
//! Where groups or lanes have capacities a wait has the group of its key made, and keeps it
//! by a pin: it has room in that very group. The map keeps a group with such a pin.

use std::hash::{BuildHasher, Hash};

use crate::group::Admitted;
use crate::queue::{Pending, Pinned, SendError, SendReason, Sending, bound_of, taken};
use crate::semaphore::Semaphore;
use crate::shown::shows;
use crate::sync::Arc;
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
    /// The key's, where groups or lanes have capacities.
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
        let wait = Sending::wait(capacity, 1, ((None, to), message), ToKey::send);
        wait.within(|(_, to), which| to.bound(which))
    }
}

impl<'a, K: Hash + Eq, T, S: BuildHasher> ToKey<'a, K, T, S> {
    /// The semaphore of the capacity of the key's group or of the lane, as things are now.
    fn bound(&mut self, which: usize) -> Option<Arc<Semaphore>> {
        let (keyed, hash) = (self.keyed, self.hash);
        if self.group.is_none() {
            let shard = keyed.shards.map(hash).lock();
            if let Ok((group, shard, unneeded)) = keyed.group_of(shard, hash, &mut self.key) {
                // The map has a pin while its shard is locked.
                self.group = group.pin(&mut group.lock());
                drop(shard);
                drop(unneeded);
            }
            keyed.queue().trim(true);
        }
        bound_of(self.group.as_ref()?, which)
    }

    /// Finds its group first, as the user's `Eq` may panic.
    fn send(
        pending: &mut Option<Pending<'a, (Option<u32>, Self), T>>,
        admitted: &mut Admitted,
    ) -> Result<(), SendError<T>> {
        let Pending { by, permits, .. } = pending.as_mut().expect("what is to be sent");
        let (tier, to) = (by.0, &mut by.1);
        let (keyed, hash) = (to.keyed, to.hash);
        let finds = permits.is_ok() && to.group.is_none();
        let in_shard = finds.then(|| {
            let shard = keyed.shards.map(hash).lock();
            keyed.group_of(shard, hash, &mut to.key)
        });
        let Pending {
            by: (_, to),
            message,
            permits,
        } = taken(pending);
        let queue = keyed.queue();
        match (in_shard, &to.group) {
            (Some(Ok((group, shard, _unneeded))), _) => {
                let to = (&group, tier);
                let sent = queue.send_one_permitted(to, message, permits, admitted, shard);
                queue.trim(true);
                sent
            }
            (None, Some(group)) => {
                queue.send_one_permitted((group, tier), message, permits, admitted, ())
            }
            (Some(Err(_)), _) | (None, None) => {
                let reason = permits.err().unwrap_or(SendReason::Closed);
                Err(SendError { message, reason })
            }
        }
    }
}
