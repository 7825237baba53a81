//! The core against the model, event by event.

mod bound;
pub(crate) mod model;
mod rules;
pub(crate) mod world;

use proptest::collection::vec;
use proptest::prelude::*;

use self::model::{Message, Model};
use self::world::{Setup, Subject, World};
use super::{Blocked, Dispatch, GroupKey, LaneKey};
use crate::limit::{Bypass, Limit};

pub(crate) use self::bound::Watch;

/// The core itself; what waits in its groups is looked up in the model.
struct Direct {
    core: Dispatch<usize>,
    lanes: Vec<LaneKey>,
    groups: Vec<GroupKey>,
}

/// The tier of what waits first in a group.
fn head(model: &Model, g: usize) -> Option<u32> {
    model.groups[g].waiting.first().map(|m| m.tier)
}

/// Puts `value` at `index`, which exists or is the next.
pub(crate) fn place<T>(list: &mut Vec<T>, index: usize, value: T) {
    if index == list.len() {
        list.push(value);
    } else {
        list[index] = value;
    }
}

impl Direct {
    fn settle(&mut self, g: usize) {
        let lane = self.core.lane_of(self.groups[g]);
        self.core.settle(lane);
    }

    fn set_head(&mut self, after: &Model, g: usize) {
        self.core.set_head(self.groups[g], head(after, g));
    }
}

impl Subject for Direct {
    fn new(bypass: Bypass) -> Self {
        let core = Dispatch::new(bypass);
        let (lanes, groups) = (Vec::new(), Vec::new());
        Self {
            core,
            lanes,
            groups,
        }
    }

    fn add_lane(&mut self, lane: usize, weight: u32, cap: Limit) {
        let key = self.core.add_lane(weight, cap).unwrap();
        place(&mut self.lanes, lane, key);
    }

    fn drop_lane(&mut self, lane: usize) {
        assert_eq!(self.core.groups_of(self.lanes[lane]), 0);
        self.core.close_lane(self.lanes[lane]);
        assert!(!self.core.lanes.contains(self.lanes[lane].0));
    }

    fn add_group(&mut self, g: usize, lane: usize, limit: Limit, level: u8) {
        let lane = self.lanes[lane];
        let key = self.core.add_group(lane, limit, level, g).unwrap();
        place(&mut self.groups, g, key);
    }

    fn drop_group(&mut self, g: usize) {
        assert_eq!(self.core.remove_group(self.groups[g]), Some(g));
        assert_eq!(self.core.remove_group(self.groups[g]), None);
    }

    fn send(&mut self, after: &Model, g: usize, _: u32, bump: Option<u8>, is: Option<Message>) {
        if is.is_none() {
            return;
        }
        self.set_head(after, g);
        if let Some(level) = bump {
            self.core.bump(self.groups[g], level);
        }
        self.settle(g);
    }

    fn claim(&mut self, after: &Model, hold: bool, is: Option<(usize, Message)>) {
        let turn = self.core.begin_turn(|&mut g| (g, head(after, g)));
        let named = turn.map(|(pick, g)| (g, pick.tier));
        assert_eq!(named, is.map(|(g, m)| (g, m.tier)));
        if let Some((g, _)) = is {
            if !hold {
                self.core.end_turn(self.groups[g]);
            }
            self.settle(g);
        }
    }

    fn take(&mut self, after: &Model, g: usize, is: Result<Message, Blocked>) {
        let taken = self
            .core
            .take(self.groups[g], |&mut g| ((), head(after, g)));
        assert_eq!(taken.map(|(tier, ())| tier), is.map(|m| m.tier));
        if is.is_ok() {
            self.settle(g);
        }
    }

    fn end_turn(&mut self, g: usize) {
        self.core.end_turn(self.groups[g]);
        self.settle(g);
    }

    fn finish(&mut self, g: usize, message: Message) {
        self.core.finish(self.groups[g], message.tier);
        self.settle(g);
    }

    fn give_back(&mut self, after: &Model, g: usize, message: Message) {
        self.set_head(after, g);
        self.finish(g, message);
    }

    fn remove(&mut self, after: &Model, g: usize, _: Message) {
        self.set_head(after, g);
        self.settle(g);
    }

    fn bump(&mut self, g: usize, level: u8) {
        self.core.bump(self.groups[g], level);
        self.settle(g);
    }

    fn set_level(&mut self, g: usize, level: u8) {
        self.core.set_level(self.groups[g], level);
        self.settle(g);
    }

    fn set_limit(&mut self, g: usize, limit: Limit) {
        self.core.set_limit(self.groups[g], limit).unwrap();
        self.settle(g);
    }

    fn set_cap(&mut self, lane: usize, cap: Limit) {
        self.core.set_cap(self.lanes[lane], cap).unwrap();
        self.core.settle(self.lanes[lane]);
    }

    fn check(&self, model: &Model) {
        let core = &self.core;
        assert_eq!(core.eligible(), model.eligible());
        for (g, (&key, group)) in self.groups.iter().zip(&model.groups).enumerate() {
            assert_eq!(core.why(key), model.why(g), "group {g}");
            assert_eq!(core.is_held(key), group.held);
            assert_eq!(core.in_flight(key) as usize, group.flying.len());
        }
        for (l, (&key, lane)) in self.lanes.iter().zip(&model.lanes).enumerate() {
            assert_eq!(core.open_tier(key), lane.open, "lane {l}");
            assert_eq!(core.lane_in_flight(key) as usize, model.lane_in_flight(l));
        }
        let ring = model.ring.iter().map(|&(l, _)| self.lanes[l].0.index());
        assert!(core.ring.iter().eq(ring), "the order of the lanes");
    }

    fn check_empty(&self) {
        assert!(is_empty(&self.core));
    }
}

/// No lane, no group, nothing in the ring, nothing counted.
pub(crate) fn is_empty<G>(core: &Dispatch<G>) -> bool {
    let gone = core.lanes.is_empty() && core.groups.is_empty() && core.ring.is_empty();
    gone && core.eligible() == 0 && core.groups().count() == 0
}

fn run(setup: &Setup, ops: &[world::Op], watch: Watch) {
    let mut world = World::<Direct>::new(setup, watch);
    ops.iter().for_each(|op| world.apply(op));
    world.drain();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn agrees_with_the_model(setup in world::setup(), ops in vec(world::op(), 1..400)) {
        run(&setup, &ops, Watch::amended());
    }

    #[test]
    fn keeps_the_bound_where_only_caps_interrupt(
        setup in world::setup(),
        ops in vec(world::calm_op(), 1..400),
    ) {
        run(&setup, &ops, Watch::letter());
    }
}
