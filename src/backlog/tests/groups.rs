//! Several groups claimed at once, compared with the same groups claimed one after the other.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};

use proptest::collection::vec;
use proptest::prelude::*;

use super::{agree, close};
use crate::backlog::{Backlog, Claim, GroupKey, InFlight, Several};
use crate::lanes::LaneKey;
use crate::limit::{Bypass, Limit};

const GROUPS: usize = 6;

#[derive(Clone, Debug)]
enum Op {
    Send(usize, Option<u8>),
    /// A send to another lane, or into a higher tier.
    Other(bool),
    Alone,
    Claim,
    /// Claims at most this many groups.
    ClaimGroups(usize),
    /// The next message of those claimed together begins.
    Begin,
    GiveBack,
    /// At most this many that are at work are completed together.
    Complete(usize),
    Bump(usize, u8),
    SetLimit(usize, Limit),
    SetCap(Limit),
}

fn op() -> impl Strategy<Value = Op> {
    let bump = proptest::option::weighted(0.05, any::<u8>());
    let limit = prop::sample::select(vec![Limit::SERIAL, Limit::AtMost(0), Limit::AtMost(2)]);
    let cap = prop::sample::select(vec![Limit::AtMost(0), Limit::AtMost(3), Limit::Unlimited]);
    prop_oneof![
        20 => (0..GROUPS, bump).prop_map(|(group, bump)| Op::Send(group, bump)),
        1 => prop::bool::weighted(0.2).prop_map(Op::Other),
        2 => Just(Op::Alone),
        1 => Just(Op::Claim),
        8 => (1..9usize).prop_map(Op::ClaimGroups),
        8 => Just(Op::Begin),
        2 => Just(Op::GiveBack),
        8 => (1..4usize).prop_map(Op::Complete),
        1 => (0..GROUPS, any::<u8>()).prop_map(|(group, level)| Op::Bump(group, level)),
        1 => (0..GROUPS, limit).prop_map(|(group, limit)| Op::SetLimit(group, limit)),
        1 => cap.prop_map(Op::SetCap),
    ]
}

/// The group of a message, or a larger number if it has none, and the message's number.
type Message = (usize, u64);

/// Two backlogs that are told the same events: one claims groups together, one does not.
struct Twins {
    subject: Backlog<Message>,
    single: Backlog<Message>,
    lanes: [LaneKey; 2],
    groups: Vec<GroupKey>,
    limits: [Limit; GROUPS],
    sent: u64,
    claimed: Option<(Several<Message>, VecDeque<Claim<Message>>)>,
    working: Vec<InFlight>,
}

impl Twins {
    fn new() -> Self {
        let make = || {
            let mut backlog = Backlog::new(Bypass::AtMost(2));
            let lanes = [3, 1].map(|weight| backlog.add_lane(weight, Limit::Unlimited).unwrap());
            let add = |_| backlog.add_group(lanes[0], Limit::SERIAL, 100).unwrap();
            let groups: Vec<_> = (0..GROUPS).map(add).collect();
            (backlog, lanes, groups)
        };
        let ((subject, lanes, groups), (single, ..)) = (make(), make());
        Self {
            subject,
            single,
            lanes,
            groups,
            limits: [Limit::SERIAL; GROUPS],
            sent: 0,
            claimed: None,
            working: vec![],
        }
    }

    fn both(&mut self, mut tell: impl FnMut(&mut Backlog<Message>)) {
        tell(&mut self.subject);
        tell(&mut self.single);
    }

