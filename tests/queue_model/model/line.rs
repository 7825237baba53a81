//! Who is next, and what blocks the others.

use conversant::limit::Bypass;
use conversant::queue::{NoMore, NoTurn, Why};

use super::{Group, Hold, Model};

impl Model {
    /// Greater goes first.
    fn rank(&self, group: usize) -> (bool, u8, std::cmp::Reverse<u64>) {
        let g = &self.groups[group];
        let (level, since) = g.bump.unwrap_or((g.level, 0));
        (g.bump.is_some(), level, std::cmp::Reverse(since.max(g.age)))
    }

    fn oldest(&self, lane: usize) -> Option<usize> {
        let eligible = self.eligible(lane);
        eligible.into_iter().min_by_key(|&g| self.groups[g].age)
    }

    /// The group of the next turn.
    pub fn claim(&mut self) -> Option<usize> {
        let &(lane, credit) = self.ring.front()?;
        let eligible = self.eligible(lane);
        let oldest = self.oldest(lane).expect("it is in the ring");
        let best = eligible.into_iter().max_by_key(|&g| self.rank(g));
        let best = best.expect("it is in the ring");
        let may_overtake = match self.settings.bypass {
            Bypass::AtMost(most) => self.lanes[lane].overtaken < most,
            Bypass::Unbounded => true,
        };
        let group = if may_overtake { best } else { oldest };
        let overtaken = &mut self.lanes[lane].overtaken;
        *overtaken = if group == oldest { 0 } else { *overtaken + 1 };
        self.hold_for_turn(group);
        self.ring[0].1 = credit - 1;
        self.settle();
        if credit == 1 && self.ring.front().is_some_and(|&(first, _)| first == lane) {
            self.ring.pop_front();
            self.ring.push_back((lane, self.lanes[lane].weight));
        }
        Some(group)
    }

    fn hold_for_turn(&mut self, group: usize) {
        let g = &mut self.groups[group];
        (g.hold, g.bump) = (Some(Hold::Claim), None);
        g.units += 1;
        let (_, first) = g.waiting.first_key_value().expect("it is eligible");
        self.lanes[g.lane].units += 1;
        self.lanes[g.lane].started.push(first.tier);
        self.turns += 1;
    }

    pub fn claim_by_name(&mut self, group: usize) -> Result<(), NoTurn> {
        if self.has_ended(group) {
            return Err(NoTurn::Stale);
        }
        let g = &self.groups[group];
        if self.closed && g.units == 0 && (g.waiting.is_empty() || g.poison.is_some()) {
            return Err(NoTurn::Closed(match g.waiting.is_empty() {
                true => NoMore::Drained,
                false => NoMore::OnlyPoisoned,
            }));
        }
        if !self.could_begin(group) {
            return Err(match self.why(group) {
                Why::Held => NoTurn::Held,
                Why::Idle => NoTurn::Empty,
                why => NoTurn::Blocked(why),
            });
        }
        let lane = g.lane;
        let oldest = self.oldest(lane);
        let is_oldest = |other: usize| self.groups[other].age >= self.groups[group].age;
        if oldest.is_none_or(is_oldest) {
            self.lanes[lane].overtaken = 0;
        }
        self.hold_for_turn(group);
        self.settle();
        Ok(())
    }

    pub fn nothing(&self) -> NoTurn {
        self.no_more().map_or(NoTurn::Empty, NoTurn::Closed)
    }

    pub fn no_more(&self) -> Option<NoMore> {
        let more = |g: &Group| g.units > 0 || (!g.waiting.is_empty() && g.poison.is_none());
        if !self.closed || self.groups.iter().any(more) {
            return None;
        }
        let waits = self.groups.iter().any(|g| !g.waiting.is_empty());
        Some(if waits {
            NoMore::OnlyPoisoned
        } else {
            NoMore::Drained
        })
    }

    pub fn why(&self, group: usize) -> Why {
        let (g, lane) = (&self.groups[group], &self.lanes[self.groups[group].lane]);
        match () {
            () if g.hold.is_some() => Why::Held,
            () if g.waiting.is_empty() => Why::Idle,
            () if g.poison.is_some() => Why::Poisoned,
            () if g.paused_until.is_some() => Why::BackingOff,
            () if g.limit == 0 => Why::Paused,
            () if g.units >= g.limit => Why::Limit,
            () if !self.may_start(g.lane, g.waiting.values().next().unwrap().tier) => Why::Tier,
            () if lane.units >= lane.cap => Why::Cap,
            () => Why::InLine,
        }
    }

    /// Who is due of the receives of a group by name: all of them, one, or none.
    pub fn named_due(&self, group: usize) -> Option<bool> {
        let g = &self.groups[group];
        let nothing = g.units == 0 && (g.waiting.is_empty() || g.poison.is_some());
        match self.has_ended(group) || self.closed && nothing {
            true => Some(true),
            false => self.could_begin(group).then_some(false),
        }
    }
}
