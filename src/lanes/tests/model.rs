//! Which group is next, written from the rules alone: plain lists, and a scan over all groups for
//! every question.

use std::collections::VecDeque;

use crate::backlog::Blocked;
use crate::limit::{Bypass, Limit};

/// A message: its number in the group, its tier, and how often it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Message {
    pub(crate) seq: u64,
    pub(crate) tier: u32,
    pub(crate) attempt: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) lane: usize,
    pub(crate) limit: Limit,
    pub(crate) level: u8,
    pub(crate) bump: Option<(u8, u64)>,
    pub(crate) held: bool,
    /// By number.
    pub(crate) waiting: Vec<Message>,
    pub(crate) flying: Vec<Message>,
    pub(crate) ready: u64,
    pub(crate) last_seq: u64,
    pub(crate) last_tier: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) weight: u32,
    pub(crate) cap: Limit,
    pub(crate) open: Option<u32>,
    pub(crate) overtaken: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) groups: Vec<Group>,
    pub(crate) lanes: Vec<Lane>,
    /// The lane and its credit; the front is served next.
    pub(crate) ring: VecDeque<(usize, u32)>,
    pub(crate) bypass: Bypass,
    clock: u64,
}

fn fits(limit: Limit, in_flight: usize) -> bool {
    match limit {
        Limit::AtMost(n) => in_flight < n as usize,
        Limit::Unlimited => true,
    }
}

impl Group {
    pub(crate) fn new(lane: usize, limit: Limit, level: u8) -> Self {
        Self {
            lane,
            limit,
            level,
            bump: None,
            held: false,
            waiting: Vec::new(),
            flying: Vec::new(),
            ready: 0,
            last_seq: 0,
            last_tier: 0,
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        !self.waiting.is_empty() && !self.held && fits(self.limit, self.flying.len())
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.flying.is_empty()
    }

    fn outstanding(&self) -> impl Iterator<Item = &Message> {
        self.waiting.iter().chain(&self.flying)
    }

    fn put(&mut self, message: Message) {
        let at = self.waiting.partition_point(|m| m.seq < message.seq);
        self.waiting.insert(at, message);
    }

    fn land(&mut self, seq: u64) -> Message {
        let at = self.flying.iter().position(|m| m.seq == seq).unwrap();
        self.flying.remove(at)
    }
}

impl Model {
    pub(crate) fn new(bypass: Bypass) -> Self {
        Self {
            groups: Vec::new(),
            lanes: Vec::new(),
            ring: VecDeque::new(),
            bypass,
            clock: 0,
        }
    }

    pub(crate) fn add_lane(&mut self, weight: u32, cap: Limit) {
        self.lanes.push(Lane {
            weight,
            cap,
            open: None,
            overtaken: 0,
        });
    }

    // Questions.

    pub(crate) fn in_lane(&self, lane: usize) -> impl Iterator<Item = usize> {
        (0..self.groups.len()).filter(move |&g| self.groups[g].lane == lane)
    }

    pub(crate) fn lane_in_flight(&self, lane: usize) -> usize {
        self.in_lane(lane)
            .map(|g| self.groups[g].flying.len())
            .sum()
    }

    fn lowest(&self, lane: usize) -> Option<u32> {
        let outstanding = self
            .in_lane(lane)
            .flat_map(|g| self.groups[g].outstanding());
        outstanding.map(|m| m.tier).min()
    }

    /// Why the first message waits, apart from a live turn.
    pub(crate) fn why(&self, g: usize) -> Blocked {
        let group = &self.groups[g];
        let lane = &self.lanes[group.lane];
        let Some(first) = group.waiting.first() else {
            return Blocked::Empty;
        };
        if group.limit == Limit::AtMost(0) {
            Blocked::Paused
        } else if !fits(group.limit, group.flying.len()) {
            Blocked::GroupLimit
        } else if lane.open != Some(first.tier) || self.lowest(group.lane) != Some(first.tier) {
            Blocked::Tier
        } else if !fits(lane.cap, self.lane_in_flight(group.lane)) {
            Blocked::Cap
        } else {
            Blocked::InLine
        }
    }

    pub(crate) fn is_eligible(&self, g: usize) -> bool {
        !self.groups[g].held && self.why(g) == Blocked::InLine
    }

    fn eligible_in(&self, lane: usize) -> u64 {
        let groups = self.in_lane(lane).filter(|&g| self.is_eligible(g)).count() as u64;
        match self.lanes[lane].cap {
            Limit::AtMost(cap) => {
                groups.min(u64::from(cap).saturating_sub(self.lane_in_flight(lane) as u64))
            }
            Limit::Unlimited => groups,
        }
    }

    pub(crate) fn eligible(&self) -> u64 {
        (0..self.lanes.len()).map(|l| self.eligible_in(l)).sum()
    }

    pub(crate) fn weights(&self) -> u64 {
        let weight = |&(lane, _): &(usize, u32)| u64::from(self.lanes[lane].weight);
        self.ring.iter().map(weight).sum()
    }

    pub(crate) fn flying(&self) -> Vec<(usize, Message)> {
        let of = |(g, group): (usize, &Group)| group.flying.iter().map(move |&m| (g, m)).collect();
        let all: Vec<Vec<_>> = self.groups.iter().enumerate().map(of).collect();
        all.concat()
    }

