//! Random events, applied to the lanes and to the model alike.

use proptest::collection::vec;
use proptest::prelude::*;

use super::Direct;
use super::bound::Watch;
use super::model::{Group, Lane, Model};
use crate::limit::{Bypass, Limit};

#[derive(Clone, Debug)]
pub(super) enum Op {
    /// `tier` is relative to that of the group's last message, if the group has any.
    Send(usize, u32, Option<u8>),
    Claim(bool),
    Take(usize),
    EndTurn(usize),
    Finish(usize),
    GiveBack(usize),
    Remove(usize, usize),
    Bump(usize, u8),
    SetLevel(usize, u8),
    SetLimit(usize, Limit),
    SetCap(usize, Limit),
    /// Replaces an idle group by another one in that lane.
    Renew(usize, usize),
    /// Replaces a lane whose groups are idle by another one.
    RenewLane(usize, u32, Limit),
}

#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) bypass: Bypass,
    pub(super) lanes: Vec<(u32, Limit)>,
    pub(super) groups: Vec<(usize, Limit, u8)>,
}

fn level() -> impl Strategy<Value = u8> {
    prop::sample::select(vec![0u8, 1, 2, 100, 255])
}

fn limit() -> impl Strategy<Value = Limit> {
    let numbers = [1, 1, 1, 2, 2].map(Limit::AtMost);
    let all = [&numbers[..], &[Limit::Unlimited; 2]].concat();
    prop::sample::select(all)
}

fn cap() -> impl Strategy<Value = Limit> {
    let numbers = [0, 1, 2, 3, 5].map(Limit::AtMost);
    let all = [&numbers[..], &[Limit::Unlimited; 4]].concat();
    prop::sample::select(all)
}

pub(super) fn setup() -> impl Strategy<Value = Setup> {
    let bypass = prop::sample::select(vec![
        Bypass::AtMost(0),
        Bypass::AtMost(1),
        Bypass::AtMost(2),
        Bypass::AtMost(5),
        Bypass::Unbounded,
    ]);
    let lanes = vec((1..4u32, cap()), 1..5);
    let groups = vec((0..16usize, limit(), level()), 1..12);
    (bypass, lanes, groups).prop_map(|(bypass, lanes, groups)| Setup {
        bypass,
        groups: groups
            .iter()
            .map(|&(l, limit, level)| (l % lanes.len(), limit, level))
            .collect(),
        lanes,
    })
}

/// Without tiers and pauses: no group becomes ready again with an old age.
pub(super) fn calm_op() -> impl Strategy<Value = Op> {
    let g = || 0..16usize;
    prop_oneof![
        8 => (g(), prop::option::weighted(0.2, level())).prop_map(|(g, b)| Op::Send(g, 0, b)),
        8 => any::<bool>().prop_map(Op::Claim),
        2 => g().prop_map(Op::Take),
        4 => g().prop_map(Op::EndTurn),
        5 => g().prop_map(Op::Finish),
        1 => g().prop_map(Op::GiveBack),
        1 => (g(), 0..3usize).prop_map(|(g, n)| Op::Remove(g, n)),
        2 => (g(), level()).prop_map(|(g, l)| Op::Bump(g, l)),
        1 => (g(), level()).prop_map(|(g, l)| Op::SetLevel(g, l)),
        1 => (g(), cap()).prop_map(|(l, c)| Op::SetCap(l, c)),
        1 => (g(), g()).prop_map(|(g, l)| Op::Renew(g, l)),
        1 => (g(), 1..4u32, cap()).prop_map(|(l, w, c)| Op::RenewLane(l, w, c)),
    ]
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    let g = || 0..16usize;
    let limit = prop_oneof![2 => Just(Limit::AtMost(0)), 3 => limit()];
    let bump = prop::option::weighted(0.2, level());
    let tier = prop::sample::select(vec![0u32, 0, 0, 0, 1, 1, 2, u32::MAX]);
    prop_oneof![
        8 => (g(), tier, bump).prop_map(|(g, t, b)| Op::Send(g, t, b)),
        2 => (g(), limit).prop_map(|(g, l)| Op::SetLimit(g, l)),
        3 => (g(), 0..2usize).prop_map(|(g, n)| Op::Remove(g, n)),
        25 => calm_op(),
    ]
}

pub(super) struct World {
    pub(super) model: Model,
    pub(super) subject: Direct,
    pub(super) watch: Watch,
}

impl World {
    pub(super) fn new(setup: &Setup, watch: Watch) -> Self {
        let mut world = Self {
            model: Model::new(setup.bypass),
            subject: Direct::new(setup.bypass),
            watch,
        };
        for (lane, &(weight, cap)) in setup.lanes.iter().enumerate() {
            world.model.add_lane(weight, cap);
            world.subject.add_lane(lane, weight, cap);
        }
        for (g, &(lane, limit, level)) in setup.groups.iter().enumerate() {
            world.model.groups.push(Group::new(lane, limit, level));
            world.subject.add_group(g, lane);
        }
        world
    }

    /// A turn of one message, which is still in flight.
    pub(super) fn start(&mut self) -> Option<usize> {
        let is = self.model.clone().claim(true).map(|(g, _)| g);
        self.apply(&Op::Claim(false));
        is
    }

