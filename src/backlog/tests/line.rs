//! One ready queue of groups compared with a scan over all groups, and at sizes
//! at which gaps and memory matter.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::ready::{Position, ReadyQueue};
use crate::wait::tests::heap::held_by_this_thread;

const GROUPS: usize = 24;

#[derive(Clone, Debug)]
enum Op {
    /// Joins as the youngest, at a standing level.
    Join(usize, u8),
    /// Joins as the youngest, bumped.
    JoinBumped(usize, u8),
    /// Comes back to its last position.
    Return(usize),
    Leave(usize),
    /// Moves to another level, to the place of its age there.
    Level(usize, u8),
    /// Bumped, as the last of that level.
    Bump(usize, u8),
    Serve(bool),
}

fn op() -> impl Strategy<Value = Op> {
    let g = || 0..GROUPS;
    let level = || {
        let edges = prop::sample::select(vec![0u8, 1, 62, 63, 64, 100, 255]);
        prop_oneof![4 => edges, 1 => any::<u8>()]
    };
    prop_oneof![
        6 => (g(), level()).prop_map(|(g, l)| Op::Join(g, l)),
        1 => (g(), level()).prop_map(|(g, l)| Op::JoinBumped(g, l)),
        1 => g().prop_map(Op::Return),
        3 => g().prop_map(Op::Leave),
        1 => (g(), level()).prop_map(|(g, l)| Op::Level(g, l)),
        1 => (g(), level()).prop_map(|(g, l)| Op::Bump(g, l)),
        3 => any::<bool>().prop_map(Op::Serve),
    ]
}

/// The ticket and the position of a group.
type Place = (u64, Position);

/// A ready queue, and what must be in it.
struct Pair {
    line: ReadyQueue<usize>,
    at: Vec<Option<Place>>,
    last: Vec<Option<Place>>,
    clock: u64,
}

impl Pair {
    fn new(groups: usize) -> Self {
        Self {
            line: ReadyQueue::default(),
            at: vec![None; groups],
            last: vec![None; groups],
            clock: 0,
        }
    }

    fn now(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn join(&mut self, group: usize, level: u8) {
        let now = self.now();
        if self.at[group].is_none() {
            self.at[group] = Some((now, Position::new(level, now, None)));
            self.line.push(now, level, group);
        }
    }

    fn insert(&mut self, group: usize, place: Place) {
        if self.at[group].is_none() {
            self.at[group] = Some(place);
            self.line.insert(place.0, place.1, group);
        }
    }

    fn leave(&mut self, group: usize) -> Option<Place> {
        let place = self.at[group].take()?;
        self.last[group] = Some(place);
        assert_eq!(self.line.remove(place.1), Some(group));
        Some(place)
    }

    fn come_back(&mut self, group: usize) {
        match self.last[group] {
            Some(place) => self.insert(group, place),
            None => self.join(group, 100),
        }
    }

    fn serve(&mut self, oldest_first: bool) -> Option<usize> {
        let position = || {
            let all = self.at.iter().enumerate();
            all.filter_map(|(group, at)| at.map(|at| (group, at)))
        };
        let oldest = position().min_by_key(|(_, at)| at.0);
        let best = position().min_by_key(|(_, at)| at.1);
        let next = if oldest_first { oldest } else { best };
        let expected = next.map(|(group, _)| (group, next == oldest));
        assert_eq!(self.line.pop(oldest_first), expected);
        let (group, at) = next?;
        self.last[group] = Some(at);
        self.at[group] = None;
        Some(group)
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Join(group, level) => self.join(group, level),
            Op::JoinBumped(group, level) => {
                let now = self.now();
                self.insert(group, (now, Position::new(0, now, Some((level, now)))));
            }
            Op::Return(group) => self.come_back(group),
            Op::Leave(group) => _ = self.leave(group),
            Op::Level(group, level) => {
                if let Some((ticket, ..)) = self.leave(group) {
                    self.insert(group, (ticket, Position::new(level, ticket, None)));
                }
            }
            Op::Bump(group, level) => {
                let now = self.now();
                if let Some((ticket, ..)) = self.leave(group) {
                    self.insert(
                        group,
                        (ticket, Position::new(0, ticket, Some((level, now)))),
                    );
                }
            }
            Op::Serve(oldest_first) => _ = self.serve(oldest_first),
        }
        self.check();
    }

