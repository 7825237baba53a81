//! Runs, compared with the same messages sent one by one.

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{agree, close};
use crate::backlog::{Backlog, Claim, GroupKey, InFlight, Item, Several, Spot};
use crate::lanes::LaneKey;
use crate::limit::{Bypass, Limit};

const LANES: usize = 3;
/// The groups in each lane.
const LEVELS: [u8; 2] = [100, 200];

/// All waiting messages are checked once in so many events: this takes most of the time.
const EACH: u64 = 4;

/// A message that knows where it waits, or waited last.
#[derive(Clone, Debug)]
struct Told(usize, Rc<Cell<Option<Spot>>>);

impl<T> Several<T> {
    pub(crate) fn pop(&mut self) -> Option<T> {
        Some(self.pop_if(|_| true, |item| item)?.0)
    }
}

impl Item for Told {
    fn waits_at(&self, spot: Spot) {
        self.1.set(Some(spot));
    }

    fn is_marked(&self) -> bool {
        self.0.is_multiple_of(9)
    }
}

#[derive(Clone, Debug)]
enum Op {
    Run(usize, usize),
    Alone(usize, u32, Option<u8>),
    Group(usize, usize, Option<u8>),
    Claim,
    /// Claims at most this many of a run, up to a message whose number the second value divides.
    ClaimRun(usize, usize),
    /// The next message of several that were claimed together begins.
    Begin(usize),
    Unclaim(usize),
    Complete(usize),
    TakeOut(usize),
    Bump(usize, u8),
    SetCap(usize, Limit),
}

fn op() -> impl Strategy<Value = Op> {
    let bump = || proptest::option::weighted(0.2, prop::sample::select(vec![0, 100, 255]));
    let cap = prop::sample::select(vec![Limit::AtMost(0), Limit::AtMost(5), Limit::Unlimited]);
    let n = || 0..64usize;
    prop_oneof![
        8 => (0..LANES, 1..=8usize).prop_map(|(l, n)| Op::Run(l, n)),
        2 => (0..LANES, 0..3u32, bump()).prop_map(|(l, t, b)| Op::Alone(l, t, b)),
        2 => (0..LANES, 0..LEVELS.len(), bump()).prop_map(|(l, g, b)| Op::Group(l, g, b)),
        3 => Just(Op::Claim),
        8 => (1..9usize, 2..24usize).prop_map(|(most, stop)| Op::ClaimRun(most, stop)),
        8 => n().prop_map(Op::Begin),
        3 => n().prop_map(Op::Unclaim),
        8 => n().prop_map(Op::Complete),
        4 => n().prop_map(Op::TakeOut),
        1 => (n(), any::<u8>()).prop_map(|(n, level)| Op::Bump(n, level)),
        1 => (0..LANES, cap).prop_map(|(l, cap)| Op::SetCap(l, cap)),
    ]
}

/// Two backlogs that are told the same events: one with runs, one without.
struct Twins {
    subject: Backlog<Told>,
    singles: Backlog<usize>,
    lanes: Vec<LaneKey>,
    /// The groups of each lane; their keys are the same in both.
    groups: Vec<Vec<GroupKey>>,
    /// By number.
    sent: Vec<Told>,
    waiting: Vec<usize>,
    claimed: Vec<(Several<Told>, VecDeque<Claim<usize>>)>,
    running: Vec<(InFlight, InFlight)>,
    events: u64,
}

impl Twins {
    fn new(bypass: Bypass) -> Self {
        let (mut subject, mut singles) = (Backlog::new(bypass), Backlog::new(bypass));
        let (mut lanes, mut groups) = (vec![], vec![]);
        for weight in 1..=LANES as u32 {
            let lane = subject.add_lane(2 * weight, Limit::Unlimited).unwrap();
            assert_eq!(singles.add_lane(2 * weight, Limit::Unlimited), Ok(lane));
            lanes.push(lane);
            let add = |level| {
                let group = subject.add_group(lane, Limit::AtMost(2), level).unwrap();
                assert_eq!(singles.add_group(lane, Limit::AtMost(2), level), Ok(group));
                group
            };
            groups.push(LEVELS.map(add).to_vec());
        }
        Self {
            subject,
            singles,
            lanes,
            groups,
            sent: vec![],
            waiting: vec![],
            claimed: vec![],
            running: vec![],
            events: 0,
        }
    }

