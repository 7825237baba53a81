//! The backlog against a model, event by event, and at sizes where a quadratic
//! step would not end.

#[cfg(not(sanitized))]
mod alone;
#[cfg(not(sanitized))]
mod figures;
#[cfg(not(sanitized))]
mod groups;
#[cfg(not(sanitized))]
mod lifetimes;
#[cfg(not(sanitized))]
mod line;
#[allow(clippy::duplicate_mod, reason = "the same rules, in this world too")]
#[path = "../lanes/tests/rules.rs"]
mod rules;
#[cfg(not(sanitized))]
mod run;
#[cfg(not(sanitized))]
mod several;
mod subject;
#[cfg(not(sanitized))]
mod unclaim;

use proptest::collection::vec;
use proptest::prelude::*;

use super::messages::{Message, Messages};
use super::{Backlog, Blocked, GroupKey, Item, Spot};
use crate::error::TierGoesDown;
use crate::lanes::LaneKey;
use crate::lanes::tests::bound::Watch;
use crate::lanes::tests::world::{self, Op, Setup};
use crate::limit::{Bypass, Limit};
use crate::wait::tests::heap::held_by_this_thread;

impl Item for () {}
impl Item for u64 {}
impl Item for usize {}
impl Item for char {}
impl Item for i32 {}
impl Item for &str {}
impl Item for (usize, u64) {}
impl Item for (u32, u64) {}

type World = world::World<subject::Subject>;

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn agrees_with_the_model(setup in world::setup(), ops in vec(world::op(false), 1..400)) {
        World::run(&setup, &ops, Watch::amended());
    }

    #[test]
    fn keeps_the_bound_where_only_caps_interrupt(
        setup in world::setup(),
        ops in vec(world::calm_op(false), 1..400),
    ) {
        World::run(&setup, &ops, Watch::letter());
    }
}

fn one_group(limit: Limit) -> (Backlog<u64>, GroupKey) {
    let mut backlog = Backlog::new(Bypass::default());
    let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
    let group = backlog.add_group(lane, limit, 100).unwrap();
    backlog.close_lane(lane);
    (backlog, group)
}

impl<T> Messages<T> {
    fn remove(&mut self, seq: u64) -> Option<T> {
        self.take(seq).map(|message| message.item)
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.iter().map(|(seq, _)| seq)
    }
}

impl<T: Item> Backlog<T> {
    pub(super) fn remove(&mut self, group: GroupKey, seq: u64) -> Option<T> {
        self.take(group, seq).map(|(item, _)| item)
    }

    fn take(&mut self, group: GroupKey, seq: u64) -> Option<(T, u32)> {
        let (item, held) = self.take_out(Spot::Group(group, seq))?;
        Some((item, held.tier))
    }

    /// A claimed message of this group and tier is done.
    pub(crate) fn complete(&mut self, group: GroupKey, tier: u32) {
        let lane = self.lane_of(group).expect("it is there");
        self.complete_each(lane, tier, &[group]);
    }

    /// The same for one of each of these.
    fn complete_each(&mut self, lane: LaneKey, tier: u32, groups: &[GroupKey]) {
        self.finish_all(lane, tier, groups.len() as u32, groups);
    }

    /// How many messages wait.
    pub(crate) fn waiting(&self) -> u64 {
        let (mut waiting, mut ready) = (0, 0);
        for (_, group) in self.groups.iter() {
            let messages = &group.messages;
            waiting += messages.iter().count();
            ready += usize::from(group.is_ready());
        }
        // An entry of a ready queue that is no group is a message that is alone.
        (waiting + self.order.lanes.ready_len() - ready) as u64
    }

    /// How many messages are claimed, and neither completed nor unclaimed.
    pub(crate) fn in_flight(&self) -> u64 {
        let lanes = self.order.lanes.iter();
        lanes.map(|(_, lane)| u64::from(lane.in_use)).sum()
    }

