//! Sends to many groups as one.
//!
//! Protocol: the locks of all groups are taken, each message is appended, and
//! the tokens of those that were idle are posted under one lock of the
//! submission list. Nobody else holds two groups' locks, and who does takes them
//! in the order of their addresses: so nobody waits in a circle.

use crate::group::Phase;
use crate::sync::Arc;

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
            .all(|(one, _)| Arc::ptr_eq(shared, &one.shared));
        assert!(ours, "a conversation of another queue");
        message.iter().for_each(|(one, _)| one.group.prefetch());
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
    pairs.iter().find_map(|(one, _)| one.refusal())
}

impl<T> Shared<T> {
    /// Sends in the plain case, or gives all back.
    fn send_many_plain<'a>(&self, pairs: Addressed<'a, T>) -> Result<Posted, Addressed<'a, T>> {
        let group = |n: usize| -> &'a GroupRef<T> { &pairs[n].0.group };
        let mut by_address: Vec<usize> = (0..pairs.len()).collect();
        by_address.sort_by_key(|&n| std::ptr::from_ref(&**group(n)).addr());
        // Each group with its first message; and which of these each message is for.
        let mut locked: Vec<(usize, &GroupRef<T>, _)> = Vec::new();
        let mut of = vec![0; pairs.len()];
        for n in by_address {
            let last = locked.last().map(|&(_, last, _)| last);
            if last.is_none_or(|last| !std::ptr::eq(&**last, &**group(n))) {
                locked.push((n, group(n), group(n).lock()));
            }
            of[n] = locked.len() - 1;
            let (_, _, mailbox) = &locked[of[n]];
            if !mailbox.sends_plainly() || pairs[n].0.has_ended() {
                drop(locked);
                return Err(pairs);
            }
        }
        for ((_, message), of) in pairs.into_iter().zip(of) {
            let (_, group, mailbox) = &mut locked[of];
            group.append(mailbox, message);
        }
        locked.retain(|(_, _, mailbox)| mailbox.phase == Phase::Idle);
        locked.sort_by_key(|&(first, ..)| first);
        let tokens = locked.iter_mut();
        let tokens: Vec<_> = tokens
            .map(|(_, group, mailbox)| Self::token(group, mailbox, false))
            .collect();
        let (tickets, posted) = self.submissions.post_many(tokens);
        for ((_, _, mailbox), ticket) in locked.iter_mut().zip(tickets) {
            mailbox.ticket = ticket;
        }
        Ok(posted)
    }

    /// Sends by every rule.
    #[cold]
    fn send_many_special<'a>(
        &self,
        message: Addressed<'a, T>,
    ) -> Result<(), SendError<Addressed<'a, T>>> {
        self.with_state(|state| {
            if let Some(reason) = refusal(&message) {
                return Err(SendError { message, reason });
            }
            for (conversation, message) in message {
                let sent = self.put(state, &conversation.group, None, [message]);
                debug_assert!(sent.is_ok(), "the last tier does not go down");
            }
            Ok(())
        })
    }
}
