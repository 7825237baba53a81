//! The ready queue against a list that is searched from end to end.

mod long;
mod several;

use proptest::collection::vec;
use proptest::prelude::*;

use super::ranked::NO_ROW;
use super::{Age, FEW_GAPS, FEW_RANKS, Position, ReadyItem, ReadyQueue, Row, SLACK};

/// A group, and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    ticket: u64,
    position: Position,
    group: u32,
}

/// Wider than the entries in which the slack is counted.
struct Wide([u64; 16]);

impl ReadyItem for Wide {}

#[derive(Clone, Debug)]
enum Op {
    /// A new arrival, of this standing level.
    Push(u8),
    /// A group that was taken out comes back with its old ticket, with its rank or bumped.
    Return(usize, Option<u8>),
    /// A new arrival that is bumped.
    Bumped(u8),
    Pop(bool),
    /// Pops up to this many at once.
    Run(usize),
    Remove(usize),
    /// Asks for a group that is not here.
    Absent(usize),
    /// All but a few leave from the middle.
    Thin(usize),
}

struct Pair {
    line: ReadyQueue<u32>,
    list: Vec<Member>,
    gone: Vec<Member>,
    clock: u64,
}

impl Pair {
    fn new() -> Self {
        Self {
            line: ReadyQueue::default(),
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
        let member = Member {
            ticket,
            position: Position::new(level, ticket, None),
            group: ticket as u32,
        };
        self.line.push(ticket, level, member.group);
        self.list.push(member);
    }

    fn insert(&mut self, member: Member) {
        self.line
            .insert(member.ticket, member.position, member.group);
        self.list.push(member);
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Push(level) => self.push(level),
            Op::Bumped(level) => {
                let (ticket, when) = (self.tick(), self.tick());
                self.insert(Member {
                    ticket,
                    position: Position::new(0, ticket, Some((level, when))),
                    group: ticket as u32,
                });
            }
            Op::Return(n, bump) if !self.gone.is_empty() => {
                let mut member = self.gone.swap_remove(n % self.gone.len());
                if let Some(level) = bump {
                    member.position = Position::new(0, member.ticket, Some((level, self.tick())));
                }
                self.insert(member);
            }
            Op::Pop(oldest_first) => self.pop(oldest_first),
            Op::Run(most) => self.run(most),
            Op::Remove(n) if !self.list.is_empty() => self.remove(n % self.list.len()),
            Op::Absent(n) if !self.gone.is_empty() => {
                let position = self.gone[n % self.gone.len()].position;
                assert!(!self.line.contains(position));
                assert_eq!(self.line.remove(position), None);
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
        let member = self.list.remove(at);
        assert!(self.line.contains(member.position));
        assert_eq!(self.line.remove(member.position), Some(member.group));
        self.gone.push(member);
    }

    fn pop(&mut self, oldest_first: bool) {
        let oldest = self.list.iter().map(|s| s.ticket).min();
        let all = self.list.iter().copied();
        let expected = match oldest_first {
            true => all.min_by_key(|m| m.ticket),
            false => all.min_by_key(|m| m.position),
        };
        let popped = self.line.pop(oldest_first);
        let is_oldest = |m: Member| (m.group, Some(m.ticket) == oldest);
        assert_eq!(popped, expected.map(is_oldest));
        if let Some(member) = expected {
            self.list.retain(|other| *other != member);
            self.gone.push(member);
        }
    }

    fn run(&mut self, most: usize) {
        let mut out = vec![None; most];
        let plain = self.line.is_plain();
        let n = self.line.pop_run(&mut out);
        assert_eq!(n > 0, plain && most > 0 && !self.list.is_empty());
        self.list.sort_by_key(|member| member.ticket);
        let popped: Vec<_> = self.list.drain(..n).collect();
        assert!(out.into_iter().flatten().eq(popped.iter().map(|m| m.group)));
        self.gone.extend(popped);
    }

    fn check(&mut self) {
        assert_eq!(self.line.oldest(), self.list.iter().map(|m| m.ticket).min());
        let line = &self.line;
        assert_eq!(line.count(usize::MAX), self.list.len());
        assert_eq!(line.count(3), self.list.len().min(3));
        assert_eq!(line.is_empty(), self.list.is_empty());
        // The invariants.
        let is_row = |Row { entries, gaps, .. }: &Row<u32>| {
            assert!(*gaps <= entries.len() - gaps + FEW_GAPS, "{gaps} gaps");
            assert!(entries.front().is_none_or(|e| e.group.is_some()));
            entries.iter().is_sorted_by_key(|e| e.ticket)
        };
        assert!(is_row(&line.row) && (line.row.is_empty() || line.is_plain()));
        for ranked in line.ranked.iter().chain(&line.spare) {
            let empty = ranked.rows.iter().filter(|row| row.is_empty());
            let room: usize = empty.map(|row| row.entries.capacity()).sum();
            assert!(room == ranked.room && room <= 2 * SLACK);
        }
        if let Some(ranked) = &line.ranked {
            assert!(ranked.rows.iter().all(is_row));
            assert!(!ranked.is_empty());
            if let Some(top) = ranked.rows.get(usize::from(ranked.top)) {
                assert!(top.is_plain() && ranked.odd.is_empty() && !top.is_empty());
                let mut busy = ranked.rows.iter().filter(|row| !row.is_empty());
                assert!(busy.all(|row| row.rank <= top.rank));
            }
        }
        if let Some(spare) = &line.spare {
            assert!(spare.is_empty() && (spare.top, spare.most_ages) == (NO_ROW, SLACK));
        }
    }

    /// Pops all by rank; then nothing is kept.
    fn drain(mut self) {
        while !self.list.is_empty() {
            self.pop(false);
            self.check();
        }
        assert_eq!(self.line.pop(false), None);
        assert_eq!(self.line.pop(true), None);
        assert!(self.line.is_plain());
        let rows = self.line.spare.iter().flat_map(|ranked| &ranked.rows);
        assert!(
            rows.chain([&self.line.row])
                .all(|row| row.entries.capacity() <= 2 * SLACK)
        );
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
        2 => (0..9_usize).prop_map(Op::Run),
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

    /// With one level only: the plain way, with some taken out of the middle.
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

/// Many gaps are closed, and the remaining groups keep their places.
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
            let member = pair.list.remove(at);
            assert_eq!(pair.line.remove(member.position), Some(member.group));
        }
        let rows = pair.line.ranked.iter().flat_map(|ranked| &ranked.rows);
        let most = rows
            .chain([&pair.line.row])
            .map(|row| row.entries.len())
            .max();
        assert!(most.is_some_and(|most| most <= 2 * (20 + FEW_GAPS)));
        pair.push(9);
        pair.check();
        pair.drain();
    }
}

#[test]
fn a_gap_is_never_first() {
    let mut line = ReadyQueue::default();
    for ticket in 1..=4 {
        line.push(ticket, 0, ticket);
    }
    assert_eq!(line.remove(Position::new(0, 2, None)), Some(2));
    assert_eq!(line.pop(false), Some((1, true)));
    assert_eq!(line.oldest(), Some(3));
    line.push(5, 9, 5);
    assert_eq!(line.pop(true), Some((3, true)));
    assert_eq!(line.pop(false), Some((5, false)));
    assert_eq!(line.pop(false), Some((4, true)));
}

#[test]
fn a_burst_gives_its_memory_back() {
    let mut line = ReadyQueue::default();
    for ticket in 0..100_000 {
        line.push(ticket, (ticket % 3) as u8, ticket);
    }
    while line.pop(false).is_some() {}
    let ranked = line.spare.unwrap();
    assert!(
        ranked
            .rows
            .iter()
            .all(|row| row.entries.capacity() <= SLACK)
    );
}

/// All rows together keep as much as one. The rows of many ranks are not kept.
#[test]
fn a_burst_of_many_ranks_gives_its_memory_back() {
    let mut line = ReadyQueue::default();
    for ranks in [FEW_RANKS as u64, 256, FEW_RANKS as u64 + 1] {
        for ticket in 0..50_000 {
            let level = (ticket % ranks) as u8;
            let bump = level.is_multiple_of(2).then_some((level, ticket));
            line.join(Age::New, ticket, level, bump, ticket);
        }
        while line.pop(false).is_some() {}
        assert_eq!(line.spare.is_some(), ranks == FEW_RANKS as u64);
        let rows = line.spare.iter().flat_map(|spare| &spare.rows);
        let room = rows.map(|row| row.entries.capacity());
        assert!(room.sum::<usize>() <= SLACK);
    }
}

/// As many bytes are kept for wide members as for narrow ones.
#[test]
fn a_burst_of_wide_members_gives_its_memory_back() {
    let mut line = ReadyQueue::default();
    (0..1000).for_each(|ticket| line.push(ticket, 0, Wide([ticket; 16])));
    let popped = std::iter::from_fn(|| line.pop(false).map(|(wide, _)| wide.0[15]));
    assert!(popped.eq(0..1000));
    assert!(line.row.entries.capacity() < SLACK / 2);
}

/// Many groups are bumped, and bumped again. The oldest is still known, and groups that have left
/// are forgotten.
#[test]
fn the_oldest_of_many_that_are_bumped() {
    let mut pair = Pair::new();
    for n in 0..5_000 {
        pair.push((n % 7) as u8);
    }
    for round in 0..40_000_usize {
        let at = (round * 7919) % pair.list.len();
        let mut member = pair.list[at];
        assert_eq!(pair.line.remove(member.position), Some(member.group));
        let bump = Some(((round % 9) as u8, pair.tick()));
        member.position = Position::new(0, member.ticket, bump);
        pair.line
            .insert(member.ticket, member.position, member.group);
        pair.list[at] = member;
        if round % 1_000 == 0 {
            pair.pop(true);
            pair.check();
        }
    }
    let ages = pair.line.ranked.as_ref().unwrap().ages.as_ref().unwrap();
    assert!(ages.len() <= 2 * pair.list.len() + SLACK);
    pair.drain();
}

/// A row with a gap becomes one of several when a group comes back behind it.
#[test]
fn a_gap_comes_along_to_the_ranks() {
    let mut pair = Pair::new();
    (0..4).for_each(|_| pair.push(9));
    (0..4).for_each(|_| pair.remove(0));
    // They come back: each but the last before the others.
    for last in [2, 1, 0] {
        let member = pair.gone.remove(last);
        pair.insert(member);
        pair.check();
    }
    assert!(pair.line.is_plain());
    pair.remove(1);
    let last = pair.gone.remove(0);
    pair.insert(last);
    pair.check();
    assert!(!pair.line.is_plain());
    pair.drain();
}
