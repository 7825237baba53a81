//! The waiting messages, by group, and which of them is next.
//!
//! A plain data structure: each call is one event, and the owner decides about locks and threads.
//! The scheduler and the simulator are built on it. The queue, whose groups have locks of their
//! own, is built on the same [`lanes`](crate::lanes), so all of them decide alike.
//!
//! The bound on waiting is that of `docs/fairness.md`; the tests assert it on every dispatch.
//! Paused groups keep their age. [Lent](Backlog::lend) messages go ahead of older groups of their
//! lane, by as many messages as are lent.
//!
//! Invariants, at the end of each event:
//! 1. A group is in the ready queue if and only if it is ready: it has work and room. It is in the
//!    queue of its head's tier.
//! 2. A group counts in the tier of its head, its first waiting message; each message in flight
//!    counts in its own tier.
//! 3. A group without pins, waiting messages and messages in flight does not exist.
//!
//! Cost: O(1) a call; O(log n) if a group comes back with an old age, as after a pause, or if the
//! lane has several tiers outstanding; O(groups of the lane) for its first message above tier 0.

mod by_lane;
mod group;
mod member;
mod messages;
mod order;
mod run;
mod several;
mod spot;

use crate::error::{OutOfRange, TierGoesDown};
use crate::lanes::{Lane, LaneKey};
use crate::limit::{Bypass, Limit};
use crate::ready::Age;
use crate::shown::says;
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

says!(GroupKey { Self(key) => "{key:?}" });

/// A message taken from its group, with one unit of every limit.
#[derive(Debug)]
pub struct Claim<T> {
    /// The units that it holds.
    pub holds: InFlight,
    /// Its number in the group: later messages have higher ones. 0 if it is alone.
    pub seq: u64,
    /// The message.
    pub item: T,
    /// The place of its group, or its own if it is alone, before the claim.
    old: Place,
    /// If that was the oldest of its lane: how often it had been overtaken.
    overtaken: Option<u32>,
}

/// Why the first message of a group waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocked {
    /// Nothing waits in it.
    Empty,
    /// Its limit is 0.
    Paused,
    /// As many of its messages are in flight as its limit allows.
    GroupLimit,
    /// Its tier is not open, or drains because a lower tier has work.
    Tier,
    /// As many messages of its lane are in flight as the cap allows.
    Cap,
    /// Nothing: it waits for a worker.
    InLine,
}

/// Lanes, groups and their waiting messages.
#[derive(Debug)]
pub struct Backlog<T> {
    order: Order<T>,
    groups: Slab<Group<T>>,
}

impl<T: Item> Backlog<T> {
    /// An empty backlog.
    pub fn new(bypass: Bypass) -> Self {
        Self {
            order: Order::new(bypass),
            groups: Slab::new(),
        }
    }

    /// How many turns could begin now, up to `most`.
    pub fn eligible(&self, most: u64) -> u64 {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.order.lanes.eligible(most) as u64
    }

    /// Adds a lane, which counts its units from the first message on. It goes when it is closed
    /// and its last group is gone.
    pub fn add_lane(&mut self, weight: u32, cap: Limit) -> Result<LaneKey, OutOfRange> {
        let lanes = &mut self.order.lanes;
        let lane = lanes.add_lane(weight, cap)?;
        lanes.count_units(lane.index());
        Ok(lane)
    }

    /// Must precede a message of this tier. The first one above tier 0 makes the lane count tiers
    /// from now on, with all its present messages in tier 0: O(groups of the lane), else O(1).
    #[inline]
    fn use_tiers(&mut self, lane: LaneKey, tier: u32) {
        if tier > 0 && !self.lane(lane).is_tiered() {
            self.count_tiers(lane);
        }
    }

    #[cold]
    fn count_tiers(&mut self, lane: LaneKey) {
        let mut waiting = self.lane(lane).ready_len();
        for (_, g) in self.groups_of(lane) {
            // Ready groups are counted already.
            waiting += u64::from(g.head.is_some() && !g.is_ready());
        }
        let running = self.lane(lane).in_use;
        let lanes = &mut self.order.lanes;
        lanes.use_tiers(lane.index());
        lanes
            .tiers(lane.index())
            .recount(0, waiting, running.into());
    }