    pub(crate) fn group_count(&self) -> usize {
        self.groups.len()
    }

    pub(crate) fn contains(&self, group: GroupKey) -> bool {
        self.groups.contains(group.0)
    }
}

/// Checks that both count the same, in sum and in each of these lanes, and have the same ring.
fn agree<A: Item, B: Item>(ours: &Backlog<A>, theirs: &Backlog<B>, lanes: &[LaneKey]) {
    assert_eq!(ours.waiting(), theirs.waiting());
    assert_eq!(ours.in_flight(), theirs.in_flight());
    assert_eq!(ours.eligible(u64::MAX), theirs.eligible(u64::MAX));
    for &lane in lanes {
        let (ours, theirs) = (ours.lane(lane), theirs.lane(lane));
        assert_eq!(ours.open_tier(), theirs.open_tier());
        assert_eq!(ours.in_use, theirs.in_use);
        assert_eq!(ours.ready_len(), theirs.ready_len());
    }
    assert_eq!(ours.order.lanes.ring(), theirs.order.lanes.ring());
}

/// Gives up the lanes and their groups; then nothing is kept.
fn close<T: Item>(mut backlog: Backlog<T>, lanes: &[LaneKey], groups: &[Vec<GroupKey>]) {
    groups
        .iter()
        .flatten()
        .for_each(|&group| backlog.unpin(group));
    lanes.iter().for_each(|&lane| backlog.close_lane(lane));
    assert!(is_empty(&backlog));
}

/// Whether there is no lane, no group, and nothing in the ring.
fn is_empty<T: Item>(backlog: &Backlog<T>) -> bool {
    let order = &backlog.order.lanes;
    let gone = order.len() == 0 && backlog.groups.len() == 0 && !order.has_eligible();
    gone && backlog.eligible(1) == 0
}

#[test]
fn what_is_unclaimed_takes_its_place_beside_others_in_flight() {
    let (mut backlog, group) = one_group(Limit::AtMost(4));
    (1..=6).for_each(|n| assert_eq!(backlog.send(group, None, None, n), (n, 0)));
    let mut claims: Vec<_> = (0..4).map(|_| backlog.claim().unwrap()).collect();
    assert_eq!(backlog.why(group), Blocked::GroupLimit);
    backlog.unclaim(claims.remove(0));
    backlog.unclaim(claims.remove(1));
    let next: Vec<_> = (0..2).map(|_| backlog.claim().unwrap().item).collect();
    assert_eq!(next, [1, 3]);
    backlog.complete(group, 0);
    assert_eq!(backlog.claim().unwrap().item, 5);
    backlog.unclaim(claims.remove(1));
    assert_eq!(backlog.claim().unwrap().item, 4);
}

#[test]
fn a_group_ends_after_its_last_message_and_the_lane_with_it() {
    let (mut backlog, group) = one_group(Limit::SERIAL);
    backlog.pin(group);
    (1..=3).for_each(|n| _ = backlog.send(group, None, Some(3), n));
    backlog.unpin(group);
    backlog.unpin(group);
    let first = backlog.claim().unwrap();
    assert_eq!(backlog.why(group), Blocked::GroupLimit);
    assert_eq!(
        [2, 3].map(|seq| backlog.remove(group, seq)),
        [Some(2), Some(3)]
    );
    assert!(backlog.contains(group));
    backlog.complete(group, first.holds.tier);
    assert!(!backlog.contains(group) && is_empty(&backlog));
}

