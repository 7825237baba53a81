//! The messages that wait, by group, and who is next.
//!
//! This is the plain form: every call is one event, made under whatever lock or
//! in whatever thread the owner likes. Scheduler and simulator are built on it; the
//! queue, whose groups have locks of their own, is built on the same
//! [`lanes`](crate::lanes), so all of them decide alike.
//!
//! The bound on waiting is that of `docs/fairness.md`, and the tests assert it on every
//! dispatch; paused groups keep their age. What is [lent](Backlog::lend) goes ahead of
//! older groups of its lane, by as many messages as are lent.
//!
//! Invariants, at the end of each event:
//! 1. A group is in line if and only if it is ready: it has work and
//!    room. It is in the line of its head's tier.
//! 2. A group counts in the tier of its head, the message that waits first; so
//!    does each message in flight.
//! 3. A group that nobody pins, with nothing waiting and nothing in flight, does
//!    not exist.
//!
//! Cost: O(1) a call, and O(log n) where a group comes back into line under
//! an old age (after a pause) or a lane has several tiers outstanding; O(its groups)
//! for a lane's first message above tier 0.

mod by_lane;
mod group;
mod member;
mod messages;
mod order;
mod run;
mod several;
mod spot;

use std::fmt;

use crate::error::{OutOfRange, TierGoesDown};
use crate::lanes::{Lane, LaneKey};
use crate::limit::{Bypass, Limit};
use crate::ready::Age;
use crate::slab::{Key, Slab};

use group::Group;
pub use group::Place;
use member::Member;
use messages::Message;
use order::Order;
pub use several::Several;
pub use spot::{InFlight, Item, Spot};

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// A group's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKey(Key);

impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A message taken from its group, with one unit of every limit.
#[derive(Debug)]
pub struct Claim<T> {
    /// Its lane.
    pub lane: LaneKey,
    /// Its group; `None` if it is alone.
    pub group: Option<GroupKey>,
    /// Its place in the group: later ones have higher numbers.
    pub seq: u64,
    /// Its tier.
    pub tier: u32,
    /// The message.
    pub item: T,
    /// Where its group stood, or itself if it is alone.
    old: Place,
    /// If that was its lane's oldest, how often it had been overtaken.
    overtaken: Option<u32>,
}

/// Why a group's work is not being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocked {
    /// Nothing waits in it.
    Empty,
    /// Its limit is 0.
    Paused,
    /// As many as its limit allows are in flight.
    GroupLimit,
    /// Its tier is not the one that is open, or the open one drains because a
    /// lower one has work.
    Tier,
    /// As many as its lane's cap allows are in flight.
    Cap,
    /// Nothing: it is in line for a worker.
    InLine,
}

/// Lanes, groups and their waiting messages.
#[derive(Debug)]
pub struct Backlog<T> {
    order: Order<T>,
    groups: Slab<Group<T>>,
}

impl<T: Item> Backlog<T> {
    /// Nothing yet.
    pub fn new(bypass: Bypass) -> Self {
        Self {
            order: Order::new(bypass),
            groups: Slab::new(),
        }
    }

    /// How many turns could begin now; counts no further than `most`.
    pub fn eligible(&self, most: u64) -> u64 {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.order.lanes.eligible(most) as u64
    }

    /// A lane; it goes when it is closed and its last group is gone. It counts
    /// its units from the first message on.
    pub fn add_lane(&mut self, weight: u32, cap: Limit) -> Result<LaneKey, OutOfRange> {
        let lanes = &mut self.order.lanes;
        let lane = lanes.add_lane(weight, cap)?;
        lanes.count_units(lane.index());
        Ok(lane)
    }

    /// A message of this tier is to come: if it is the lane's first above tier 0, tiers are
    /// counted from now on, and what is there is of tier 0. O(its groups) then, else O(1).
    #[inline]
    fn use_tiers(&mut self, lane: LaneKey, tier: u32) {
        if tier > 0 && !self.lane(lane).is_tiered() {
            self.count_tiers(lane);
        }
    }

    #[cold]
    fn count_tiers(&mut self, lane: LaneKey) {
        let mut waiting = self.lane(lane).standing();
        for (_, g) in self.groups_of(lane) {
            // The others wait, but do not stand there.
            waiting += u64::from(g.head.is_some() && !g.is_ready());
        }
        let running = self.lane(lane).in_use;
        let lanes = &mut self.order.lanes;
        lanes.use_tiers(lane.index());
        lanes
            .tiers(lane.index())
            .recount(0, waiting, running.into());
    }

    /// The lane's owner will add no more groups.
    pub fn close_lane(&mut self, lane: LaneKey) {
        self.order.lanes.end_lane(lane);
    }

