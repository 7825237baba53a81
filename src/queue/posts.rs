//! What is posted to the holder of a queue's policy lock.

use crate::dispatch::GroupKey;
use crate::sync::Arc;

use super::hand::Hand;
use super::shared::Books;

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

impl<T> Books<T> {
    /// Does what was posted.
    pub(super) fn apply(&mut self, post: Post<T>) {
        match post {
            Post::Send(group, message) => {
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
