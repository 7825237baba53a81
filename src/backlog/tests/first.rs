//! What is put first, and what is taken back, against a sorted list.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{Backlog, Claim, ordinal};
use crate::dispatch::{Blocked, GroupKey};
use crate::limit::{Bypass, Limit};

fn one_group(limit: Limit) -> (Backlog<u32>, GroupKey) {
    let mut backlog = Backlog::new(Bypass::default());
    let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
    let group = backlog.add_group(lane, limit, 100).unwrap();
    (backlog, group)
}

fn next(backlog: &mut Backlog<u32>) -> Option<Claim<u32>> {
    backlog.claim(false)
}

#[test]
fn what_is_put_first_stands_before_all_in_its_own_order() {
    let (mut backlog, group) = one_group(Limit::Unlimited);
    backlog.send(group, None, None, 1).unwrap();
    let first = next(&mut backlog).unwrap();
    backlog.send(group, None, None, 2).unwrap();
    backlog.send_first(group, 11);
    backlog.send_first(group, 12);
    assert_eq!(backlog.head_of(group), Some((1, 0)));
    backlog.give_back(first);
    let claims: Vec<_> = std::iter::from_fn(|| next(&mut backlog)).collect();
    let items: Vec<_> = claims.iter().map(|claim| claim.item).collect();
    assert_eq!(items, [11, 12, 1, 2]);
    let numbers: Vec<_> = claims.iter().map(|claim| ordinal(claim.seq)).collect();
    assert_eq!(numbers, [1, 2, 1, 2]);
    // Back in another order, each to its place.
    for claim in claims.into_iter().rev() {
        backlog.give_back(claim);
    }
    assert_eq!(backlog.drain(group), [11, 12, 1, 2]);
}

/// In the group's last tier it would wait for what is in flight, come back and
/// behind it, in a lower one.
#[test]
fn what_is_put_first_waits_for_no_tier_of_its_own_group() {
    let (mut backlog, group) = one_group(Limit::SERIAL);
    backlog.send(group, Some(3), None, 1).unwrap();
    backlog.send(group, Some(5), None, 2).unwrap();
    let in_flight = next(&mut backlog).unwrap();
    backlog.send_first(group, 11);
    backlog.give_back(in_flight);
    for expected in [(0, 11), (3, 1), (5, 2)] {
        assert_eq!(backlog.why(group), Blocked::InLine);
        let claim = next(&mut backlog).unwrap();
        assert_eq!((claim.tier, claim.item), expected);
        backlog.complete(group, claim.tier);
    }
    // What is sent after it still goes into the last tier.
    let sent = backlog.send(group, None, None, 3).unwrap();
    assert_eq!(sent.1, 5);
}

#[test]
fn what_is_taken_back_leaves_the_rest_in_order() {
    let (mut backlog, group) = one_group(Limit::SERIAL);
    for n in 0..100 {
        backlog.send(group, None, None, n).unwrap();
    }
    backlog.send_first(group, 1_000);
    let taken = backlog.retract(group, |n| n % 2 == 0);
    let mut items: Vec<_> = taken.into_iter().map(|(_, item)| item).collect();
    items.sort_unstable();
    let even = (0..100).filter(|n| n % 2 == 0).chain([1_000]);
    assert!(items.into_iter().eq(even));
    assert_eq!(backlog.waiting(), 50);
    assert!(
        backlog
            .drain(group)
            .into_iter()
            .eq((0..100).filter(|n| n % 2 == 1))
    );
}

#[derive(Clone, Debug)]
enum Step {
    Send,
    SendFirst,
    Claim,
    GiveBack(usize),
    Complete(usize),
    Retract(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Send),
        2 => Just(Step::SendFirst),
        4 => Just(Step::Claim),
        2 => (0..8usize).prop_map(Step::GiveBack),
        2 => (0..8usize).prop_map(Step::Complete),
        1 => (0..5u32).prop_map(Step::Retract),
    ];
    vec(step, 0..200)
}

proptest! {
    #[test]
    fn agrees_with_a_sorted_list(steps in steps()) {
        let (mut backlog, group) = one_group(Limit::Unlimited);
        // Whether behind what is put first, and which it is: in order.
        let mut waiting: Vec<(bool, u32)> = Vec::new();
        let mut flying = Vec::new();
        let mut last = 0;
        for step in steps {
            match step {
                Step::Send | Step::SendFirst => {
                    last += 1;
                    let behind = matches!(step, Step::Send);
                    if behind {
                        backlog.send(group, None, None, last).unwrap();
                    } else {
                        backlog.send_first(group, last);
                    }
                    waiting.push((behind, last));
                    waiting.sort_unstable();
                }
                Step::Claim => {
                    let claim = next(&mut backlog);
                    let expected = (!waiting.is_empty()).then(|| waiting.remove(0));
                    prop_assert_eq!(claim.as_ref().map(|c| c.item), expected.map(|e| e.1));
                    flying.extend(claim.zip(expected));
                }
                Step::GiveBack(n) if n < flying.len() => {
                    let (claim, place) = flying.remove(n);
                    backlog.give_back(claim);
                    waiting.push(place);
                    waiting.sort_unstable();
                }
                Step::Complete(n) if n < flying.len() => {
                    let (claim, _) = flying.remove(n);
                    backlog.complete(group, claim.tier);
                }
                Step::Retract(of) => {
                    let taken = backlog.retract(group, |n| n % 5 == of);
                    let before = waiting.len();
                    waiting.retain(|(_, n)| n % 5 != of);
                    prop_assert_eq!(taken.len(), before - waiting.len());
                }
                _ => {}
            }
            prop_assert_eq!(backlog.waiting(), waiting.len() as u64);
        }
        let rest: Vec<_> = waiting.into_iter().map(|(_, n)| n).collect();
        prop_assert_eq!(backlog.drain(group), rest);
    }
}
