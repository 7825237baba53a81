//! Messages that are alone, compared with the same messages in serial groups of their own.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{agree, close};
use crate::backlog::{Backlog, Blocked, Claim, GroupKey, Spot};
use crate::lanes::LaneKey;
use crate::limit::{Bypass, DEFAULT_LEVEL, Limit};

const LANES: usize = 2;
/// The groups in each lane, besides those of one message.
const LEVELS: [u8; 3] = [50, DEFAULT_LEVEL, 200];

#[derive(Clone, Debug)]
enum Op {
    Alone(usize, u32, Option<u8>),
    Group(usize, usize, Option<u8>),
    Claim,
    /// At most this many are claimed, and unclaimed.
    Prefetch(usize),
    Complete(usize),
    Remove(usize),
    Bump(usize, u8),
    SetCap(usize, Limit),
}

fn op() -> impl Strategy<Value = Op> {
    let bump = || proptest::option::weighted(0.2, prop::sample::select(vec![0, 100, 255]));
    let cap = prop::sample::select(vec![Limit::AtMost(0), Limit::AtMost(2), Limit::Unlimited]);
    prop_oneof![
        8 => (0..LANES, 0..3u32, bump()).prop_map(|(l, t, b)| Op::Alone(l, t, b)),
        3 => (0..LANES, 0..LEVELS.len(), bump()).prop_map(|(l, g, b)| Op::Group(l, g, b)),
        6 => Just(Op::Claim),
        2 => (0..6usize).prop_map(Op::Prefetch),
        6 => (0..16usize).prop_map(Op::Complete),
        1 => (0..16usize).prop_map(Op::Remove),
        2 => (0..16usize, any::<u8>()).prop_map(|(n, level)| Op::Bump(n, level)),
        1 => (0..LANES, cap).prop_map(|(l, cap)| Op::SetCap(l, cap)),
    ]
}

/// A message that is alone in `subject` and has a group of its own in `groups`.
#[derive(Clone, Copy)]
struct Pair {
    lane: LaneKey,
    tier: u32,
    alone: Spot,
    group: GroupKey,
}

/// Two backlogs that are told the same events.
struct Twins {
    subject: Backlog<usize>,
    groups: Backlog<usize>,
    lanes: Vec<LaneKey>,
    /// The groups of each lane; their keys are the same in both.
    shared: Vec<Vec<GroupKey>>,
    /// By item; `None` if it has a group in both.
    pairs: Vec<Option<Pair>>,
    waiting: Vec<usize>,
    running: Vec<(Claim<usize>, Claim<usize>)>,
}

impl Twins {
    fn new(bypass: Bypass) -> Self {
        let (mut subject, mut groups) = (Backlog::new(bypass), Backlog::new(bypass));
        let (mut lanes, mut shared) = (vec![], vec![]);
        for weight in 1..=LANES as u32 {
            let lane = subject.add_lane(weight, Limit::Unlimited).unwrap();
            assert_eq!(groups.add_lane(weight, Limit::Unlimited), Ok(lane));
            lanes.push(lane);
            let add = |level| {
                let group = subject.add_group(lane, Limit::AtMost(2), level).unwrap();
                assert_eq!(groups.add_group(lane, Limit::AtMost(2), level), Ok(group));
                group
            };
            shared.push(LEVELS.map(add).to_vec());
        }
        Self {
            subject,
            groups,
            lanes,
            shared,
            pairs: vec![],
            waiting: vec![],
            running: vec![],
        }
    }

