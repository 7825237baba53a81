//! What a lane does for those who keep its groups by a key.
//!
//! Protocol: a keeper looks a key up under its own lock, and while it holds
//! that, calls [`send_to`](Lane::send_to), which takes the queue's. Under both
//! it learns which group the message went to.

use std::task::{Poll, Waker};

use crate::backlog::Home;
use crate::dispatch::GroupKey;
use crate::limit::Limit;
use crate::sync::WakeArc as Arc;
use crate::wait::Ticket;

use super::handles::{GroupId, Lane};
use super::homes::Forget;
use super::refuse::{LaneError, SendError, SendReason};
use super::room::{self, Asks};
use super::shared::Books;

/// What the groups of a keeper are like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) limit: Limit,
    pub(crate) level: u8,
}

/// A message that waits for room.
pub(crate) struct InLine<T> {
    /// With its tier; `None` once it is sent or given back.
    pub(crate) load: Option<(Option<u32>, T)>,
    ticket: Option<Ticket>,
}

impl<T> InLine<T> {
    pub(crate) fn new(message: T) -> Self {
        Self {
            load: Some((None, message)),
            ticket: None,
        }
    }

    /// Whether it is in line in fact.
    pub(crate) fn stands(&self) -> bool {
        self.ticket.is_some()
    }
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
            let sent = self.place(books, known, (home, shape), (tier, message), placed);
            sent.map_err(|(reason, message)| SendError { message, reason })
        })
    }

    /// As [`send_to`](Self::send_to), once there is room for what waits `in_line`.
    /// `None` if it has to wait and does not stand in line: it wants a spare waker,
    /// or to look only.
    pub(crate) fn send_to_in_turn(
        &self,
        known: Option<GroupKey>,
        kept: (Home, Shape),
        in_line: &mut InLine<T>,
        stand: Option<(&Waker, &mut Option<Waker>)>,
        placed: impl FnOnce(Option<GroupKey>),
    ) -> Option<Poll<Result<(), SendReason>>> {
        let InLine { load, ticket } = in_line;
        self.shared().event(|books| {
            if load.is_none() {
                return Some(Poll::Ready(Ok(())));
            }
            let refusal = books.refusal(1);
            let Some(admitted) = room::admit(books, ticket, refusal) else {
                let Some((current, spare)) = stand else {
                    let own = room::refuse_own(books, ticket)?;
                    return Some(Poll::Ready(Err(own)));
                };
                let asks = Asks {
                    places: 1,
                    sender: None,
                };
                let stands = books.room.stand(ticket, asks, current, spare);
                return stands.then_some(Poll::Pending);
            };
            if let Err(reason) = admitted {
                return Some(Poll::Ready(Err(reason)));
            }
            let (tier, message) = load.take()?;
            let sent = self.place(books, known, kept, (tier, message), placed);
            Some(Poll::Ready(sent.map_err(|(reason, message)| {
                *load = Some((tier, message));
                reason
            })))
        })
    }

    /// Gives up a place in line.
    pub(crate) fn leave_line(&self, in_line: &mut InLine<T>) {
        let ticket = &mut in_line.ticket;
        self.shared().event(|books| room::leave(books, ticket));
    }

    fn place(
        &self,
        books: &mut Books<T>,
        known: Option<GroupKey>,
        (home, shape): (Home, Shape),
        (tier, message): (Option<u32>, T),
        placed: impl FnOnce(Option<GroupKey>),
    ) -> Result<(), (SendReason, T)> {
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
        sent.map(drop)
            .map_err(|(error, message)| (SendReason::TierGoesDown(error), message))
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
