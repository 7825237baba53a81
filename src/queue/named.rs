//! Receives from one group, by name.
//!
//! While a receive waits for a group by name, the group is out of line. The last such receive
//! to leave puts it back.
//!
//! Invariants, under the policy lock:
//! 1. A group has the flag `NAMED` exactly while it exists and a receive waits for it in `named`.
//! 2. The waking rule: at the end of each event, one named receive of each group whose turn
//!    could begin is notified, and all receives of a group from which nothing more comes. Of
//!    groups that their lane has kept from a turn, as many as there is room in the lane.

use std::task::{Context, Poll};

use crate::error::Stale;
use crate::group::{
    BACKING_OFF, Flags, Group, GroupKey, Mailbox, NAMED, POISONED, Phase, STARTED, TIERED,
};
use crate::limit::Limit;
use crate::ready::Age;
use crate::sync::Arc;
use crate::wait::{Op, Session, Ticket, Wait, WakeBatch, look_twice, sealed};

use super::id::GroupId;
use super::named_waits::Found;
use super::refuse::{NoMore, NoTurn, Why};
use super::shared::Shared;
use super::state::State;
use super::turn::Turn;
use super::{GroupRef, Queue};

impl<T> Queue<T> {
    /// Waits for a turn of this group, wherever the group is in line. If the group is idle, it waits
    /// for the group's next message.
    ///
    /// While such a receive waits, no other receive is woken for the group or takes it, except
    /// [`try_receive_from`](Self::try_receive_from). All limits hold. The turn uses up the
    /// group's bump. It does not count against its lane's weight, and overtakes nobody; if the
    /// group was the oldest eligible one of its lane, the count of overtakings starts at 0
    /// again.
    ///
    /// Cancel safe: the next waiter for this group is woken, or else the group is in line
    /// again. A receive that is woken and never polled keeps its own group; if that was kept
    /// waiting by its lane, also one unit of the lane's cap from others that wait by name.
    ///
    /// Cost: O(log n) for `n` groups that are waited for. Events of other groups do not look at
    /// them. Each event looks at each lane and tier that keeps such groups waiting, by its cap or
    /// its order, and wakes as many of these, in turn, as there is room in the lane. An event that
    /// ends what else kept groups waiting, such as their back-offs, wakes one receive of each of
    /// them; whoever then finds no room waits for its lane.
    ///
    /// # Errors
    ///
    /// [`NoTurn`] if nothing more comes from the group: the group has ended, or the last work
    /// of its closed queue. A group of [dialogs](crate::dialog) that is empty in a closed queue
    /// may still receive ends and errors until the queue is finished.
    pub fn receive_from(
        &self,
        group: GroupId,
    ) -> Wait<impl Op<Output = Result<Turn<'_, T>, NoTurn>>> {
        let shared = self.shared();
        Wait::new(ReceiveFrom {
            shared,
            key: shared.key(group).ok(),
            ticket: None,
        })
    }

    /// A turn of this group, if it can begin now.
    ///
    /// ```
    /// # use conversant::limit::Limit;
    /// # use conversant::queue::{Queue, NoTurn};
    /// # let queue = Queue::new();
    /// # let lane = queue.lane(1, Limit::Unlimited)?;
    /// let (anna, bert) = (lane.conversation()?, lane.conversation()?);
    /// anna.send("first in line")?;
    /// bert.send("by name")?;
    /// let turn = queue.try_receive_from(bert.group_id())?;
    /// assert_eq!(queue.try_receive_from(bert.group_id()).err(), Some(NoTurn::Held));
    /// # drop(turn);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NoTurn`]: what blocks the group, or that nothing will ever come.
    pub fn try_receive_from(&self, group: GroupId) -> Result<Turn<'_, T>, NoTurn> {
        let shared = self.shared();
        let key = shared.key(group)?;
        let epoch = shared.epoch();
        let group = shared.with_state(|state| shared.claim_by_name(state, key))?;
        Ok(Turn::begin(shared, group, epoch))
    }
}

impl<T> State<T> {
    /// Notifies named receives by the waking rule; false if the batch is full and more are due.
    #[cold]
    pub(super) fn notify_named(&mut self, wakes: &mut WakeBatch) -> bool {
        let stage = (self.closed, self.no_more().is_some());
        loop {
            let lanes = &self.lanes;
            let room = |(lane, tier)| match lanes.get(lanes.key(lane)) {
                Some(lane) if lane.may_start(tier) => lane.room(),
                Some(_) => 0,
                // It has gone, and so have its groups.
                None => u32::MAX,
            };
            self.named.admit(stage, room);
            if self.named.next_marked().is_none() {
                return true;
            }
            while let Some(group) = self.named.next_marked() {
                let found = self.look_at(group);
                if !self.named.found(group, found, wakes) {
                    return false;
                }
            }
        }
    }

    /// What a receive by name would find.
    fn look_at(&mut self, group: GroupKey) -> Found {
        let Some(group) = self.groups.get(group) else {
            return Found::End;
        };
        let mailbox = group.lock();
        if self.no_more_of(&group, &mailbox).is_some() {
            return Found::End;
        }
        match self.why(&group, &mailbox) {
            Why::InLine => Found::Turn,
            Why::Tier | Why::Cap => {
                let tier = mailbox.counted().unwrap_or(0);
                Found::NotAdmitted((mailbox.lane.index(), tier))
            }
            _ => Found::Nothing,
        }
    }

