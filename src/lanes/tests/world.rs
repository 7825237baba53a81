//! Random events, told to the model, and to lanes or a backlog.

use proptest::collection::vec;
use proptest::prelude::*;

use super::bound::Watch;
use super::model::{Group, Lane, Message, Model};
use crate::limit::{Bypass, Limit};

#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// `tier` is relative to that of the group's last message, if the group has any.
    Send(usize, u32, Option<u8>),
    /// Begins a turn of one message; if this is set and the subject holds turns, it stays.
    Claim(bool),
    /// Only of a turn that is held, like the next.
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
pub(crate) struct Setup {
    pub(crate) bypass: Bypass,
    pub(crate) lanes: Vec<(u32, Limit)>,
    pub(crate) groups: Vec<(usize, Limit, u8)>,
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

pub(crate) fn setup() -> impl Strategy<Value = Setup> {
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
pub(crate) fn calm_op(holds: bool) -> BoxedStrategy<Op> {
    let g = || 0..16usize;
    let turns = prop_oneof![
        2 => g().prop_map(Op::Take),
        4 => g().prop_map(Op::EndTurn),
        1 => g().prop_map(Op::GiveBack),
    ];
    let others = prop_oneof![
        8 => (g(), prop::option::weighted(0.2, level())).prop_map(|(g, b)| Op::Send(g, 0, b)),
        8 => any::<bool>().prop_map(Op::Claim),
        5 => g().prop_map(Op::Finish),
        1 => (g(), 0..3usize).prop_map(|(g, n)| Op::Remove(g, n)),
        2 => (g(), level()).prop_map(|(g, l)| Op::Bump(g, l)),
        1 => (g(), level()).prop_map(|(g, l)| Op::SetLevel(g, l)),
        1 => (g(), cap()).prop_map(|(l, c)| Op::SetCap(l, c)),
        1 => (g(), g()).prop_map(|(g, l)| Op::Renew(g, l)),
        1 => (g(), 1..4u32, cap()).prop_map(|(l, w, c)| Op::RenewLane(l, w, c)),
    ];
    match holds {
        true => prop_oneof![7 => turns, 28 => others].boxed(),
        false => others.boxed(),
    }
}

pub(crate) fn op(holds: bool) -> impl Strategy<Value = Op> {
    let g = || 0..16usize;
    let limit = prop_oneof![2 => Just(Limit::AtMost(0)), 3 => limit()];
    let bump = prop::option::weighted(0.2, level());
    let tier = prop::sample::select(vec![0u32, 0, 0, 0, 1, 1, 2, u32::MAX]);
    prop_oneof![
        8 => (g(), tier, bump).prop_map(|(g, t, b)| Op::Send(g, t, b)),
        2 => (g(), limit).prop_map(|(g, l)| Op::SetLimit(g, l)),
        3 => (g(), 0..2usize).prop_map(|(g, n)| Op::Remove(g, n)),
        25 => calm_op(holds),
    ]
}

/// What has happened to a group in the model.
pub(crate) enum Change {
    TurnEnded,
    Removed(Message),
    Bumped(u8),
    Level(u8),
    Limit(Limit),
}

/// What is told every event after the model was: the model is `after` then.
pub(crate) trait Subject {
    /// Whether a turn stays when its message is taken, and until it is ended.
    const HOLDS: bool;
    fn new(bypass: Bypass) -> Self;
    fn add_lane(&mut self, lane: usize, weight: u32, cap: Limit);
    fn drop_lane(&mut self, lane: usize);
    fn add_group(&mut self, g: usize, lane: usize, limit: Limit, level: u8);
    fn drop_group(&mut self, g: usize, lane: usize);
    /// Tells the model too.
    fn send(&mut self, model: &mut Model, g: usize, tier: u32, bump: Option<u8>);
    fn claim(&mut self, after: &Model, is: Option<(usize, Message)>);
    fn take(&mut self, after: &Model, g: usize, tier: u32);
    fn finish(&mut self, after: &Model, g: usize, message: Message);
    fn give_back(&mut self, after: &Model, g: usize, message: Message);
    fn changed(&mut self, after: &Model, g: usize, how: Change);
    fn set_cap(&mut self, after: &Model, lane: usize, cap: Limit);
    fn check(&mut self, model: &Model);
    fn check_empty(&self);
}

pub(crate) struct World<S> {
    pub(crate) model: Model,
    pub(crate) subject: S,
    pub(crate) watch: Watch,
}

impl<S: Subject> World<S> {
    pub(crate) fn new(setup: &Setup, watch: Watch) -> Self {
        let mut world = Self {
            model: Model::new(setup.bypass),
            subject: S::new(setup.bypass),
            watch,
        };
        for (lane, &(weight, cap)) in setup.lanes.iter().enumerate() {
            world.model.add_lane(weight, cap);
            world.subject.add_lane(lane, weight, cap);
        }
        for (g, &(lane, limit, level)) in setup.groups.iter().enumerate() {
            world.model.groups.push(Group::new(lane, limit, level));
            world.subject.add_group(g, lane, limit, level);
        }
        world
    }

    /// Applies all of these; then nothing is left.
    pub(crate) fn run(setup: &Setup, ops: &[Op], watch: Watch) {
        let mut world = Self::new(setup, watch);
        ops.iter().for_each(|op| world.apply(op));
        world.drain();
    }

    /// A turn of one message, which is still in flight.
    pub(crate) fn start(&mut self) -> Option<usize> {
        let is = self.model.clone().claim(S::HOLDS).map(|(g, _)| g);
        self.apply(&Op::Claim(false));
        is
    }

    pub(crate) fn apply(&mut self, op: &Op) {
        let (groups, lanes) = (self.model.groups.len(), self.model.lanes.len());
        let mut picked = None;
        match *op {
            Op::Send(g, tier, bump) => self.send(g % groups, tier, bump),
            Op::Claim(hold) => picked = self.claim(hold),
            Op::Finish(n) | Op::GiveBack(n) => self.land(n, matches!(op, Op::GiveBack(_))),
            Op::SetCap(lane, cap) => {
                self.model.set_cap(lane % lanes, cap);
                self.subject.set_cap(&self.model, lane % lanes, cap);
            }
            Op::Renew(g, lane) => self.renew(g % groups, lane % lanes),
            Op::RenewLane(lane, weight, cap) => self.renew_lane(lane % lanes, weight, cap),
            Op::Take(g) => self.take(g % groups),
            Op::EndTurn(g)
            | Op::Remove(g, _)
            | Op::Bump(g, _)
            | Op::SetLevel(g, _)
            | Op::SetLimit(g, _) => self.change(g % groups, op),
        }
        self.observe(picked);
    }

    fn observe(&mut self, picked: Option<usize>) {
        self.watch.observe(&self.model, picked);
        self.subject.check(&self.model);
    }

    /// The group that was picked, if the turn is still there.
    fn claim(&mut self, hold: bool) -> Option<usize> {
        let before = self.model.eligible();
        let is = self.model.claim(S::HOLDS);
        assert_eq!(is.is_some(), before > 0, "work is done if there is any");
        self.subject.claim(&self.model, is);
        let (g, _) = is?;
        if hold || !S::HOLDS {
            return Some(g);
        }
        self.observe(Some(g));
        self.model.end_turn(g);
        self.subject.changed(&self.model, g, Change::TurnEnded);
        None
    }

    fn send(&mut self, g: usize, tier: u32, bump: Option<u8>) {
        let group = &self.model.groups[g];
        // At or above the last tier, or any tier: a lower one may be refused.
        let tier = match group.last_tier.checked_add(tier) {
            Some(up) if !group.is_idle() && tier < 2 => up,
            _ => tier,
        };
        self.subject.send(&mut self.model, g, tier, bump);
    }

    fn land(&mut self, nth: usize, back: bool) {
        let flying = self.model.flying();
        if flying.is_empty() {
            return;
        }
        let (g, message) = flying[nth % flying.len()];
        if back {
            self.model.give_back(g, message.seq);
            self.subject.give_back(&self.model, g, message);
        } else {
            self.model.finish(g, message.seq);
            self.subject.finish(&self.model, g, message);
        }
    }

    fn take(&mut self, g: usize) {
        if self.model.groups[g].held
            && let Ok(message) = self.model.take(g)
        {
            self.subject.take(&self.model, g, message.tier);
        }
    }

    fn change(&mut self, g: usize, op: &Op) {
        let group = &mut self.model.groups[g];
        let how = match *op {
            Op::EndTurn(_) if group.held => {
                self.model.end_turn(g);
                Change::TurnEnded
            }
            Op::Remove(_, nth) => {
                let Some(&message) = group.waiting.get(nth) else {
                    return;
                };
                self.model.remove(g, nth);
                Change::Removed(message)
            }
            Op::Bump(_, level) => {
                self.model.bump(g, level);
                Change::Bumped(level)
            }
            Op::SetLevel(_, level) => {
                group.level = level;
                Change::Level(level)
            }
            Op::SetLimit(_, limit) => {
                self.model.set_limit(g, limit);
                Change::Limit(limit)
            }
            _ => return,
        };
        self.subject.changed(&self.model, g, how);
    }

    fn renew(&mut self, g: usize, lane: usize) {
        let group = &self.model.groups[g];
        if group.is_idle() && !group.held {
            let (limit, level) = (group.limit, group.level);
            self.subject.drop_group(g, group.lane);
            self.subject.add_group(g, lane, limit, level);
            self.model.groups[g] = Group::new(lane, limit, level);
        }
    }

    fn renew_lane(&mut self, lane: usize, weight: u32, cap: Limit) {
        let all: Vec<usize> = self.model.in_lane(lane).collect();
        let groups = &self.model.groups;
        if all.iter().any(|&g| !groups[g].is_idle() || groups[g].held) {
            return;
        }
        all.iter().for_each(|&g| self.subject.drop_group(g, lane));
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
            self.subject.add_group(g, lane, group.limit, group.level);
        }
    }

    /// Removes all caps and pauses, and completes everything; then nothing is left.
    pub(crate) fn drain(mut self) {
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
        for (g, group) in self.model.groups.iter().enumerate() {
            assert!(group.is_idle());
            self.subject.drop_group(g, group.lane);
        }
        (0..self.model.lanes.len()).for_each(|l| self.subject.drop_lane(l));
        self.subject.check_empty();
    }
}
