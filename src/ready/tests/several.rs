//! Ready queues in which several groups share an entry, against a list of all groups.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::level;
use crate::ready::{Position, ReadyItem, ReadyQueue};

/// Groups in one entry, by ticket. The first is present; others may have been taken out.
#[derive(Debug, PartialEq, Eq)]
struct Block(VecDeque<Option<u64>>);

impl Block {
    fn new(first: u64, count: u64) -> Self {
        Self((first..first + count).map(Some).collect())
    }

    fn waiting(&self) -> usize {
        self.0.iter().flatten().count()
    }

    fn first(&self) -> Option<u64> {
        self.0.iter().flatten().next().copied()
    }

    fn pop(&mut self) -> Option<u64> {
        let first = self.0.pop_front()?;
        while let Some(None) = self.0.front() {
            self.0.pop_front();
        }
        first
    }

    /// Takes a group that is not the first.
    fn take(&mut self, ticket: u64) -> Option<u64> {
        let place = self.0.iter_mut().skip(1).find(|of| **of == Some(ticket));
        place?.take()
    }

    /// Takes up to this many.
    fn take_first(&mut self, most: usize) -> Option<(usize, Option<u64>, Vec<u64>)> {
        let n = most.min(self.waiting());
        let taken = (0..n).filter_map(|_| self.pop()).collect();
        (n > 0).then_some((n, self.first(), taken))
    }
}

impl ReadyItem for Block {
    fn split_first(&mut self) -> Option<(Self, u64)> {
        if self.waiting() == 1 {
            return None;
        }
        let first = self.pop()?;
        Some((Self::new(first, 1), self.first()?))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    ticket: u64,
    position: Position,
    /// The first ticket of the entry in which the group came and still is.
    block: Option<u64>,
}

#[derive(Clone, Debug)]
enum Op {
    One(u8),
    Several(u8, u64),
    Bumped(u8),
    Pop(bool),
    TakeFirst(usize),
    /// The only one is taken, if it is alone in its entry.
    TakeOnly,
    /// A group leaves, wherever it is.
    Remove(usize),
    /// A group leaves in the same way, and comes back bumped.
    Bump(usize, u8),
    /// A group that was taken comes back at its position.
    Return(usize),
}

#[derive(Default)]
struct Pair {
    line: ReadyQueue<Block>,
    list: Vec<Member>,
    gone: Vec<Member>,
    clock: u64,
}

impl Pair {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn several(&mut self, level: u8, count: u64) {
        let first = self.clock + 1;
        self.clock += count;
        let block = Block::new(first, count);
        self.line.push_several(first, level, block, count as usize);
        self.list.extend((first..first + count).map(|ticket| {
            let position = Position::new(level, ticket, None);
            let block = Some(first);
            Member {
                ticket,
                position,
                block,
            }
        }));
    }

    fn insert(&mut self, mut member: Member) {
        member.block = None;
        let block = Block::new(member.ticket, 1);
        self.line.insert(member.ticket, member.position, block);
        self.list.push(member);
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::One(level) => {
                let ticket = self.tick();
                self.line.push(ticket, level, Block::new(ticket, 1));
                self.list.push(Member {
                    ticket,
                    position: Position::new(level, ticket, None),
                    block: None,
                });
            }
            Op::Several(level, count) => self.several(level, count),
            Op::Bumped(level) => {
                let (ticket, when) = (self.tick(), self.tick());
                let position = Position::new(0, ticket, Some((level, when)));
                self.insert(Member {
                    ticket,
                    position,
                    block: None,
                });
            }
            Op::Pop(oldest_first) => self.pop(oldest_first),
            Op::TakeFirst(most) => self.take_first(most),
            Op::TakeOnly => self.take_only(),
            Op::Remove(n) if !self.list.is_empty() => {
                let member = self.remove(n % self.list.len());
                self.gone.push(member);
            }
            Op::Bump(n, level) if !self.list.is_empty() => {
                let mut member = self.remove(n % self.list.len());
                let bump = Some((level, self.tick()));
                member.position = Position::new(0, member.ticket, bump);
                self.insert(member);
            }
            Op::Return(n) if !self.gone.is_empty() => {
                let member = self.gone.swap_remove(n % self.gone.len());
                // A group cannot return while others of its entry are still there.
                let came = |of: &Member| of.block == member.block;
                if member.block.is_none() || !self.list.iter().any(came) {
                    self.insert(member);
                }
            }
            _ => {}
        }
        self.check();
    }

    fn pop(&mut self, oldest_first: bool) {
        let oldest = self.list.iter().map(|m| m.ticket).min();
        let all = self.list.iter().copied();
        let expected = match oldest_first {
            true => all.min_by_key(|m| m.ticket),
            false => all.min_by_key(|m| m.position),
        };
        let popped = self.line.pop(oldest_first);
        let is_oldest = |m: Member| (Block::new(m.ticket, 1), Some(m.ticket) == oldest);
        let popped = popped.map(|(block, oldest)| {
            assert_eq!(block.waiting(), 1);
            (Block::new(block.first().unwrap(), 1), oldest)
        });
        assert_eq!(popped, expected.map(is_oldest));
        self.list.retain(|other| Some(*other) != expected);
        self.gone.extend(expected);
    }

