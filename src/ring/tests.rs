use super::{Link, Links, MAX_WEIGHT, Ring};
use proptest::prelude::*;
use std::collections::VecDeque;

impl Links for Vec<Link> {
    fn link(&self, lane: u32) -> &Link {
        &self[lane as usize]
    }

    fn link_mut(&mut self, lane: u32) -> &mut Link {
        &mut self[lane as usize]
    }
}

/// A ring with the links of its lanes.
struct Lanes {
    ring: Ring,
    links: Vec<Link>,
}

impl Lanes {
    /// Lanes with these weights, which join in this order.
    fn new(weights: &[u32]) -> Self {
        let mut lanes = Self {
            ring: Ring::default(),
            links: weights.iter().map(|&weight| Link::new(weight)).collect(),
        };
        (0..weights.len() as u32).for_each(|lane| lanes.join(lane));
        lanes
    }

    fn join(&mut self, lane: u32) {
        self.ring.join(&mut self.links, lane);
    }

    fn leave(&mut self, lane: u32) {
        self.ring.leave(&mut self.links, lane);
    }

    /// The lanes that are served in the next turns.
    fn turns(&mut self, count: usize) -> Vec<u32> {
        let turn = |_| {
            let lane = self.ring.current().unwrap();
            self.ring.served(self.links.link_mut(lane));
            lane
        };
        (0..count).map(turn).collect()
    }

    fn order(&self) -> Vec<u32> {
        self.ring.iter(&self.links).collect()
    }
}

#[test]
fn lanes_take_their_weight_in_consecutive_turns() {
    let mut lanes = Lanes::new(&[1, 2, 3]);
    assert_eq!(lanes.turns(13), [0, 1, 1, 2, 2, 2, 0, 1, 1, 2, 2, 2, 0]);
}

#[test]
fn a_ring_without_lanes_serves_nobody() {
    let mut lanes = Lanes::new(&[1]);
    lanes.leave(0);
    lanes.leave(0);
    assert_eq!((lanes.ring.current(), lanes.ring.len()), (None, 0));
    assert!(lanes.ring.is_empty() && lanes.order().is_empty());
}

#[test]
fn a_lane_alone_is_always_served() {
    let mut lanes = Lanes::new(&[2]);
    assert_eq!(lanes.turns(5), [0; 5]);
    for turns in 0..9 {
        let mut alone = lanes.links[0];
        alone.served_alone(turns);
        let mut ring = Lanes::new(&[2]);
        ring.links[0].credit = lanes.links[0].credit;
        ring.turns(turns as usize);
        assert_eq!(alone.credit, ring.links[0].credit);
    }
}

#[test]
fn a_lane_joins_at_the_tail() {
    let mut lanes = Lanes::new(&[2, 1, 1, 1]);
    lanes.leave(2);
    lanes.leave(3);
    assert_eq!(lanes.turns(1), [0]);
    lanes.join(2);
    assert_eq!(lanes.order(), [0, 1, 2]);
    assert_eq!(lanes.turns(4), [0, 1, 2, 0]);
    lanes.join(3);
    // Lane 0 is in the middle of its turns, so the tail is behind lane 2.
    assert_eq!(lanes.turns(5), [0, 1, 2, 3, 0]);
}

#[test]
fn a_member_that_joins_again_keeps_its_place_and_credit() {
    let mut lanes = Lanes::new(&[3, 1]);
    assert_eq!(lanes.turns(1), [0]);
    lanes.join(0);
    assert_eq!(lanes.turns(3), [0, 0, 1]);
}

#[test]
fn a_lane_that_leaves_forfeits_the_rest_and_comes_back_at_the_tail() {
    let mut lanes = Lanes::new(&[3, 2, 1]);
    assert_eq!(lanes.turns(1), [0]);
    lanes.leave(0);
    lanes.join(0);
    assert_eq!(lanes.turns(7), [1, 1, 2, 0, 0, 0, 1]);
}

