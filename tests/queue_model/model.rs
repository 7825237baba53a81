//! What a queue does, said once more: naive, slow, for one thread, from the docs alone.
//!
//! State: the groups with all their messages, the lanes, the ring of the lanes with an eligible
//! group, a clock that ticks with each step, and the embedder's time.

mod failures;
mod line;
mod turns;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use conversant::limit::Bypass;

/// No limit.
pub const UNLIMITED: u32 = u32::MAX;

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub id: u32,
    /// Its number among the messages sent into its group.
    pub number: u64,
    pub failed: u32,
    pub tier: u32,
}

pub struct Settings {
    pub quantum: u32,
    pub bypass: Bypass,
    pub capacity: u32,
    pub attempts: u32,
    pub back_off: (Duration, Duration),
}

pub struct Lane {
    pub weight: u32,
    pub cap: u32,
    pub capacity: u32,
    pub units: u32,
    overtaken: u32,
    pub open_tier: Option<u32>,
    /// The tiers of the messages that have started.
    started: Vec<u32>,
    /// It has used another tier than 0: a batch is one message.
    pub tiered: bool,
    /// Its handle is there.
    pub handle: bool,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Hold {
    /// By a turn that has not begun.
    Claim,
    Turn,
    /// At the message of this number.
    Peek(u64),
}

pub struct Group {
    pub lane: usize,
    pub limit: u32,
    pub level: u8,
    /// The level, and when the bump came.
    pub bump: Option<(u8, u64)>,
    pub waiting: BTreeMap<u64, Message>,
    pub capacity: u32,
    pub sent: u64,
    last_tier: u32,
    pub units: u32,
    pub hold: Option<Hold>,
    /// Detached deliveries.
    pub detached: u32,
    /// Handles and conversations.
    pub handles: u32,
    age: u64,
    /// The number of the message that failed too often, and when.
    pub poison: Option<(u64, u64)>,
    /// A wait has reported that.
    pub reported: bool,
    /// Its turn lived when its lane's first message in another tier than 0 was sent.
    swept: bool,
    /// When its pause ends, and when that was decided.
    pub paused_until: Option<(Duration, u64)>,
    /// Receives that wait for it by name.
    pub named: u32,
}

impl Group {
    fn is_suspended(&self) -> bool {
        self.poison.is_some() || self.paused_until.is_some()
    }

