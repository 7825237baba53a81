//! Lent messages of a serial group, compared with the same claimed one after the other.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::is_empty;
use crate::backlog::{Backlog, Claim, GroupKey, InFlight, Several};
use crate::lanes::LaneKey;
use crate::limit::{Bypass, Limit};

#[derive(Clone, Debug)]
enum Op {
    Send(u32, Option<u8>),
    /// Sends this many at once; the first may be bumped.
    SendSeveral(u64, Option<u8>),
    /// Claims the first, and at most this many behind it, up to one that the second value divides:
    /// together, or the first before the others.
    Claim(usize, u64, bool),
    /// The next claimed message begins; the one before it is done.
    Next,
    /// The claimed messages that have not begun go back.
    GiveBack,
    /// The message at work is done, if it is the last one claimed.
    End,
    Bump(u8),
    TakeOut(usize),
    /// Only while nothing is lent.
    SetLimit(Limit),
}

fn op() -> impl Strategy<Value = Op> {
    let bump = proptest::option::weighted(0.2, prop::sample::select(vec![0, 100, 255]));
    let tier = prop::sample::select(vec![0, 0, 0, 0, 0, 0, 1, 2]);
    let limit = prop::sample::select(vec![Limit::SERIAL, Limit::AtMost(0), Limit::AtMost(2)]);
    prop_oneof![
        10 => (tier, bump.clone()).prop_map(|(tier, bump)| Op::Send(tier, bump)),
        3 => (1..9u64, bump).prop_map(|(n, bump)| Op::SendSeveral(n, bump)),
        4 => (0..9usize, 5..30u64, any::<bool>()).prop_map(|(n, stop, with)| Op::Claim(n, stop, with)),
        8 => Just(Op::Next),
        2 => Just(Op::GiveBack),
        3 => Just(Op::End),
        2 => any::<u8>().prop_map(Op::Bump),
        2 => (0..64usize).prop_map(Op::TakeOut),
        1 => limit.prop_map(Op::SetLimit),
    ]
}

/// Two backlogs that are told the same events: one lends, one does not.
struct Twins {
    subject: Backlog<u64>,
    single: Backlog<u64>,
    lane: LaneKey,
    group: GroupKey,
    limit: Limit,
    /// The numbers of the waiting messages, in order, with their tiers; the item is the number.
    waiting: VecDeque<(u64, u32)>,
    /// The first, if it was not claimed together with the lent ones.
    first: Option<Claim<u64>>,
    lent: Option<Several<u64>>,
    /// The message at work, in `subject` and in `single`.
    working: Option<(InFlight, Claim<u64>)>,
}

impl Twins {
    fn new() -> Self {
        let make = || {
            let mut backlog = Backlog::new(Bypass::default());
            let lane = backlog.add_lane(3, Limit::Unlimited).unwrap();
            let group = backlog.add_group(lane, Limit::SERIAL, 100).unwrap();
            (backlog, lane, group)
        };
        let ((subject, lane, group), (single, ..)) = (make(), make());
        Self {
            subject,
            single,
            lane,
            group,
            limit: Limit::SERIAL,
            waiting: VecDeque::new(),
            first: None,
            lent: None,
            working: None,
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Send(tier, bump) => {
                let next = self.single.groups.get(self.group.0).unwrap();
                let n = next.messages.next_seq();
                let sent = self.single.send(self.group, Some(tier), bump, n);
                let ours = self.subject.send(self.group, Some(tier), bump, n);
                assert_eq!(ours, sent);
                self.waiting.push_back(sent);
            }
            Op::SendSeveral(n, bump) => {
                let next = self.single.groups.get(self.group.0).unwrap();
                let first = next.messages.next_seq();
                let items = (first..first + n).map(Some).collect();
                self.subject.send_several(self.group, bump, items, true);
                for n in first..first + n {
                    let bump = bump.filter(|_| n == first);
                    let sent = self.single.send(self.group, None, bump, n);
                    self.waiting.push_back(sent);
                }
            }
            Op::Claim(most, stop, with) => self.claim(most, stop, with),
            Op::Next => self.next(),
            Op::GiveBack => {
                if let Some(lent) = self.lent.take() {
                    let first = self.first.take();
                    let claimed = first.is_some() || !lent.has_begun();
                    let tier = lent.holds().tier;
                    let back = first.iter().map(|first| &first.item).chain(lent.iter());
                    let back: Vec<_> = back.map(|&n| (n, tier)).collect();
                    let back = back.into_iter().rev();
                    back.for_each(|message| self.waiting.push_front(message));
                    self.subject.give_back(lent);
                    first
                        .into_iter()
                        .for_each(|first| self.subject.unclaim(first));
                    if claimed {
                        let (_, claim) = self.working.take().unwrap();
                        self.single.unclaim(claim);
                    }
                }
            }
            Op::End if self.lent.is_none() => self.end(),
            Op::Bump(level) => {
                assert!(self.subject.bump(self.group, level));
                assert!(self.single.bump(self.group, level));
            }
            Op::TakeOut(n) if !self.waiting.is_empty() => {
                let at = n % self.waiting.len();
                let (seq, tier) = self.waiting.remove(at).unwrap();
                let taken = self.single.take(self.group, seq);
                assert_eq!(taken, Some((seq, tier)));
                assert_eq!(self.subject.take(self.group, seq), taken);
            }
            Op::SetLimit(limit) if self.lent.is_none() => {
                self.limit = limit;
                for backlog in [&mut self.subject, &mut self.single] {
                    assert_eq!(backlog.set_limit(self.group, limit), Some(Ok(())));
                }
            }
            _ => {}
        }
        self.check();
    }