#[test]
fn when_the_current_lane_leaves_the_next_one_has_all_its_credit() {
    let mut lanes = Lanes::new(&[2, 2, 1]);
    lanes.leave(0);
    assert_eq!((lanes.ring.current(), lanes.ring.len()), (Some(1), 2));
    assert_eq!(lanes.turns(4), [1, 1, 2, 1]);
}

#[test]
fn another_weight_counts_from_the_next_credit_on() {
    let mut lanes = Lanes::new(&[3, 1]);
    assert_eq!(lanes.turns(1), [0]);
    lanes.links[0].weight = 1;
    assert_eq!(lanes.turns(6), [0, 0, 1, 0, 1, 0]);
    lanes.links[1].weight = 2;
    assert_eq!(lanes.turns(5), [1, 0, 1, 1, 0]);
}

#[test]
fn the_largest_weight() {
    let mut lanes = Lanes::new(&[MAX_WEIGHT; 3]);
    assert_eq!(lanes.turns(MAX_WEIGHT as usize + 1).last(), Some(&1));
}

#[derive(Clone, Debug)]
enum Op {
    Join(u32),
    Leave(u32),
    LeaveCurrent,
    Served,
    ServedAndUndone,
    SetWeight(u32, u32),
}

const LANES: u32 = 12;

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..LANES).prop_map(Op::Join),
        3 => (0..LANES).prop_map(Op::Leave),
        1 => Just(Op::LeaveCurrent),
        6 => Just(Op::Served),
        1 => Just(Op::ServedAndUndone),
        1 => (0..LANES, 1u32..5).prop_map(|(lane, weight)| Op::SetWeight(lane, weight)),
    ]
}

/// Applies an operation to the ring, and to a queue of lanes and credits whose front is served.
fn apply(lanes: &mut Lanes, model: &mut VecDeque<(u32, u32)>, op: &Op) {
    let front = model.front().copied();
    match *op {
        Op::Join(lane) => {
            lanes.join(lane);
            if model.iter().all(|&(other, _)| other != lane) {
                model.push_back((lane, lanes.links[lane as usize].weight));
            }
        }
        Op::Leave(lane) => {
            lanes.leave(lane);
            model.retain(|&(other, _)| other != lane);
        }
        Op::LeaveCurrent => {
            if let Some((lane, _)) = front {
                lanes.leave(lane);
                model.pop_front();
            }
        }
        Op::Served | Op::ServedAndUndone => {
            let Some((lane, credit)) = front else { return };
            lanes.turns(1);
            if matches!(op, Op::ServedAndUndone) {
                lanes.ring.unclaim(&mut lanes.links, lane);
                let weight = lanes.links[lane as usize].weight;
                // A lone lane has got its new credit already, and keeps it.
                let renewed = credit == 1 && model.len() == 1;
                model[0].1 = if renewed { weight } else { credit.min(weight) };
            } else if credit > 1 {
                model[0].1 -= 1;
            } else {
                model.rotate_left(1);
                let weight = lanes.links[lane as usize].weight;
                model.back_mut().unwrap().1 = weight;
            }
        }
        Op::SetWeight(lane, weight) => lanes.links[lane as usize].weight = weight,
    }
}

proptest! {
    #[test]
    fn behaves_like_a_queue(ops in prop::collection::vec(op(), 1..500)) {
        let mut lanes = Lanes::new(&[3; LANES as usize]);
        let mut model: VecDeque<_> = (0..LANES).map(|lane| (lane, 3)).collect();
        for op in ops {
            apply(&mut lanes, &mut model, &op);
            prop_assert_eq!(lanes.ring.current(), model.front().map(|&(lane, _)| lane));
            prop_assert_eq!(lanes.ring.len() as usize, model.len());
            let credit = |lane: u32| lanes.links[lane as usize].credit;
            let all = lanes.order().into_iter().map(|lane| (lane, credit(lane)));
            prop_assert!(all.eq(model.iter().copied()));
            let members = lanes.links.iter().filter(|link| link.is_member());
            prop_assert_eq!(members.count(), model.len());
        }
    }
}