    /// The owner adds no more groups to the lane.
    pub fn close_lane(&mut self, lane: LaneKey) {
        self.order.lanes.end_lane(lane);
    }

    /// The index behind the last lane's.
    pub fn lane_places(&self) -> usize {
        self.order.lanes.places()
    }

    /// Changes the lane's cap. A lower cap leaves a debt; 0 is a pause.
    pub fn set_cap(&mut self, lane: LaneKey, cap: Limit) -> Result<(), OutOfRange> {
        self.order.lanes.set_cap(lane.index(), cap)?;
        self.order.lanes.update(lane.index());
        Ok(())
    }

    /// Adds a group with one pin, which its owner removes by [`unpin`](Self::unpin).
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

    /// Adds a pin to the group.
    pub fn pin(&mut self, group: GroupKey) {
        at(&mut self.groups, group).pins += 1;
    }

    /// Removes a pin. A group without pins ends with its last message.
    pub fn unpin(&mut self, group: GroupKey) {
        at(&mut self.groups, group).pins -= 1;
        self.reap(group);
    }

    /// The group's lane; `None` if the group is gone.
    pub fn lane_of(&self, group: GroupKey) -> Option<LaneKey> {
        self.groups.get(group.0).map(|g| g.lane)
    }

    /// The number of the group's first waiting message.
    pub fn first_in(&self, group: GroupKey) -> Option<u64> {
        let (seq, _) = self.groups.get(group.0)?.messages.first.as_ref()?;
        Some(*seq)
    }

    /// A lane that exists.
    pub(crate) fn lane(&self, lane: LaneKey) -> &Lane<Member<T>> {
        self.order.lanes.lane(lane.index())
    }

    /// Why the group's first message waits.
    pub fn why(&self, group: GroupKey) -> Blocked {
        let waits = self.groups.get(group.0).and_then(|g| Some((g, g.head?)));
        match waits {
            None => Blocked::Empty,
            Some((g, _)) if g.is_paused() => Blocked::Paused,
            Some((g, _)) if !g.has_room() => Blocked::GroupLimit,
            Some((g, tier)) => self.why_alone(g.lane, tier),
        }
    }

    /// Whether a message of this tier can be sent to the group. The tiers of its outstanding
    /// messages never go down: otherwise one would wait for itself.
    pub fn admits(&self, group: GroupKey, asked: u32) -> Result<(), TierGoesDown> {
        match self.groups.get(group.0).map_or(0, Group::least_tier) {
            last if asked < last => Err(TierGoesDown { last, asked }),
            _ => Ok(()),
        }
    }

