//! Lanes against a model that scans all groups at each event. Here each message in flight has a
//! unit, which is one of the ways to use units.

pub(crate) mod bound;
mod lifetimes;
pub(crate) mod model;
mod rules;
pub(crate) mod world;

use proptest::collection::vec;
use proptest::prelude::*;

use self::bound::Watch;
use self::model::{Message, Model};
use self::world::{Change, Op, Setup, Subject};
use super::{LaneKey, Lanes};
use crate::limit::{Bypass, Limit};
use crate::ready::{Position, ReadyItem};

/// What the owner of a group knows of it.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Where it is in a ready queue: lane, tier and position.
    at: Option<(u32, u32, Position)>,
    /// The last ticket that it had.
    ticket: u64,
    /// The tier in which it counts.
    counted: Option<u32>,
}

type World = world::World<Direct>;

/// The lanes, and an owner that keeps their rules.
struct Direct {
    core: Lanes<usize>,
    lanes: Vec<LaneKey>,
    groups: Vec<Known>,
}

/// Puts `value` at `index`, which exists or is the next.
fn place<T>(list: &mut Vec<T>, index: usize, value: T) {
    if index == list.len() {
        list.push(value);
    } else {
        list[index] = value;
    }
}

impl<A, B> ReadyItem for (A, B) {}

impl<G: ReadyItem> Lanes<G> {
    /// Adds a group to the ready queue of tier 0, with a ticket higher than all before.
    pub(crate) fn push(&mut self, lane: u32, ticket: u64, level: u8, group: G) {
        self.ready(lane, 0).push(ticket, level, group);
        self.update(lane);
    }

    /// The members of the ring in the order in which their turns begin.
    pub(crate) fn ring(&self) -> Vec<u32> {
        self.ring.iter(&self.lanes).collect()
    }

    /// How many groups are in all ready queues.
    pub(crate) fn ready_len(&self) -> usize {
        let lines = self.lanes.iter().flatten().map(|lane| {
            let parked = lane.tiered.iter().flat_map(|tiered| tiered.parked.values());
            lane.ready.count(usize::MAX)
                + parked.map(|ready| ready.count(usize::MAX)).sum::<usize>()
        });
        lines.sum()
    }
}

impl Direct {
    fn lane_of(&self, model: &Model, g: usize) -> u32 {
        self.lanes[model.groups[g].lane].index()
    }

    fn is_tiered(&self, model: &Model, g: usize) -> bool {
        self.core.lane(self.lane_of(model, g)).is_tiered()
    }

    /// A message of this tier is about to arrive in a lane. All that the lane has is of tier 0.
    fn use_tiers(&mut self, before: &Model, lane: usize, tier: u32) {
        let index = self.lanes[lane].index();
        if tier == 0 || !self.core.use_tiers(index) {
            return;
        }
        for g in before.in_lane(lane) {
            let group = &before.groups[g];
            for _ in &group.flying {
                self.core.tiers(index).arrive(0);
                self.core.tiers(index).start(0);
            }
            let head = (!group.waiting.is_empty()).then_some(0);
            self.core.change_head(index, None, head);
            self.groups[g].counted = head;
        }
        self.core.update(index);
    }

    /// Removes a group from its ready queue before a change.
    fn unline(&mut self, g: usize) {
        if let Some((lane, tier, position)) = self.groups[g].at.take() {
            assert!(self.core.contains(lane, tier, position));
            assert_eq!(self.core.remove(lane, tier, position), Some(g));
            assert!(!self.core.contains(lane, tier, position));
        }
    }

    /// Puts a group into its ready queue after a change.
    fn stand(&mut self, after: &Model, g: usize) {
        let lane = self.lane_of(after, g);
        let group = &after.groups[g];
        let head = group.waiting.first().map(|message| message.tier);
        let tiered = self.is_tiered(after, g);
        if tiered {
            let counted = std::mem::replace(&mut self.groups[g].counted, head);
            self.core.change_head(lane, counted, head);
        }
        let known = &mut self.groups[g];
        let new = std::mem::replace(&mut known.ticket, group.ready) != group.ready;
        if let Some(tier) = head.filter(|_| group.is_ready()) {
            let (ticket, level) = (group.ready, group.level);
            let position = Position::new(level, ticket, group.bump);
            known.at = Some((lane, tier, position));
            match (group.bump, new) {
                (None, true) => self.core.ready(lane, tier).push(ticket, level, g),
                _ => self.core.ready(lane, tier).insert(ticket, position, g),
            }
        }
        self.core.update(lane);
    }

    /// The lanes in the ring in order, each with its credit.
    fn ring(&self) -> Vec<(usize, u32)> {
        let ring = self.core.ring().into_iter().map(|at| {
            let number = self.lanes.iter().position(|key| key.index() == at);
            (number.unwrap(), self.core.lane(at).link.credit())
        });
        ring.collect()
    }
}

impl Subject for Direct {
    const HOLDS: bool = true;

    fn new(bypass: Bypass) -> Self {
        Self {
            core: Lanes::new(bypass),
            lanes: Vec::new(),
            groups: Vec::new(),
        }
    }

    fn add_lane(&mut self, lane: usize, weight: u32, cap: Limit) {
        let key = self.core.add_lane(weight, cap).unwrap();
        place(&mut self.lanes, lane, key);
    }

    fn drop_lane(&mut self, lane: usize) {
        self.core.end_lane(self.lanes[lane]);
        assert!(self.core.get(self.lanes[lane]).is_none());
    }