#[test]
fn a_group_whose_last_message_is_removed_ends() {
    let (mut backlog, group) = one_group(Limit::AtMost(0));
    (1..=2).for_each(|n| _ = backlog.send(group, None, None, n));
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
    let refused = |last, asked| Err(TierGoesDown { last, asked });
    assert_eq!(backlog.send(group, Some(7), None, 1), (1, 7));
    assert_eq!(backlog.admits(group, 6), refused(7, 6));
    let claim = backlog.claim().unwrap();
    assert_eq!(backlog.admits(group, 6), refused(7, 6));
    assert_eq!(backlog.admits(group, 7), Ok(()));
    backlog.complete(group, claim.holds.tier);
    assert_eq!(backlog.admits(group, 6), Ok(()));
    assert_eq!(backlog.send(group, Some(6), None, 2), (2, 6));
    assert_eq!(backlog.send(group, Some(5), None, 3), (3, 6), "raised");
    assert_eq!(
        [2, 3].map(|seq| backlog.remove(group, seq)),
        [Some(2), Some(3)]
    );
    assert_eq!(backlog.send(group, Some(0), None, 4), (4, 0));
}

fn order(backlog: &mut Backlog<i32>) -> Vec<i32> {
    std::iter::from_fn(|| Some(backlog.claim()?.item)).collect()
}

#[test]
fn a_bump_to_the_level_that_it_has_moves_nobody() {
    let mut backlog = Backlog::new(Bypass::default());
    let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
    let paused = [1, 2].map(|n| {
        let group = backlog.add_group(lane, Limit::AtMost(0), 100).unwrap();
        backlog.send(group, None, None, n);
        group
    });
    for n in [0, 1, 0] {
        assert!(backlog.bump(paused[n], 200));
    }
    for group in paused {
        assert_eq!(backlog.set_limit(group, Limit::SERIAL), Some(Ok(())));
    }
    assert_eq!(order(&mut backlog), [1, 2]);
}

#[test]
fn a_lane_whose_group_has_more_keeps_its_turns() {
    let mut backlog = Backlog::new(Bypass::default());
    for messages in [&[1, 2][..], &[3]] {
        let lane = backlog.add_lane(2, Limit::Unlimited).unwrap();
        let group = backlog.add_group(lane, Limit::AtMost(2), 100).unwrap();
        messages
            .iter()
            .for_each(|&n| _ = backlog.send(group, None, None, n));
    }
    assert_eq!(order(&mut backlog), [1, 2, 3]);
}

#[test]
fn a_group_that_is_ready_again_is_younger_than_those_that_came_meanwhile() {
    let mut backlog = Backlog::new(Bypass::default());
    let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
    let groups = [(); 2].map(|()| backlog.add_group(lane, Limit::SERIAL, 100).unwrap());
    (1..=2).for_each(|n| _ = backlog.send(groups[0], None, None, n));
    assert_eq!(backlog.claim().map(|claim| claim.item), Some(1));
    backlog.send(groups[1], None, None, 3);
    backlog.complete_each(lane, 0, &groups[..1]);
    assert_eq!(order(&mut backlog), [3, 2]);
}

/// The numbers 0..n, each once, in a scattered order; n is a power of two.
fn scattered(n: u64) -> impl Iterator<Item = u64> {
    (0..n).map(move |i| (i * 76_543 + 12_345) % n)
}

#[test]
fn removing_a_long_group_in_any_order_is_not_quadratic() {
    let n = 1 << 18;
    let (mut backlog, group) = one_group(Limit::SERIAL);
    (0..n).for_each(|i| _ = backlog.send(group, None, None, i));
    for i in scattered(n) {
        assert_eq!(backlog.remove(group, i + 1), Some(i));
    }
    assert_eq!((backlog.waiting(), backlog.eligible(u64::MAX)), (0, 0));
    backlog.unpin(group);
    assert!(is_empty(&backlog));
}

#[test]
fn claims_of_a_long_group_can_be_unclaimed_in_any_order() {
    let n = 1 << 13;
    let (mut backlog, group) = one_group(Limit::Unlimited);
    (0..n).for_each(|i| _ = backlog.send(group, None, None, i));
    let mut claims: Vec<_> = (0..n).map(|_| backlog.claim()).collect();
    for i in scattered(n) {
        backlog.unclaim(claims[i as usize].take().unwrap());
    }
    let order = (0..n).map(|_| backlog.claim().unwrap().item);
    assert!(order.eq(0..n));
}

