//! A backlog as the world sees it, compared with the model.

use super::is_empty;
use crate::backlog::{Backlog, Claim, GroupKey};
use crate::error::TierGoesDown;
use crate::lanes::LaneKey;
use crate::lanes::tests::model::{Message, Model};
use crate::lanes::tests::world::{self, Change};
use crate::limit::{Bypass, Limit};

/// An item is its group and its number.
type Item = (usize, u64);

pub(super) struct Subject {
    backlog: Backlog<Item>,
    lanes: Vec<LaneKey>,
    groups: Vec<GroupKey>,
    flying: Vec<(usize, Claim<Item>)>,
}

/// Puts `value` at `index`, which exists or is the next.
fn place<T>(list: &mut Vec<T>, index: usize, value: T) {
    if index == list.len() {
        list.push(value);
    } else {
        list[index] = value;
    }
}

impl Subject {
    fn took(&mut self, g: usize, claim: Claim<Item>, is: Message) {
        let (group, item) = (claim.holds.group, claim.item);
        assert_eq!((group, item), (Some(self.groups[g]), (g, is.seq)));
        assert_eq!((claim.seq, claim.holds.tier), (is.seq, is.tier));
        self.flying.push((g, claim));
    }

    fn land(&mut self, g: usize, seq: u64) -> Claim<Item> {
        let at = |f: &(usize, Claim<Item>)| f.0 == g && f.1.seq == seq;
        let at = self.flying.iter().position(at).unwrap();
        self.flying.remove(at).1
    }
}

impl world::Subject for Subject {
    const HOLDS: bool = false;

    fn new(bypass: Bypass) -> Self {
        Self {
            backlog: Backlog::new(bypass),
            lanes: Vec::new(),
            groups: Vec::new(),
            flying: Vec::new(),
        }
    }

    fn add_lane(&mut self, lane: usize, weight: u32, cap: Limit) {
        let key = self.backlog.add_lane(weight, cap).unwrap();
        place(&mut self.lanes, lane, key);
    }

    fn drop_lane(&mut self, lane: usize) {
        self.backlog.close_lane(self.lanes[lane]);
    }

    fn add_group(&mut self, g: usize, lane: usize, limit: Limit, level: u8) {
        let lane = self.lanes[lane];
        let key = self.backlog.add_group(lane, limit, level).unwrap();
        assert_eq!(self.backlog.lane_of(key), Some(lane));
        place(&mut self.groups, g, key);
    }

    fn drop_group(&mut self, g: usize, _: usize) {
        let key = self.groups[g];
        assert!(self.backlog.contains(key));
        self.backlog.unpin(key);
        assert!(!self.backlog.contains(key) && self.backlog.lane_of(key).is_none());
        assert!(!self.backlog.bump(key, 1) && !self.backlog.set_level(key, 1));
        assert!(self.backlog.set_limit(key, Limit::SERIAL).is_none());
        assert_eq!(self.backlog.remove(key, 1), None);
    }

    fn send(&mut self, model: &mut Model, g: usize, tier: u32, bump: Option<u8>) {
        let is = model.send(g, tier, bump);
        let after = &model.groups[g];
        let group = self.groups[g];
        let last = after.last_tier;
        let refused = TierGoesDown { last, asked: tier };
        assert_eq!(
            self.backlog.admits(group, tier),
            is.map(drop).ok_or(refused)
        );
        if let Some(is) = is {
            let item = (g, after.last_seq);
            let sent = self.backlog.send(group, Some(tier), bump, item);
            assert_eq!(sent, (is.seq, is.tier));
        }
    }

    fn claim(&mut self, _: &Model, is: Option<(usize, Message)>) {
        let claim = self.backlog.claim();
        assert_eq!(claim.is_some(), is.is_some());
        if let (Some(claim), Some((g, message))) = (claim, is) {
            self.took(g, claim, message);
        }
    }

    fn finish(&mut self, _: &Model, g: usize, message: Message) {
        let claim = self.land(g, message.seq);
        self.backlog
            .complete(claim.holds.group.unwrap(), claim.holds.tier);
    }

    fn changed(&mut self, _: &Model, g: usize, how: Change) {
        let group = self.groups[g];
        match how {
            Change::TurnEnded => unreachable!("no turn is held"),
            Change::Removed(Message { seq, .. }) => {
                assert_eq!(self.backlog.remove(group, seq), Some((g, seq)));
                assert_eq!(self.backlog.remove(group, seq), None);
            }
            Change::Bumped(level) => assert!(self.backlog.bump(group, level)),
            Change::Level(level) => assert!(self.backlog.set_level(group, level)),
            Change::Limit(limit) => {
                assert_eq!(self.backlog.set_limit(group, limit), Some(Ok(())));
            }
        }
    }

    fn take(&mut self, _: &Model, _: usize, _: u32) {
        unreachable!("no turn is held");
    }

    fn give_back(&mut self, _: &Model, _: usize, _: Message) {
        unreachable!("nothing is given back");
    }

    fn set_cap(&mut self, _: &Model, lane: usize, cap: Limit) {
        self.backlog.set_cap(self.lanes[lane], cap).unwrap();
    }

    fn check(&mut self, model: &Model) {
        let backlog = &self.backlog;
        let waiting: usize = model.groups.iter().map(|g| g.waiting.len()).sum();
        assert_eq!(backlog.waiting(), waiting as u64);
        assert_eq!(backlog.in_flight() as usize, model.flying().len());
        let eligible = model.eligible();
        assert_eq!(backlog.eligible(u64::MAX), eligible);
        assert_eq!(backlog.eligible(1), eligible.min(1));
        assert_eq!(backlog.order.lanes.has_eligible(), eligible > 0);
        for (g, (&key, group)) in self.groups.iter().zip(&model.groups).enumerate() {
            assert_eq!(backlog.why(key), model.why(g), "group {g}");
            assert_eq!(backlog.first_in(key), group.waiting.first().map(|m| m.seq));
            let own = backlog.groups.get(key.0).unwrap();
            assert_eq!(own.in_flight as usize, group.flying.len());
            let waiting = group.waiting.iter().map(|m| m.seq);
            assert!(own.messages.numbers().eq(waiting));
        }
        for (l, (&key, lane)) in self.lanes.iter().zip(&model.lanes).enumerate() {
            let there = backlog.lane(key);
            let same = !there.is_tiered() || there.open_tier() == lane.open;
            assert!(same, "lane {l}");
            assert_eq!(there.in_use as usize, model.lane_in_flight(l));
            // A broken list may have no end.
            let listed = backlog.groups_of(key).take(self.groups.len() + 1);
            let mut listed: Vec<_> = listed.map(|(group, _)| group).collect();
            let mut groups: Vec<_> = model.in_lane(l).map(|g| self.groups[g]).collect();
            listed.sort_unstable();
            groups.sort_unstable();
            assert_eq!(listed, groups, "lane {l}");
        }
        let ring = model.ring.iter().map(|&(l, _)| self.lanes[l].index());
        assert!(
            backlog.order.lanes.ring().into_iter().eq(ring),
            "the order of the lanes"
        );
    }

    fn check_empty(&self) {
        assert!(is_empty(&self.backlog));
    }
}
