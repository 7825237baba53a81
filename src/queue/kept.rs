//! What a lane does for those who keep groups by a key.
//!
//! Protocol: a keeper looks a key up under a lock of its own, and while it holds
//! that, sends here, which takes the group's lock or the policy lock. It pins
//! the groups that it keeps.

use std::task::{Poll, Waker};

use crate::group::Phase;
use crate::limit::Limit;
use crate::sync::{Arc, Ordering, WakeArc, unique};
use crate::wait::Ticket;

use super::handles::{GroupId, Lane};
use super::parcel::{Load, One};
use super::refuse::{LaneError, SendError, SendReason};
use super::room::{self, Asks};
use super::shared::Shared;
use super::{GroupRef, Observer};

/// What the groups of a keeper are like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) limit: Limit,
    pub(crate) level: u8,
}

/// The queue of a lane, for a keeper that outlives it.
pub(crate) struct Keeping<T> {
    shared: Arc<Shared<T>>,
}

/// A send that waits for room.
pub(crate) struct InLine<T> {
    /// `None` once it is sent or given back.
    pub(crate) load: Option<One<T>>,
    ticket: Option<Ticket>,
}

impl<T> InLine<T> {
    pub(crate) fn new(message: T) -> Self {
        let tier = None;
        Self {
            load: Some(One { message, tier }),
            ticket: None,
        }
    }

    /// Whether it is in line in fact.
    pub(crate) fn stands(&self) -> bool {
        self.ticket.is_some()
    }
}

/// What a send into a kept group came to.
pub(crate) enum Kept<T> {
    /// Sent, and this is to be done under no lock.
    Sent(After),
    /// Not the plain case.
    Special(T),
}

/// What is to be done after a send.
pub(crate) struct After(super::submissions::Posted);

impl<T> Lane<T> {
    /// Its queue.
    pub(crate) fn keeping(&self) -> Keeping<T> {
        Keeping {
            shared: Arc::clone(self.shared()),
        }
    }

    /// Has a keeper told when it might forget what is idle. Its number.
    pub(crate) fn observe(&self, keeper: WakeArc<dyn Observer>) -> u64 {
        let number = unique();
        self.shared()
            .with_state(|state| state.observers.insert(number, keeper));
        number
    }

    /// Tells a keeper nothing more; it is to be dropped under no lock.
    pub(crate) fn unobserve(&self, number: u64) -> Option<WakeArc<dyn Observer>> {
        self.shared()
            .with_state(|state| state.observers.remove(&number))
    }

    /// A group of this shape, with one pin.
    pub(crate) fn kept_group(&self, shape: Shape) -> Result<GroupRef<T>, LaneError> {
        self.shared().with_state(|state| {
            state.open()?;
            Ok(state.add_group(self.key(), shape.limit, shape.level)?)
        })
    }

    /// Sends in the plain case.
    #[inline]
    pub(crate) fn send_kept(&self, group: &GroupRef<T>, message: T) -> Kept<T> {
        match self.shared().send_plain(group, || false, Some(message)) {
            Ok(posted) => Kept::Sent(After(posted)),
            Err(message) => Kept::Special(message),
        }
    }

    /// Does what is left to do after a send.
    #[inline]
    pub(crate) fn after(&self, after: After) {
        self.shared().posted(after.0);
    }

    /// Sends by every rule; `held` is dropped when the message has its place.
    pub(crate) fn send_kept_in<H>(
        &self,
        group: &GroupRef<T>,
        load: One<T>,
        held: H,
    ) -> Result<(), SendError<T>> {
        let shared = self.shared();
        shared.with_state(|state| {
            let _held = held;
            if let Some(reason) = state.refusal(load.places()) {
                let message = load.message;
                return Err(SendError { message, reason });
            }
            shared
                .put(state, group, load)
                .map_err(|(down, load)| SendError {
                    message: load.message,
                    reason: SendReason::TierGoesDown(down),
                })
        })
    }

