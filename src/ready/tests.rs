//! The line against a list that is searched from end to end.

use std::cmp::Reverse;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Line, Rank, Row, SLACK};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    ticket: u64,
    rank: Rank,
    tie: u64,
    group: u32,
}

#[derive(Clone, Debug)]
enum Op {
    /// A new arrival, of this standing level.
    Push(u8),
    /// Who was taken out comes back where it stood, with its rank or bumped.
    Return(usize, Option<u8>),
    /// A new arrival that is bumped.
    Bumped(u8),
    Pop(bool),
    Remove(usize),
    /// Asks for one that does not stand here.
    Absent(usize),
    /// All but a few leave from the middle.
    Thin(usize),
}

struct Pair {
    line: Line<u32>,
    list: Vec<Standing>,
    gone: Vec<Standing>,
    clock: u64,
}

impl Pair {
    fn new() -> Self {
        Self {
            line: Line::default(),
            list: Vec::new(),
            gone: Vec::new(),
            clock: 0,
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn push(&mut self, level: u8) {
        let ticket = self.tick();
        let standing = Standing {
            ticket,
            rank: Rank::standing(level),
            tie: ticket,
            group: ticket as u32,
        };
        self.line.push(ticket, level, standing.group);
        self.list.push(standing);
    }

    fn insert(&mut self, standing: Standing) {
        let Standing {
            ticket,
            rank,
            tie,
            group,
        } = standing;
        self.line.insert(ticket, rank, tie, group);
        self.list.push(standing);
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Push(level) => self.push(level),
            Op::Bumped(level) => {
                let (ticket, tie) = (self.tick(), self.tick());
                let rank = Rank::bumped(level);
                let group = ticket as u32;
                self.insert(Standing {
                    ticket,
                    rank,
                    tie,
                    group,
                });
            }
            Op::Return(n, bump) if !self.gone.is_empty() => {
                let mut standing = self.gone.swap_remove(n % self.gone.len());
                if let Some(level) = bump {
                    (standing.rank, standing.tie) = (Rank::bumped(level), self.tick());
                }
                self.insert(standing);
            }
            Op::Pop(oldest_first) => self.pop(oldest_first),
            Op::Remove(n) if !self.list.is_empty() => self.remove(n % self.list.len()),
            Op::Absent(n) if !self.gone.is_empty() => {
                let ticket = self.gone[n % self.gone.len()].ticket;
                assert!(!self.line.contains(ticket));
                assert_eq!(self.line.remove(ticket), None);
            }
            Op::Thin(left) => {
                while self.list.len() > left + 2 {
                    self.remove(1);
                }
            }
            _ => {}
        }
        self.check();
    }

    fn remove(&mut self, at: usize) {
        let standing = self.list.remove(at);
        assert!(self.line.contains(standing.ticket));
        assert_eq!(self.line.remove(standing.ticket), Some(standing.group));
        self.gone.push(standing);
    }

    fn pop(&mut self, oldest_first: bool) {
        let oldest = self.list.iter().map(|s| s.ticket).min();
        let first = self.list.iter().min_by_key(|s| match oldest_first {
            true => (Reverse(Rank::standing(0)), s.ticket),
            false => (Reverse(s.rank), s.tie),
        });
        let expected = first.copied();
        let popped = self.line.pop(oldest_first);
        let is_oldest = |s: Standing| (s.group, Some(s.ticket) == oldest);
        assert_eq!(popped, expected.map(is_oldest));
        if let Some(standing) = expected {
            self.list.retain(|other| *other != standing);
            self.gone.push(standing);
        }
    }

    fn check(&self) {
        let line = &self.line;
        assert_eq!(line.len(), self.list.len());
        assert_eq!(line.is_empty(), self.list.is_empty());
        assert_eq!(line.oldest(), self.list.iter().map(|s| s.ticket).min());
        // The invariants.
        assert!(line.lower.iter().all(|row| !row.is_empty()));
        assert!(line.lower.is_empty() || !line.top.is_empty());
        let rows = || line.lower.iter().chain([&line.top]);
        assert!(rows().is_sorted_by(|a, b| a.level < b.level));
        for Row { entries, gaps, .. } in rows() {
            assert!(*gaps <= entries.len() - gaps + SLACK, "{gaps} gaps");
            assert!(entries.front().is_none_or(|e| e.group.is_some()));
            assert!(entries.iter().is_sorted_by_key(|e| e.ticket));
        }
        assert_eq!(line.by_age.len(), line.by_rank.len());
    }

    /// By rank from the first to the last, and then nothing is kept.
    fn drain(mut self) {
        while !self.list.is_empty() {
            self.pop(false);
            self.check();
        }
        assert_eq!(self.line.pop(false), None);
        assert_eq!(self.line.pop(true), None);
        assert!(self.line.is_plain());
        assert!(self.line.top.entries.capacity() <= 2 * SLACK);
    }
}

fn level() -> impl Strategy<Value = u8> {
    prop::sample::select(vec![0_u8, 63, 64, 100, 100, 100, 128, 255])
}

fn op() -> impl Strategy<Value = Op> {
    let n = || 0..1_000_usize;
    prop_oneof![
        10 => level().prop_map(Op::Push),
        4 => (n(), prop::option::weighted(0.3, level())).prop_map(|(n, b)| Op::Return(n, b)),
        2 => level().prop_map(Op::Bumped),
        6 => any::<bool>().prop_map(Op::Pop),
        5 => n().prop_map(Op::Remove),
        1 => n().prop_map(Op::Absent),
        1 => (0..9_usize).prop_map(Op::Thin),
    ]
}

fn run(ops: &[Op]) {
    let mut pair = Pair::new();
    ops.iter().for_each(|op| pair.apply(op));
    pair.drain();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn agrees_with_a_list(ops in vec(op(), 1..300)) {
        run(&ops);
    }

    /// One level: the plain way, with some taken out of the middle.
    #[test]
    fn agrees_where_all_have_one_level(ops in vec(op(), 1..300)) {
        let one = |op: &Op| !matches!(op, Op::Return(..) | Op::Bumped(_));
        let ops = ops.into_iter().filter(one).map(|op| match op {
            Op::Push(_) => Op::Push(7),
            op => op,
        });
        run(&ops.collect::<Vec<_>>());
    }
}

/// Many gaps are closed, and whoever is left keeps its place.
#[test]
fn gaps_are_closed() {
    for levels in [&[5][..], &[5, 9, 255, 0]] {
        let mut pair = Pair::new();
        for n in 0..10 * SLACK {
            pair.push(levels[n % levels.len()]);
        }
        // From the middle outwards, so that no gap is first.
        while pair.list.len() > 20 {
            let at = pair.list.len() / 2;
            let standing = pair.list.remove(at);
            assert_eq!(pair.line.remove(standing.ticket), Some(standing.group));
        }
        assert!(pair.line.top.entries.len() <= 2 * (20 + SLACK));
        pair.push(9);
        pair.check();
        pair.drain();
    }
}

#[test]
fn a_gap_is_never_first() {
    let mut line = Line::default();
    for ticket in 1..=4 {
        line.push(ticket, 0, ticket);
    }
    assert_eq!(line.remove(2), Some(2));
    assert_eq!(line.pop(false), Some((1, true)));
    assert_eq!(line.oldest(), Some(3));
    line.push(5, 9, 5);
    assert_eq!(line.pop(true), Some((3, true)));
    assert_eq!(line.pop(false), Some((5, false)));
    assert_eq!(line.pop(false), Some((4, true)));
}

#[test]
fn a_burst_gives_its_memory_back() {
    let mut line = Line::default();
    for ticket in 0..100_000 {
        line.push(ticket, (ticket % 3) as u8, ticket);
    }
    while line.pop(false).is_some() {}
    assert!(line.top.entries.capacity() <= SLACK && line.lower.is_empty());
}
