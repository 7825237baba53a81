//! Receives from a group that is asked for by name.
//!
//! While somebody waits for a group by name it stands in no line. The last that
//! leaves lets it go.
//!
//! Invariants, under the policy lock:
//! 1. A group is flagged exactly while it exists and `named` has an entry for it.
//! 2. No entry of `named` is empty, and an emptied map gives its block back.
//! 3. The waking rule: at the end of every event, one named receive of each
//!    group whose turn could begin is notified, and all of a group from which
//!    nothing comes any more.

use std::collections::BTreeMap;
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
use super::refuse::{NoMore, NoTurn, TryReceive, Why};
use super::shared::Shared;
use super::state::State;
use super::turn::Turn;
use super::{GroupRef, Queue};

impl<T> Queue<T> {
    /// Waits for a turn of this group, wherever it stands in line.
    ///
    /// While somebody waits so, no other receive is woken for the group or takes
    /// it, but for [`try_receive_from`](Self::try_receive_from). All limits hold.
    /// The turn uses up the group's bump; it is no turn of its lane's weight and
    /// overtakes nobody, and if the group was the oldest eligible one of its
    /// lane, the count of those that overtook starts anew.
    ///
    /// Cancel safe: the next that waits for this group is woken, or else the
    /// group stands in line again. One that is woken and never polled keeps its
    /// own group, and nothing else. Cost: while somebody waits, each event of the
    /// queue looks at each group that is waited for.
    ///
    /// # Errors
    ///
    /// [`NoTurn`] if nothing comes from the group: it, or its queue's last work,
    /// has ended. A group of [dialogs](crate::dialog) that is empty in a closed
    /// queue may still be told of ends and errors, until the queue is finished.
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
    /// # use conversant::queue::{Queue, TryReceive};
    /// # let queue = Queue::new();
    /// # let lane = queue.lane(1, Limit::Unlimited)?;
    /// let (anna, bert) = (lane.conversation()?, lane.conversation()?);
    /// anna.send("first in line")?;
    /// bert.send("by name")?;
    /// let turn = queue.try_receive_from(bert.group())?;
    /// assert_eq!(queue.try_receive_from(bert.group()).err(), Some(TryReceive::Held));
    /// # drop(turn);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`TryReceive`] says what keeps the group, or that nothing will ever come.
    pub fn try_receive_from(&self, group: GroupId) -> Result<Turn<'_, T>, TryReceive> {
        let shared = self.shared();
        let key = shared.key(group)?;
        let epoch = shared.epoch();
        let group = shared.with_state(|state| shared.claim_by_name(state, key))?;
        Ok(Turn::begin(shared, group, epoch))
    }
}

impl<T> State<T> {
    /// Notifies who is due; false if the batch is full and more are.
    #[cold]
    pub(super) fn notify_named(&mut self, wakes: &mut WakeBatch) -> bool {
        let mut named = std::mem::take(&mut self.named);
        let done = named.iter_mut().all(|(&key, waiters)| {
            let due = self.groups.get(key).and_then(|group| {
                let mailbox = group.lock();
                match self.no_more_of(&group, &mailbox) {
                    Some(_) => None,
                    None => Some(usize::from(self.why(&group, &mailbox) == Why::InLine)),
                }
            });
            waiters.notify_up_to(due.unwrap_or(usize::MAX), wakes)
        });
        self.named = named;
        done
    }

    /// Why nothing comes from a locked group of a closed queue, if so.
    fn no_more_of(&mut self, group: &Group<T>, mailbox: &Mailbox<T>) -> Option<NoMore> {
        let claimed = self.is_claimed(mailbox);
        if !self.closed || mailbox.units(claimed) > 0 {
            None
        } else if mailbox.flags & POISONED != 0 {
            Some(NoMore::OnlyPoisoned)
        } else if group.waiting() > 0 {
            None
        } else if self.events {
            // They go into any group until the queue is finished.
            self.no_more()
        } else {
            Some(NoMore::Drained)
        }
    }

    /// What keeps the first message of a locked group waiting.
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
    /// Claims the group of this key if its turn can begin, or says what keeps it.
    fn claim_by_name(
        &self,
        state: &mut State<T>,
        key: GroupKey,
    ) -> Result<GroupRef<T>, TryReceive> {
        let group = state.groups.get(key).ok_or(Stale)?;
        let mut mailbox = self.lock_group(state, &group);
        if let Some(no_more) = state.no_more_of(&group, &mailbox) {
            return Err(TryReceive::Closed(no_more));
        }
        match state.why(&group, &mailbox) {
            Why::Idle => return Err(TryReceive::Empty),
            Why::Held => return Err(TryReceive::Held),
            Why::InLine => {}
            why => return Err(TryReceive::Blocked(why)),
        }
        let lane = mailbox.lane.index();
        state.lanes.served_by_name(lane, mailbox.ticket);
        state.unline(&mut mailbox);
        state.lanes.take_unit(lane);
        if mailbox.flags & TIERED != 0
            && let Some(tier) = mailbox.counted()
        {
            state.lanes.tiers(lane).start(tier);
            mailbox.flags |= STARTED;
        }
        mailbox.phase = Phase::Ready;
        state.lanes.settle(lane);
        drop(mailbox);
        Ok(group)
    }

    /// Has a group stand in no line, with [`NAMED`], or lets it go.
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
    /// `None` if it is a name of another queue's.
    key: Option<GroupKey>,
    ticket: Option<Ticket>,
}

impl<T> ReceiveFrom<'_, T> {
    /// It waits no more.
    fn leave(&mut self, state: &mut Session<'_, State<T>>, key: GroupKey) {
        if let Some(waiters) = state.named.get_mut(&key) {
            let waker = waiters.withdraw(&mut self.ticket);
            if waiters.is_empty() {
                state.named.remove(&key);
                self.shared.keep_back(state, key, 0);
            }
            if state.named.is_empty() {
                state.named = BTreeMap::new();
            }
            state.discard_waker(waker);
        }
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
        let claimed = look_twice(cx, |current, spare| {
            shared.with_state(|state| {
                let claimed = match shared.claim_by_name(state, key) {
                    Ok(group) => Ok(group),
                    Err(TryReceive::Stale) => Err(NoTurn::Stale),
                    Err(TryReceive::Closed(no_more)) => Err(NoTurn::Closed(no_more)),
                    Err(_) if self.ticket.is_none() && spare.is_none() => return None,
                    Err(_) => {
                        if self.ticket.is_none() {
                            shared.keep_back(state, key, NAMED);
                        }
                        let waiters = state.named.entry(key).or_default();
                        let waits = waiters.enqueue((), &mut self.ticket, current, spare);
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