#[test]
fn storms_of_pauses_keep_the_order_of_age() {
    let n = 1 << 17;
    let mut backlog = Backlog::new(Bypass::default());
    let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
    let add = |_| backlog.add_group(lane, Limit::SERIAL, 100).unwrap();
    let groups: Vec<_> = (0..n).map(add).collect();
    (0..n).for_each(|i| _ = backlog.send(groups[i as usize], None, None, i));
    let set = |backlog: &mut Backlog<u64>, i: u64, limit| {
        assert_eq!(backlog.set_limit(groups[i as usize], limit), Some(Ok(())));
    };
    (0..n)
        .rev()
        .for_each(|i| set(&mut backlog, i, Limit::AtMost(0)));
    assert_eq!(backlog.eligible(u64::MAX), 0);
    (0..n)
        .rev()
        .for_each(|i| set(&mut backlog, i, Limit::SERIAL));
    scattered(n).for_each(|i| set(&mut backlog, i, Limit::AtMost(0)));
    scattered(n / 2).for_each(|i| set(&mut backlog, i, Limit::SERIAL));
    assert_eq!(backlog.eligible(u64::MAX), n / 2);
    scattered(n).for_each(|i| set(&mut backlog, i, Limit::SERIAL));
    for i in scattered(n) {
        set(&mut backlog, i, Limit::AtMost(0));
        set(&mut backlog, i, Limit::SERIAL);
    }
    for i in 0..n {
        let claim = backlog.claim().unwrap();
        assert_eq!(claim.item, i);
        backlog.complete(claim.holds.group.unwrap(), claim.holds.tier);
        backlog.unpin(claim.holds.group.unwrap());
    }
    backlog.close_lane(lane);
    assert!(is_empty(&backlog));
}

/// Each shifts those before it, in time that is quadratic in what comes back. So little comes back
/// at once: what workers have claimed and not started.
#[test]
fn messages_that_come_back_oldest_first_are_in_order_again() {
    const HALF: u32 = 1 << 10;
    let mut messages = Messages::new();
    (0..2 * HALF).for_each(|item| _ = messages.add(0, item));
    let taken: Vec<_> = (0..HALF).map(|_| messages.pop().unwrap()).collect();
    for (seq, message) in taken {
        messages.put(seq, message);
    }
    let order = std::iter::from_fn(|| messages.pop()).map(|(_, message)| message.item);
    assert!(order.eq(0..2 * HALF));
}

/// Messages that came back out of order leave no block behind.
#[test]
fn what_was_returned_leaves_no_memory() {
    let before = held_by_this_thread();
    let mut messages = Messages::new();
    for seq in [1, 5, 3] {
        let message = Message { tier: 0, item: seq };
        messages.put(seq, message);
    }
    assert_eq!(messages.pop().unwrap().0, 1);
    assert_eq!(messages.remove(3), Some(3));
    assert_eq!(messages.pop().unwrap().0, 5);
    assert_eq!(held_by_this_thread(), before);
}

/// Most are removed from the middle, and the rest are taken in order.
#[test]
fn places_of_what_was_removed_are_given_back() {
    let before = held_by_this_thread();
    let mut messages = Messages::new();
    for item in 1..=10_000 {
        messages.add(0, item);
    }
    let kept = |seq: &u64| seq.is_multiple_of(1_000);
    for seq in (1..=10_000).filter(|seq| !kept(seq)).rev() {
        assert_eq!(messages.remove(seq), Some(seq));
        assert_eq!(messages.remove(seq), None);
    }
    assert!(held_by_this_thread() - before < 10_000);
    let taken = std::iter::from_fn(|| messages.pop()).map(|(seq, _)| seq);
    assert!(taken.eq((1..=10_000).filter(kept)));
    assert_eq!(held_by_this_thread(), before);
}
