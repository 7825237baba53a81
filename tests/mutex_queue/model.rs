//! The rules of SEMANTICS 1E, 2 and 3, written down as plainly as they can be:
//! lists that are searched from end to end, everything worked out anew at each
//! question. Shares no code with the crate but its errors and limits.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use conversant::limit::{Bypass, Limit};
use conversant::queue::Why;

#[derive(Clone, Copy)]
pub(super) struct Settings {
    pub(super) quantum: u32,
    pub(super) bypass: Bypass,
    pub(super) capacity: Limit,
    pub(super) attempts: Limit,
    pub(super) first: Duration,
    pub(super) most: Duration,
}

pub(super) struct Lane {
    pub(super) weight: u32,
    pub(super) cap: Limit,
    pub(super) ending: bool,
    pub(super) open: Option<u32>,
    pub(super) overtaken: u32,
}

pub(super) struct Group<T> {
    pub(super) lane: u64,
    pub(super) limit: Limit,
    pub(super) level: u8,
    /// To what level, and when.
    pub(super) bump: Option<(u8, u64)>,
    pub(super) held: bool,
    /// By which message, after how many attempts.
    pub(super) poisoned: Option<(u64, u32)>,
    /// Until when, and when it was told so.
    pub(super) resting: Option<(Duration, u64)>,
    pub(super) ready: u64,
    pub(super) waiting: BTreeMap<u64, Message<T>>,
    /// The tiers of what is in flight.
    pub(super) in_flight: Vec<u32>,
    pub(super) pins: u32,
    pub(super) last_number: u64,
    pub(super) last_tier: u32,
}

pub(super) struct Message<T> {
    pub(super) tier: u32,
    pub(super) attempts: u32,
    pub(super) item: T,
}

/// A message in flight.
pub(super) struct Taken<T> {
    pub(super) group: u64,
    pub(super) number: u64,
    pub(super) message: Message<T>,
}

pub(super) struct Model<T> {
    pub(super) settings: Settings,
    pub(super) lanes: BTreeMap<u64, Lane>,
    pub(super) groups: BTreeMap<u64, Group<T>>,
    /// Lanes with an eligible group, and how many turns each has left; the
    /// first is served.
    pub(super) ring: VecDeque<(u64, u32)>,
    pub(super) closed: bool,
    /// Nobody receives any more.
    pub(super) gone: bool,
    pub(super) now: Duration,
    clock: u64,
}

pub(super) fn room(limit: Limit, used: usize) -> usize {
    match limit {
        Limit::AtMost(most) => (most as usize).saturating_sub(used),
        Limit::Unlimited => usize::MAX,
    }
}

impl<T> Group<T> {
    pub(super) fn head(&self) -> Option<u32> {
        self.waiting.values().next().map(|message| message.tier)
    }

    pub(super) fn is_ready(&self) -> bool {
        let aside = self.poisoned.is_some() || self.resting.is_some();
        let has_room = room(self.limit, self.in_flight.len()) > 0;
        !self.waiting.is_empty() && has_room && !self.held && !aside
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_empty()
    }
}

impl<T> Model<T> {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            lanes: BTreeMap::new(),
            groups: BTreeMap::new(),
            ring: VecDeque::new(),
            closed: false,
            gone: false,
            now: Duration::ZERO,
            clock: 0,
        }
    }

    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub(super) fn group(&mut self, group: u64) -> &mut Group<T> {
        self.groups.get_mut(&group).expect("a handle pins it")
    }

    pub(super) fn add_lane(&mut self, weight: u32, cap: Limit) -> u64 {
        let lane = self.tick();
        let (ending, open, overtaken) = (false, None, 0);
        let new = Lane {
            weight,
            cap,
            ending,
            open,
            overtaken,
        };
        self.lanes.insert(lane, new);
        lane
    }

    pub(super) fn add_group(&mut self, lane: u64, limit: Limit, level: u8) -> u64 {
        let group = self.tick();
        let new = Group {
            lane,
            limit,
            level,
            bump: None,
            held: false,
            poisoned: None,
            resting: None,
            ready: 0,
            waiting: BTreeMap::new(),
            in_flight: Vec::new(),
            pins: 1,
            last_number: 0,
            last_tier: 0,
        };
        self.groups.insert(group, new);
        group
    }

    pub(super) fn waiting(&self) -> usize {
        self.groups.values().map(|g| g.waiting.len()).sum()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.groups.values().map(|g| g.in_flight.len()).sum()
    }

    /// Closed, and nothing is left that could be received.
    pub(super) fn finished(&self) -> bool {
        let stuck = |g: &Group<T>| g.waiting.is_empty() || g.poisoned.is_some();
        self.closed && self.in_flight() == 0 && self.groups.values().all(stuck)
    }

    pub(super) fn in_flight_of(&self, lane: u64) -> usize {
        let of_lane = self.groups.values().filter(|g| g.lane == lane);
        of_lane.map(|g| g.in_flight.len()).sum()
    }

    /// The lowest tier in which something of the lane waits, poisoned groups
    /// left out. Within a group tiers do not go down, so the heads are enough.
    pub(super) fn lowest_waiting(&self, lane: u64) -> Option<u32> {
        let groups = self.groups.values();
        let counted = groups.filter(|g| g.lane == lane && g.poisoned.is_none());
        counted.filter_map(Group::head).min()
    }

    /// Tells what keeps the first message of a group of the lane waiting, a
    /// live turn left aside.
    fn judge(&self, lane: u64) -> impl Fn(&Group<T>) -> Why {
        let lowest = self.lowest_waiting(lane);
        let Lane { cap, open, .. } = self.lanes[&lane];
        // While a lower tier is outstanding the open one starts nothing.
        let startable = open.filter(|&open| lowest.is_none_or(|lowest| lowest >= open));
        let has_room = room(cap, self.in_flight_of(lane)) > 0;
        move |g| match g.head() {
            None => Why::Idle,
            Some(_) if g.poisoned.is_some() => Why::Poisoned,
            Some(_) if g.resting.is_some() => Why::BackingOff,
            Some(_) if g.limit == Limit::AtMost(0) => Why::Paused,
            Some(_) if room(g.limit, g.in_flight.len()) == 0 => Why::Limit,
            Some(tier) if startable != Some(tier) => Why::Tier,
            Some(_) if !has_room => Why::Cap,
            Some(_) => Why::InLine,
        }
    }

    pub(super) fn above(&self, group: u64) -> Why {
        let g = &self.groups[&group];
        self.judge(g.lane)(g)
    }

    pub(super) fn why(&self, group: u64) -> Why {
        match self.groups[&group].held {
            true => Why::Held,
            false => self.above(group),
        }
    }

    pub(super) fn in_line(&self, lane: u64) -> Vec<u64> {
        let judge = self.judge(lane);
        let of_lane = self
            .groups
            .iter()
            .filter(|(_, g)| g.lane == lane && !g.held);
        let free = of_lane.filter(|(_, g)| judge(g) == Why::InLine);
        free.map(|(&group, _)| group).collect()
    }

    /// How many turns of the lane could begin now.
    pub(super) fn eligible_of(&self, lane: u64) -> usize {
        let free = room(self.lanes[&lane].cap, self.in_flight_of(lane));
        self.in_line(lane).len().min(free)
    }
}
