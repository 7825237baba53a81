//! What is done to a queue and to its groups by name: receive, bump, count,
//! resume, drain, cap, close, and the clock.

use std::time::Duration;

use crate::error::{OutOfRange, Stale};
use crate::group::{CAPPED, ordinal};
use crate::lanes::LaneKey;
use crate::limit::Limit;
use crate::sync::Ordering;
use crate::wait::Wait;

use super::handles::{Group, GroupId};
use super::named::ReceiveFrom;
use super::poison::Poisoned;
use super::refuse::{NoTurn, TryReceiveFrom};
use super::shared::Shared;
use super::state::State;
use super::turn::{Owner, Turn};
use super::{GroupRef, Queue};

impl<T> Queue<T> {
    /// As [`Group::bump`], by name. To bump a message's group before any
    /// reader can take the message, bump first and then send.
    ///
    /// # Errors
    ///
    /// [`Stale`] if there is no such group any more.
    pub fn bump(&self, group: GroupId, level: u8) -> Result<(), Stale> {
        let group = self.find(group)?;
        self.shared().bump(&group, level);
        Ok(())
    }

    /// Waits for a turn of this group, wherever it stands in line.
    ///
    /// While somebody waits so, the group is kept for them: no other receive
    /// is woken for it or takes it, but for [`try_receive_from`]. All limits
    /// hold. The turn uses up the group's bump; it is no turn of its lane's
    /// weight and overtakes nobody, and if the group was the oldest eligible
    /// one of its lane, the count of those that overtook starts anew.
    ///
    /// Cancel safe, as [`receive`](Queue::receive): the next that waits for
    /// this group is woken, or else the group stands in line again. One that is
    /// woken and never polled keeps its own group, and nothing else.
    ///
    /// Cost: while somebody waits by name, each event of the queue looks at
    /// each group that is waited for.
    ///
    /// # Errors
    ///
    /// [`NoTurn`] if there is no such group any more, or if the queue is closed
    /// and nothing will come from the group.
    ///
    /// [`try_receive_from`]: Self::try_receive_from
    pub fn receive_from(&self, group: GroupId) -> Wait<ReceiveFrom<'_, T>> {
        Wait::new(ReceiveFrom::new(self.shared(), group))
    }

    /// A turn of this group if it can begin now, as by
    /// [`receive_from`](Self::receive_from).
    ///
    /// ```
    /// use conversant::limit::Limit;
    /// use conversant::queue::{Queue, TryReceiveFrom};
    ///
    /// let queue = Queue::new();
    /// let lane = queue.lane(1, Limit::Unlimited)?;
    /// let (anna, bert) = (lane.conversation()?, lane.conversation()?);
    /// anna.send("first in line")?;
    /// assert_eq!(queue.try_receive_from(bert.group()).err(), Some(TryReceiveFrom::Empty));
    /// bert.send("by name")?;
    /// let turn = queue.try_receive_from(bert.group())?;
    /// assert_eq!(queue.try_receive_from(bert.group()).err(), Some(TryReceiveFrom::Held));
    /// # drop(turn);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`TryReceiveFrom`] says whether the group is held, empty, or otherwise
    /// kept, and whether anything can come from it.
    pub fn try_receive_from(&self, group: GroupId) -> Result<Turn<'_, T>, TryReceiveFrom> {
        let shared = self.shared();
        let key = group.key_in(shared);
        let key = key.ok_or(TryReceiveFrom::Never(NoTurn::Stale))?;
        let epoch = shared.epoch();
        let group = shared.with_state(|state| shared.claim_by_name(state, key))?;
        Ok(Turn::begin(Owner::Borrowed(shared), group, epoch))
    }

    /// How many messages wait in a group, without receiving one.
    ///
    /// # Errors
    ///
    /// [`Stale`] if there is no such group any more.
    pub fn waiting_in(&self, group: GroupId) -> Result<usize, Stale> {
        Ok(super::waiting_in(&self.find(group)?))
    }

    /// The message that waits first in a group, without receiving it: the how
    /// manieth it is of those sent into the group (an error of a dialog: of the
    /// errors), and how often it was delivered in vain. `None` if nothing waits.
    ///
    /// Its content is not shown, since no code of the user's runs under the
    /// lock: [`try_peek`](Self::try_peek) does.
    ///
    /// # Errors
    ///
    /// [`Stale`] if there is no such group any more.
    pub fn peek(&self, group: GroupId) -> Result<Option<(u64, u32)>, Stale> {
        let head = self.find(group)?.lock().head();
        Ok(head.map(|head| (ordinal(head.place), head.attempts)))
    }

    /// The groups that are set aside because a message of theirs was delivered
    /// in vain as often as the [`Builder`](super::Builder) allows.
    ///
    /// Cost: O(their number) under the queue's lock.
    #[must_use]
    pub fn poisoned(&self) -> Vec<Poisoned> {
        self.shared().poisoned()
    }

    /// Lets a group go on that is poisoned or in back-off; false if it is
    /// neither. Poisoned, the attempts of all that waits in it start anew, and
    /// it comes back like a new arrival: youngest in its lane, late in its tier.
    ///
    /// Cost: O(messages of a poisoned group) under the queue's lock.
    ///
    /// # Errors
    ///
    /// [`Stale`] if there is no such group any more.
    pub fn resume(&self, group: GroupId) -> Result<bool, Stale> {
        self.with_group(group, Shared::resume)
    }

    /// Takes out all that waits in a group, in order. If the group was poisoned
    /// or in back-off it is no more.
    ///
    /// # Errors
    ///
    /// [`Stale`] if there is no such group any more.
    pub fn drain(&self, group: GroupId) -> Result<Vec<T>, Stale> {
        self.with_group(group, Shared::drain)
    }

    /// Tells the queue the time, since an origin of the caller's choice, and
    /// ends every back-off that is over. Gives the time at which to call it
    /// again; nothing if no group is in back-off. An earlier time than the
    /// last changes nothing.
    ///
    /// Without a [back-off](super::Builder::back_off) there is no need to call it.
    pub fn advance(&self, now: Duration) -> Option<Duration> {
        self.shared().advance(now)
    }

    fn with_group<R>(
        &self,
        group: GroupId,
        f: impl FnOnce(&Shared<T>, &mut State<T>, &GroupRef<T>) -> R,
    ) -> Result<R, Stale> {
        let shared = self.shared();
        let key = group.key_in(shared).ok_or(Stale)?;
        shared.with_state(|state| {
            let group = state.group(key).ok_or(Stale)?;
            Ok(f(shared, state, &group))
        })
    }

    /// The group of this name.
    fn find(&self, group: GroupId) -> Result<GroupRef<T>, Stale> {
        self.with_group(group, |_, _, group| group.clone())
    }
}

