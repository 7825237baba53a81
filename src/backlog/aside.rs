//! Groups that are set aside, and claims by name.

use crate::dispatch::{Aside, Blocked, GroupKey};

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
        let first = self.core.data(group)?.first()?;
        Some((ordinal(first.seq), first.attempt))
    }

    /// Sets a group aside, or with `None` lets it go on. A group that comes
    /// back from poison starts the attempts of what waits in it anew.
    pub fn set_aside(&mut self, group: GroupKey, aside: Option<Aside>) {
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
        self.core.settle(self.core.lane_of(group));
    }

    /// Keeps a group for claims by name, or lets it go.
    pub fn reserve(&mut self, group: GroupKey, named: bool) {
        self.change(group, |core| core.reserve(group, named));
    }

    /// Begins a turn of this group, out of line, with its first message.
    pub fn claim_of(&mut self, group: GroupKey) -> Result<Claim<T>, Blocked> {
        let pick = self.core.begin_turn_of(group)?;
        let claim = self.pop(group, pick.tier);
        self.core.settle(self.core.lane_of(group));
        claim.ok_or(Blocked::Empty)
    }

    /// So many messages more or less wait in the group, if it is poisoned.
    pub(super) fn tally(&mut self, group: GroupKey, change: i64) {
        if self.core.aside(group) == Some(Aside::Poisoned) {
            self.poisoned = self.poisoned.wrapping_add_signed(change);
        }
    }
}
