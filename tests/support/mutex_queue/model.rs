//! The rules of SEMANTICS 1E, 2 and 3, in the plainest form: lists that are searched from end to
//! end, and everything is computed again at each question. It shares no code with the crate but the
//! crate's errors and limits.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use conversant::limit::{Bypass, Limit};
use conversant::queue::{NoMore, NoTurn, Why};

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
    /// A message was sent into a tier above 0.
    pub(super) tiered: bool,
}

/// The state of a group's turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It has none.
    Free,
    /// It was claimed, and its turn has not begun.
    Claimed,
    /// Its turn is live. SEMANTICS 2, "A turn is the exclusive right": it has a unit from its claim
    /// to its end, unless a detached delivery takes the unit with it.
    Live { unit: bool },
}

pub(super) struct Group<T> {
    pub(super) lane: u64,
    pub(super) limit: Limit,
    pub(super) level: u8,
    /// The level of the bump, and when it came.
    pub(super) bump: Option<(u8, u64)>,
    pub(super) phase: Phase,
    /// The tier of the message that its turn has in hand, or for which it was claimed.
    pub(super) hand: Option<u32>,
    /// Tiers came into use during its turn. Until its next step the turn counts as a started
    /// message of tier 0.
    pub(super) swept: bool,
    /// The message that poisoned it, and after how many attempts.
    pub(super) poisoned: Option<(u64, u32)>,
    /// The end of its back-off, and when this was set.
    pub(super) resting: Option<(Duration, u64)>,
    pub(super) ready: u64,
    pub(super) waiting: BTreeMap<u64, Message<T>>,
    /// The tiers of its detached deliveries, each of which has a unit.
    pub(super) detached: Vec<u32>,
    /// Messages in flight: with the turn or detached.
    pub(super) out: usize,
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

/// How a message failed: by the queue's rule, with a pause of its own, or for the last time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    ByRule,
    Pause(Duration),
    ForGood,
}

pub(super) struct Model<T> {
    pub(super) settings: Settings,
    pub(super) lanes: BTreeMap<u64, Lane>,
    pub(super) groups: BTreeMap<u64, Group<T>>,
    /// Lanes with an eligible group, and how many turns each has left; the first lane is served.
    pub(super) ring: VecDeque<(u64, u32)>,
    pub(super) closed: bool,
    /// Messages cannot be received any more.
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

    /// The tier in which its first waiting message keeps others waiting.
    fn counted_head(&self) -> Option<u32> {
        // The first message of a claimed group has started.
        let counts = self.poisoned.is_none() && self.phase != Phase::Claimed;
        self.head().filter(|_| counts)
    }

    /// Units in use. SEMANTICS 2: "limits count what is worked on at once".
    pub(super) fn units(&self) -> usize {
        let of_turn = matches!(self.phase, Phase::Claimed | Phase::Live { unit: true });
        self.detached.len() + usize::from(of_turn)
    }

    /// Messages that have started: in a lane without tiers each unit is one.
    fn started(&self, tiered: bool) -> usize {
        let of_turn = self.hand.is_some() || self.swept;
        match tiered {
            true => self.detached.len() + usize::from(of_turn),
            false => self.units(),
        }
    }

    /// Whether its turn may take a waiting message, apart from the cap and the tier.
    pub(super) fn may_take(&self) -> bool {
        let aside = self.poisoned.is_some() || self.resting.is_some();
        room(self.limit, self.detached.len()) > 0 && !aside
    }