impl<T> Group<T> {
    /// As [`Queue::resume`].
    pub fn resume(&self) -> bool {
        let shared = &self.shared;
        shared.with_state(|state| shared.resume(state, &self.group))
    }

    /// As [`Queue::drain`].
    pub fn drain(&self) -> Vec<T> {
        let shared = &self.shared;
        shared.with_state(|state| shared.drain(state, &self.group))
    }
}

impl<T> Shared<T> {
    pub(super) fn set_cap(&self, lane: LaneKey, cap: Limit) -> Result<(), OutOfRange> {
        let index = lane.index();
        self.with_state(|state| {
            state.lanes.set_cap(index, cap)?;
            if cap != Limit::Unlimited && state.lanes.count_units(index) {
                self.count_units(state, lane);
            }
            // Relaxed: live turns look at the cap under the lock.
            self.epoch.fetch_add(1, Ordering::Relaxed);
            state.lanes.settle(index);
            Ok(())
        })
    }

    /// A lane has a cap for the first time: counts what is in use.
    fn count_units(&self, state: &mut State<T>, lane: LaneKey) {
        state.mixed = true;
        for group in state.groups_of(lane) {
            let mut mailbox = self.lock_group(state, &group);
            mailbox.flags |= CAPPED;
            let claimed = state.is_claimed(&mailbox);
            state.lanes.add_units(lane.index(), mailbox.units(claimed));
        }
    }
}