    fn claim(&mut self, most: usize, stop: u64, with: bool) {
        let goes = |n: &u64| !n.is_multiple_of(stop);
        if with && self.working.is_none() {
            let claimed = self.subject.claim_groups(9, |lane, _| {
                assert_eq!(lane, self.lane);
                (most + 1, goes)
            });
            if let Some((ours, turns)) = claimed {
                let theirs = self.single.claim().unwrap();
                let (n, tier) = self.waiting.pop_front().unwrap();
                assert_eq!((turns, theirs.item, tier), (1, n, 0));
                let behind = self.take_behind(tier, most, goes);
                assert!(ours.iter().eq([n].iter().chain(&behind)));
                self.working = Some((ours.holds(), theirs));
                self.lent = Some(ours);
                return;
            }
        }
        let ours = self.subject.claim();
        let theirs = self.single.claim();
        assert_eq!(
            ours.as_ref().map(|c| (c.item, c.holds.tier)),
            theirs.as_ref().map(|c| (c.item, c.holds.tier))
        );
        let Some((ours, theirs)) = ours.zip(theirs) else {
            return;
        };
        let (n, tier) = self.waiting.pop_front().unwrap();
        assert_eq!((ours.item, ours.holds.tier), (n, tier));
        if self.working.is_some() {
            // The group's limit is above 1: this one is done at once.
            self.subject.finish(ours.holds);
            self.single.finish(theirs.holds);
            return;
        }
        let lends = self.limit == Limit::SERIAL && ours.old.bump().is_none();
        let expected = self.take_behind(tier, if lends { most } else { 0 }, goes);
        self.working = Some((ours.holds, theirs));
        let lent = self.subject.lend(ours.holds, most, goes);
        assert!(lent.iter().eq(&expected));
        if !lent.is_empty() {
            (self.first, self.lent) = (Some(ours), Some(lent));
        }
    }

    /// Takes waiting messages from the front while they are of this tier and go: at most `most`.
    fn take_behind(&mut self, tier: u32, most: usize, goes: impl Fn(&u64) -> bool) -> Vec<u64> {
        let waiting = self.waiting.iter();
        let behind = waiting.take_while(|(n, of)| *of == tier && goes(n));
        let taken = behind.take(most).count();
        self.waiting.drain(..taken).map(|(n, _)| n).collect()
    }

    fn next(&mut self) {
        let Some(lent) = &mut self.lent else {
            return;
        };
        let (n, joins) = match self.first.take() {
            Some(first) => (first.item, false),
            None => {
                let begun = lent.has_begun();
                let behind = lent.pop_if(|n| begun && !n.is_multiple_of(3), |n| n);
                let behind = behind.map(|(n, before)| {
                    assert_eq!(before, None, "it takes over the hold");
                    assert!(!n.is_multiple_of(3));
                    n
                });
                (behind.or_else(|| lent.pop()).unwrap(), begun)
            }
        };
        if lent.is_empty() {
            self.lent = None;
        }
        let (holds, claim) = self.working.take().unwrap();
        let claim = match joins {
            false => claim,
            true => {
                self.single.finish(claim.holds);
                self.single.claim().expect("its turn has come")
            }
        };
        assert_eq!((claim.item, claim.holds), (n, holds));
        self.working = Some((holds, claim));
    }

    fn end(&mut self) {
        if let Some((holds, claim)) = self.working.take() {
            self.subject.finish(holds);
            self.single.finish(claim.holds);
        }
    }

