//! The messages that wait, by group, over the dispatch core.
//!
//! This is the plain form: every call is one event of `dispatch`, made under
//! whatever lock or in whatever thread the owner likes. Queue, scheduler and
//! simulator stand on it, so all of them decide alike.
//!
//! Invariants:
//! 1. A group's head in the core is the tier of its first waiting message.
//! 2. A group that nobody pins, with nothing waiting, no turn and nothing in
//!    flight, does not exist.

mod aside;
mod back;
mod deal;
mod first;
mod messages;
mod picture;

use crate::dispatch::{Blocked, Dispatch, GroupKey, LaneKey};
use crate::error::{OutOfRange, TierGoesDown};
use crate::limit::{Bypass, Limit};

use messages::{Entry, Messages};

pub use back::Ahead;
pub use deal::{Account, Dealt};
pub use first::ordinal;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// A message taken from its group, with one unit of every limit.
#[derive(Debug, PartialEq, Eq)]
pub struct Claim<T> {
    /// Its group.
    pub group: GroupKey,
    /// Its place in the group: later ones have higher numbers.
    pub seq: u64,
    /// Its tier.
    pub tier: u32,
    /// How many times it was taken before.
    pub attempt: u32,
    /// The message.
    pub item: T,
}

/// Who keeps a group by a name of its own: what the owner of the backlog makes
/// of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// Which of those who do.
    pub number: u64,
    /// Where it keeps the group.
    pub place: u64,
}

/// Lanes, groups and their waiting messages.
#[derive(Debug)]
pub struct Backlog<T> {
    core: Dispatch<Messages<T>>,
    waiting: u64,
    in_flight: u64,
    /// Groups with a home that ended and were not taken out yet.
    ended: Vec<(Home, GroupKey)>,
    /// Of the waiting ones those in poisoned groups.
    poisoned: u64,
    /// A message has been in another tier than 0.
    tiered: bool,
}

impl<T> Backlog<T> {
    /// Nothing yet.
    pub fn new(bypass: Bypass) -> Self {
        Self {
            core: Dispatch::new(bypass),
            waiting: 0,
            in_flight: 0,
            ended: Vec::new(),
            poisoned: 0,
            tiered: false,
        }
    }

    /// Messages that wait.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Messages taken and neither completed nor given back.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// How many turns could begin now.
    pub fn eligible(&self) -> u64 {
        self.core.eligible()
    }

    /// A lane; it goes when it is closed and its last group is gone.
    pub fn add_lane(&mut self, weight: u32, cap: Limit) -> Result<LaneKey, OutOfRange> {
        self.core.add_lane(weight, cap)
    }

    /// The lane's owner will add no more groups.
    pub fn close_lane(&mut self, lane: LaneKey) {
        self.core.close_lane(lane);
    }

    /// Changes the lane's cap.
    pub fn set_cap(&mut self, lane: LaneKey, cap: Limit) -> Result<(), OutOfRange> {
        self.core.set_cap(lane, cap)?;
        self.core.settle(lane);
        Ok(())
    }

    /// A group with one pin, which its owner takes out with [`unpin`](Self::unpin).
    pub fn add_group(
        &mut self,
        lane: LaneKey,
        limit: Limit,
        level: u8,
    ) -> Result<GroupKey, OutOfRange> {
        self.core.add_group(lane, limit, level, Messages::new())
    }

    /// Has the group's end told to `home`.
    pub fn settle_at(&mut self, group: GroupKey, home: Home) {
        self.messages(group).home = Some(home);
    }

    /// The groups with a home that have ended since this was last asked.
    pub fn take_ended(&mut self) -> Vec<(Home, GroupKey)> {
        std::mem::take(&mut self.ended)
    }

    /// Whether the group exists.
    pub fn contains(&self, group: GroupKey) -> bool {
        self.core.data(group).is_some()
    }

    /// One more owner of the group.
    pub fn pin(&mut self, group: GroupKey) {
        self.messages(group).pins += 1;
    }

    /// One owner less; the last leaves the group to end after its last message.
    pub fn unpin(&mut self, group: GroupKey) {
        self.messages(group).pins -= 1;
        self.reap(group);
    }

    /// The group's lane; `None` if it does not exist any more.
    pub fn lane_of(&self, group: GroupKey) -> Option<LaneKey> {
        self.core.data(group).map(|_| self.core.lane_of(group))
    }

    /// The number of the group's first waiting message.
    pub fn first_in(&self, group: GroupKey) -> Option<u64> {
        Some(self.core.data(group)?.head()?.seq)
    }

    /// The tier that is open in a lane.
    pub fn open_tier(&self, lane: LaneKey) -> Option<u32> {
        self.core.open_tier(lane)
    }

    /// Messages of a lane in flight.
    pub fn lane_in_flight(&self, lane: LaneKey) -> u32 {
        self.core.lane_in_flight(lane)
    }

    /// What keeps the group's first message waiting.
    pub fn why(&self, group: GroupKey) -> Blocked {
        self.core.why(group)
    }

    /// Messages that wait in the group.
    pub fn waiting_in(&self, group: GroupKey) -> usize {
        self.core.data(group).map_or(0, Messages::len)
    }

