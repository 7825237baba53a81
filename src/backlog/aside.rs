//! Groups that are set aside, and claims by name.

use crate::dispatch::{Aside, Blocked, GroupKey};

use super::messages::Messages;
use super::{Backlog, Claim, ordinal};

impl<T> Backlog<T> {
    /// Messages that wait in poisoned groups.
    pub fn poisoned(&self) -> u64 {
        self.poisoned
    }

    /// Why the group is set aside, if it is; the group exists.
    pub fn aside(&self, group: GroupKey) -> Option<Aside> {
        self.core.aside(group)
    }

    /// Messages of the group in flight; the group exists.
    pub fn in_flight_in(&self, group: GroupKey) -> u32 {
        self.core.in_flight(group)
    }

    /// The number and the earlier attempts of the group's first waiting message.
    pub fn head_of(&self, group: GroupKey) -> Option<(u64, u32)> {
        let head = self.core.data(group)?.head()?;
        Some((ordinal(head.seq), head.attempt))
    }

    /// Takes the group's first message out to be looked at, and keeps the group
    /// for it. It waits all the same, and nothing is counted. The group exists.
    pub fn take_out(&mut self, group: GroupKey) -> Result<T, Blocked> {
        if self.core.is_held(group) {
            return Err(Blocked::Held);
        }
        let item = self.messages(group).take_out().ok_or(Blocked::Empty)?;
        self.core.hold(group);
        self.core.settle(self.core.lane_of(group));
        Ok(item)
    }

    /// Ends a look: the message goes to its place, or, if it does not come
    /// back, is gone.
    pub fn put_back(&mut self, group: GroupKey, item: Option<T>) {
        if item.is_none() {
            self.waiting -= 1;
            self.tally(group, -1);
        }
        self.messages(group).put_back(item);
        self.sync_head(group);
        self.core.unhold(group);
        self.core.settle(self.core.lane_of(group));
        self.reap(group);
    }

    /// Sets a group aside, or with `None` lets it go on. A group that comes
    /// back from poison starts the attempts of what waits in it anew.
    pub fn set_aside(&mut self, group: GroupKey, aside: Option<Aside>) {
        self.put_aside(group, aside);
        self.core.settle(self.core.lane_of(group));
    }

    /// Sets a message's group aside and puts the message back, as one event:
    /// its lane keeps its place in the ring if another group of it can go on.
    /// The message never counts in the tier of a poisoned group.
    pub fn give_back_aside(&mut self, claim: Claim<T>, aside: Aside) {
        self.put_aside(claim.group, Some(aside));
        self.give_back(claim);
    }

    fn put_aside(&mut self, group: GroupKey, aside: Option<Aside>) {
        let was = self.core.aside(group) == Some(Aside::Poisoned);
        let is = aside == Some(Aside::Poisoned);
        let waiting = self.waiting_in(group) as u64;
        match (was, is) {
            (false, true) => self.poisoned += waiting,
            (true, false) => {
                self.poisoned -= waiting;
                self.messages(group).start_anew();
            }
            _ => {}
        }
        self.core.set_aside(group, aside);
    }

    /// Keeps a group for claims by name, or lets it go.
    pub fn reserve(&mut self, group: GroupKey, named: bool) {
        self.change(group, |core| core.reserve(group, named));
    }

    /// Begins a turn of this group, out of line, with its first message.
    pub fn claim_of(&mut self, group: GroupKey) -> Result<Claim<T>, Blocked> {
        let (pick, entry) = self.core.begin_turn_of(group, Messages::take)?;
        let claim = self.claimed(group, pick.tier, entry);
        self.core.settle(pick.lane);
        claim.ok_or(Blocked::Empty)
    }

    /// So many messages more or less wait in the group, if it is poisoned.
    pub(super) fn tally(&mut self, group: GroupKey, change: i64) {
        if self.core.aside(group) == Some(Aside::Poisoned) {
            self.poisoned = self.poisoned.wrapping_add_signed(change);
        }
    }
}