    /// Appends a message to its group, and bumps the group if `bump` says so. Returns the
    /// message's number and tier. Without a tier, or with one that is too low, it goes into the
    /// group's last tier.
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
        // Otherwise it waits behind others, and nothing else changes.
        if g.head.is_none() || bump.is_some() {
            self.order.dequeue(g);
            if let Some(level) = bump {
                self.order.bump(&mut g.place, level);
            }
            self.order.join_and_update(group.0.index(), g, Age::Same);
        }
        sent
    }

    /// Claims the next message, which is then completed or unclaimed. The turn uses up the group's
    /// bump.
    #[inline]
    pub fn claim(&mut self) -> Option<Claim<T>> {
        let begun = self.order.lanes.begin()?;
        let lane = begun.lane;
        let (group, old, seq, tier, item) = match begun.group {
            Member::Group(index) => {
                let (key, g) = self.groups.entry_at(index)?;
                let (old, (seq, message)) = (g.place, g.messages.pop()?);
                // The message has started in its tier.
                g.head = None;
                g.by_bump = old.bump().is_some();
                g.place.set_bump(None);
                g.in_flight += 1;
                self.order.rejoin(index, g, Age::New);
                (Some(GroupKey(key)), old, seq, message.tier, message.item)
            }
            alone => {
                let (old, item) = alone.into_alone()?;
                let tier = self.order.lanes.lane(lane).open_tier().unwrap_or(0);
                (None, old, 0, tier, item)
            }
        };
        self.order.lanes.update(lane);
        let lane = self.order.lanes.key(lane);
        Some(Claim {
            holds: InFlight { lane, group, tier },
            seq,
            item,
            old,
            overtaken: begun.overtaken,
        })
    }

    /// Claimed messages of a lane and tier are done: one of each of these groups, or so many that
    /// were alone. A group that becomes ready by that is the youngest.
    // Inlined, since a message that is alone needs a tenth of it.
    #[inline(always)]
    pub fn finish_all(&mut self, lane: LaneKey, tier: u32, messages: u32, groups: &[GroupKey]) {
        self.order.lanes.finish_all(lane.index(), tier, messages);
        self.order.lanes.return_units(lane.index(), messages);
        let mut pinned = true;
        for group in groups {
            let g = at(&mut self.groups, *group);
            let ready = g.is_ready();
            g.in_flight -= 1;
            pinned &= g.pins > 0;
            // An empty group becomes ready with its next message.
            if !ready && g.head.is_some() {
                self.order.rejoin(group.0.index(), g, Age::New);
            }
        }
        self.order.lanes.update(lane.index());
        if !pinned {
            groups.iter().for_each(|&group| self.reap(group));
        }
    }

    /// Takes a claim back. The message goes back to its place, and its group to its old position
    /// with its old bump, unless it has another by now. The lane has its turn again, and the
    /// oldest group counts as overtaken once less. Of several claims, the last one is taken back
    /// first.
    pub fn unclaim(&mut self, claim: Claim<T>) {
        let InFlight { lane, group, tier } = claim.holds;
        let (item, old) = (claim.item, claim.old);
        match group {
            Some(group) => {
                let g = at(&mut self.groups, group);
                self.order.dequeue(g);
                g.messages.put(claim.seq, Message { tier, item });
                g.in_flight -= 1;
                self.order.count_head(g, Age::Same);
                g.place.ticket = g.place.ticket.min(old.ticket);
                g.place.set_bump(g.place.bump().or(old.bump()));
                self.order.rejoin(group.0.index(), g, Age::Same);
            }
            None => {
                let lanes = &mut self.order.lanes;
                lanes.change_head(lane.index(), None, Some(tier));
                self.order.join_alone(lane, tier, old, Age::Same, item);
            }
        }
        // It counts as waiting before it ceases to run: its tier stays outstanding.
        self.finish_all(lane, tier, 1, &[]);
        self.order.lanes.unclaim(lane.index(), claim.overtaken);
    }

    /// Bumps a group's next turn ahead of all groups that are not bumped. A bump to the same level
    /// changes nothing. False if the group is gone.
    pub fn bump(&mut self, group: GroupKey, level: u8) -> bool {
        self.change(group, |order, g| order.bump(&mut g.place, level))
            .is_some()
    }

    /// Changes a group's standing level; it keeps its age. False if the group is gone.
    pub fn set_level(&mut self, group: GroupKey, level: u8) -> bool {
        self.change(group, |_, g| g.level = level).is_some()
    }

    /// Changes a group's limit. A lower limit leaves a debt; 0 is a pause. `None` if the group is
    /// gone.
    pub fn set_limit(&mut self, group: GroupKey, limit: Limit) -> Option<Result<(), OutOfRange>> {
        self.change(group, |_, g| {
            g.limit = limit.checked("limit")?;
            Ok(())
        })
    }

    /// Takes a group out of the ready queue, changes it, and puts it where it then belongs.
    fn change<R>(
        &mut self,
        group: GroupKey,
        change: impl FnOnce(&mut Order<T>, &mut Group<T>) -> R,
    ) -> Option<R> {
        let g = self.groups.get_mut(group.0)?;
        self.order.dequeue(g);
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
