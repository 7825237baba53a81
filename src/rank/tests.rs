use std::cmp::Reverse;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Form, Rank, Slot};

const MEMBERS: usize = 30;

#[derive(Clone, Debug)]
enum Op {
    /// Joins a slot under a new number.
    Join(usize, Slot),
    /// Comes back where it stood last.
    Return(usize),
    Leave(usize),
    LeaveBest,
}

fn slot() -> impl Strategy<Value = Slot> {
    let edges = prop::sample::select(vec![0u16, 1, 62, 63, 64, 255, 256, 257, 319, 320, 511]);
    prop_oneof![4 => edges, 1 => 0..512u16].prop_map(Slot::numbered)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..MEMBERS, slot()).prop_map(|(m, s)| Op::Join(m, s)),
        3 => (0..MEMBERS).prop_map(Op::Return),
        5 => (0..MEMBERS).prop_map(Op::Leave),
        2 => Just(Op::LeaveBest),
    ]
}

#[derive(Default)]
struct Pair {
    rank: Rank,
    at: Vec<Option<(Slot, u64)>>,
    last: Vec<Option<(Slot, u64)>>,
    clock: u64,
}

impl Pair {
    fn join(&mut self, member: usize, place: (Slot, u64)) {
        if self.at[member].is_none() {
            self.at[member] = Some(place);
            self.last[member] = Some(place);
            self.rank.insert(place.0, place.1, member as u32);
        }
    }

    fn leave(&mut self, member: usize) {
        if let Some((slot, seq)) = self.at[member].take() {
            let at = &self.at;
            let stands = |member, seq| at[member as usize] == Some((slot, seq));
            self.rank.leave(slot, seq, member as u32, stands);
        }
    }

    fn apply(&mut self, op: &Op) {
        self.clock += 1;
        match *op {
            Op::Join(member, slot) => self.join(member, (slot, self.clock)),
            Op::Return(member) => {
                let place = self.last[member].unwrap_or((Slot::numbered(7), self.clock));
                self.join(member, place);
            }
            Op::Leave(member) => self.leave(member),
            Op::LeaveBest => {
                if let Some(member) = self.model_best() {
                    self.leave(member);
                }
            }
        }
        let best = self.best();
        assert_eq!(best, self.model_best());
    }

    fn best(&mut self) -> Option<usize> {
        let at = &self.at;
        let best = self
            .rank
            .best(|slot, member, seq| at[member as usize] == Some((slot, seq)));
        best.map(|member| member as usize)
    }

    /// By slot downwards, then by number: a scan over all.
    fn model_best(&self) -> Option<usize> {
        let standing = self.at.iter().enumerate();
        let placed = standing.filter_map(|(member, at)| at.map(|(slot, seq)| (slot, seq, member)));
        placed
            .min_by_key(|&(slot, seq, _)| (Reverse(slot), seq))
            .map(|(_, _, member)| member)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    #[test]
    fn agrees_with_a_scan(ops in vec(op(), 1..2000)) {
        let mut pair = Pair { at: vec![None; MEMBERS], last: vec![None; MEMBERS], ..Pair::default() };
        ops.iter().for_each(|op| pair.apply(op));
        while let Some(member) = pair.best() {
            pair.leave(member);
        }
        prop_assert_eq!(pair.model_best(), None);
        prop_assert!(matches!(pair.rank.0, Form::One(..)), "the slots are given back");
    }
}

#[test]
fn every_bump_is_above_every_standing_level() {
    assert!(Slot::bumped(0) > Slot::standing(255));
    assert!(Slot::bumped(255) > Slot::bumped(254) && Slot::standing(1) > Slot::standing(0));
    assert_eq!(
        (Slot::standing(0), Slot::bumped(255)),
        (Slot::numbered(0), Slot::numbered(511))
    );
}

#[test]
fn all_slots_at_once_are_served_from_the_top() {
    let members = 2 * 512;
    let mut pair = Pair {
        at: vec![None; members],
        last: vec![None; members],
        ..Pair::default()
    };
    // In an order that inserts new slots before, between and after known ones.
    for n in 0..members {
        pair.clock += 1;
        pair.join(n, (Slot::numbered((n * 197 % 512) as u16), pair.clock));
    }
    for expected in (0..512u16).rev() {
        for _ in 0..2 {
            let best = pair.best().unwrap();
            assert_eq!(Some(best), pair.model_best());
            assert_eq!(pair.at[best].unwrap().0, Slot::numbered(expected));
            pair.leave(best);
        }
    }
    assert_eq!(pair.best(), None);
}