    fn take_first(&mut self, most: usize) {
        let takes = self.line.is_plain() && self.line.row.behind > 0;
        let taken = self.line.take_first(|block| block.take_first(most));
        self.list.sort_by_key(|member| member.ticket);
        let first = self.list.first().and_then(|first| first.block);
        let of_first = |m: &&Member| first.is_some() && m.block == first;
        let waiting = self.list.iter().filter(of_first).count().max(1);
        let n = if takes { most.min(waiting) } else { 0 };
        let expected: Vec<_> = self.list.drain(..n).collect();
        let tickets: Vec<_> = expected.iter().map(|m| m.ticket).collect();
        assert_eq!(taken, (n > 0).then_some((n, tickets)));
        self.gone.extend(expected);
    }

    fn take_only(&mut self) {
        // Else there are ranks, or a gap.
        let one = self.line.row.entries.len() == 1;
        let alone = |block: &Block| block.waiting() == 1;
        let ticket = self.list.iter().map(|m| m.ticket).min().unwrap_or(0);
        assert_eq!(self.line.take_only(ticket + 1, 7, alone), None);
        assert_eq!(self.line.take_only(ticket, 7, |_| false), None);
        let taken = self.line.take_only(ticket, 7, alone);
        let only = match self.list[..] {
            [only] if one && only.position == Position::new(7, ticket, None) => Some(only),
            _ => None,
        };
        assert_eq!(
            taken.and_then(|block| block.first()),
            only.map(|m| m.ticket)
        );
        if only.is_some() {
            self.gone.append(&mut self.list);
        }
    }

    fn remove(&mut self, at: usize) -> Member {
        let member = self.list.remove(at);
        let Member {
            ticket, position, ..
        } = member;
        let taken = match self.line.remove(position) {
            Some(block) => block.first(),
            None => self.line.take_covered(position, |block| block.take(ticket)),
        };
        assert_eq!(taken, Some(ticket));
        assert_eq!(self.line.remove(position), None);
        let again = |block: &mut Block| block.take(ticket);
        assert_eq!(self.line.take_covered(position, again), None);
        member
    }

    fn check(&mut self) {
        assert_eq!(self.line.oldest(), self.list.iter().map(|m| m.ticket).min());
        assert_eq!(self.line.count(usize::MAX), self.list.len());
        assert_eq!(self.line.is_empty(), self.list.is_empty());
        let standing: usize = self.line.iter().map(Block::waiting).sum();
        assert_eq!(standing, self.list.len());
        // Of the groups in one entry, only the first is found.
        let firsts = self.line.iter().filter_map(Block::first).count();
        let found = |m: &&Member| self.line.contains(m.position);
        assert_eq!(self.list.iter().filter(found).count(), firsts);
    }

    fn drain(mut self) {
        while !self.list.is_empty() {
            self.apply(&Op::Pop(false));
        }
        assert_eq!(self.line.pop(false), None);
        assert!(self.line.is_plain() && self.line.row.behind == 0);
        let rows = self.line.spare.iter().flat_map(|ranked| &ranked.rows);
        assert!(rows.map(|row| row.behind).all(|behind| behind == 0));
    }
}

fn op() -> impl Strategy<Value = Op> {
    let n = || 0..1_000_usize;
    prop_oneof![
        3 => level().prop_map(Op::One),
        5 => (level(), 1..9_u64).prop_map(|(level, count)| Op::Several(level, count)),
        1 => level().prop_map(Op::Bumped),
        6 => any::<bool>().prop_map(Op::Pop),
        6 => (0..9_usize).prop_map(Op::TakeFirst),
        1 => Just(Op::TakeOnly),
        5 => n().prop_map(Op::Remove),
        2 => (n(), level()).prop_map(|(n, level)| Op::Bump(n, level)),
        3 => n().prop_map(Op::Return),
    ]
}

fn run(ops: &[Op]) {
    let mut pair = Pair::default();
    ops.iter().for_each(|op| pair.apply(op));
    pair.drain();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn agree_with_a_list_of_all(ops in vec(op(), 1..200)) {
        run(&ops);
    }

    /// With one level only: now and then a group is bumped, and the queue becomes plain again.
    #[test]
    fn agree_with_a_list_where_all_have_one_level(ops in vec(op(), 1..200)) {
        let ops = ops.into_iter().map(|op| match op {
            Op::One(_) => Op::One(7),
            Op::Several(_, count) => Op::Several(7, count),
            op => op,
        });
        run(&ops.collect::<Vec<_>>());
    }
}

#[test]
fn one_that_is_bumped_out_of_the_middle_leaves_the_others_as_one() {
    let mut pair = Pair::default();
    pair.several(7, 5);
    pair.apply(&Op::Bump(2, 9));
    assert!(!pair.line.is_plain());
    pair.apply(&Op::TakeFirst(9));
    assert_eq!(pair.list.len(), 5, "none while there are ranks");
    pair.apply(&Op::Pop(false));
    assert!(pair.line.is_plain());
    pair.apply(&Op::TakeFirst(9));
    let left: Vec<_> = pair.list.iter().map(|member| member.ticket).collect();
    assert_eq!(left, [0; 0], "all four at once");
    pair.drain();
}