    fn apply(&mut self, op: &Op) {
        let [lane, other] = self.lanes;
        self.sent += 1;
        let sent = self.sent;
        match *op {
            Op::Send(n, bump) => {
                let group = self.groups[n];
                self.both(|backlog| _ = backlog.send(group, None, bump, (n, sent)));
            }
            Op::Other(above) => {
                let (lane, tier) = if above { (lane, 1) } else { (other, 0) };
                self.both(|backlog| _ = backlog.send_alone(lane, tier, None, (GROUPS, sent)));
            }
            Op::Alone => {
                self.both(|backlog| _ = backlog.send_alone(lane, 0, None, (GROUPS, sent)));
            }
            Op::Claim => {
                let (ours, theirs) = (self.subject.claim(), self.single.claim());
                let what = |c: &Claim<Message>| (c.item, c.holds, c.overtaken);
                assert_eq!(ours.as_ref().map(what), theirs.as_ref().map(what));
                self.working.extend(ours.map(|claim| claim.holds));
            }
            Op::ClaimGroups(most) if self.claimed.is_none() => self.claim_groups(most),
            Op::Begin => self.begin(),
            Op::GiveBack => {
                if let Some((ours, theirs)) = self.claimed.take() {
                    self.subject.give_back(ours);
                    let theirs = theirs.into_iter().rev();
                    theirs.for_each(|claim| self.single.unclaim(claim));
                }
            }
            Op::Complete(most) => self.complete(most),
            Op::Bump(n, level) => {
                let group = self.groups[n];
                self.both(|backlog| assert!(backlog.bump(group, level)));
            }
            // The limit is changed only when the claimed groups have been taken back.
            Op::SetLimit(n, limit) if self.claimed.is_none() => {
                let group = self.groups[n];
                self.limits[n] = limit;
                self.both(|backlog| assert_eq!(backlog.set_limit(group, limit), Some(Ok(()))));
            }
            Op::SetCap(cap) if self.claimed.is_none() => {
                self.both(|backlog| backlog.set_cap(lane, cap).unwrap());
            }
            _ => {}
        }
        agree(&self.subject, &self.single, &self.lanes);
    }

    /// Claims at most `most` groups: only the first message of each, though more would be allowed.
    fn claim_groups(&mut self, most: usize) {
        let seen = RefCell::new(BTreeSet::new());
        let claimed = self.subject.claim_groups(most, |_, _| {
            let is_first = |message: &Message| seen.borrow_mut().insert(message.0);
            (usize::MAX, is_first)
        });
        let Some((ours, turns)) = claimed else {
            return;
        };
        assert!(turns == ours.len() && turns <= most);
        let theirs: VecDeque<_> = (0..turns).map_while(|_| self.single.claim()).collect();
        assert!(theirs.iter().map(|claim| &claim.item).eq(ours.iter()));
        let is_serial = |claim: &Claim<Message>| self.limits[claim.item.0] == Limit::SERIAL;
        assert!(theirs.iter().all(is_serial));
        // No further group could have been claimed.
        if turns < most
            && let Some(next) = self.single.claim()
        {
            assert!(next.holds.group.is_none() || !is_serial(&next), "{next:?}");
            self.single.unclaim(next);
            let next = self.subject.claim().expect("it is next here too");
            self.subject.unclaim(next);
        }
        self.claimed = Some((ours, theirs));
    }

    fn begin(&mut self) {
        if let Some((ours, theirs)) = &mut self.claimed {
            let item = ours.pop().unwrap();
            let next = theirs.pop_front().unwrap();
            assert_eq!((item, ours.holds()), (next.item, next.holds));
            self.working.push(next.holds);
            self.claimed.take_if(|(ours, _)| ours.is_empty());
        }
    }

    /// Completes them together if all are of groups and of one tier.
    fn complete(&mut self, most: usize) {
        let done: Vec<_> = self.working.drain(..most.min(self.working.len())).collect();
        let groups: Vec<_> = done.iter().filter_map(|holds| holds.group).collect();
        let Some(tier) = done.first().map(|holds| holds.tier) else {
            return;
        };
        done.iter().for_each(|&holds| self.single.finish(holds));
        if groups.len() == done.len() && done.iter().all(|holds| holds.tier == tier) {
            self.subject.complete_each(self.lanes[0], tier, &groups);
        } else {
            done.iter().for_each(|&holds| self.subject.finish(holds));
        }
    }

