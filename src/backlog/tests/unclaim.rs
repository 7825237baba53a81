//! Claims that go back leave everything as it was.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::backlog::{Backlog, Claim};
use crate::lanes::Lanes;
use crate::limit::{Bypass, Limit};
use crate::ready::Position;

/// Lane, group in it, tier, bump.
type Arrival = (usize, usize, u32, Option<u8>);

const GROUPS: [(u32, u8); 4] = [(1, 100), (2, 100), (3, 200), (1, 50)];

fn backlog(arrivals: &[Arrival]) -> Backlog<usize> {
    let mut backlog = Backlog::new(Bypass::AtMost(2));
    let groups: Vec<Vec<_>> = [(); 3]
        .map(|()| {
            // A lane of a larger weight loses its remaining credit when it leaves the ring.
            let lane = backlog.add_lane(1, Limit::Unlimited).unwrap();
            let group = |(limit, level)| {
                let limit = Limit::AtMost(limit);
                backlog.add_group(lane, limit, level).unwrap()
            };
            GROUPS.map(group).to_vec()
        })
        .to_vec();
    for (n, &(lane, group, tier, bump)) in arrivals.iter().enumerate() {
        // A message whose tier goes down is refused.
        _ = backlog.send(groups[lane][group], Some(tier), bump, n);
    }
    backlog
}

/// The order of all that is left; each is completed before the next is claimed.
fn order(mut backlog: Backlog<usize>) -> Vec<usize> {
    let mut order = vec![];
    while let Some(claim) = backlog.claim() {
        order.push(claim.item);
        backlog.complete(claim.holds.group.unwrap(), claim.holds.tier);
    }
    order
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let bump = proptest::option::weighted(0.2, any::<u8>());
    (0..3_usize, 0..GROUPS.len(), 0..2_u32, bump)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn claims_that_go_back_change_no_order(
        arrivals in vec(arrival(), 0..40),
        done in 0..10_usize,
        taken in 0..20_usize,
    ) {
        let left = |taken: usize| {
            let mut backlog = backlog(&arrivals);
            for claim in (0..done).map_while(|_| backlog.claim()).collect::<Vec<_>>() {
                backlog.complete(claim.holds.group.unwrap(), claim.holds.tier);
            }
            let (waits, runs) = (backlog.waiting(), backlog.in_flight());
            let eligible = backlog.eligible(u64::MAX);
            let claims: Vec<Claim<_>> = (0..taken).map_while(|_| backlog.claim()).collect();
            claims.into_iter().rev().for_each(|claim| backlog.unclaim(claim));
            assert_eq!((backlog.waiting(), backlog.in_flight()), (waits, runs));
            assert_eq!(backlog.eligible(u64::MAX), eligible);
            order(backlog)
        };
        prop_assert_eq!(left(taken), left(0));
    }
}

/// A lane whose turn goes back again and again is not passed over.
#[test]
fn a_lane_does_not_lose_the_turns_that_go_back() {
    let mut backlog = Backlog::new(Bypass::default());
    let mut send = |name: usize, weight: u32| {
        let lane = backlog.add_lane(weight, Limit::Unlimited).unwrap();
        for _ in 0..10 {
            let group = backlog.add_group(lane, Limit::SERIAL, 100).unwrap();
            backlog.send(group, None, None, name);
        }
    };
    send(1, 1);
    send(2, 3);
    send(3, 1);
    let mut served = vec![];
    for taken in 0..10 {
        served.push(backlog.claim().unwrap().item);
        let claims: Vec<_> = (0..taken).map(|_| backlog.claim().unwrap()).collect();
        claims
            .into_iter()
            .rev()
            .for_each(|claim| backlog.unclaim(claim));
    }
    assert_eq!(served, [1, 2, 2, 2, 3, 1, 2, 2, 2, 3]);
}

/// Only lanes: the oldest of lane 0 was overtaken once, and a bumped group of lane 1
/// takes the first of its lane's two turns.
#[test]
fn a_turn_of_a_lane_goes_back_with_its_credit_and_its_count() {
    let mut lanes = Lanes::new(Bypass::AtMost(2));
    let mut lane = |weight| lanes.add_lane(weight, Limit::Unlimited).unwrap().index();
    let (first, second) = (lane(1), lane(2));
    lanes.push(first, 1, 9, 'a');
    lanes.push(first, 2, 10, 'b');
    lanes.push(second, 3, 9, 'c');
    lanes.push(second, 4, 10, 'd');
    let stood = [(first, 2), (second, 4), (second, 3)];
    for _ in 0..5 {
        let turns: Vec<_> = (0..3).map(|_| lanes.begin().unwrap()).collect();
        assert!(turns.iter().map(|turn| turn.group).eq("bdc".chars()));
        let counts: Vec<_> = turns.iter().map(|turn| turn.overtaken).collect();
        assert_eq!(counts, [None, None, Some(1)]);
        lanes.update(second);
        assert!(lanes.ring() == [first]);
        for (turn, (lane, ticket)) in turns.into_iter().zip(stood).rev() {
            let level = if turn.group == 'c' { 9 } else { 10 };
            let ready = lanes.ready(lane, 0);
            ready.insert(ticket, Position::new(level, ticket, None), turn.group);
            lanes.update(lane);
            lanes.unclaim(lane, turn.overtaken);
        }
        assert!(lanes.ring() == [first, second]);
    }
    let rest = std::iter::from_fn(|| lanes.pop()).map(|(group, ..)| group);
    assert!(rest.eq("bdca".chars()));
}
