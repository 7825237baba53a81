//! Beginning turns, and taking a turn back as if it had never begun.

use crate::ready::ReadyItem;
use crate::ring::Links;

use super::{Lane, LaneKey, Lanes};

/// A turn that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun<G> {
    /// The group that has the turn.
    pub group: G,
    /// The index of its lane.
    pub lane: u32,
    /// If the group was the lane's oldest: how often it had been overtaken.
    pub overtaken: Option<u32>,
}

impl<G: ReadyItem> Lanes<G> {
    /// Begins the next turn, if the ring has only one lane, without tiers, and in the lane's ready
    /// queue the order of tickets is the order of rank.
    #[inline(always)]
    pub fn pop_plain(&mut self) -> Option<G> {
        self.begin_alone(|lane| {
            let group = lane.ready.pop_plain()?;
            if let Some(next) = lane.ready.follower() {
                next.hint();
            }
            Some((group, 1))
        })
    }

    /// As [`pop_plain`](Self::pop_plain), for as many groups as `out` has places and the cap has
    /// room. Returns how many: 0 only if `pop_plain` would give none.
    #[inline(always)]
    pub fn pop_run(&mut self, out: &mut [Option<G>]) -> usize {
        let popped = self.begin_alone(|lane| {
            let room = lane.room() as usize;
            let most = room.min(out.len());
            let n = lane.ready.pop_run(&mut out[..most]);
            (n > 0).then_some((n, n as u32))
        });
        popped.unwrap_or(0)
    }

    /// As [`pop_plain`](Self::pop_plain) for several groups: while `take` takes the next one, at
    /// most `most` times and while the cap has room. Returns the lane, how many groups, and how
    /// often the first had been overtaken.
    #[inline]
    pub fn begin_while(
        &mut self,
        most: usize,
        take: impl FnMut(&G) -> bool,
    ) -> Option<(LaneKey, usize, u32)> {
        let current = self.ring.current()?;
        let (turns, overtaken) = self.begin_alone(|lane| {
            let room = lane.room() as usize;
            let turns = lane.ready.pop_while(room.min(most), take);
            (turns > 0).then_some(((turns, lane.overtaken), turns as u32))
        })?;
        Some((LaneKey(current), turns, overtaken))
    }

    /// Lets `pop` take some of the oldest groups of the only lane of the ring, if that has no
    /// tiers. `pop` returns how many.
    #[inline(always)]
    fn begin_alone<R>(&mut self, pop: impl FnOnce(&mut Lane<G>) -> Option<(R, u32)>) -> Option<R> {
        let lane = self.lone_lane()?;
        let (popped, turns) = pop(lane)?;
        if lane.overtaken > 0 {
            lane.overtaken = 0;
        }
        lane.link.served_alone(turns);
        if lane.counts {
            lane.in_use += turns;
        }
        if lane.is_spent()
            && let Some(lane) = self.ring.current()
        {
            self.ring.leave(&mut self.lanes, lane);
        }
        self.begun += u64::from(turns);
        Some(popped)
    }

    /// The only lane of the ring, if it has no tiers.
    #[inline(always)]
    fn lone_lane(&mut self) -> Option<&mut Lane<G>> {
        if self.ring.len() != 1 {
            return None;
        }
        let lane = self.lane_mut(self.ring.current()?);
        lane.tiered.is_none().then_some(lane)
    }

    /// Whether the ring has only one lane, without tiers, and in the lane's ready queue the order
    /// of tickets is the order of rank.
    #[inline]
    pub fn is_plain(&mut self) -> bool {
        self.lone_lane().is_some_and(|lane| lane.ready.is_plain())
    }

    /// Begins the next turn. The group leaves the ready queue with a unit of its lane's cap; in a
    /// lane with tiers a message of the open tier has started. Returns the group, its lane, and
    /// whether the lane has tiers. If it has, the owner reports what waits next in the group, and
    /// then updates the lane.
    #[inline]
    pub fn pop(&mut self) -> Option<(G, u32, bool)> {
        let Begun { group, lane, .. } = self.begin()?;
        let l = self.lane(lane);
        let has_tiers = l.tiered.is_some();
        if !has_tiers && !l.is_eligible() {
            self.ring.leave(&mut self.lanes, lane);
        }
        Some((group, lane, has_tiers))
    }

    /// As [`pop`](Self::pop), for a turn that may be over at once: the lane keeps its place in the
    /// ring until it is updated.
    #[inline(always)]
    pub fn begin(&mut self) -> Option<Begun<G>> {
        let (current, bypass) = (self.ring.current()?, self.bypass);
        let lane = self.lane_mut(current);
        let (group, oldest) = lane.ready.pop(bypass.spent(lane.overtaken))?;
        let overtaken = oldest.then_some(lane.overtaken);
        lane.overtaken = if oldest {
            0
        } else {
            lane.overtaken.saturating_add(1)
        };
        if lane.counts {
            lane.in_use += 1;
        }
        if let Some(tiered) = &mut lane.tiered {
            tiered.tiers.start(tiered.front);
        }
        self.ring.served(self.lanes.link_mut(current));
        self.begun += 1;
        Some(Begun {
            group,
            lane: current,
            overtaken,
        })
    }

    /// Begins turns of several groups that share their lane's first entry. Does the same as so many
    /// calls of [`begin`](Self::begin), except that with `together` a lane goes on after its credit
    /// is used up. `take` is given the lane and the most turns; it takes some groups, and returns
    /// their number, the next one's ticket and the groups. Returns what it took, the lane, and how
    /// often the first had been overtaken.
    #[inline]
    pub fn begin_several<R>(
        &mut self,
        together: bool,
        take: impl FnOnce(&mut G, LaneKey, usize) -> Option<(usize, Option<u64>, R)>,
    ) -> Option<(R, u32, u32)> {
        let (current, lone) = (self.ring.current()?, self.ring.len() == 1);
        let lane = self.lane_mut(current);
        let credit = match lone || together {
            true => u32::MAX,
            false => lane.link.credit(),
        } as usize;
        let room = lane.room() as usize;
        let (key, most) = (LaneKey(current), credit.min(room));
        let (count, taken) = lane.ready.take_first(|group| take(group, key, most))?;
        let overtaken = std::mem::take(&mut lane.overtaken);
        let turns = count as u32;
        if lane.counts {
            lane.in_use += turns;
        }
        let of_credit = turns.min(lane.link.credit());
        if let Some(tiered) = &mut lane.tiered {
            (0..turns).for_each(|_| tiered.tiers.start(tiered.front));
        }
        match lone {
            true => lane.link.served_alone(turns),
            false => {
                let link = self.lanes.link_mut(current);
                (0..of_credit).for_each(|_| self.ring.served(link));
            }
        }
        self.begun += u64::from(turns);
        self.update(current);
        Some((taken, current, overtaken))
    }

    /// Takes back a turn that reported `overtaken`. Before that its group must be back at its old
    /// position, its unit returned and the lane updated. If the lane is in the ring, it becomes the
    /// current one and has that turn again; the group that the turn overtook is overtaken once
    /// less. Of several turns take back the last first.
    pub fn unclaim(&mut self, lane: u32, overtaken: Option<u32>) {
        self.begun -= 1;
        let l = self.lane_mut(lane);
        l.overtaken = match overtaken {
            Some(before) => l.overtaken.saturating_add(before),
            None => l.overtaken.saturating_sub(1),
        };
        if l.link.is_member() {
            self.ring.unclaim(&mut self.lanes, lane);
        }
    }
}