    /// If nothing more comes from a locked group of a closed queue: why.
    fn no_more_of(&mut self, group: &Group<T>, mailbox: &Mailbox<T>) -> Option<NoMore> {
        let claimed = self.is_claimed(mailbox);
        if !self.closed || mailbox.units(claimed) > 0 {
            None
        } else if mailbox.flags & POISONED != 0 {
            Some(NoMore::OnlyPoisoned)
        } else if group.waiting() > 0 {
            None
        } else if self.events {
            // Any group may get events until the queue is finished.
            self.no_more()
        } else {
            Some(NoMore::Drained)
        }
    }

    /// What blocks the first message of a locked group.
    pub(super) fn why(&mut self, group: &Group<T>, mailbox: &Mailbox<T>) -> Why {
        if mailbox.phase == Phase::Held || self.is_claimed(mailbox) {
            return Why::Held;
        }
        let lane = self.lanes.lane(mailbox.lane.index());
        if group.waiting() == 0 {
            Why::Idle
        } else if mailbox.flags & POISONED != 0 {
            Why::Poisoned
        } else if mailbox.flags & BACKING_OFF != 0 {
            Why::BackingOff
        } else if mailbox.limit() == Limit::AtMost(0) {
            Why::Paused
        } else if !mailbox.has_room() {
            Why::Limit
        } else if !lane.may_start(mailbox.counted().unwrap_or(0)) {
            Why::Tier
        } else if !lane.has_room() {
            Why::Cap
        } else {
            Why::InLine
        }
    }
}

impl<T> Shared<T> {
    /// Claims the group of this key if its turn can begin; otherwise says what blocks it.
    fn claim_by_name(&self, state: &mut State<T>, key: GroupKey) -> Result<GroupRef<T>, NoTurn> {
        let group = state.groups.get(key).ok_or(Stale)?;
        let mut mailbox = self.lock_group(state, &group);
        if let Some(no_more) = state.no_more_of(&group, &mailbox) {
            return Err(NoTurn::Closed(no_more));
        }
        match state.why(&group, &mailbox) {
            Why::Idle => return Err(NoTurn::Empty),
            Why::Held => return Err(NoTurn::Held),
            Why::InLine => {}
            why => return Err(NoTurn::Blocked(why)),
        }
        let lane = mailbox.lane.index();
        state.lanes.served_by_name(lane, mailbox.ticket);
        state.dequeue(&mut mailbox);
        state.lanes.take_unit(lane);
        if mailbox.flags & TIERED != 0
            && let Some(tier) = mailbox.counted()
        {
            state.lanes.tiers(lane).start(tier);
            mailbox.flags |= STARTED;
        }
        mailbox.phase = Phase::Ready;
        state.lanes.update(lane);
        if mailbox.flags & NAMED != 0 {
            state.named.mark(key);
        }
        drop(mailbox);
        Ok(group)
    }

    /// Takes a group out of line, with [`NAMED`], or puts it back, with 0.
    fn keep_back(&self, state: &mut State<T>, key: GroupKey, named: Flags) {
        if let Some(group) = state.groups.get(key) {
            self.change_group(state, &group, |_, mailbox| {
                mailbox.flags = mailbox.flags & !NAMED | named;
                ((), Age::Same)
            });
        }
    }
}

/// The wait of [`Queue::receive_from`].
pub struct ReceiveFrom<'q, T> {
    shared: &'q Arc<Shared<T>>,
    /// `None` if the name belongs to another queue.
    key: Option<GroupKey>,
    ticket: Option<Ticket>,
}

impl<T> ReceiveFrom<'_, T> {
    /// Stops waiting.
    fn leave(&mut self, state: &mut Session<'_, State<T>>, key: GroupKey) {
        let (waker, is_last) = state.named.withdraw(key, &mut self.ticket);
        if is_last {
            self.shared.keep_back(state, key, 0);
        }
        state.discard_waker(waker);
    }
}

impl<T> sealed::Sealed for ReceiveFrom<'_, T> {}

impl<'q, T> Op for ReceiveFrom<'q, T> {
    type Output = Result<Turn<'q, T>, NoTurn>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(key) = self.key else {
            return Poll::Ready(Err(NoTurn::Stale));
        };
        let shared = self.shared;
        let epoch = shared.epoch();
        let claimed = look_twice(cx, |current, cloned| {
            shared.with_state(|state| {
                let claimed = match shared.claim_by_name(state, key) {
                    Ok(group) => Ok(group),
                    Err(never @ (NoTurn::Stale | NoTurn::Closed(_))) => Err(never),
                    Err(_) if self.ticket.is_none() && cloned.is_none() => return None,
                    Err(_) => {
                        if self.ticket.is_none() {
                            shared.keep_back(state, key, NAMED);
                        }
                        let ticket = &mut self.ticket;
                        let waits = state.named.enqueue(key, ticket, current, cloned);
                        return waits.then_some(Poll::Pending);
                    }
                };
                self.leave(state, key);
                Some(Poll::Ready(claimed))
            })
        });
        claimed.map(|group| Ok(Turn::begin(shared, group?, epoch)))
    }

    fn cancel(&mut self) {
        if let Some(key) = self.key {
            let shared = self.shared;
            // If it had been notified, the waking rules pass that on.
            shared.with_state(|state| self.leave(state, key));
        }
    }
}
