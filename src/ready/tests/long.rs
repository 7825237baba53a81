//! Rows so long that they have marks, against a list that is searched from end to end.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::ready::marks::Marks;
use crate::ready::{Entry, Position, ReadyItem, Row};

/// The first ticket, and how many groups share the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run(u64, u64);

impl ReadyItem for Run {
    fn split_first(&mut self) -> Option<(Self, u64)> {
        let first = Run(self.0, 1);
        *self = (self.1 > 1).then(|| Run(self.0 + 1, self.1 - 1))?;
        Some((first, self.0))
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// Several entries join: how many, and with how many groups each.
    Push(usize, u64),
    Pop(usize),
    /// The group that left last comes back, if it was the first.
    Return,
    Take(usize),
    /// All groups of a part of the row leave.
    Thin(usize, usize),
}

struct Pair {
    row: Row<Run>,
    list: VecDeque<Run>,
    first_gone: Option<u64>,
    ticket: u64,
}

impl Pair {
    fn new() -> Self {
        Self {
            row: Row::new(100),
            list: VecDeque::new(),
            first_gone: None,
            ticket: 0,
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Push(runs, count) => {
                (0..runs).for_each(|_| self.push(count));
                let last = self.list.back().map_or(0, |last| last.0);
                assert!(self.row.find(Position::of(100, last)).is_some());
            }
            Op::Pop(runs) => (0..runs).for_each(|_| self.pop()),
            Op::Return => self.put_back(),
            Op::Take(at) if !self.list.is_empty() => self.take(at % self.list.len()),
            Op::Thin(at, most) => {
                let at = at % self.list.len().max(1);
                (0..most.min(self.list.len() - at)).for_each(|_| self.take(at));
            }
            Op::Take(_) => {}
        }
    }

    fn push(&mut self, count: u64) {
        let first = self.ticket + 1;
        // At uneven distances.
        self.ticket += count + first % 7 * (first % 5);
        let run = Run(first, count);
        self.row.entries.push_back(Entry::new(first, 100, run));
        self.row.behind += count as usize - 1;
        self.list.push_back(run);
    }

    fn pop(&mut self) {
        let popped = self.row.pop().map(|entry| (entry.ticket, entry.group));
        let first = self.list.front().copied();
        let one = first.map(|Run(ticket, _)| (ticket, Some(Run(ticket, 1))));
        assert_eq!(popped, one);
        self.gone(0);
        self.first_gone = first.map(|first| first.0);
    }

    fn put_back(&mut self) {
        if let Some(ticket) = self.first_gone.take() {
            let run = Run(ticket, 1);
            let had_marks = self.row.marks.is_some() && !self.list.is_empty();
            self.row.push_front(Entry::new(ticket, 100, run));
            self.list.push_front(run);
            // They would cost a walk over the whole row to make again.
            let near = |marks: &Marks| marks.near(&self.row.entries, ticket);
            let near = self.row.marks.as_deref().and_then(near);
            assert_eq!(near.is_some_and(|near| near.contains(&0)), had_marks);
        }
    }

    fn take(&mut self, at: usize) {
        let ticket = self.list[at].0;
        let taken = self.row.take(Position::of(100, ticket));
        assert_eq!(taken.and_then(|taken| taken.group), Some(Run(ticket, 1)));
        self.gone(at);
        assert!(self.row.take(Position::of(100, ticket)).is_none());
    }

    /// The first group of a run has left.
    fn gone(&mut self, at: usize) {
        if at == 0 {
            self.first_gone = None;
        }
        match self.list.get_mut(at) {
            Some(run) if run.1 > 1 => *run = Run(run.0 + 1, run.1 - 1),
            _ => _ = self.list.remove(at),
        }
    }
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (1..80usize, 1..4u64).prop_map(|(runs, count)| Op::Push(runs, count)),
        2 => (1..40usize).prop_map(Op::Pop),
        1 => Just(Op::Return),
        4 => any::<usize>().prop_map(Op::Take),
        1 => (any::<usize>(), 1..30usize).prop_map(|(at, most)| Op::Thin(at, most)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_long_row_agrees_with_a_list(ops in vec(op(), 1..100)) {
        let mut pair = Pair::new();
        pair.push(1);
        (0..150).for_each(|_| pair.push(1));
        ops.iter().for_each(|op| pair.apply(op));
        while !pair.list.is_empty() {
            pair.pop();
        }
        prop_assert!(pair.row.is_empty());
    }
}
