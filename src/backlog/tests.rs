//! The backlog against the model of `dispatch`, and at sizes where a quadratic
//! step would not end.

mod back;
mod figures;
mod first;

use proptest::collection::vec;
use proptest::prelude::*;

use super::messages::{Entry, Messages};
use super::{Backlog, Claim};
use crate::dispatch::tests::model::{Message, Model};
use crate::dispatch::tests::world::{self, Subject, World};
use crate::dispatch::tests::{Watch, is_empty as is_empty_core, place};
use crate::dispatch::{Blocked, GroupKey, LaneKey};
use crate::error::TierGoesDown;
use crate::limit::{Bypass, Limit};
use crate::wait::tests::heap::held_by_this_thread;

/// The item says its group and number.
type Item = (usize, u64);

struct Whole {
    backlog: Backlog<Item>,
    lanes: Vec<LaneKey>,
    groups: Vec<GroupKey>,
    flying: Vec<(usize, Claim<Item>)>,
}

impl Whole {
    fn took(&mut self, g: usize, claim: Claim<Item>, is: Message) {
        assert_eq!((claim.group, claim.item), (self.groups[g], (g, is.seq)));
        let Claim {
            seq, tier, attempt, ..
        } = claim;
        assert_eq!(Message { seq, tier, attempt }, is);
        self.flying.push((g, claim));
    }

    fn land(&mut self, g: usize, seq: u64) -> Claim<Item> {
        let at = |f: &(usize, Claim<Item>)| f.0 == g && f.1.seq == seq;
        let at = self.flying.iter().position(at).unwrap();
        self.flying.remove(at).1
    }
}

impl Subject for Whole {
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

    fn drop_group(&mut self, g: usize) {
        let key = self.groups[g];
        assert!(self.backlog.contains(key));
        self.backlog.unpin(key);
        assert!(!self.backlog.contains(key) && self.backlog.lane_of(key).is_none());
        assert!(!self.backlog.bump(key, 1) && !self.backlog.set_level(key, 1));
        assert!(self.backlog.set_limit(key, Limit::SERIAL).is_none());
        assert_eq!(self.backlog.remove(key, 1), None);
    }

    fn send(&mut self, after: &Model, g: usize, tier: u32, bump: Option<u8>, is: Option<Message>) {
        let seq = after.groups[g].last_seq;
        let item = (g, if is.is_some() { seq } else { 0 });
        let sent = self.backlog.send(self.groups[g], Some(tier), bump, item);
        let last = after.groups[g].last_tier;
        let refused = (TierGoesDown { last, asked: tier }, item);
        assert_eq!(sent, is.map(|m| (m.seq, m.tier)).ok_or(refused));
    }

    fn claim(&mut self, _: &Model, hold: bool, is: Option<(usize, Message)>) {
        let claim = self.backlog.claim(hold);
        assert_eq!(claim.is_some(), is.is_some());
        if let (Some(claim), Some((g, message))) = (claim, is) {
            self.took(g, claim, message);
        }
    }

    fn take(&mut self, _: &Model, g: usize, is: Result<Message, Blocked>) {
        match (self.backlog.take(self.groups[g]), is) {
            (Ok(claim), Ok(message)) => self.took(g, claim, message),
            (taken, is) => assert_eq!(taken.err(), is.err()),
        }
    }

    fn end_turn(&mut self, g: usize) {
        self.backlog.end_turn(self.groups[g]);
    }

    fn finish(&mut self, g: usize, message: Message) {
        let claim = self.land(g, message.seq);
        self.backlog.complete(claim.group, claim.tier);
    }

    fn give_back(&mut self, _: &Model, g: usize, message: Message) {
        let mut claim = self.land(g, message.seq);
        claim.attempt += 1;
        self.backlog.give_back(claim);
    }

    fn remove(&mut self, _: &Model, g: usize, message: Message) {
        let item = self.backlog.remove(self.groups[g], message.seq);
        assert_eq!(item, Some((g, message.seq)));
        assert_eq!(self.backlog.remove(self.groups[g], message.seq), None);
    }

    fn bump(&mut self, g: usize, level: u8) {
        assert!(self.backlog.bump(self.groups[g], level));
    }

    fn set_level(&mut self, g: usize, level: u8) {
        assert!(self.backlog.set_level(self.groups[g], level));
    }

    fn set_limit(&mut self, g: usize, limit: Limit) {
        assert_eq!(self.backlog.set_limit(self.groups[g], limit), Some(Ok(())));
    }

    fn set_cap(&mut self, lane: usize, cap: Limit) {
        self.backlog.set_cap(self.lanes[lane], cap).unwrap();
    }