    /// Changes the lane's cap; lowering it leaves a debt, 0 is a pause.
    pub fn set_cap(&mut self, lane: LaneKey, cap: Limit) -> Result<(), OutOfRange> {
        self.order.lanes.set_cap(lane.index(), cap)?;
        self.order.lanes.update(lane.index());
        Ok(())
    }

    /// A group with one pin, which its owner takes out with [`unpin`](Self::unpin).
    pub fn add_group(
        &mut self,
        lane: LaneKey,
        limit: Limit,
        level: u8,
    ) -> Result<GroupKey, OutOfRange> {
        let limit = limit.checked("limit")?;
        self.order.lanes.add_group(lane);
        let key = self.groups.insert(Group::new(lane, limit, level));
        self.link(lane, key.index());
        Ok(GroupKey(key))
    }

    /// One more owner of the group.
    pub fn pin(&mut self, group: GroupKey) {
        at(&mut self.groups, group).pins += 1;
    }

    /// One owner less; the last leaves the group to end after its last message.
    pub fn unpin(&mut self, group: GroupKey) {
        at(&mut self.groups, group).pins -= 1;
        self.reap(group);
    }

    /// The group's lane; `None` if it does not exist any more.
    pub fn lane_of(&self, group: GroupKey) -> Option<LaneKey> {
        self.groups.get(group.0).map(|g| g.lane)
    }

    /// The number of the group's first waiting message.
    pub fn first_in(&self, group: GroupKey) -> Option<u64> {
        let (seq, _) = self.groups.get(group.0)?.messages.first.as_ref()?;
        Some(*seq)
    }

    /// A lane that is not gone.
    pub(crate) fn lane(&self, lane: LaneKey) -> &Lane<Member<T>> {
        self.order.lanes.lane(lane.index())
    }

    /// What keeps the group's first message waiting.
    pub fn why(&self, group: GroupKey) -> Blocked {
        let waits = self.groups.get(group.0).and_then(|g| Some((g, g.head?)));
        match waits {
            None => Blocked::Empty,
            Some((g, _)) if g.is_paused() => Blocked::Paused,
            Some((g, _)) if !g.has_room() => Blocked::GroupLimit,
            Some((g, tier)) => self.why_alone(g.lane, tier),
        }
    }

    /// Whether a message of this tier can be sent to the group: the tiers of what is
    /// outstanding there do not go down, for then one would wait for itself.
    pub fn admits(&self, group: GroupKey, asked: u32) -> Result<(), TierGoesDown> {
        match self.groups.get(group.0).map_or(0, Group::least_tier) {
            last if asked < last => Err(TierGoesDown { last, asked }),
            _ => Ok(()),
        }
    }

    /// Puts a message last in its group and bumps the group, as one event;
    /// returns its number and tier. Without a tier, or with a lower one, it goes into
    /// the group's last.
    pub fn send(
        &mut self,
        group: GroupKey,
        tier: Option<u32>,
        bump: Option<u8>,
        item: T,
    ) -> (u64, u32) {
        if let Some(tier) = tier.filter(|&tier| tier > 0) {
            let lane = at(&mut self.groups, group).lane;
            self.use_tiers(lane, tier);
        }
        let g = at(&mut self.groups, group);
        let tier = tier.map_or(g.messages.last_tier, |tier| tier.max(g.least_tier()));
        item.waits_at(Spot::Group(group, g.messages.next_seq()));
        let sent = g.messages.add(tier, item);
        // Else it waits behind what waits there.
        if g.head.is_none() || bump.is_some() {
            self.order.leave_line(g);
            if let Some(level) = bump {
                self.order.bump(&mut g.place, level);
            }
            self.order.join_and_update(group.0.index(), g, Age::Same);
        }
        sent
    }

    /// Takes the message that is next, to be completed or unclaimed. The turn uses
    /// up the group's bump.
    #[inline]
    pub fn claim(&mut self) -> Option<Claim<T>> {
        let begun = self.order.lanes.begin()?;
        let overtaken = begun.overtaken;
        let index = match begun.group {
            Member::Group(index) => index,
            alone => return self.claim_alone(alone, begun.lane, overtaken),
        };
        let (key, g) = self.groups.entry_at(index)?;
        let (old, (seq, message)) = (g.place, g.messages.pop()?);
        // It has started in its tier.
        g.head = None;
        g.by_bump = old.bump().is_some();
        g.place.set_bump(None);
        g.in_flight += 1;
        self.order.join_and_update(index, g, Age::New);
        Some(Claim {
            lane: g.lane,
            group: Some(GroupKey(key)),
            seq,
            tier: message.tier,
            item: message.item,
            old,
            overtaken,
        })
    }

