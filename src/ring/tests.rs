use super::{MAX_WEIGHT, PAGE, Page, Ring};
use proptest::prelude::*;
use std::collections::VecDeque;

fn ring(lanes: &[(u32, u32)]) -> Ring {
    let mut ring = Ring::new();
    for &(lane, weight) in lanes {
        assert!(ring.join(lane, weight));
    }
    ring
}

/// Who is served in the next turns.
fn turns(ring: &mut Ring, count: usize) -> Vec<u32> {
    let turn = |_| {
        let lane = ring.current().unwrap();
        ring.served();
        lane
    };
    (0..count).map(turn).collect()
}

#[test]
fn lanes_take_their_weight_in_consecutive_turns() {
    let mut ring = ring(&[(10, 1), (20, 2), (30, 3)]);
    assert_eq!(ring.weights(), 6);
    assert_eq!(
        turns(&mut ring, 13),
        [10, 20, 20, 30, 30, 30, 10, 20, 20, 30, 30, 30, 10]
    );
}

#[test]
fn a_ring_without_lanes_serves_nobody() {
    let mut ring = Ring::new();
    ring.served();
    assert_eq!((ring.current(), ring.len(), ring.weights()), (None, 0, 0));
    assert!(ring.is_empty() && !ring.leave(3) && !ring.set_weight(3, 1) && !ring.contains(3));
    assert_eq!(ring.heap_bytes(), 0);
}

#[test]
fn a_lane_alone_is_always_served() {
    let mut ring = ring(&[(7, 2)]);
    assert_eq!(turns(&mut ring, 5), [7; 5]);
    assert_eq!(ring.iter().collect::<Vec<_>>(), [7]);
}