    pub(super) fn apply(&mut self, op: &Op) {
        let (groups, lanes) = (self.model.groups.len(), self.model.lanes.len());
        let before = self.model.eligible();
        match *op {
            Op::Send(g, tier, bump) => self.send(g % groups, tier, bump),
            Op::Claim(hold) => {
                let is = self.model.claim(true);
                assert_eq!(is.is_some(), before > 0, "work is done if there is any");
                self.subject.claim(&self.model, is);
                self.watch.observe(&self.model, is.map(|(g, _)| g));
                self.subject.check(&self.model);
                if let Some((g, _)) = is.filter(|_| !hold) {
                    self.model.end_turn(g);
                    self.subject.stand(&self.model, g);
                }
            }
            Op::Finish(n) | Op::GiveBack(n) => self.land(n, matches!(op, Op::GiveBack(_))),
            Op::SetCap(lane, cap) => {
                self.model.set_cap(lane % lanes, cap);
                self.subject.set_cap(&self.model, lane % lanes, cap);
            }
            Op::Renew(g, lane) => self.renew(g % groups, lane % lanes),
            Op::RenewLane(lane, weight, cap) => self.renew_lane(lane % lanes, weight, cap),
            Op::Take(g)
            | Op::EndTurn(g)
            | Op::Remove(g, _)
            | Op::Bump(g, _)
            | Op::SetLevel(g, _)
            | Op::SetLimit(g, _) => self.change(g % groups, op),
        }
        self.watch.observe(&self.model, None);
        self.subject.check(&self.model);
    }

    fn send(&mut self, g: usize, tier: u32, bump: Option<u8>) {
        let group = &self.model.groups[g];
        // Above the last tier, or below it where that may be refused.
        let tier = match group.last_tier.checked_add(tier) {
            Some(up) if !group.is_idle() && tier < 2 => up,
            _ => tier,
        };
        let lane = group.lane;
        self.subject.use_tiers(&self.model, lane, tier);
        if self.model.send(g, tier, bump).is_some() {
            self.subject.unline(g);
            self.subject.stand(&self.model, g);
        }
    }

    fn land(&mut self, nth: usize, back: bool) {
        let flying = self.model.flying();
        if flying.is_empty() {
            return;
        }
        let (g, message) = flying[nth % flying.len()];
        if back {
            self.model.give_back(g, message.seq);
            self.subject.give_back(&self.model, g, message.tier);
        } else {
            self.model.finish(g, message.seq);
            self.subject.finish(&self.model, g, message.tier);
        }
    }

    fn change(&mut self, g: usize, op: &Op) {
        let held = self.model.groups[g].held;
        match *op {
            Op::Take(_) if held => {
                if let Ok(message) = self.model.take(g) {
                    self.subject.take(&self.model, g, message.tier);
                }
                return;
            }
            Op::EndTurn(_) if held => self.model.end_turn(g),
            Op::Remove(_, nth) if nth < self.model.groups[g].waiting.len() => {
                self.model.remove(g, nth);
            }
            Op::Bump(_, level) => self.model.bump(g, level),
            Op::SetLevel(_, level) => self.model.groups[g].level = level,
            Op::SetLimit(_, limit) => self.model.set_limit(g, limit),
            _ => return,
        }
        self.subject.unline(g);
        self.subject.stand(&self.model, g);
    }

    fn renew(&mut self, g: usize, lane: usize) {
        let group = &self.model.groups[g];
        if group.is_idle() && !group.held {
            let (limit, level) = (group.limit, group.level);
            self.subject.drop_group(group.lane);
            self.subject.add_group(g, lane);
            self.model.groups[g] = Group::new(lane, limit, level);
        }
    }

    fn renew_lane(&mut self, lane: usize, weight: u32, cap: Limit) {
        let all: Vec<usize> = self.model.in_lane(lane).collect();
        let groups = &self.model.groups;
        if all.iter().any(|&g| !groups[g].is_idle() || groups[g].held) {
            return;
        }
        all.iter().for_each(|_| self.subject.drop_group(lane));
        self.subject.drop_lane(lane);
        self.subject.add_lane(lane, weight, cap);
        self.model.lanes[lane] = Lane {
            weight,
            cap,
            open: None,
            overtaken: 0,
        };
        for g in all {
            let group = &mut self.model.groups[g];
            *group = Group::new(lane, group.limit, group.level);
            self.subject.add_group(g, lane);
        }
    }

    /// Releases and finishes everything; then nothing is left.
    pub(super) fn drain(mut self) {
        (0..self.model.lanes.len()).for_each(|l| self.apply(&Op::SetCap(l, Limit::Unlimited)));
        for g in 0..self.model.groups.len() {
            self.apply(&Op::EndTurn(g));
            self.apply(&Op::SetLimit(g, Limit::SERIAL));
        }
        loop {
            while !self.model.flying().is_empty() {
                self.apply(&Op::Finish(0));
            }
            if self.model.eligible() == 0 {
                break;
            }
            self.apply(&Op::Claim(false));
        }
        assert!(self.model.groups.iter().all(Group::is_idle));
        let groups = &self.model.groups;
        groups
            .iter()
            .for_each(|group| self.subject.drop_group(group.lane));
        (0..self.model.lanes.len()).for_each(|l| self.subject.drop_lane(l));
        assert!(self.subject.core.len() == 0 && !self.subject.core.has_eligible());
    }
}