    /// As [`send_kept_in`](Self::send_kept_in), once there is room for what
    /// waits `in_line`: into `known`, or into a new group of this shape, which
    /// `placed` is given. `None` if it has to wait and does not stand in line:
    /// it wants a spare waker, or to look only.
    pub(crate) fn send_in_turn(
        &self,
        (known, shape): (Option<GroupRef<T>>, Shape),
        in_line: &mut InLine<T>,
        stand: Option<(&Waker, &mut Option<Waker>)>,
        placed: impl FnOnce(Option<GroupRef<T>>),
    ) -> Option<Poll<Result<(), SendReason>>> {
        let InLine { load, ticket } = in_line;
        let shared = self.shared();
        shared.with_state(|state| {
            if load.is_none() {
                return Some(Poll::Ready(Ok(())));
            }
            let refusal = state.refusal(1);
            let Some(admitted) = room::admit(state, ticket, refusal) else {
                let Some((current, spare)) = stand else {
                    let own = room::refuse_own(state, ticket)?;
                    return Some(Poll::Ready(Err(own)));
                };
                let asks = Asks {
                    places: 1,
                    sender: None,
                };
                let stands = state.room.stand(ticket, asks, current, spare);
                return stands.then_some(Poll::Pending);
            };
            if let Err(reason) = admitted {
                return Some(Poll::Ready(Err(reason)));
            }
            let is_new = known.is_none();
            let group = known.unwrap_or_else(|| {
                let made = state.add_group(self.key(), shape.limit, shape.level);
                made.expect("the shape was tried")
            });
            let sent = shared.put(state, &group, load.take()?);
            placed(is_new.then_some(group));
            Some(Poll::Ready(sent.map_err(|(down, back)| {
                *load = Some(back);
                SendReason::TierGoesDown(down)
            })))
        })
    }

    /// Gives up a place in line.
    pub(crate) fn leave_line(&self, in_line: &mut InLine<T>) {
        let ticket = &mut in_line.ticket;
        self.shared().with_state(|state| room::leave(state, ticket));
    }

    /// Tries whether groups of this shape can be made.
    pub(crate) fn try_shape(&self, shape: Shape) -> Result<(), LaneError> {
        self.group(shape.limit, shape.level).map(drop)
    }

    /// The name of a kept group.
    pub(crate) fn kept_id(&self, group: &GroupRef<T>) -> GroupId {
        GroupId::new(self.shared(), group.key())
    }

    /// Bumps a kept group.
    pub(crate) fn bump_kept(&self, group: &GroupRef<T>, level: u8) {
        self.shared().bump(group, level);
    }
}

impl<T> Keeping<T> {
    /// Gives up the pin of a kept group.
    pub(crate) fn unpin(&self, group: &GroupRef<T>) {
        self.shared.unpin(group);
    }

    /// So many more groups are kept.
    pub(crate) fn count(&self, more: usize) {
        // Relaxed: a hint when to trim.
        self.shared.kept.fetch_add(more, Ordering::Relaxed);
    }

    /// So many fewer.
    pub(crate) fn uncount(&self, fewer: usize) {
        self.shared.kept.fetch_sub(fewer, Ordering::Relaxed);
    }
}

/// Whether nothing of a group waits or is in flight.
pub(crate) fn is_idle<T>(group: &GroupRef<T>) -> bool {
    let mailbox = group.lock();
    mailbox.phase == Phase::Idle && mailbox.detached() == 0
}

/// How many wait in a group.
pub(crate) fn waiting_in<T>(group: &GroupRef<T>) -> usize {
    let _mailbox = group.lock();
    group.waiting() as usize
}

/// Idle groups that are not worth forgetting.
pub(crate) const KEPT_IDLE: usize = 1024;

impl<T> Shared<T> {
    /// Has keepers forget what is idle, if they keep much. Under no lock.
    #[cold]
    pub(super) fn trim(&self) {
        // Relaxed: a hint.
        if self.kept.load(Ordering::Relaxed) <= self.trim_above.load(Ordering::Relaxed) {
            return;
        }
        let keepers: Vec<_> = self.with_state(|state| state.observers.values().cloned().collect());
        for keeper in keepers {
            keeper.trim();
        }
        // What is left is at work: it may double before the next look.
        let left = self.kept.load(Ordering::Relaxed);
        let above = KEPT_IDLE.max(2 * left);
        self.trim_above.store(above, Ordering::Relaxed);
    }
}