    fn make(&mut self) -> Told {
        let told = Told(self.sent.len(), Rc::default());
        self.sent.push(told.clone());
        self.waiting.push(told.0);
        told
    }

    fn spot(&self, n: usize) -> Spot {
        self.sent[n].1.get().expect("it was sent")
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Run(lane, count) => self.send_run(self.lanes[lane], count),
            Op::Alone(lane, tier, bump) => {
                let (lane, told) = (self.lanes[lane], self.make());
                let place = self.singles.send_alone(lane, tier, bump, told.0);
                let sent = self.subject.send_alone(lane, tier, bump, told);
                assert_eq!(sent, place);
            }
            Op::Group(lane, group, bump) => {
                let (group, told) = (self.groups[lane][group], self.make());
                let sent = self.singles.send(group, None, bump, told.0);
                assert_eq!(self.subject.send(group, None, bump, told), sent);
            }
            Op::Claim => self.claim(),
            Op::ClaimRun(most, stop) => self.claim_run(most, stop),
            Op::Begin(n) if !self.claimed.is_empty() => {
                let n = n % self.claimed.len();
                let (ours, theirs) = &mut self.claimed[n];
                let next = theirs.pop_front().unwrap();
                let held = (ours.holds(), next.holds);
                let begun = ours.has_begun();
                let behind = ours.pop_if(|told| begun && !told.0.is_multiple_of(3), |told| told);
                let goes = begun && !next.item.is_multiple_of(3);
                assert_eq!(behind.is_some(), goes);
                let told = behind.map_or_else(|| ours.pop().unwrap(), |(told, _)| told);
                assert_eq!(told.0, next.item);
                self.running.push(held);
                if ours.is_empty() {
                    self.claimed.swap_remove(n);
                }
            }
            Op::Unclaim(n) if !self.claimed.is_empty() => {
                let (ours, theirs) = self.claimed.swap_remove(n % self.claimed.len());
                self.waiting.extend(ours.iter().map(|told| told.0));
                self.subject.give_back(ours);
                let theirs = theirs.into_iter().rev();
                theirs.for_each(|claim| self.singles.unclaim(claim));
            }
            Op::Complete(n) if !self.running.is_empty() => {
                let (ours, theirs) = self.running.swap_remove(n % self.running.len());
                assert_eq!(ours, theirs);
                self.subject.finish(ours);
                self.singles.finish(theirs);
            }
            Op::TakeOut(n) if !self.waiting.is_empty() => {
                let n = self.waiting.swap_remove(n % self.waiting.len());
                let taken = self.subject.take_out(self.spot(n));
                let taken = taken.map(|(told, held)| (told.0, held));
                assert_eq!(taken, self.singles.take_out(self.spot(n)));
                assert_eq!(taken.map(|(of, ..)| of), Some(n));
                assert!(self.subject.take_out(self.spot(n)).is_none());
            }
            Op::Bump(n, level) if !self.waiting.is_empty() => {
                let n = self.waiting[n % self.waiting.len()];
                let before = self.spot(n);
                let now = self.subject.bump_at(before, level);
                assert_eq!(now, self.singles.bump_at(before, level));
                assert_eq!(now, Some(self.spot(n)), "{n} waits there");
            }
            // The cap is changed only when the claimed messages have been taken back.
            Op::SetCap(lane, cap) if self.claimed.is_empty() => {
                self.subject.set_cap(self.lanes[lane], cap).unwrap();
                self.singles.set_cap(self.lanes[lane], cap).unwrap();
            }
            _ => {}
        }
        self.check();
    }

    fn send_run(&mut self, lane: LaneKey, count: usize) {
        let items: Vec<_> = (0..count).map(|_| Some(self.make())).collect();
        let items_too: Vec<_> = items.iter().flatten().map(|told| told.0).collect();
        let mark = items.iter().flatten().any(Told::is_marked);
        self.subject.send_run(lane, items, true, mark);
        for n in items_too {
            let place = self.singles.send_alone(lane, 0, None, n);
            assert_eq!(self.spot(n), Spot::Alone(lane, 0, place));
        }
    }

    fn claim(&mut self) {
        let (ours, theirs) = (self.subject.claim(), self.singles.claim());
        let (a, b) = (ours.as_ref(), theirs.as_ref());
        assert_eq!(
            a.map(|c| (c.item.0, c.spot(), c.overtaken)),
            b.map(|c| (c.item, c.spot(), c.overtaken))
        );
        let pair = ours.zip(theirs);
        self.waiting
            .retain(|&n| pair.as_ref().is_none_or(|(c, _)| c.item.0 != n));
        let held = pair.map(|(ours, theirs)| (ours.holds, theirs.holds));
        self.running.extend(held);
    }

    fn claim_run(&mut self, most: usize, stop: usize) {
        let mut mark = false;
        let claim = self.subject.claim_run(false, |_, _, of_run| {
            mark = of_run;
            let goes = |told: &Told| !told.0.is_multiple_of(stop);
            (most, (stop < 20).then_some(goes))
        });
        let Some(ours) = claim else {
            return;
        };
        assert!(ours.len() <= most && (mark || !ours.iter().any(Told::is_marked)));
        let theirs: VecDeque<_> = (0..ours.len())
            .map_while(|_| self.singles.claim())
            .collect();
        let items: Vec<_> = ours.iter().map(|told| told.0).collect();
        assert!(stop >= 20 || items.iter().all(|n| !n.is_multiple_of(stop)));
        assert!(theirs.iter().map(|claim| claim.item).eq(items.clone()));
        assert!(theirs.iter().all(|claim| claim.holds == ours.holds()));
        self.waiting.retain(|n| !items.contains(n));
        self.claimed.push((ours, theirs));
    }

    fn check(&mut self) {
        let (subject, singles) = (&mut self.subject, &mut self.singles);
        agree(subject, singles, &self.lanes);
        assert_eq!(subject.waiting(), self.waiting.len() as u64);
        self.events += 1;
        if !self.events.is_multiple_of(EACH) {
            return;
        }
        for &lane in &self.lanes {
            let there = subject.waiting_in(lane).map(|(spot, holds, told)| {
                assert_eq!(Some(spot), told.1.get());
                (told.0, holds.tier)
            });
            let theirs = singles.waiting_in(lane).map(|(_, h, &n)| (n, h.tier));
            assert_eq!(there.collect::<BTreeSet<_>>(), theirs.collect());
        }
        for &n in &self.waiting {
            let spot = self.sent[n].1.get().unwrap();
            assert_eq!(subject.why_at(spot), singles.why_at(spot), "{n}");
        }
    }

    /// Takes all that is left, one after the other; then nothing is left.
    fn drain(mut self) {
        while !self.claimed.is_empty() {
            self.apply(&Op::Begin(0));
        }
        (0..LANES).for_each(|lane| self.apply(&Op::SetCap(lane, Limit::Unlimited)));
        while self.subject.waiting() + self.subject.in_flight() > 0 {
            self.apply(&Op::Complete(0));
            self.apply(&Op::Claim);
        }
        close(self.subject, &self.lanes, &self.groups);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..Default::default() })]

    #[test]
    fn agree_with_messages_sent_one_by_one(
        bypass in prop::sample::select(vec![Bypass::AtMost(0), Bypass::AtMost(2), Bypass::Unbounded]),
        ops in vec(op(), 1..200),
    ) {
        let mut twins = Twins::new(bypass);
        ops.iter().for_each(|op| twins.apply(op));
        twins.drain();
    }
}

