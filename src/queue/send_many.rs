//! Sends to many groups as one.
//!
//! Protocol: the locks of all groups are taken, each message is appended, and
//! the tokens of those that were idle are posted under one lock of the
//! submission list. Nobody else holds two groups' locks, and who does takes them
//! in the order of their addresses: so nobody waits in a circle.

use crate::group::{Guard, Mailbox, Phase};

use super::handles::Conversation;
use super::refuse::{SendError, SendReason};
use super::shared::Shared;
use super::submissions::Posted;
use super::{GroupRef, Queue};

/// Messages, and what each is sent on.
pub type Addressed<'a, T> = Vec<(&'a Conversation<T>, T)>;

impl<T> Queue<T> {
    /// Sends each message on its conversation, as
    /// [`send`](Conversation::send) would, in their order: all or none. Groups
    /// that become ready do so in the order of their first messages. The iterator
    /// is run first, without a lock.
    ///
    /// Cost: one lock of each group, and one of the queue's for all of them; O(n
    /// log n) steps. The groups' locks are held together until all is sent.
    ///
    /// ```
    /// use conversant::limit::Limit;
    /// use conversant::queue::Queue;
    ///
    /// let queue = Queue::new();
    /// let lane = queue.lane(1, Limit::Unlimited)?;
    /// let (anna, bert) = (lane.conversation()?, lane.conversation()?);
    /// let messages = [(&bert, 1), (&anna, 2), (&bert, 3)];
    /// queue.send_many(messages).map_err(|refused| refused.reason)?;
    /// assert_eq!((bert.group(), anna.group()), (queue.try_receive()?.group(), anna.group()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SendError`] with all of them, if the queue is closed, has no room for
    /// all, or one of the conversations has ended.
    ///
    /// # Panics
    ///
    /// If a conversation is another queue's; nothing is sent.
    pub fn send_many<'a>(
        &self,
        messages: impl IntoIterator<Item = (&'a Conversation<T>, T)>,
    ) -> Result<(), SendError<Addressed<'a, T>>>
    where
        T: 'a,
    {
        let message: Vec<_> = messages.into_iter().collect();
        let shared = self.shared();
        let ours = message
            .iter()
            .all(|(one, _)| std::ptr::eq(&raw const **shared, one.pin.queue()));
        assert!(ours, "a conversation of another queue");
        message.iter().for_each(|(one, _)| one.pin.prefetch());
        let permits = match shared.capacity.take(message.len()) {
            Ok(permits) => permits,
            Err(reason) => {
                let reason = refusal(&message).unwrap_or(reason);
                return Err(SendError { message, reason });
            }
        };
        match shared.send_many_plain(message) {
            Ok(posted) => {
                permits.keep();
                shared.posted(posted);
            }
            Err(message) => {
                shared.send_many_special(message)?;
                permits.keep();
            }
        }
        Ok(())
    }
}

/// Why nothing can be sent on one of them.
fn refusal<T>(pairs: &Addressed<'_, T>) -> Option<SendReason> {
    pairs.iter().find_map(|(one, _)| {
        (one.pin.lock().flags & crate::group::CLOSED != 0).then_some(SendReason::Closed)
    })
}

/// A group that is locked, with the number of its first message.
type Locked<'a, T> = (usize, &'a GroupRef<T>, Guard<'a, Mailbox<T>>);

/// Where its group stands.
fn address<T>(conversation: &Conversation<T>) -> usize {
    std::ptr::from_ref(&**conversation.pin).addr()
}

impl<T> Shared<T> {
    /// Sends in the plain case, or gives all back.
    fn send_many_plain<'a>(&self, pairs: Addressed<'a, T>) -> Result<Posted, Addressed<'a, T>> {
        let numbered = (0_usize..).zip(pairs);
        let mut all: Vec<_> = numbered
            .map(|(n, (one, message))| (address(one), n, one, message))
            .collect();
        all.sort_unstable_by_key(|&(at, n, ..)| (at, n));
        let mut locked: Vec<Locked<'_, T>> = Vec::with_capacity(all.len());
        let mut last = 0;
        for &(at, n, one, _) in &all {
            if at != last {
                locked.push((n, &one.pin, one.pin.lock()));
                last = at;
            }
            let plain = locked.last().is_some_and(|(.., m)| m.sends_plainly());
            if !plain {
                drop(locked);
                all.sort_unstable_by_key(|&(_, n, ..)| n);
                let pairs = all.into_iter().map(|(_, _, one, message)| (one, message));
                return Err(pairs.collect());
            }
        }
        let mut groups = locked.iter_mut();
        let mut group = None;
        last = 0;
        for (at, _, _, message) in all {
            if at != last {
                group = groups.next();
                last = at;
            }
            let (_, group, mailbox) = group.as_mut().expect("each address has its group");
            group.append(mailbox, message);
        }
        locked.retain(|(_, _, mailbox)| mailbox.phase == Phase::Idle);
        locked.sort_unstable_by_key(|&(first, ..)| first);
        let tokens = locked.iter_mut().map(|(_, group, mailbox)| {
            let token = Self::token(group, mailbox, false);
            (token, &mut mailbox.ticket)
        });
        Ok(self.submissions.post_many(tokens))
    }

    /// Sends by every rule.
    #[cold]
    fn send_many_special<'a>(
        &self,
        message: Addressed<'a, T>,
    ) -> Result<(), SendError<Addressed<'a, T>>> {
        self.with_state(|state| {
            if state.closed {
                let reason = SendReason::Closed;
                return Err(SendError { message, reason });
            }
            for (conversation, message) in message {
                let sent = self.put(state, &conversation.pin, None, [message]);
                debug_assert!(sent.is_ok(), "the last tier does not go down");
            }
            Ok(())
        })
    }
}