    fn check(&mut self) {
        let position = self.at.iter().flatten();
        let oldest = position.clone().map(|at| at.0).min();
        let count = position.count();
        assert_eq!(
            (self.line.count(usize::MAX), self.line.oldest()),
            (count, oldest)
        );
        assert_eq!(self.line.is_empty(), count == 0);
        for (at, last) in self.at.iter().zip(&self.last) {
            assert!(at.is_none_or(|at| self.line.contains(at.1)));
            let gone = last.filter(|last| at.is_none_or(|at| at.1 != last.1));
            assert!(gone.is_none_or(|gone| !self.line.contains(gone.1)));
        }
    }

    fn drain(&mut self) -> Vec<usize> {
        std::iter::from_fn(|| self.serve(false)).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() })]

    #[test]
    fn agrees_with_a_scan(ops in vec(op(), 1..2000)) {
        let mut pair = Pair::new(GROUPS);
        ops.iter().for_each(|op| pair.apply(op));
        pair.drain();
        assert!(pair.line.is_empty() && pair.line.is_plain());
    }
}

#[test]
fn a_group_that_moves_to_another_rank_keeps_its_age() {
    let mut pair = Pair::new(3);
    (0..3).for_each(|group| pair.apply(&Op::Join(group, 100)));
    pair.apply(&Op::Bump(2, 7));
    pair.apply(&Op::Level(0, 0));
    assert_eq!(pair.line.oldest(), Some(1));
    assert_eq!(pair.drain(), [2, 1, 0]);
}

#[test]
fn every_bump_is_above_every_standing_level() {
    let at = |level, bump| Position::new(level, 1, bump);
    let bumped = |level| at(0, Some((level, 2)));
    let served = [bumped(255), bumped(254), bumped(0), at(255, None)];
    assert!(served.is_sorted() && at(1, None) < at(0, None));
}

#[test]
fn all_levels_at_once_are_served_from_the_top() {
    let mut pair = Pair::new(512);
    for n in 0..512 {
        pair.join(n, (n * 197 % 256) as u8);
    }
    let level = |n: &usize| (n * 197 % 256) as u8;
    let levels: Vec<u8> = pair.drain().iter().map(level).collect();
    assert!(levels.into_iter().rev().eq((0..512).map(|n| (n / 2) as u8)));
}

/// Groups in three levels. All but the first and the last `left` leave, in an order
/// that is neither that of age nor its reverse.
fn with_gaps(members: usize, left: usize) -> Pair {
    let mut pair = Pair::new(members);
    (0..members).for_each(|n| pair.join(n, (n % 3) as u8));
    let scattered = (0..members).map(|n| (n * 7_919 + 1) % members);
    scattered
        .filter(|&n| n > 0 && n < members - left)
        .for_each(|n| _ = pair.leave(n));
    pair
}

#[test]
fn gaps_are_closed_and_the_rest_stays_in_order() {
    let members = 1 << 13;
    let before = held_by_this_thread();
    let mut pair = with_gaps(members, 9);
    pair.check();
    // Groups that join now are last, also where gaps were.
    (1..4).for_each(|n| pair.join(n, 2));
    let last = members - 9..members;
    let of = |level| last.clone().filter(move |n| n % 3 == level);
    let expected = of(2).chain(1..4).chain(of(1)).chain(of(0));
    let mut expected: Vec<usize> = expected.collect();
    // The oldest group is of the lowest level.
    let lowest = expected.iter().position(|n| n % 3 == 0 && *n > 3);
    expected.insert(lowest.unwrap(), 0);
    assert_eq!(pair.drain(), expected);
    assert!(pair.line.is_plain());
    drop((pair, expected));
    assert_eq!(held_by_this_thread(), before);
}

#[test]
fn a_storm_of_leaving_and_coming_back_keeps_order_and_memory() {
    let members = 1 << 13;
    let mut pair = with_gaps(members, 0);
    let before = held_by_this_thread();
    for round in 0..3 {
        for n in (0..members).map(|n| (n * (7_919 + 2 * round)) % members) {
            pair.come_back(n);
        }
        for n in (0..members).rev() {
            pair.leave(n);
            pair.come_back(n);
        }
        pair.check();
        assert!(pair.line.count(usize::MAX) == members && pair.line.oldest() == Some(1));
        (0..members).for_each(|n| _ = pair.leave(n));
    }
    assert!(pair.line.is_empty());
    let kept = held_by_this_thread() - before;
    assert!(kept <= 0, "{kept} bytes are kept");
}
