use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Fifo, SLACK};

const MEMBERS: u32 = 40;

#[derive(Clone, Debug)]
enum Op {
    /// Joins under a new number.
    Join(u32),
    /// Comes back under the number that it had last.
    Return(u32),
    Leave(u32),
    LeaveFront,
    Front,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0..MEMBERS).prop_map(Op::Join),
        4 => (0..MEMBERS).prop_map(Op::Return),
        5 => (0..MEMBERS).prop_map(Op::Leave),
        1 => Just(Op::LeaveFront),
        2 => Just(Op::Front),
    ]
}

/// A line beside who stands in it, by a sorted set.
#[derive(Default)]
struct Pair {
    fifo: Fifo,
    at: Vec<Option<u64>>,
    last: Vec<u64>,
    model: BTreeSet<(u64, u32)>,
    clock: u64,
}

impl Pair {
    fn new(members: u32) -> Self {
        Self {
            at: vec![None; members as usize],
            last: vec![0; members as usize],
            ..Self::default()
        }
    }

    fn join(&mut self, member: u32, seq: u64) {
        if self.at[member as usize].is_none() {
            self.at[member as usize] = Some(seq);
            self.last[member as usize] = seq;
            self.model.insert((seq, member));
            self.fifo.insert(seq, member);
        }
    }

    fn join_new(&mut self, member: u32) {
        self.clock += 1;
        self.join(member, self.clock);
    }

    fn come_back(&mut self, member: u32) {
        match self.last[member as usize] {
            0 => self.join_new(member),
            seq => self.join(member, seq),
        }
    }

    fn leave(&mut self, member: u32) {
        if let Some(seq) = self.at[member as usize].take() {
            self.model.remove(&(seq, member));
            let at = &self.at;
            self.fifo
                .leave(seq, member, |member, seq| at[member as usize] == Some(seq));
        }
    }

    fn front(&mut self) -> Option<(u64, u32)> {
        let at = &self.at;
        self.fifo
            .front(|member, seq| at[member as usize] == Some(seq))
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Join(member) => self.join_new(member),
            Op::Return(member) => self.come_back(member),
            Op::Leave(member) => self.leave(member),
            Op::LeaveFront => {
                if let Some(&(_, member)) = self.model.first() {
                    self.leave(member);
                }
            }
            Op::Front => assert_eq!(self.front(), self.model.first().copied()),
        }
        self.check();
    }

    fn check(&self) {
        assert_eq!(self.fifo.len(), self.model.len());
        assert_eq!(self.fifo.is_empty(), self.model.is_empty());
        let tokens = self.fifo.tokens();
        assert!(tokens >= self.model.len(), "everyone has a token");
        assert!(
            tokens <= 4 * self.model.len() + SLACK,
            "{tokens} tokens for {}",
            self.model.len()
        );
        let numbers = self.fifo.tokens.iter().map(|t| t.0);
        assert!(numbers.is_sorted(), "invariant 3");
    }

    fn drain(&mut self) {
        while let Some((seq, member)) = self.front() {
            assert_eq!(self.model.first(), Some(&(seq, member)));
            self.leave(member);
        }
        assert!(self.model.is_empty());
        assert_eq!(self.fifo.tokens(), 0);
        assert!(self.fifo.tokens.capacity() <= SLACK);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    #[test]
    fn agrees_with_a_sorted_set(ops in vec(op(), 1..3000)) {
        let mut pair = Pair::new(MEMBERS);
        ops.iter().for_each(|op| pair.apply(op));
        pair.drain();
    }
}

/// All leave and come back under their old numbers, `rounds` times, in an
/// order that is neither that of age nor its reverse.
fn storm(pair: &mut Pair, members: u32, rounds: u32) {
    for round in 0..rounds {
        let step = 7919 + 2 * round;
        (0..members).for_each(|n| pair.leave(((n * step) % members) ^ 1));
        (0..members).for_each(|n| pair.come_back(((n * step) % members) ^ 1));
        (0..members).rev().for_each(|n| {
            pair.leave(n);
            pair.come_back(n);
        });
        pair.check();
    }
}

#[test]
fn a_storm_of_leaving_and_coming_back_keeps_order_and_memory() {
    let members = 1 << 15;
    let mut pair = Pair::new(members);
    (0..members).for_each(|n| pair.join_new(n));
    storm(&mut pair, members, 3);
    pair.drain();
}

#[test]
fn one_that_comes_and_goes_leaves_no_tokens_behind() {
    let mut pair = Pair::new(3);
    (0..3).for_each(|n| pair.join_new(n));
    for _ in 0..10_000 {
        pair.leave(1);
        pair.come_back(1);
        pair.leave(2);
        pair.join_new(2);
        pair.check();
    }
    assert_eq!(pair.front(), Some((1, 0)));
    pair.leave(0);
    assert_eq!(pair.front(), Some((2, 1)));
    pair.drain();
}

#[test]
fn a_line_that_shrinks_gives_its_memory_back() {
    let mut pair = Pair::new(20_000);
    (0..20_000).for_each(|n| pair.join_new(n));
    (0..19_990).for_each(|n| {
        assert_eq!(pair.front(), Some((u64::from(n) + 1, n)));
        pair.leave(n);
    });
    assert!(pair.fifo.tokens.capacity() <= 8 * pair.fifo.tokens.len() + 2 * SLACK);
    assert!(pair.fifo.tokens.capacity() < 300);
    pair.drain();
}

#[test]
fn a_sweep_keeps_who_came_back_under_an_old_number() {
    let mut pair = Pair::new(500);
    (0..200).for_each(|n| pair.join_new(n));
    (0..170).for_each(|n| pair.leave(n));
    assert!(pair.fifo.tokens() < 170, "swept");
    pair.come_back(0);
    assert_eq!(pair.fifo.late.len(), 1);
    (200..500).for_each(|n| pair.join_new(n));
    (200..500).rev().for_each(|n| pair.leave(n));
    pair.check();
    assert!(pair.fifo.tokens() < 300, "swept again");
    assert_eq!(pair.front(), Some((1, 0)));
    pair.drain();
}