    /// Puts a message last in its group and bumps the group, as one event;
    /// returns its number and tier. Without a tier it goes into the group's last.
    /// The tiers of a group's outstanding messages do not go down: otherwise
    /// one would wait for itself.
    pub fn send(
        &mut self,
        group: GroupKey,
        tier: Option<u32>,
        bump: Option<u8>,
        item: T,
    ) -> Result<(u64, u32), (TierGoesDown, T)> {
        if let Some(asked) = tier {
            let last = self.messages(group).last_tier;
            if asked < last && !self.is_idle(group) {
                return Err((TierGoesDown { last, asked }, item));
            }
        }
        let (sent, touched) = self.core.change(group, |messages| {
            let sent = messages.add(tier, item);
            (sent, messages.head_tier())
        });
        self.tiered |= sent.1 != 0;
        self.waiting += 1;
        self.poisoned += u64::from(touched.poisoned);
        if let Some(level) = bump {
            self.core.bump(group, level);
        }
        if touched.changed || bump.is_some() {
            self.core.settle(touched.lane);
        }
        Ok(sent)
    }

    /// Begins the next turn with its first message. With `hold` the turn goes
    /// on until [`end_turn`](Self::end_turn), else it is over at once.
    pub fn claim(&mut self, hold: bool) -> Option<Claim<T>> {
        let (pick, entry) = self.core.begin_turn(Messages::take)?;
        let claim = self.claimed(pick.group, pick.tier, entry);
        if !hold {
            self.core.end_turn(pick.group);
        }
        self.core.settle(pick.lane);
        claim
    }

    /// One more message for the live turn of `group`.
    pub fn take(&mut self, group: GroupKey) -> Result<Claim<T>, Blocked> {
        let (tier, entry) = self.core.take(group, Messages::take)?;
        let claim = self.claimed(group, tier, entry).ok_or(Blocked::Empty)?;
        self.core.settle(self.core.lane_of(group));
        Ok(claim)
    }

    /// The turn is over.
    pub fn end_turn(&mut self, group: GroupKey) {
        if let Some(lane) = self.core.end_turn(group) {
            self.core.settle(lane);
        }
        self.reap(group);
    }

    /// A message of `tier` that was taken from `group` is done.
    pub fn complete(&mut self, group: GroupKey, tier: u32) {
        self.in_flight -= 1;
        if let Some(lane) = self.core.finish(group, tier) {
            self.core.settle(lane);
        }
        self.reap(group);
    }

    /// A message goes back to its place; `attempt` is what it will say next.
    pub fn give_back(&mut self, claim: Claim<T>) {
        let Claim {
            group,
            seq,
            tier,
            attempt,
            item,
        } = claim;
        self.messages(group).put(Entry {
            seq,
            tier,
            attempt,
            item: Some(item),
        });
        self.waiting += 1;
        self.tally(group, 1);
        self.in_flight -= 1;
        self.sync_head(group);
        self.core.finish(group, tier);
        self.core.settle(self.core.lane_of(group));
    }

    /// Takes a waiting message out without a turn; `None` if it does not wait.
    pub fn remove(&mut self, group: GroupKey, seq: u64) -> Option<T> {
        let item = self.core.data_mut(group)?.remove(seq)?;
        self.waiting -= 1;
        self.tally(group, -1);
        self.sync_head(group);
        self.core.settle(self.core.lane_of(group));
        self.reap(group);
        Some(item)
    }

    /// Takes out all that waits in a group, in order.
    pub fn drain(&mut self, group: GroupKey) -> Vec<T> {
        let items = self.messages(group).drain();
        self.waiting -= items.len() as u64;
        self.tally(group, -(items.len() as i64));
        self.sync_head(group);
        self.core.settle(self.core.lane_of(group));
        self.reap(group);
        items
    }

    /// Bumps a group; false if it does not exist any more.
    pub fn bump(&mut self, group: GroupKey, level: u8) -> bool {
        self.change(group, |core| core.bump(group, level)).is_some()
    }

    /// Changes a group's standing level; false if it does not exist any more.
    pub fn set_level(&mut self, group: GroupKey, level: u8) -> bool {
        self.change(group, |core| core.set_level(group, level))
            .is_some()
    }

    /// Changes a group's limit; `None` if it does not exist any more.
    pub fn set_limit(&mut self, group: GroupKey, limit: Limit) -> Option<Result<(), OutOfRange>> {
        self.change(group, |core| core.set_limit(group, limit))
    }

    fn change<R>(
        &mut self,
        group: GroupKey,
        f: impl FnOnce(&mut Dispatch<Messages<T>>) -> R,
    ) -> Option<R> {
        self.core.data(group)?;
        let result = f(&mut self.core);
        self.core.settle(self.core.lane_of(group));
        Some(result)
    }

    fn messages(&mut self, group: GroupKey) -> &mut Messages<T> {
        self.core.data_mut(group).expect("the group is pinned")
    }

    /// What was taken out of a group, one unit of every limit for it.
    #[inline]
    fn claimed(&mut self, group: GroupKey, tier: u32, entry: Option<Entry<T>>) -> Option<Claim<T>> {
        let entry = entry?;
        self.waiting -= 1;
        self.in_flight += 1;
        entry.claim(group, tier)
    }

    fn sync_head(&mut self, group: GroupKey) {
        _ = self.core.change(group, |m| ((), m.head_tier()));
    }

    /// Whether nothing of the group waits or is in flight.
    fn is_idle(&self, group: GroupKey) -> bool {
        self.waiting_in(group) == 0 && self.core.in_flight(group) == 0
    }

    #[inline]
    fn reap(&mut self, group: GroupKey) {
        if self.core.data(group).is_some_and(|m| m.pins == 0) {
            self.reap_unpinned(group);
        }
    }

    fn reap_unpinned(&mut self, group: GroupKey) {
        if self.is_idle(group) && !self.core.is_held(group) {
            let home = self.core.remove_group(group).and_then(|gone| gone.home);
            self.ended.extend(home.map(|home| (home, group)));
        }
    }
}