    fn check(&self, model: &Model) {
        let waiting: usize = model.groups.iter().map(|g| g.waiting.len()).sum();
        assert_eq!(self.backlog.waiting(), waiting as u64);
        assert_eq!(self.backlog.in_flight() as usize, model.flying().len());
        assert_eq!(self.backlog.eligible(), model.eligible());
        for (g, (&key, group)) in self.groups.iter().zip(&model.groups).enumerate() {
            assert_eq!(self.backlog.waiting_in(key), group.waiting.len());
            assert_eq!(self.backlog.why(key), model.why(g), "group {g}");
            let entries = &self.backlog.core.data(key).unwrap().entries;
            assert!(entries.front().is_none_or(|e| e.item.is_some()));
            assert!(entries.iter().map(|e| e.seq).is_sorted());
        }
    }

    fn check_empty(&self) {
        let backlog = &self.backlog;
        assert_eq!((backlog.waiting(), backlog.in_flight()), (0, 0));
        assert!(is_empty_core(&backlog.core));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn agrees_with_the_model(setup in world::setup(), ops in vec(world::op(), 1..400)) {
        let mut world = World::<Whole>::new(&setup, Watch::amended());
        ops.iter().for_each(|op| world.apply(op));
        world.drain();
    }
}

fn one_group(limit: Limit) -> (Backlog<u64>, GroupKey) {
    let mut backlog = Backlog::new(Bypass::default());
    let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
    let group = backlog.add_group(lane, limit, 100).unwrap();
    backlog.close_lane(lane);
    (backlog, group)
}

fn is_empty<T>(backlog: &Backlog<T>) -> bool {
    (backlog.waiting(), backlog.in_flight()) == (0, 0) && is_empty_core(&backlog.core)
}

#[test]
fn what_is_given_back_takes_its_place_beside_others_in_flight() {
    let (mut backlog, group) = one_group(Limit::AtMost(4));
    (1..=6).for_each(|n| assert_eq!(backlog.send(group, None, None, n), Ok((n, 0))));
    let mut claims: Vec<_> = (0..4).map(|_| backlog.claim(false).unwrap()).collect();
    assert_eq!(backlog.why(group), Blocked::GroupLimit);
    backlog.give_back(claims.remove(0));
    backlog.give_back(claims.remove(1));
    let next: Vec<_> = (0..2).map(|_| backlog.claim(false).unwrap().item).collect();
    assert_eq!(next, [1, 3]);
    backlog.complete(group, 0);
    assert_eq!(backlog.claim(false).unwrap().item, 5);
    backlog.give_back(claims.remove(1));
    assert_eq!(backlog.claim(false).unwrap().item, 4);
}

#[test]
fn a_group_ends_after_its_last_message_and_the_lane_with_it() {
    let (mut backlog, group) = one_group(Limit::SERIAL);
    backlog.pin(group);
    (1..=3).for_each(|n| _ = backlog.send(group, None, Some(3), n).unwrap());
    backlog.unpin(group);
    backlog.unpin(group);
    let first = backlog.claim(true).unwrap();
    assert_eq!(backlog.take(group), Err(Blocked::GroupLimit));
    backlog.end_turn(group);
    assert_eq!(backlog.drain(group), [2, 3]);
    assert!(backlog.contains(group));
    backlog.complete(group, first.tier);
    assert!(!backlog.contains(group) && is_empty(&backlog));
}

#[test]
fn a_live_turn_keeps_an_idle_group() {
    let (mut backlog, group) = one_group(Limit::Unlimited);
    _ = backlog.send(group, None, None, 1).unwrap();
    let claim = backlog.claim(true).unwrap();
    backlog.unpin(group);
    backlog.complete(group, claim.tier);
    assert!(backlog.contains(group));
    assert_eq!(backlog.take(group), Err(Blocked::Empty));
    backlog.end_turn(group);
    assert!(!backlog.contains(group) && is_empty(&backlog));
}

#[test]
fn a_group_whose_last_message_is_removed_ends() {
    let (mut backlog, group) = one_group(Limit::AtMost(0));
    (1..=2).for_each(|n| _ = backlog.send(group, None, None, n).unwrap());
    backlog.unpin(group);
    assert_eq!(
        (backlog.remove(group, 2), backlog.remove(group, 7)),
        (Some(2), None)
    );
    assert_eq!(backlog.remove(group, 1), Some(1));
    assert!(!backlog.contains(group) && is_empty(&backlog));
}

#[test]
fn tiers_do_not_go_down_while_anything_is_outstanding() {
    let (mut backlog, group) = one_group(Limit::SERIAL);
    let refused = |last, asked| Err((TierGoesDown { last, asked }, 9));
    assert_eq!(backlog.send(group, Some(7), None, 1), Ok((1, 7)));
    assert_eq!(backlog.send(group, Some(6), None, 9), refused(7, 6));
    let claim = backlog.claim(false).unwrap();
    assert_eq!(backlog.send(group, Some(6), None, 9), refused(7, 6));
    assert_eq!(backlog.waiting(), 0);
    backlog.complete(group, claim.tier);
    assert_eq!(backlog.send(group, Some(6), None, 2), Ok((2, 6)));
    assert_eq!(backlog.send(group, None, None, 3), Ok((3, 6)));
    assert_eq!(backlog.drain(group), [2, 3]);
    assert_eq!(backlog.send(group, Some(0), None, 4), Ok((4, 0)));
}

/// 0..n, each once, in an order that jumps about; n is a power of two.
fn scattered(n: u64) -> impl Iterator<Item = u64> {
    (0..n).map(move |i| (i * 76_543 + 12_345) % n)
}

#[test]
fn removing_a_long_group_in_any_order_is_not_quadratic() {
    let n = 1 << 18;
    let (mut backlog, group) = one_group(Limit::SERIAL);
    (0..n).for_each(|i| _ = backlog.send(group, None, None, i).unwrap());
    for i in scattered(n) {
        assert_eq!(backlog.remove(group, i + 1), Some(i));
        let entries = &backlog.core.data(group).unwrap().entries;
        assert!(entries.len() <= 2 * backlog.waiting_in(group) + 16);
        assert!(entries.capacity() <= 4 * entries.len() + 32);
    }
    assert_eq!((backlog.waiting(), backlog.eligible()), (0, 0));
    assert_eq!(backlog.core.data(group).unwrap().entries.capacity(), 0);
    backlog.unpin(group);
    assert!(is_empty(&backlog));
}

#[test]
fn claims_of_a_long_group_can_be_given_back_in_any_order() {
    let n = 1 << 13;
    let (mut backlog, group) = one_group(Limit::Unlimited);
    (0..n).for_each(|i| _ = backlog.send(group, None, None, i).unwrap());
    let mut claims: Vec<_> = (0..n).map(|_| backlog.claim(false)).collect();
    for i in scattered(n) {
        backlog.give_back(claims[i as usize].take().unwrap());
    }
    let order = (0..n).map(|_| backlog.claim(false).unwrap().item);
    assert!(order.eq(0..n));
}

#[test]
fn storms_of_pauses_keep_the_order_of_age() {
    let n = 1 << 17;
    let mut backlog = Backlog::new(Bypass::default());
    let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
    let add = |_| backlog.add_group(lane, Limit::SERIAL, 100).unwrap();
    let groups: Vec<_> = (0..n).map(add).collect();
    (0..n).for_each(|i| _ = backlog.send(groups[i as usize], None, None, i).unwrap());
    let set = |backlog: &mut Backlog<u64>, i: u64, limit| {
        assert_eq!(backlog.set_limit(groups[i as usize], limit), Some(Ok(())));
    };
    (0..n)
        .rev()
        .for_each(|i| set(&mut backlog, i, Limit::AtMost(0)));
    assert_eq!(backlog.eligible(), 0);
    (0..n)
        .rev()
        .for_each(|i| set(&mut backlog, i, Limit::SERIAL));
    scattered(n).for_each(|i| set(&mut backlog, i, Limit::AtMost(0)));
    scattered(n / 2).for_each(|i| set(&mut backlog, i, Limit::SERIAL));
    assert_eq!(backlog.eligible(), n / 2);
    scattered(n).for_each(|i| set(&mut backlog, i, Limit::SERIAL));
    for i in scattered(n) {
        set(&mut backlog, i, Limit::AtMost(0));
        set(&mut backlog, i, Limit::SERIAL);
    }
    for i in 0..n {
        let claim = backlog.claim(false).unwrap();
        assert_eq!(claim.item, i);
        backlog.complete(claim.group, claim.tier);
        backlog.unpin(claim.group);
    }
    backlog.close_lane(lane);
    assert!(is_empty(&backlog));
}

/// Shifting each to its place would be quadratic: this would not end.
#[test]
fn many_given_back_oldest_first_stand_in_order_again() {
    const HALF: u32 = 1 << 17;
    let mut backlog = Backlog::new(Bypass::default());
    let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
    let group = backlog.add_group(lane, Limit::Unlimited, 100).unwrap();
    for i in 0..2 * HALF {
        backlog.send(group, None, None, i).unwrap();
    }
    let taken: Vec<_> = (0..HALF).map(|_| backlog.claim(false).unwrap()).collect();
    for claim in taken {
        backlog.give_back(claim);
    }
    assert!(backlog.drain(group).into_iter().eq(0..2 * HALF));
}

/// Messages that came back out of order leave no block behind.
#[test]
fn what_was_returned_leaves_no_memory() {
    let entry = |seq| Entry {
        seq,
        tier: 0,
        attempt: 0,
        item: Some(seq),
    };
    let before = held_by_this_thread();
    let mut messages = Messages::new();
    for seq in [1, 5, 3] {
        messages.put(entry(seq));
    }
    assert_eq!(messages.pop().unwrap().seq, 1);
    assert_eq!(messages.remove(3), Some(3));
    assert_eq!(messages.pop().unwrap().seq, 5);
    assert_eq!(held_by_this_thread(), before);
}