/// How many of eight are claimed: no more than each bound allows.
#[test]
fn as_many_of_a_run_are_claimed_as_there_may_be() {
    let free = Limit::Unlimited;
    for (cap, others, most, stop, count) in [
        (free, 0, 99, 99, 8),
        (free, 0, 7, 99, 7),
        (free, 0, 3, 99, 3),
        (free, 0, 99, 5, 4),
        (Limit::AtMost(2), 0, 99, 99, 2),
        (free, 1, 99, 99, 4),
    ] {
        let mut backlog = Backlog::new(Bypass::default());
        let lane = backlog.add_lane(4, cap).unwrap();
        let other = backlog.add_lane(1, free).unwrap();
        backlog.send_run(lane, (1..=8_u32).map(Some).collect(), true, false);
        (0..others).for_each(|n| _ = backlog.send_alone(other, 0, None, n));
        let claim = backlog.claim_run(false, |of, &first, mark| {
            assert_eq!((of, first, mark), (lane, 1, false));
            (most, Some(move |&n: &u32| n < stop))
        });
        assert_eq!(claim.map(|claim| claim.len()), Some(count));
        assert_eq!(backlog.lane(lane).in_use as usize, count);
        if others > 0 {
            let next = backlog.claim().unwrap();
            assert_eq!(
                (next.holds.lane, next.item),
                (other, 0),
                "its turn has come"
            );
        }
    }
}

