use std::cmp::Reverse;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Choice, Line, Place};
use crate::rank::Slot;

const GROUPS: usize = 24;

#[derive(Clone, Debug)]
enum Op {
    Join(usize, Slot),
    /// Comes back where it stood last.
    Return(usize),
    Leave(usize),
    /// To another slot, by its age there.
    Level(usize, u8),
    /// To another slot, as the last there.
    Bump(usize, u8),
    ServeByRank,
    ServeByAge,
}

fn op() -> impl Strategy<Value = Op> {
    let g = 0..GROUPS;
    let level = || prop::sample::select(vec![0u8, 1, 2, 100, 255]);
    let slot = prop_oneof![
        level().prop_map(Slot::standing),
        level().prop_map(Slot::bumped)
    ];
    prop_oneof![
        4 => (g.clone(), slot).prop_map(|(g, s)| Op::Join(g, s)),
        2 => g.clone().prop_map(Op::Return),
        3 => g.clone().prop_map(Op::Leave),
        3 => (g.clone(), level()).prop_map(|(g, l)| Op::Level(g, l)),
        3 => (g, level()).prop_map(|(g, l)| Op::Bump(g, l)),
        1 => Just(Op::ServeByRank),
        1 => Just(Op::ServeByAge),
    ]
}

#[derive(Default)]
struct Pair {
    line: Line,
    at: Vec<Option<Place>>,
    last: Vec<Option<Place>>,
    clock: u64,
}

impl Pair {
    fn new() -> Self {
        Self {
            at: vec![None; GROUPS],
            last: vec![None; GROUPS],
            ..Self::default()
        }
    }

    fn join(&mut self, group: usize, place: Place) {
        if self.at[group].is_none() {
            self.at[group] = Some(place);
            self.last[group] = Some(place);
            self.line.insert(place, group as u32);
        }
    }

    fn join_new(&mut self, group: usize, slot: Slot) {
        let (ranked, ready) = (self.clock, self.clock);
        let place = Place {
            slot,
            ranked,
            ready,
        };
        self.join(group, place);
    }

    fn leave(&mut self, group: usize) {
        if let Some(from) = self.at[group].take() {
            let at = &self.at;
            self.line
                .leave(group as u32, from, |group| at[group as usize]);
        }
    }

    fn rerank(&mut self, group: usize, slot: Slot, ranked: Option<u64>) {
        let Some(from) = self.at[group] else { return };
        let ranked = ranked.unwrap_or(from.ready);
        let to = Place {
            slot,
            ranked,
            ..from
        };
        self.at[group] = Some(to);
        self.last[group] = Some(to);
        let at = &self.at;
        self.line
            .rerank(group as u32, from, to, |group| at[group as usize]);
    }

    fn choose(&mut self, by_age: bool) -> Option<Choice> {
        let at = &self.at;
        self.line.choose(by_age, |group| at[group as usize])
    }

    /// A scan over all.
    fn model(&self, by_age: bool) -> Option<Choice> {
        let standing = || {
            (0..)
                .zip(&self.at)
                .filter_map(|(g, at)| at.map(|at| (g, at)))
        };
        let (oldest, _) = standing().min_by_key(|(_, at)| at.ready)?;
        let (best, _) = standing().min_by_key(|(_, at)| (Reverse(at.slot), at.ranked))?;
        let group = if by_age { oldest } else { best };
        let oldest = group == oldest;
        Some(Choice { group, oldest })
    }

    fn apply(&mut self, op: &Op) {
        self.clock += 1;
        match *op {
            Op::Join(group, slot) => self.join_new(group, slot),
            Op::Return(group) => match self.last[group] {
                Some(place) => self.join(group, place),
                None => self.join_new(group, Slot::standing(100)),
            },
            Op::Leave(group) => self.leave(group),
            Op::Level(group, level) => self.rerank(group, Slot::standing(level), None),
            Op::Bump(group, level) => self.rerank(group, Slot::bumped(level), Some(self.clock)),
            Op::ServeByRank => self.serve(false),
            Op::ServeByAge => self.serve(true),
        }
        let standing = self.at.iter().flatten().count();
        assert_eq!(self.line.len(), standing);
        assert_eq!(self.line.is_empty(), standing == 0);
        for by_age in [false, true] {
            assert_eq!(self.choose(by_age), self.model(by_age));
        }
    }

    fn serve(&mut self, by_age: bool) {
        if let Some(choice) = self.model(by_age) {
            self.leave(choice.group as usize);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    #[test]
    fn agrees_with_a_scan(ops in vec(op(), 1..2000)) {
        let mut pair = Pair::new();
        ops.iter().for_each(|op| pair.apply(op));
    }
}

#[test]
fn a_group_that_moves_to_another_rank_keeps_its_age() {
    let mut pair = Pair::new();
    for group in 0..3 {
        pair.apply(&Op::Join(group, Slot::standing(100)));
    }
    pair.apply(&Op::Bump(2, 7));
    pair.apply(&Op::Level(0, 0));
    let choice = |group, oldest| Some(Choice { group, oldest });
    assert_eq!(pair.choose(false), choice(2, false));
    assert_eq!(pair.choose(true), choice(0, true));
    pair.leave(2);
    assert_eq!(pair.choose(false), choice(1, false));
    pair.leave(1);
    assert_eq!(pair.choose(false), choice(0, true));
}
