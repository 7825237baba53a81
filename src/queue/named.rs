//! Receives from a group that is asked for by name.
//!
//! While somebody waits for a group by name the group is kept back: it stands in
//! no line, so that other receives neither take it nor are woken for it. The
//! last named receive that leaves lets it go.
//!
//! Invariants, under the queue's lock:
//! 1. A group is flagged exactly while it exists and `named` has an entry for it.
//! 2. No entry of `named` is empty, and an emptied map gives its block back.
//! 3. The waking rule: at the end of every event, one named receive of each
//!    group whose turn could begin is notified, and all of a group from which
//!    nothing will ever come.
//!
//! Cost: every event looks at each group that somebody waits for by name.

use std::collections::BTreeMap;
use std::fmt;
use std::task::{Context, Poll, Waker};

use crate::group::{
    BACKING_OFF, Flags, Group, GroupKey, Mailbox, NAMED, POISONED, Phase, STARTED, TIERED,
};
use crate::limit::Limit;
use crate::sync::Arc;
use crate::wait::{Op, Ticket, WakeBatch, look_twice, sealed};

use super::GroupRef;
use super::handles::GroupId;
use super::refuse::{NoTurn, TryReceiveFrom, Why};
use super::shared::Shared;
use super::state::{Age, State};
use super::turn::{Owner, Turn};

impl<T> State<T> {
    /// Notifies who is due; false if the batch is full and more are.
    pub(super) fn notify_named(&mut self, wakes: &mut WakeBatch) -> bool {
        if self.named.is_empty() {
            return true;
        }
        let mut named = std::mem::take(&mut self.named);
        let done = named.iter_mut().all(|(&key, waiters)| {
            let due = self.group(key).and_then(|group| {
                let mailbox = group.lock();
                let over = self.is_over(&group, &mailbox);
                (!over).then(|| usize::from(self.why(&group, &mailbox) == Why::InLine))
            });
            waiters.notify_up_to(due.unwrap_or(usize::MAX), wakes)
        });
        self.named = named;
        done
    }

    /// Whether nothing will ever come from a locked group.
    fn is_over(&mut self, group: &Group<T>, mailbox: &Mailbox<T>) -> bool {
        let poisoned = mailbox.flags & POISONED != 0;
        let nothing = poisoned || group.waiting() == 0;
        let claimed = self.is_claimed(mailbox);
        self.closed && nothing && mailbox.units(claimed) == 0
    }

    /// What keeps the first message of a locked group waiting.
    pub(super) fn why(&mut self, group: &Group<T>, mailbox: &Mailbox<T>) -> Why {
        let lane = mailbox.lane.index();
        if mailbox.phase == Phase::Held || self.is_claimed(mailbox) {
            Why::Held
        } else if group.waiting() == 0 {
            Why::Idle
        } else if mailbox.flags & POISONED != 0 {
            Why::Poisoned
        } else if mailbox.flags & BACKING_OFF != 0 {
            Why::BackingOff
        } else if mailbox.limit() == Limit::AtMost(0) {
            Why::Paused
        } else if !mailbox.has_room() {
            Why::Limit
        } else if !self
            .lanes
            .lane(lane)
            .may_start(mailbox.counted().unwrap_or(0))
        {
            Why::Tier
        } else if !self.lanes.lane(lane).has_room() {
            Why::Cap
        } else {
            Why::InLine
        }
    }

    /// Takes a named receive out of its queue; the waker is to be discarded.
    fn withdraw(
        &mut self,
        shared: &Shared<T>,
        key: GroupKey,
        ticket: &mut Option<Ticket>,
    ) -> Option<Waker> {
        let waiters = self.named.get_mut(&key)?;
        let waker = waiters.withdraw(ticket);
        if waiters.is_empty() {
            self.named.remove(&key);
            self.keep_back(shared, key, 0);
        }
        if self.named.is_empty() {
            self.named = BTreeMap::new();
        }
        waker
    }

    /// Has a group stand in no line, with [`NAMED`], or lets it go.
    fn keep_back(&mut self, shared: &Shared<T>, key: GroupKey, named: Flags) {
        if let Some(group) = self.group(key) {
            shared.change_group(self, &group, |_, mailbox| {
                mailbox.flags = mailbox.flags & !NAMED | named;
                ((), Age::Same)
            });
        }
    }
}

impl<T> Shared<T> {
    /// Claims this group if its turn can begin, or says what keeps it.
    pub(super) fn claim_by_name(
        &self,
        state: &mut State<T>,
        key: GroupKey,
    ) -> Result<GroupRef<T>, TryReceiveFrom> {
        let stale = TryReceiveFrom::Never(NoTurn::Stale);
        let group = state.group(key).ok_or(stale)?;
        let mut mailbox = self.lock_group(state, &group);
        if state.is_over(&group, &mailbox) {
            return Err(TryReceiveFrom::Never(NoTurn::Closed));
        }
        match state.why(&group, &mailbox) {
            Why::Idle => return Err(TryReceiveFrom::Empty),
            Why::Held => return Err(TryReceiveFrom::Held),
            Why::InLine => {}
            why => return Err(TryReceiveFrom::Blocked(why)),
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
}

/// The wait of [`Queue::receive_from`](super::Queue::receive_from).
pub struct ReceiveFrom<'q, T> {
    shared: &'q Arc<Shared<T>>,
    /// `None` if it is a name of another queue's.
    key: Option<GroupKey>,
    ticket: Option<Ticket>,
}

impl<'q, T> ReceiveFrom<'q, T> {
    pub(super) fn new(shared: &'q Arc<Shared<T>>, group: GroupId) -> Self {
        Self {
            shared,
            key: group.key_in(shared),
            ticket: None,
        }
    }
}

impl<T> sealed::Sealed for ReceiveFrom<'_, T> {}

impl<'q, T> Op for ReceiveFrom<'q, T> {
    type Output = Result<Turn<'q, T>, NoTurn>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            shared,
            key,
            ticket,
        } = self;
        let Some(key) = *key else {
            return Poll::Ready(Err(NoTurn::Stale));
        };
        let epoch = shared.epoch();
        let claimed = look_twice(cx, |current, spare| {
            shared.with_state(|state| {
                let found = match shared.claim_by_name(state, key) {
                    Ok(group) => Some(Ok(group)),
                    Err(TryReceiveFrom::Never(why)) => Some(Err(why)),
                    Err(_) => None,
                };
                if let Some(found) = found {
                    let waker = state.withdraw(shared, key, ticket);
                    state.discard_waker(waker);
                    return Some(Poll::Ready(found));
                }
                if ticket.is_none() {
                    if spare.is_none() {
                        return None;
                    }
                    state.keep_back(shared, key, NAMED);
                }
                let waiters = state.named.entry(key).or_default();
                let waits = waiters.enqueue((), ticket, current, spare);
                waits.then_some(Poll::Pending)
            })
        });
        claimed.map(|group| Ok(Turn::begin(Owner::Borrowed(*shared), group?, epoch)))
    }

    fn cancel(&mut self) {
        if let Some(key) = self.key {
            self.shared.with_state(|state| {
                // If it had been notified, the waking rules pass that on.
                let waker = state.withdraw(self.shared, key, &mut self.ticket);
                state.discard_waker(waker);
            });
        }
    }
}

impl<T> fmt::Debug for ReceiveFrom<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveFrom")
            .field("in_line", &self.ticket.is_some())
            .finish_non_exhaustive()
    }
}