    fn apply(&mut self, op: &Op) {
        let Self {
            subject, groups, ..
        } = self;
        let item = self.pairs.len();
        match *op {
            Op::Alone(lane, tier, bump) => {
                let lane = self.lanes[lane];
                let place = subject.send_alone(lane, tier, bump, item);
                let alone = Spot::Alone(lane, tier, place);
                let group = groups.add_group(lane, Limit::SERIAL, DEFAULT_LEVEL);
                let group = group.unwrap();
                groups.send(group, Some(tier), bump, item);
                groups.unpin(group);
                self.pairs.push(Some(Pair {
                    lane,
                    tier,
                    alone,
                    group,
                }));
                self.waiting.push(item);
            }
            Op::Group(lane, group, bump) => {
                let group = self.shared[lane][group];
                let sent = subject.send(group, None, bump, item);
                assert_eq!(groups.send(group, None, bump, item), sent);
                self.pairs.push(None);
            }
            Op::Claim => {
                let claims = subject.claim().zip(groups.claim());
                self.waiting
                    .retain(|&n| claims.as_ref().is_none_or(|(c, _)| c.item != n));
                self.running.extend(claims);
            }
            Op::Prefetch(n) => self.prefetch(n),
            Op::Complete(n) if !self.running.is_empty() => {
                let (ours, theirs) = self.running.swap_remove(n % self.running.len());
                match self.pairs[ours.item] {
                    Some(pair) => subject.finish_all(pair.lane, pair.tier, 1, &[]),
                    None => subject.complete(ours.holds.group.unwrap(), ours.holds.tier),
                }
                groups.complete(theirs.holds.group.unwrap(), theirs.holds.tier);
            }
            Op::Remove(n) if !self.waiting.is_empty() => {
                let item = self.waiting.swap_remove(n % self.waiting.len());
                let pair = self.pairs[item].unwrap();
                let taken = subject.take_out(pair.alone);
                let taken = taken.map(|(item, held)| (item, held.lane, held.tier));
                assert_eq!(taken, Some((item, pair.lane, pair.tier)));
                assert_eq!(groups.remove(pair.group, 1), Some(item));
            }
            Op::Bump(n, level) if !self.waiting.is_empty() => {
                let item = self.waiting[n % self.waiting.len()];
                let pair = self.pairs[item].as_mut().unwrap();
                let bumped = subject.bump_at(pair.alone, level);
                pair.alone = bumped.expect("it waits");
                assert!(groups.bump(pair.group, level));
            }
            Op::SetCap(lane, cap) => {
                subject.set_cap(self.lanes[lane], cap).unwrap();
                groups.set_cap(self.lanes[lane], cap).unwrap();
            }
            _ => {}
        }
        self.check();
    }

    /// Claims some, and gives them back, the last first.
    fn prefetch(&mut self, n: usize) {
        let Self {
            subject, groups, ..
        } = self;
        let ours: Vec<_> = (0..n).map_while(|_| subject.claim()).collect();
        let theirs: Vec<_> = (0..n).map_while(|_| groups.claim()).collect();
        let items = ours.iter().map(|taken| taken.item);
        assert!(items.eq(theirs.iter().map(|taken| taken.item)));
        for taken in ours.into_iter().rev() {
            subject.unclaim(taken);
        }
        theirs
            .into_iter()
            .rev()
            .for_each(|taken| groups.unclaim(taken));
    }

    fn check(&self) {
        let Self {
            subject, groups, ..
        } = self;
        agree(subject, groups, &self.lanes);
        for &item in &self.waiting {
            let pair = self.pairs[item].unwrap();
            let why = subject.why_alone(pair.lane, pair.tier);
            assert_eq!(why, groups.why(pair.group), "{item}");
        }
        for (ours, theirs) in &self.running {
            let names = |claim: &Claim<usize>| (claim.item, claim.holds.tier);
            assert_eq!(names(ours), names(theirs));
        }
    }

    /// Takes all that is left, one after the other; then nothing is left.
    fn drain(mut self) {
        (0..LANES).for_each(|lane| self.apply(&Op::SetCap(lane, Limit::Unlimited)));
        while self.subject.waiting() + self.subject.in_flight() > 0 {
            self.apply(&Op::Complete(0));
            self.apply(&Op::Claim);
        }
        close(self.subject, &self.lanes, &self.shared);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn agree_with_groups_of_one(
        bypass in prop::sample::select(vec![Bypass::AtMost(0), Bypass::AtMost(2), Bypass::Unbounded]),
        ops in vec(op(), 1..200),
    ) {
        let mut twins = Twins::new(bypass);
        ops.iter().for_each(|op| twins.apply(op));
        twins.drain();
    }
}

#[test]
fn one_that_is_alone_says_what_keeps_it() {
    let mut backlog = Backlog::new(Bypass::default());
    let lane = backlog.add_lane(1, Limit::AtMost(1)).unwrap();
    let why = |backlog: &Backlog<_>, tier| backlog.why_alone(lane, tier);
    (0..3).for_each(|n| _ = backlog.send_alone(lane, n / 2, None, n));
    assert_eq!(why(&backlog, 0), Blocked::InLine);
    assert_eq!(backlog.claim().unwrap().item, 0);
    assert_eq!(
        (why(&backlog, 0), why(&backlog, 1)),
        (Blocked::Cap, Blocked::Tier)
    );
}
