//! The wait for room of a send by key.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::task::{Context, Poll, Waker};

use crate::queue::{GivesBack, GroupRef, InLine, SendError, SendReason};
use crate::wait::{Op, Wait, look_twice, sealed};

use super::Keyed;

/// The wait of [`Keyed::send_wait`].
pub struct KeyedSendWait<'a, K: Send + 'static, T: Send + 'static, S> {
    keyed: &'a Keyed<K, T, S>,
    hash: u64,
    key: Option<K>,
    in_line: InLine<T>,
}

impl<K: Hash + Eq + Send + 'static, T: Send + 'static, S: BuildHasher> Keyed<K, T, S> {
    /// As [`send`](Self::send), as soon as the queue has room: all that is said of
    /// [`Conversation::send_wait`](crate::queue::Conversation::send_wait) holds.
    /// [`in_tier`](Wait::in_tier) says a tier.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message, if the queue is closed, or the thread may
    /// not wait; the key is dropped.
    pub fn send_wait(&self, key: K, message: T) -> Wait<KeyedSendWait<'_, K, T, S>> {
        let hash = self.hasher.hash_one(&key);
        Wait::new(KeyedSendWait {
            keyed: self,
            hash,
            key: Some(key),
            in_line: InLine::new(message),
        })
    }
}

impl<K: Hash + Eq + Send + 'static, T: Send + 'static, S: BuildHasher> KeyedSendWait<'_, K, T, S> {
    /// The lock of the shard is let go before any waker runs.
    fn look(
        &mut self,
        stand: Option<(&Waker, &mut Option<Waker>)>,
    ) -> Option<Poll<Result<(), SendReason>>> {
        let Self {
            keyed,
            hash,
            key,
            in_line,
        } = self;
        let (keyed, hash) = (*keyed, *hash);
        let mut shard = keyed.shards.map(hash).lock();
        let known = key.as_ref().and_then(|key| shard.find(hash, key).cloned());
        let mut idle = Vec::new();
        let placed = |new: Option<GroupRef<T>>| {
            if let Some(group) = new {
                let key = key.take().expect("a message is placed once");
                idle = shard.insert(hash, key, group);
                keyed.shards.keeping.count(1);
            }
            drop(shard);
        };
        let to = (known, keyed.shape);
        let looked = keyed.lane.send_in_turn(to, in_line, stand, placed);
        keyed.shards.forget(idle);
        looked
    }

    fn result(&mut self, sent: Result<(), SendReason>) -> Result<(), SendError<T>> {
        let Err(reason) = sent else {
            return Ok(());
        };
        let message = self.take_back().expect("what was refused is there");
        Err(SendError { message, reason })
    }
}

impl<K: Send + 'static, T: Send + 'static, S> sealed::Sealed for KeyedSendWait<'_, K, T, S> {}

// Nothing in it is ever pinned.
impl<K: Send + 'static, T: Send + 'static, S> Unpin for KeyedSendWait<'_, K, T, S> {}

impl<K: Hash + Eq + Send + 'static, T: Send + 'static, S: BuildHasher> Op
    for KeyedSendWait<'_, K, T, S>
{
    type Output = Result<(), SendError<T>>;

    /// For a thread that waits without a deadline: the rule of handlers.
    fn attempt(&mut self) -> Option<Self::Output> {
        match self.look(None)? {
            Poll::Ready(sent) => Some(self.result(sent)),
            Poll::Pending => None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let sent = look_twice(cx, |current, spare| self.look(Some((current, spare))));
        sent.map(|sent| self.result(sent))
    }

    fn cancel(&mut self) {
        self.keyed.lane.leave_line(&mut self.in_line);
    }
}

impl<K: Hash + Eq + Send + 'static, T: Send + 'static, S: BuildHasher> GivesBack
    for KeyedSendWait<'_, K, T, S>
{
    type Message = T;

    fn take_back(&mut self) -> Option<T> {
        self.in_line.load.take().map(|load| load.message)
    }
}

impl<K: Hash + Eq + Send + 'static, T: Send + 'static, S: BuildHasher>
    Wait<KeyedSendWait<'_, K, T, S>>
{
    /// Sends it in this tier. See [`Keyed::send_in`].
    pub fn in_tier(mut self, tier: u32) -> Self {
        if let Some(load) = &mut self.op_mut().in_line.load {
            load.tier = Some(tier);
        }
        self
    }
}

impl<K: Send + 'static, T: Send + 'static, S> fmt::Debug for KeyedSendWait<'_, K, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedSendWait")
            .field("in_line", &self.in_line.stands())
            .finish_non_exhaustive()
    }
}