    fn drain(mut self) {
        while self.claimed.is_some() {
            self.apply(&Op::Begin);
        }
        self.apply(&Op::SetCap(Limit::Unlimited));
        (0..GROUPS).for_each(|n| self.apply(&Op::SetLimit(n, Limit::SERIAL)));
        while self.subject.waiting() + self.subject.in_flight() > 0 {
            self.apply(&Op::Claim);
            self.apply(&Op::Complete(1));
        }
        close(self.subject, &self.lanes, &[self.groups]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn agree_with_claims_one_after_the_other(ops in vec(op(), 1..200)) {
        let mut twins = Twins::new();
        ops.iter().for_each(|op| twins.apply(op));
        twins.drain();
    }
}

/// The messages that are lent come right behind the first of their group.
#[test]
fn groups_are_claimed_with_what_is_behind_their_first() {
    let mut backlog = Backlog::new(Bypass::default());
    let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
    let add = |_| backlog.add_group(lane, Limit::SERIAL, 100).unwrap();
    let groups: Vec<_> = (0..3).map(add).collect();
    for n in 1..=9 {
        backlog.send(groups[n % 3], None, None, n);
    }
    let five = |of, first: &usize| {
        assert_eq!((of, *first), (lane, 1));
        (5, |_: &usize| true)
    };
    let (mut claim, turns) = backlog.claim_groups(9, five).unwrap();
    assert_eq!((claim.len(), turns, backlog.in_flight()), (5, 2, 2));
    let mut order = vec![];
    while !claim.is_empty() {
        let joins = claim.has_begun();
        let (n, free) = claim.pop_if(|_| true, |n| n).unwrap();
        order.push((n, joins && free.is_none()));
        assert_eq!(claim.holds().group, Some(groups[order.len().div_ceil(3)]));
    }
    let expected = [(1, false), (4, true), (7, true), (2, false), (5, true)];
    assert_eq!(order, expected);
    backlog.complete_each(lane, 0, &[groups[1], groups[2]]);
    let rest = std::iter::from_fn(|| {
        let claim = backlog.claim()?;
        backlog.finish(claim.holds);
        Some(claim.item)
    });
    assert_eq!(rest.collect::<Vec<_>>(), [3, 8, 6, 9]);
}

/// The group became ready when its first was claimed: after one group and before another.
#[test]
fn what_is_lent_keeps_the_age_of_its_group() {
    let mut backlog = Backlog::new(Bypass::default());
    let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
    let add = |_| backlog.add_group(lane, Limit::SERIAL, 100).unwrap();
    let groups: Vec<_> = (0..3).map(add).collect();
    (1..=2).for_each(|n| _ = backlog.send(groups[0], None, None, n));
    backlog.send(groups[1], None, None, 3);
    let (mut claim, _) = backlog.claim_groups(1, |_, _| (9, |_: &_| true)).unwrap();
    backlog.send(groups[2], None, None, 4);
    assert_eq!(claim.pop(), Some(1));
    backlog.give_back(claim);
    let raised = backlog.set_limit(groups[0], Limit::AtMost(2));
    assert_eq!(raised, Some(Ok(())));
    let order = std::iter::from_fn(|| Some(backlog.claim()?.item));
    assert_eq!(order.collect::<Vec<_>>(), [3, 2, 4]);
}

/// The first of them was overtaken once; when none has begun, it counts as overtaken once again.
#[test]
fn groups_that_go_back_have_been_overtaken_as_before() {
    let mut backlog = Backlog::new(Bypass::AtMost(2));
    let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
    let add = |_| backlog.add_group(lane, Limit::SERIAL, 100).unwrap();
    let groups: Vec<_> = (0..2).map(add).collect();
    (0..2).for_each(|n| _ = backlog.send(groups[n], None, None, n));
    backlog.send_alone(lane, 0, Some(255), 2);
    assert_eq!(backlog.claim().map(|claim| claim.item), Some(2));
    let (claim, turns) = backlog.claim_groups(2, |_, _| (9, |_: &_| true)).unwrap();
    assert!(turns == 2 && claim.iter().eq(&[0, 1]));
    backlog.give_back(claim);
    let next: Vec<_> = (0..2).map(|_| backlog.claim().unwrap()).collect();
    let next = next.iter().map(|claim| (claim.item, claim.overtaken));
    assert!(next.eq([(0, Some(1)), (1, Some(0))]));
}