    /// Whether a turn that has this many units may take one more message.
    fn goes_on(&self, lane: &Lane, own: u32) -> bool {
        let room = self.units - own < self.limit && lane.units - own < lane.cap;
        room && !self.is_suspended()
    }
}

/// A turn that has begun.
pub struct Turn {
    pub group: usize,
    pub taken: Option<Message>,
    quota: u32,
    unit: bool,
}

pub enum Failure {
    ByRule,
    Pause(Duration),
    ForGood,
}

#[derive(Debug, PartialEq)]
pub enum Refused {
    Closed,
    NoRoom,
    TierGoesDown,
}

pub struct Model {
    pub settings: Settings,
    pub lanes: Vec<Lane>,
    pub groups: Vec<Group>,
    /// Lanes in the ring, each with its credit.
    ring: VecDeque<(usize, u32)>,
    clock: u64,
    now: Duration,
    pub closed: bool,
    pub turns: u64,
    pub failed: u64,
    pub dropped: u64,
    /// Messages that wait or are in flight.
    pub outstanding: u64,
}

impl Model {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            lanes: Vec::new(),
            groups: Vec::new(),
            ring: VecDeque::new(),
            clock: 0,
            now: Duration::ZERO,
            closed: false,
            turns: 0,
            failed: 0,
            dropped: 0,
            outstanding: 0,
        }
    }

    pub fn add_lane(&mut self, weight: u32, cap: u32) {
        let capacity = UNLIMITED;
        let (units, overtaken, open_tier, started) = (0, 0, None, Vec::new());
        let (tiered, handle) = (false, true);
        self.lanes.push(Lane {
            weight,
            cap,
            capacity,
            units,
            overtaken,
            open_tier,
            started,
            tiered,
            handle,
        });
    }

    pub fn add_group(&mut self, lane: usize, limit: u32, level: u8) {
        self.groups.push(Group {
            lane,
            limit,
            level,
            bump: None,
            waiting: BTreeMap::new(),
            capacity: UNLIMITED,
            sent: 0,
            last_tier: 0,
            units: 0,
            hold: None,
            detached: 0,
            handles: 1,
            age: 0,
            poison: None,
            reported: false,
            swept: false,
            paused_until: None,
            named: 0,
        });
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub fn has_ended(&self, group: usize) -> bool {
        let g = &self.groups[group];
        g.handles == 0 && g.detached == 0 && g.hold.is_none() && g.waiting.is_empty()
    }

    fn is_ready(&self, group: usize) -> bool {
        let g = &self.groups[group];
        !g.waiting.is_empty() && g.hold.is_none() && !g.is_suspended() && g.units < g.limit
    }

    /// Whether a turn could begin, by name or in line.
    fn could_begin(&self, group: usize) -> bool {
        let lane = self.groups[group].lane;
        let tier = |&(_, m): &(&u64, &Message)| self.may_start(lane, m.tier);
        let first = self.groups[group].waiting.first_key_value();
        let free = self.lanes[lane].units < self.lanes[lane].cap;
        self.is_ready(group) && free && first.as_ref().is_some_and(tier)
    }

    /// The lowest tier of which anything is outstanding.
    fn lowest(&self, lane: usize) -> Option<u32> {
        let groups = self
            .groups
            .iter()
            .filter(|g| g.lane == lane && g.poison.is_none());
        let first = groups.filter_map(|g| Some(g.waiting.first_key_value()?.1.tier));
        first.chain(self.lanes[lane].started.iter().copied()).min()
    }

    fn may_start(&self, lane: usize, tier: u32) -> bool {
        self.lanes[lane].open_tier == Some(tier) && self.lowest(lane) == Some(tier)
    }

    fn finish(&mut self, lane: usize, tier: u32) {
        let started = &mut self.lanes[lane].started;
        let place = started.iter().position(|&other| other == tier);
        started.swap_remove(place.expect("it has started"));
    }

    fn eligible(&self, lane: usize) -> Vec<usize> {
        let in_lane = |&g: &usize| self.groups[g].lane == lane && self.groups[g].named == 0;
        let groups = (0..self.groups.len()).filter(in_lane);
        groups.filter(|&g| self.could_begin(g)).collect()
    }

    /// Turns that could begin.
    pub fn count_eligible(&self) -> u64 {
        let count = |lane: usize| {
            let room = self.lanes[lane].cap.saturating_sub(self.lanes[lane].units);
            (self.eligible(lane).len() as u64).min(u64::from(room))
        };
        (0..self.lanes.len()).map(count).sum()
    }

    /// Who is in the ring, after each event.
    pub fn settle(&mut self) {
        for lane in 0..self.lanes.len() {
            let (lowest, open) = (self.lowest(lane), self.lanes[lane].open_tier);
            if lowest != open && !open.is_some_and(|t| self.lanes[lane].started.contains(&t)) {
                self.lanes[lane].open_tier = lowest;
            }
            let place = self.ring.iter().position(|&(other, _)| other == lane);
            match (place, self.eligible(lane).is_empty()) {
                (Some(place), true) => drop(self.ring.remove(place)),
                (None, false) => self.ring.push_back((lane, self.lanes[lane].weight)),
                _ => {}
            }
        }
    }

    pub fn room_in(&self, group: usize) -> u64 {
        let g = &self.groups[group];
        let in_lane = self.groups.iter().filter(|other| other.lane == g.lane);
        let in_lane: u64 = in_lane.map(|other| other.waiting.len() as u64).sum();
        let room = |capacity: u32, used: u64| match capacity {
            UNLIMITED => u64::MAX,
            capacity => u64::from(capacity).saturating_sub(used),
        };
        room(g.capacity, g.waiting.len() as u64)
            .min(room(self.lanes[g.lane].capacity, in_lane))
            .min(room(self.settings.capacity, self.outstanding))
    }

    pub fn send(&mut self, group: usize, ids: &[u32]) -> Result<(), Refused> {
        self.send_in(self.groups[group].last_tier, group, ids)
    }

    pub fn send_in(&mut self, tier: u32, group: usize, ids: &[u32]) -> Result<(), Refused> {
        if self.closed {
            return Err(Refused::Closed);
        }
        let g = &self.groups[group];
        let outstanding = !g.waiting.is_empty() || g.units > 0;
        if tier < g.last_tier && outstanding {
            return Err(Refused::TierGoesDown);
        }
        let lane = g.lane;
        if self.room_in(group) < ids.len() as u64 {
            return Err(Refused::NoRoom);
        }
        if tier > 0 && !self.lanes[lane].tiered {
            self.lanes[lane].tiered = true;
            let live = |g: &&mut Group| {
                g.lane == lane && g.hold == Some(Hold::Turn) && g.units > g.detached
            };
            for g in self.groups.iter_mut().filter(live) {
                g.swept = true;
                self.lanes[lane].started.push(0);
            }
        }
        let age = self.tick();
        let g = &mut self.groups[group];
        if g.waiting.is_empty() && !ids.is_empty() {
            g.age = age;
        }
        for &id in ids {
            g.sent += 1;
            g.last_tier = tier;
            g.waiting.insert(
                g.sent,
                Message {
                    id,
                    number: g.sent,
                    failed: 0,
                    tier,
                },
            );
        }
        self.outstanding += ids.len() as u64;
        self.settle();
        Ok(())
    }

    pub fn bump(&mut self, group: usize, level: u8) {
        let at = self.tick();
        let g = &mut self.groups[group];
        // The turn that is claimed has used it up.
        let used = g.hold == Some(Hold::Claim);
        if !used && g.bump.is_none_or(|(old, _)| old != level) {
            g.bump = Some((level, at));
        }
    }
}