    /// By level downwards, bumped groups first; then by the later of the bump and becoming ready.
    fn rank(&self, g: usize) -> (i32, u64) {
        let group = &self.groups[g];
        match group.bump {
            Some((level, when)) => (-256 - i32::from(level), when.max(group.ready)),
            None => (-i32::from(group.level), group.ready),
        }
    }

    // Events.

    pub(crate) fn send(&mut self, g: usize, tier: u32, bump: Option<u8>) -> Option<Message> {
        let group = &mut self.groups[g];
        if tier < group.last_tier && !group.is_idle() {
            return None;
        }
        (group.last_tier, group.last_seq) = (tier, group.last_seq + 1);
        let (seq, attempt) = (group.last_seq, 0);
        let message = Message { seq, tier, attempt };
        self.arrive(g, message);
        if let Some(level) = bump {
            self.raise(g, level);
        }
        self.update(self.groups[g].lane);
        Some(message)
    }

    pub(crate) fn claim(&mut self, hold: bool) -> Option<(usize, Message)> {
        let &(lane, credit) = self.ring.front()?;
        let eligible: Vec<usize> = self
            .in_lane(lane)
            .filter(|&g| self.is_eligible(g))
            .collect();
        let &oldest = eligible.iter().min_by_key(|&&g| self.groups[g].ready)?;
        let &best = eligible.iter().min_by_key(|&&g| self.rank(g))?;
        let overtaken = self.lanes[lane].overtaken;
        let g = match self.bypass {
            Bypass::AtMost(most) if overtaken >= most => oldest,
            _ => best,
        };
        self.lanes[lane].overtaken = if g == oldest { 0 } else { overtaken + 1 };
        self.ring[0].1 = credit - 1;
        if credit == 1 {
            self.ring.rotate_left(1);
            self.ring.back_mut()?.1 = self.lanes[lane].weight;
        }
        self.groups[g].bump = None;
        self.groups[g].held = true;
        let message = self.fly(g);
        if !hold {
            self.turn_over(g);
        }
        self.update(lane);
        Some((g, message))
    }

    pub(crate) fn take(&mut self, g: usize) -> Result<Message, Blocked> {
        match self.why(g) {
            Blocked::InLine => {
                let message = self.fly(g);
                self.update(self.groups[g].lane);
                Ok(message)
            }
            blocked => Err(blocked),
        }
    }

    pub(crate) fn end_turn(&mut self, g: usize) {
        self.turn_over(g);
        self.update(self.groups[g].lane);
    }

    pub(crate) fn finish(&mut self, g: usize, seq: u64) {
        self.age(g);
        self.groups[g].land(seq);
        self.update(self.groups[g].lane);
    }

    pub(crate) fn give_back(&mut self, g: usize, seq: u64) {
        self.age(g);
        let mut message = self.groups[g].land(seq);
        message.attempt += 1;
        self.groups[g].put(message);
        self.update(self.groups[g].lane);
    }

    pub(crate) fn remove(&mut self, g: usize, nth: usize) {
        self.groups[g].waiting.remove(nth);
        self.update(self.groups[g].lane);
    }

    pub(crate) fn bump(&mut self, g: usize, level: u8) {
        self.raise(g, level);
    }

    pub(crate) fn set_limit(&mut self, g: usize, limit: Limit) {
        self.groups[g].limit = limit;
        self.update(self.groups[g].lane);
    }

    pub(crate) fn set_cap(&mut self, lane: usize, cap: Limit) {
        self.lanes[lane].cap = cap;
        self.update(lane);
    }

    // Parts of events.

    fn now(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// A message reaches the group.
    fn arrive(&mut self, g: usize, message: Message) {
        if self.groups[g].waiting.is_empty() {
            self.groups[g].ready = self.now();
        }
        self.groups[g].put(message);
    }

    /// A delivery ends: a group that was not ready becomes ready now.
    fn age(&mut self, g: usize) {
        if !self.groups[g].is_ready() {
            self.groups[g].ready = self.now();
        }
    }

    fn raise(&mut self, g: usize, level: u8) {
        if self.groups[g].bump.is_none_or(|(old, _)| old != level) {
            self.groups[g].bump = Some((level, self.now()));
        }
    }

    fn fly(&mut self, g: usize) -> Message {
        let message = self.groups[g].waiting.remove(0);
        self.groups[g].flying.push(message);
        message
    }

    fn turn_over(&mut self, g: usize) {
        self.groups[g].held = false;
        self.groups[g].ready = self.now();
    }

    /// Called once after each event: updates which tier is open, and which lanes are in the ring.
    pub(crate) fn update(&mut self, lane: usize) {
        let open = self.lanes[lane].open;
        let all: Vec<&Group> = self.in_lane(lane).map(|g| &self.groups[g]).collect();
        let runs = all.iter().any(|group| !group.flying.is_empty());
        let of_it = |group: &&Group| group.outstanding().any(|m| Some(m.tier) == open);
        let any_of_it = all.iter().any(of_it);
        let lowest = self.lowest(lane);
        let lower = lowest.is_some_and(|lowest| Some(lowest) < open);
        if !runs && (!any_of_it || lower) {
            self.lanes[lane].open = lowest;
        }
        let works = self.eligible_in(lane) > 0;
        let at = self.ring.iter().position(|&(l, _)| l == lane);
        match (works, at) {
            (true, None) => self.ring.push_back((lane, self.lanes[lane].weight)),
            (false, Some(at)) => _ = self.ring.remove(at),
            _ => {}
        }
    }
}