    /// A message of `tier` that was taken from `group` is done. A group that was
    /// not in line until now takes its place as the youngest.
    pub fn complete(&mut self, group: GroupKey, tier: u32) {
        let lane = at(&mut self.groups, group).lane;
        self.complete_each(lane, tier, &[group]);
    }

    /// As [`complete`](Self::complete) of a message of each of these groups of this lane, one
    /// after the other.
    pub fn complete_each(&mut self, lane: LaneKey, tier: u32, groups: &[GroupKey]) {
        self.order.finish(lane, tier, groups.len() as u32);
        let mut pinned = true;
        for group in groups {
            let g = at(&mut self.groups, *group);
            let ready = g.is_ready();
            g.in_flight -= 1;
            pinned &= g.pins > 0;
            // With nothing in it, it becomes ready when something comes.
            if !ready && g.head.is_some() {
                self.order.rejoin(group.0.index(), g, Age::New);
            }
        }
        self.order.lanes.update(lane.index());
        if !pinned {
            groups.iter().for_each(|&group| self.reap(group));
        }
    }

    /// The message goes back to its place, its group to its old position with the
    /// bump that it had, unless it has another by now; its lane has that turn
    /// again, and the one that it overtook counts as overtaken once less. Of several
    /// claims the last is unclaimed first.
    pub fn unclaim(&mut self, claim: Claim<T>) {
        let Some(group) = claim.group else {
            return self.unclaim_alone(claim);
        };
        let (tier, item) = (claim.tier, claim.item);
        let g = at(&mut self.groups, group);
        self.order.leave_line(g);
        g.messages.put(claim.seq, Message { tier, item });
        g.in_flight -= 1;
        // It waits before it ceases to run, so that its tier stays outstanding.
        self.order.count_head(g, Age::Same);
        self.order.finish(g.lane, tier, 1);
        g.place.ticket = g.place.ticket.min(claim.old.ticket);
        g.place.set_bump(g.place.bump().or(claim.old.bump()));
        self.order.join_and_update(group.0.index(), g, Age::Same);
        self.order.lanes.unclaim(g.lane.index(), claim.overtaken);
    }

    /// Takes a waiting message out without a turn, with its tier; `None` if it does not wait.
    pub fn take(&mut self, group: GroupKey, seq: u64) -> Option<(T, u32)> {
        let g = self.groups.get_mut(group.0)?;
        let Message { item, tier } = g.messages.take(seq)?;
        if g.head != g.messages.head_tier() {
            self.order.leave_line(g);
            self.order.join_and_update(group.0.index(), g, Age::Same);
        }
        self.reap(group);
        Some((item, tier))
    }

    /// Bumps a group's next turn ahead of all that is not bumped. To the level
    /// that it has it keeps its place. False if it does not exist any more.
    pub fn bump(&mut self, group: GroupKey, level: u8) -> bool {
        self.change(group, |order, g| order.bump(&mut g.place, level))
            .is_some()
    }

    /// Changes a group's standing level; it keeps its age. False if it does not
    /// exist any more.
    pub fn set_level(&mut self, group: GroupKey, level: u8) -> bool {
        self.change(group, |_, g| g.level = level).is_some()
    }

    /// Changes a group's limit; lowering it leaves a debt, 0 is a pause. `None` if
    /// it does not exist any more.
    pub fn set_limit(&mut self, group: GroupKey, limit: Limit) -> Option<Result<(), OutOfRange>> {
        self.change(group, |_, g| {
            g.limit = limit.checked("limit")?;
            Ok(())
        })
    }

    /// Takes a group out of line for a change, and puts it where it belongs then.
    fn change<R>(
        &mut self,
        group: GroupKey,
        change: impl FnOnce(&mut Order<T>, &mut Group<T>) -> R,
    ) -> Option<R> {
        let g = self.groups.get_mut(group.0)?;
        self.order.leave_line(g);
        let result = change(&mut self.order, g);
        self.order.join_and_update(group.0.index(), g, Age::Same);
        Some(result)
    }

    #[inline]
    fn reap(&mut self, group: GroupKey) {
        let is_over = |g: &Group<T>| g.pins == 0 && g.is_idle();
        if self.groups.get(group.0).is_some_and(is_over) {
            let gone = self.groups.remove(group.0);
            gone.into_iter().for_each(|gone| {
                self.unlink(&gone);
                self.order.lanes.remove_group(gone.lane);
            });
        }
    }
}

#[inline]
fn at<T>(groups: &mut Slab<Group<T>>, group: GroupKey) -> &mut Group<T> {
    groups.get_mut(group.0).expect("the group is pinned")
}