    fn check(&self) {
        let (subject, single) = (&self.subject, &self.single);
        let first = usize::from(self.lent.as_ref().is_some_and(|lent| !lent.has_begun()));
        let lent = self.lent.as_ref().map_or(0, |lent| lent.len() - first);
        assert_eq!(subject.waiting() as usize, self.waiting.len());
        assert_eq!(single.waiting() as usize, self.waiting.len() + lent);
        let state = |backlog: &Backlog<u64>| {
            let lane = backlog.lane(self.lane);
            let admits = [0, 1, 2].map(|tier| backlog.admits(self.group, tier));
            let eligible = backlog.eligible(u64::MAX);
            (lane.open_tier(), lane.in_use, admits, eligible)
        };
        assert_eq!(state(subject), state(single));
    }

    fn drain(mut self) {
        self.apply(&Op::SetLimit(Limit::SERIAL));
        self.subject.unpin(self.group);
        self.single.unpin(self.group);
        for backlog in [&mut self.subject, &mut self.single] {
            backlog.close_lane(self.lane);
        }
        while self.lent.is_some() {
            self.next();
        }
        self.end();
        while let Some(ours) = self.subject.claim() {
            let theirs = self.single.claim().unwrap();
            assert_eq!(ours.item, theirs.item);
            self.subject.finish(ours.holds);
            self.single.finish(theirs.holds);
        }
        assert!(is_empty(&self.subject) && is_empty(&self.single));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn agree_with_claims_one_after_the_other(ops in vec(op(), 1..200)) {
        let mut twins = Twins::new();
        ops.iter().for_each(|op| twins.apply(op));
        twins.drain();
    }
}

/// A backlog with a serial group of five, and another lane.
fn five() -> (Backlog<u64>, GroupKey, LaneKey) {
    let mut backlog = Backlog::new(Bypass::default());
    let mut lane = || backlog.add_lane(1, Limit::Unlimited).unwrap();
    let (lane, other) = (lane(), lane());
    let group = backlog.add_group(lane, Limit::SERIAL, 100).unwrap();
    (1..=5).for_each(|n| _ = backlog.send(group, None, None, n));
    (backlog, group, other)
}

#[test]
fn nothing_is_lent_while_another_lane_has_work() {
    let (mut backlog, group, other) = five();
    backlog.send_alone(other, 0, None, 9);
    let first = backlog.claim().unwrap();
    assert_eq!(first.item, 1);
    assert!(backlog.lend(first.holds, 9, |_| true).is_empty());
    let alone = backlog.claim().unwrap();
    assert_eq!(alone.item, 9);
    backlog.finish(alone.holds);
    // The other lane has no more work.
    let lent = backlog.lend(first.holds, 3, |_| true);
    assert!(lent.iter().eq(&[2, 3, 4]));
    assert_eq!(backlog.first_in(group), Some(5));
}

#[test]
fn one_that_is_alone_lends_nothing() {
    let (mut backlog, _, other) = five();
    let first = backlog.claim().unwrap();
    backlog.finish(first.holds);
    backlog.send_alone(other, 0, Some(0), 9);
    let alone = std::iter::from_fn(|| backlog.claim()).find(|claim| claim.holds.group.is_none());
    assert!(backlog.lend(alone.unwrap().holds, 9, |_| true).is_empty());
}

/// A bump is for the next message only.
#[test]
fn what_a_bump_brought_forward_lends_nothing() {
    let (mut backlog, group, _) = five();
    assert!(backlog.bump(group, 200));
    let first = backlog.claim().unwrap();
    assert!(backlog.lend(first.holds, 9, |_| true).is_empty());
    backlog.finish(first.holds);
    let second = backlog.claim().unwrap();
    let lent = backlog.lend(second.holds, 9, |_| true);
    assert!(lent.iter().eq(&[3, 4, 5]));
}

/// A message is sent, bumped and given back while others are lent.
#[test]
fn what_goes_back_stands_before_what_came_meanwhile() {
    let (mut backlog, group, _) = five();
    let (mut lent, _) = backlog.claim_groups(9, |_, _| (9, |_: &_| true)).unwrap();
    assert_eq!((lent.has_begun(), lent.pop()), (false, Some(1)));
    assert_eq!((lent.has_begun(), lent.pop()), (true, Some(2)));
    assert_eq!(backlog.send(group, Some(1), Some(3), 6), (6, 1));
    assert!(backlog.claim().is_none(), "one is at work");
    let holds = lent.holds();
    backlog.give_back(lent);
    assert_eq!(backlog.set_limit(group, Limit::AtMost(2)), Some(Ok(())));
    let next = backlog.claim().unwrap();
    assert_eq!((next.item, next.holds.tier), (3, 0));
    backlog.finish(holds);
    let order: Vec<_> = std::iter::from_fn(|| {
        let claim = backlog.claim()?;
        backlog.finish(claim.holds);
        Some(claim.item)
    })
    .collect();
    assert_eq!(order, [4, 5], "6 waits for its tier");
    backlog.finish(next.holds);
    assert_eq!(backlog.claim().unwrap().item, 6);
}