    pub(super) fn is_ready(&self) -> bool {
        !self.waiting.is_empty() && self.phase == Phase::Free && self.may_take()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.units() == 0
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
        let new = Lane {
            weight,
            cap,
            ending: false,
            open: None,
            overtaken: 0,
            tiered: false,
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
            phase: Phase::Free,
            hand: None,
            swept: false,
            poisoned: None,
            resting: None,
            ready: 0,
            waiting: BTreeMap::new(),
            detached: Vec::new(),
            out: 0,
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
        self.groups.values().map(Group::units).sum()
    }

    /// Messages that wait or are in flight.
    pub(super) fn held(&self) -> usize {
        self.groups.values().map(|g| g.waiting.len() + g.out).sum()
    }

    /// Why a claim found nothing.
    pub(super) fn nothing(&self) -> NoTurn {
        match self.no_more(&mut self.groups.values()) {
            Some(no_more) => NoTurn::Closed(no_more),
            None => NoTurn::Empty,
        }
    }

    /// Why nothing comes from these groups, if they are closed and hold nothing that could be
    /// received.
    pub(super) fn no_more<'a>(
        &self,
        groups: &mut dyn Iterator<Item = &'a Group<T>>,
    ) -> Option<NoMore>
    where
        T: 'a,
    {
        let mut no_more = NoMore::Drained;
        for g in groups {
            if g.units() > 0 || !g.waiting.is_empty() && g.poisoned.is_none() {
                return None;
            }
            if g.poisoned.is_some() {
                no_more = NoMore::OnlyPoisoned;
            }
        }
        self.closed.then_some(no_more)
    }

    pub(super) fn in_flight_of(&self, lane: u64) -> usize {
        let of_lane = self.groups.values().filter(|g| g.lane == lane);
        of_lane.map(Group::units).sum()
    }

    pub(super) fn started_in(&self, lane: u64) -> usize {
        let tiered = self.lanes[&lane].tiered;
        let of_lane = self.groups.values().filter(|g| g.lane == lane);
        of_lane.map(|g| g.started(tiered)).sum()
    }

    /// The lowest tier in which a message of the lane waits, without poisoned groups. Within a
    /// group tiers do not go down, so it is enough to look at the heads.
    pub(super) fn lowest_waiting(&self, lane: u64) -> Option<u32> {
        let of_lane = self.groups.values().filter(|g| g.lane == lane);
        of_lane.filter_map(Group::counted_head).min()
    }

    /// The tier whose messages may start. While a lower tier is outstanding the open tier starts
    /// nothing.
    pub(super) fn startable(&self, lane: u64) -> Option<u32> {
        let lowest = self.lowest_waiting(lane);
        let open = self.lanes[&lane].open;
        open.filter(|&open| lowest.is_none_or(|lowest| lowest >= open))
    }

    /// Tells why the first message of a group of the lane waits.
    fn judge(&self, lane: u64) -> impl Fn(&Group<T>) -> Why {
        let startable = self.startable(lane);
        let has_room = room(self.lanes[&lane].cap, self.in_flight_of(lane)) > 0;
        move |g| match g.head() {
            _ if g.phase != Phase::Free => Why::Held,
            None => Why::Idle,
            Some(_) if g.poisoned.is_some() => Why::Poisoned,
            Some(_) if g.resting.is_some() => Why::BackingOff,
            Some(_) if g.limit == Limit::AtMost(0) => Why::Paused,
            Some(_) if room(g.limit, g.units()) == 0 => Why::Limit,
            Some(tier) if startable != Some(tier) => Why::Tier,
            Some(_) if !has_room => Why::Cap,
            Some(_) => Why::InLine,
        }
    }

    pub(super) fn why(&self, group: u64) -> Why {
        let g = &self.groups[&group];
        self.judge(g.lane)(g)
    }

    pub(super) fn in_line(&self, lane: u64) -> Vec<u64> {
        let judge = self.judge(lane);
        let of_lane = self.groups.iter().filter(|(_, g)| g.lane == lane);
        let free = of_lane.filter(|(_, g)| judge(g) == Why::InLine);
        free.map(|(&group, _)| group).collect()
    }

    /// How many turns of the lane could begin now.
    pub(super) fn eligible_of(&self, lane: u64) -> usize {
        let free = room(self.lanes[&lane].cap, self.in_flight_of(lane));
        self.in_line(lane).len().min(free)
    }
}
