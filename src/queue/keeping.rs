//! What a lane does for those who keep its groups by a key.
//!
//! Protocol: a keeper looks a key up under its own lock, and while it holds
//! that, calls [`send_to`](Lane::send_to), which takes the queue's. Under both
//! it learns which group the message went to.

use crate::backlog::Home;
use crate::dispatch::GroupKey;
use crate::limit::Limit;
use crate::sync::WakeArc as Arc;

use super::handles::{GroupId, Lane};
use super::homes::Forget;
use super::refuse::{LaneError, SendError, SendReason};

/// What the groups of a keeper are like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) limit: Limit,
    pub(crate) level: u8,
}

impl<T> Lane<T> {
    /// Tells `keeper` of its groups' ends from now on, by the number that it
    /// returns.
    pub(crate) fn move_in(&self, keeper: Arc<dyn Forget>) -> u64 {
        self.shared().event(|books| books.homes.add(keeper))
    }

    /// Tells nobody any more; what it returns is to be dropped under no lock.
    pub(crate) fn move_out(&self, number: u64) -> Option<Arc<dyn Forget>> {
        self.shared().event(|books| books.homes.remove(number))
    }

    /// Sends to `known` if that group is still there, else to a new one of
    /// this shape, whose end will be told to `home`. `placed` is called in
    /// either case, under the queue's lock, with the new group if it is new.
    pub(crate) fn send_to(
        &self,
        known: Option<GroupKey>,
        (home, shape): (Home, Shape),
        (tier, message): (Option<u32>, T),
        placed: impl FnOnce(Option<GroupKey>),
    ) -> Result<(), SendError<T>> {
        self.shared().event(|books| {
            if let Some(reason) = books.refusal(1) {
                return Err(SendError { message, reason });
            }
            let known = known.filter(|&group| books.backlog.contains(group));
            let group = known.unwrap_or_else(|| {
                let made = books
                    .backlog
                    .add_group(self.key(), shape.limit, shape.level);
                let group = made.expect("the shape was tried");
                books.backlog.settle_at(group, home);
                group
            });
            let sent = books.backlog.send(group, tier, None, message);
            placed(known.is_none().then_some(group));
            if known.is_none() {
                // What waits in it keeps it now.
                books.backlog.unpin(group);
            }
            sent.map(drop).map_err(|(error, message)| SendError {
                message,
                reason: SendReason::TierGoesDown(error),
            })
        })
    }

    /// Tries whether groups of this shape can be made.
    pub(crate) fn try_shape(&self, shape: Shape) -> Result<(), LaneError> {
        self.group(shape.limit, shape.level).map(drop)
    }

    /// Takes in what was posted, and tells the keepers what has ended by it.
    pub(crate) fn catch_up(&self) {
        self.shared().event(|_| ());
    }

    /// Whether the group is still there.
    pub(crate) fn group_id(&self, group: GroupKey) -> Option<GroupId> {
        let there = self.shared().look(|books| books.backlog.contains(group));
        there.then(|| GroupId::new(self.shared(), group))
    }

    /// How many messages wait in a group, 0 if it is gone.
    pub(crate) fn waiting_in(&self, group: GroupKey) -> usize {
        self.shared().look(|books| books.backlog.waiting_in(group))
    }

    /// Bumps a group; false if it is gone.
    pub(crate) fn bump_group(&self, group: GroupKey, level: u8) -> bool {
        self.shared()
            .event(|books| books.backlog.bump(group, level))
    }
}