#[test]
fn a_lane_joins_at_the_tail() {
    let mut ring = ring(&[(1, 2), (2, 1)]);
    assert_eq!(turns(&mut ring, 1), [1]);
    assert!(ring.join(3, 1));
    assert_eq!(ring.iter().collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(turns(&mut ring, 4), [1, 2, 3, 1]);
    assert!(ring.join(4, 1));
    // 1 is in the middle of its turns, so the tail is behind 3.
    assert_eq!(turns(&mut ring, 5), [1, 2, 3, 4, 1]);
}

#[test]
fn a_member_that_joins_again_keeps_its_place_and_credit() {
    let mut ring = ring(&[(1, 3), (2, 1)]);
    assert_eq!(turns(&mut ring, 1), [1]);
    assert!(!ring.join(1, 9));
    assert_eq!(
        (ring.weight(1), ring.weights(), ring.len()),
        (Some(3), 4, 2)
    );
    assert_eq!(turns(&mut ring, 3), [1, 1, 2]);
}

#[test]
fn a_lane_that_leaves_forfeits_the_rest_and_comes_back_at_the_tail() {
    let mut ring = ring(&[(1, 3), (2, 2), (3, 1)]);
    assert_eq!(turns(&mut ring, 1), [1]);
    assert!(ring.leave(1));
    assert!(ring.join(1, 3));
    assert_eq!(turns(&mut ring, 7), [2, 2, 3, 1, 1, 1, 2]);
}

#[test]
fn when_the_current_lane_leaves_the_next_one_has_all_its_credit() {
    let mut ring = ring(&[(1, 2), (2, 2), (3, 1)]);
    assert!(ring.leave(1));
    assert_eq!(
        (ring.current(), ring.weights(), ring.len()),
        (Some(2), 3, 2)
    );
    assert_eq!(turns(&mut ring, 4), [2, 2, 3, 2]);
    assert!(ring.leave(2) && ring.leave(3) && ring.is_empty());
    assert!(ring.join(3, 1));
    assert_eq!(turns(&mut ring, 2), [3, 3]);
}

#[test]
fn a_lane_in_the_middle_leaves() {
    let mut ring = ring(&[(1, 1), (2, 5), (3, 1)]);
    assert!(ring.leave(2) && !ring.leave(2));
    assert_eq!(turns(&mut ring, 4), [1, 3, 1, 3]);
}

#[test]
fn another_weight_counts_from_the_next_credit_on() {
    let mut ring = ring(&[(1, 3), (2, 1)]);
    assert_eq!(turns(&mut ring, 1), [1]);
    assert!(ring.set_weight(1, 1));
    assert_eq!(ring.weights(), 2);
    assert_eq!(turns(&mut ring, 6), [1, 1, 2, 1, 2, 1]);
    assert!(ring.set_weight(2, 2));
    assert_eq!(turns(&mut ring, 5), [2, 1, 2, 2, 1]);
    assert_eq!(format!("{ring:?}"), "[(2, 2, 2), (1, 1, 1)]");
}

#[test]
fn the_largest_weights_do_not_overflow_the_sum() {
    let mut ring = Ring::new();
    (0..10_000).for_each(|lane| assert!(ring.join(lane, MAX_WEIGHT)));
    assert_eq!(ring.weights(), 10_000 * u64::from(MAX_WEIGHT));
    assert_eq!(turns(&mut ring, MAX_WEIGHT as usize + 1).last(), Some(&1));
}

#[cfg(debug_assertions)]
#[test]
#[should_panic(expected = "0 is no weight")]
fn a_weight_of_zero_is_caught() {
    Ring::new().join(1, 0);
}

#[test]
fn memory_goes_back_when_lanes_leave_from_the_last() {
    let mut ring = Ring::new();
    (0..100_000).for_each(|lane| assert!(ring.join(lane, 1)));
    (1..100_000)
        .rev()
        .for_each(|lane| assert!(ring.leave(lane)));
    assert!(
        ring.heap_bytes() <= 2 * size_of::<Page>() + 64,
        "{}",
        ring.heap_bytes()
    );
}

#[test]
fn memory_goes_back() {
    let mut ring = Ring::new();
    let lanes = 200_000;
    (0..lanes).for_each(|lane| assert!(ring.join(lane, 1)));
    let most = ring.heap_bytes();
    assert!(most > 16 * lanes as usize);
    // All but one with a low number, and one with a high number for a while.
    (2..lanes - 1).for_each(|lane| assert!(ring.leave(lane)));
    assert!(ring.heap_bytes() < most / 40);
    assert!(ring.leave(lanes - 1) && ring.heap_bytes() < 4 * size_of::<Page>());
    assert!(ring.leave(0) && ring.leave(1));
    assert!(
        ring.heap_bytes() <= size_of::<Page>() + 64,
        "{}",
        ring.heap_bytes()
    );
}

#[test]
fn a_high_lane_that_comes_and_goes_does_not_make_the_directory_anew_each_time() {
    let mut ring = ring(&[(0, 1)]);
    let high = 6_400 * PAGE as u32;
    let mut shortened = 0;
    for _ in 0..100_000 {
        assert!(ring.join(high, 1) && ring.leave(high));
        shortened += u32::from(ring.pages.len() == 1);
    }
    assert!((1..=15).contains(&shortened), "{shortened}");
}

#[derive(Clone, Debug)]
enum Op {
    Join(u32, u32),
    Leave(u32),
    LeaveCurrent,
    Served,
    SetWeight(u32, u32),
}

fn op() -> impl Strategy<Value = Op> {
    let lane = || prop_oneof![4 => 0u32..12, 1 => 60u32..70, 1 => 1000u32..1500];
    prop_oneof![
        4 => (lane(), 1u32..5).prop_map(|(lane, weight)| Op::Join(lane, weight)),
        3 => lane().prop_map(Op::Leave),
        1 => Just(Op::LeaveCurrent),
        6 => Just(Op::Served),
        1 => (lane(), 1u32..5).prop_map(|(lane, weight)| Op::SetWeight(lane, weight)),
    ]
}

#[derive(Clone, Copy)]
struct Member {
    lane: u32,
    weight: u32,
    credit: u32,
}

/// The same operation on a queue whose front is served.
fn apply(model: &mut VecDeque<Member>, op: &Op) -> bool {
    let find = |model: &VecDeque<Member>, lane| model.iter().position(|m| m.lane == lane);
    match *op {
        Op::Join(lane, weight) if find(model, lane).is_none() => {
            model.push_back(Member {
                lane,
                weight,
                credit: weight,
            });
            true
        }
        Op::Leave(lane) => find(model, lane).and_then(|at| model.remove(at)).is_some(),
        Op::LeaveCurrent => model.pop_front().is_some(),
        Op::SetWeight(lane, weight) => find(model, lane)
            .map(|at| model[at].weight = weight)
            .is_some(),
        Op::Served if !model.is_empty() => {
            model[0].credit -= 1;
            if model[0].credit == 0 {
                model[0].credit = model[0].weight;
                model.rotate_left(1);
            }
            true
        }
        Op::Join(..) | Op::Served => false,
    }
}

fn check(ring: &Ring, model: &VecDeque<Member>) {
    assert_eq!(ring.current(), model.front().map(|m| m.lane));
    assert_eq!(ring.len(), model.len());
    assert_eq!(ring.is_empty(), model.is_empty());
    assert_eq!(
        ring.weights(),
        model.iter().map(|m| u64::from(m.weight)).sum::<u64>()
    );
    assert!(ring.iter().eq(model.iter().map(|m| m.lane)));
    for member in model {
        assert!(ring.contains(member.lane));
        assert_eq!(ring.weight(member.lane), Some(member.weight));
        assert_eq!(ring.member(member.lane).credit, member.credit);
    }
    let in_pages: u32 = ring.pages.iter().flatten().map(|page| page.members).sum();
    assert_eq!(in_pages as usize, model.len());
    assert!(ring.pages.iter().flatten().all(|page| page.members > 0));
    assert!(
        ring.spare
            .iter()
            .all(|page| page.links.iter().all(|link| link.weight == 0))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn behaves_like_a_queue(ops in prop::collection::vec(op(), 1..2000)) {
        let (mut ring, mut model) = (Ring::new(), VecDeque::new());
        for op in ops {
            let done = match op {
                Op::Join(lane, weight) => ring.join(lane, weight),
                Op::Leave(lane) => ring.leave(lane),
                Op::LeaveCurrent => ring.current().is_some_and(|lane| ring.leave(lane)),
                Op::SetWeight(lane, weight) => ring.set_weight(lane, weight),
                Op::Served => {
                    ring.served();
                    !model.is_empty()
                }
            };
            prop_assert_eq!(done, apply(&mut model, &op));
            check(&ring, &model);
        }
    }
}
