//! What is posted to the holder of a queue's policy lock.

use crate::dispatch::GroupKey;
use crate::sync::Arc;
use crate::tokens::{Desk, Posted};

use super::hand::Hand;
use super::shared::{Books, Shared};

/// Something that asks nothing back. The group of each exists: a conversation
/// pins it, or what is in flight or held keeps it.
pub(super) enum Post<T> {
    /// A message for the group, in the tier of its last one.
    Send(GroupKey, T),
    /// A delivery of this tier is done.
    Done(GroupKey, u32),
    /// The turn with this hand is over, its first message handed out.
    End(Arc<Hand<T>>),
}

impl<T> Shared<T> {
    /// Posts messages for a group, with nothing of others in between.
    pub(super) fn post_sends(
        &self,
        desk: Desk<'_, Post<T>>,
        group: GroupKey,
        messages: impl IntoIterator<Item = T>,
    ) -> Posted {
        desk.post_all(messages.into_iter().map(|message| {
            self.arrivals.count(group);
            Post::Send(group, message)
        }))
    }
}

impl<T> Books<T> {
    /// Does what was posted.
    pub(super) fn apply(&mut self, post: Post<T>) {
        match post {
            Post::Send(group, message) => {
                self.taken_in.count(group);
                let sent = self.backlog.send(group, None, None, message);
                debug_assert!(sent.is_ok(), "the last tier does not go down");
            }
            Post::Done(group, tier) => self.backlog.complete(group, tier),
            Post::End(hand) => {
                self.call_in_one(&hand);
                self.room.let_go(hand.holder, 1);
                self.backlog.end_turn(hand.group);
            }
        }
    }
}