/// The first of them was overtaken once; when it begins, the count is 0.
#[test]
fn what_is_left_of_a_run_that_has_begun_was_not_overtaken() {
    for (begun, overtaken) in [(0, 1), (1, 0)] {
        let mut backlog = Backlog::new(Bypass::AtMost(2));
        let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
        backlog.send_run(lane, (1..=4).map(Some).collect(), true, false);
        backlog.send_alone(lane, 0, Some(255), 5);
        assert_eq!(backlog.claim().map(|claim| claim.item), Some(5));
        let claim = backlog.claim_run(false, |_, _, _| (9, None::<fn(&i32) -> bool>));
        let mut claim = claim.expect("four are next");
        (0..begun).for_each(|n| assert_eq!(claim.pop(), Some(n + 1)));
        backlog.give_back(claim);
        let next = backlog.claim().unwrap();
        assert_eq!((next.item, next.overtaken), (begun + 1, Some(overtaken)));
    }
}

#[test]
fn one_that_is_taken_out_of_a_run_leaves_no_gap() {
    let mut backlog = Backlog::new(Bypass::default());
    let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
    let second = backlog.next_spots(lane).nth(1).unwrap();
    backlog.send_run(lane, (1..=4).map(Some).collect(), true, false);
    assert_eq!(backlog.take_out(second).map(|(item, _)| item), Some(2));
    assert_eq!(backlog.take_out(second), None);
    assert_eq!(backlog.claim().map(|claim| claim.item), Some(1));
    let claim = backlog.claim_run(false, |_, _, _| (9, None::<fn(&i32) -> bool>));
    assert!(claim.expect("two are next").iter().eq(&[3, 4]));
}

/// It may be marked; and it must wait right before the run, alone and without a bump.
#[test]
fn one_that_waits_alone_begins_the_run_behind_it() {
    let lone = |bump, between: bool| {
        let mut backlog = Backlog::new(Bypass::default());
        let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
        let told = |n| Told(n, Rc::default());
        backlog.send_alone(lane, 0, bump, told(9));
        if between {
            let other = backlog.add_lane(1, Limit::AtMost(0)).unwrap();
            backlog.send_alone(other, 0, None, told(1));
        }
        backlog.send_run(lane, vec![Some(told(2)), Some(told(3))], true, false);
        let claim = backlog.claim_run(false, |_, _, mark| {
            assert!(mark, "the first is");
            (9, None::<fn(&Told) -> bool>)
        });
        claim.map_or(0, |claim| claim.len())
    };
    assert_eq!([lone(None, false), lone(None, true)], [3, 0]);
    assert_eq!(lone(Some(100), false), 0);
}

/// The run has all turns of its lane; then the lane has them again.
#[test]
fn a_run_goes_back_with_its_turns() {
    let mut backlog = Backlog::new(Bypass::default());
    let lanes = [2, 1].map(|weight| backlog.add_lane(weight, Limit::Unlimited).unwrap());
    backlog.send_run(lanes[0], (1..=4).map(Some).collect(), true, false);
    backlog.send_run(lanes[1], (5..=6).map(Some).collect(), true, false);
    let claim = backlog.claim_run(false, |_, _, _| (9, None::<fn(&i32) -> bool>));
    let claim = claim.expect("two are next");
    assert!(claim.iter().eq(&[1, 2]));
    backlog.give_back(claim);
    let order = std::iter::from_fn(|| Some(backlog.claim()?.item));
    assert_eq!(order.collect::<Vec<_>>(), [1, 2, 5, 3, 4, 6]);
}