    fn add_group(&mut self, g: usize, lane: usize, _: Limit, _: u8) {
        self.core.add_group(self.lanes[lane]);
        place(&mut self.groups, g, Known::default());
    }

    fn drop_group(&mut self, _: usize, lane: usize) {
        self.core.remove_group(self.lanes[lane]);
    }

    fn send(&mut self, model: &mut Model, g: usize, tier: u32, bump: Option<u8>) {
        let lane = model.groups[g].lane;
        self.use_tiers(model, lane, tier);
        if model.send(g, tier, bump).is_some() {
            self.unline(g);
            self.stand(model, g);
        }
    }

    fn claim(&mut self, after: &Model, expected: Option<(usize, Message)>) {
        let lone = self.core.ring().first().copied();
        let mut plain = [None];
        let popped = match self.core.pop_run(&mut plain) {
            0 => self.core.pop(),
            _ => plain[0].zip(lone).map(|(g, lane)| (g, lane, false)),
        };
        assert_eq!(popped.map(|(g, ..)| g), expected.map(|(g, _)| g));
        if let Some((g, lane, tiered)) = popped {
            assert_eq!(lane, self.lane_of(after, g));
            assert_eq!(tiered, self.is_tiered(after, g));
            (self.groups[g].at, self.groups[g].counted) = (None, None);
            self.stand(after, g);
        }
    }

    /// One more for a live turn, which the model says is there.
    fn take(&mut self, after: &Model, g: usize, tier: u32) {
        let lane = self.lane_of(after, g);
        let there = self.core.lane(lane);
        assert!(there.may_start(tier) && there.has_room());
        assert!(self.core.take_unit(lane));
        if self.is_tiered(after, g) {
            self.core.tiers(lane).start(tier);
            self.groups[g].counted = None;
        }
        self.stand(after, g);
    }

    fn finish(&mut self, after: &Model, g: usize, Message { tier, .. }: Message) {
        self.unline(g);
        let lane = self.lane_of(after, g);
        self.core.return_units(lane, 1);
        if self.is_tiered(after, g) {
            self.core.tiers(lane).finish(tier);
        }
        self.stand(after, g);
    }

    fn give_back(&mut self, after: &Model, g: usize, Message { tier, .. }: Message) {
        self.unline(g);
        let lane = self.lane_of(after, g);
        self.core.return_units(lane, 1);
        if self.is_tiered(after, g) {
            let head = after.groups[g].waiting.first().map(|m| m.tier);
            let counted = std::mem::replace(&mut self.groups[g].counted, head);
            self.core.tiers(lane).give_back(tier);
            self.core.change_head(lane, counted, head);
            self.core.tiers(lane).leave(tier);
        }
        self.stand(after, g);
    }

    fn set_cap(&mut self, after: &Model, lane: usize, cap: Limit) {
        let index = self.lanes[lane].index();
        self.core.set_cap(index, cap).unwrap();
        if cap != Limit::Unlimited && self.core.count_units(index) {
            let units = after.lane_in_flight(lane) as u32;
            self.core.lane_mut(index).in_use += units;
        }
        self.core.update(index);
    }

    fn changed(&mut self, after: &Model, g: usize, _: Change) {
        self.unline(g);
        self.stand(after, g);
    }

    fn check_empty(&self) {
        assert!(self.core.len() == 0 && !self.core.has_eligible());
    }

    fn check(&mut self, model: &Model) {
        assert_eq!(self.core.eligible(usize::MAX) as u64, model.eligible());
        for most in [0, 1, 2] {
            let least = model.eligible().min(most);
            assert_eq!(self.core.eligible(most as usize) as u64, least);
        }
        assert_eq!(self.core.has_eligible(), model.eligible() > 0);
        for (g, known) in self.groups.iter().enumerate() {
            assert_eq!(known.at.is_some(), model.groups[g].is_ready(), "{g}");
        }
        for (l, (&key, lane)) in self.lanes.iter().zip(&model.lanes).enumerate() {
            let there = self.core.get(key).unwrap();
            let tiered = there.is_tiered();
            assert!(!tiered || there.open_tier() == lane.open, "lane {l}");
            let in_use = model.lane_in_flight(l);
            assert!(!there.counts || there.in_use as usize == in_use);
            assert_eq!((there.link.weight, there.cap), (lane.weight, lane.cap));
        }
        let ring = model.ring.iter().map(|&(l, credit)| (l, credit));
        assert!(self.ring().into_iter().eq(ring), "the order of the lanes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn agree_with_the_model(setup in world::setup(), ops in vec(world::op(true), 1..400)) {
        World::run(&setup, &ops, Watch::amended());
    }

    #[test]
    fn keep_the_bound_where_only_caps_interrupt(
        setup in world::setup(),
        ops in vec(world::calm_op(true), 1..400),
    ) {
        World::run(&setup, &ops, Watch::letter());
    }
}

/// The oldest of three was overtaken once, and the next was not, which begins in a run.
#[test]
fn a_run_of_turns_ends_the_overtakings_of_the_oldest() {
    let mut lanes = Lanes::new(Bypass::AtMost(2));
    let lane = lanes.add_lane(1, Limit::Unlimited).unwrap().index();
    lanes.push(lane, 1, 9, 'a');
    lanes.push(lane, 2, 9, 'b');
    lanes.push(lane, 3, 10, 'c');
    assert_eq!(lanes.pop().map(|(group, ..)| group), Some('c'));
    let mut run = [None];
    assert_eq!((lanes.pop_run(&mut run), run), (1, [Some('a')]));
    let next = lanes.begin().map(|turn| (turn.group, turn.overtaken));
    assert_eq!(next, Some(('b', Some(0))));
}
