//! D1 to D6, number by number.

use conversant::job_queue::Why;

use super::*;

#[test]
fn d1_without_groups_each_agent_gets_six() {
    let queue = Queue::new();
    queue
        .push_all((1..=12).map(|n| (n, n, Place::new())))
        .unwrap();
    let (_first, numbers) = claim(&queue, 6);
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert_eq!(claim(&queue, 6).1, [7, 8, 9, 10, 11, 12]);
}

#[test]
fn d2_groups_with_limit_one() {
    let (queue, _) = twelve(Limit::SERIAL);
    let (mut first, numbers) = claim(&queue, 6);
    assert_eq!(numbers, [1, 2, 3, 4, 6, 8]);
    let (second, numbers) = claim(&queue, 6);
    assert_eq!(numbers, [10, 12]);
    assert_eq!((queue.counts().ready, queue.counts().eligible), (4, 0));
    complete(&mut first, 1);
    let (five, numbers) = claim(&queue, 6);
    assert_eq!(numbers, [5]);
    complete(&mut first, 3);
    let (seven, numbers) = claim(&queue, 6);
    assert_eq!(numbers, [7]);
    let mut claims: Vec<_> = first
        .into_iter()
        .chain(second)
        .chain(five)
        .chain(seven)
        .collect();
    while !claims.is_empty() {
        claims
            .drain(..)
            .for_each(|claim| _ = claim.complete().unwrap());
        claims = queue.try_claim(1);
    }
    is_idle(&queue);
}

#[test]
fn d3_groups_with_limit_two() {
    let (queue, _) = twelve(Limit::AtMost(2));
    let (_first, numbers) = claim(&queue, 6);
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert_eq!(claim(&queue, 6).1, [7, 8, 10, 12]);
}

#[test]
fn d4_what_is_given_back_has_its_place() {
    let (queue, _) = twelve(Limit::SERIAL);
    drop(claim(&queue, 6));
    let (again, numbers) = claim(&queue, 6);
    assert_eq!(numbers, [1, 2, 3, 4, 6, 8]);
    assert!(again.iter().all(|claim| claim.attempt() == 2));
    for claim in again {
        claim.give_back().unwrap();
    }
    let (mut claims, _) = claim(&queue, 1);
    complete(&mut claims, 1);
    assert_eq!(claim(&queue, 2).1, [2, 3], "5 has its place behind them");
}

#[test]
fn d4_five_before_nine_also_when_five_comes_back() {
    let (queue, _) = twelve(Limit::SERIAL);
    let (mut claims, _) = claim(&queue, 6);
    complete(&mut claims, 1);
    let (mut five, numbers) = claim(&queue, 1);
    assert_eq!(numbers, [5]);
    five.remove(0).fail().unwrap();
    assert_eq!(claim(&queue, 1).1, [5]);
}

#[test]
fn d4_one_that_comes_back_goes_ahead_of_the_next_that_stands() {
    let (queue, _) = twelve(Limit::AtMost(2));
    let (mut claims, _) = claim(&queue, 6);
    complete(&mut claims, 1);
    // 9 is the first of its group now, behind 7.
    let (_seven, numbers) = claim(&queue, 1);
    assert_eq!(numbers, [7]);
    let five = claims.iter().position(|claim| **claim == 5).unwrap();
    claims.remove(five).give_back().unwrap();
    assert_eq!(claim(&queue, 3).1, [5, 8, 9]);
}

#[test]
fn d5_one_not_yet_due_is_absent() {
    let queue = Queue::new();
    let place = || Place::new().group("g");
    queue.push(1, 1, place().due(at(10))).unwrap();
    let id = queue.push(2, 2, place()).unwrap();
    assert_eq!(queue.advance(at(0)), Some(at(10)));
    let (two, numbers) = claim(&queue, 9);
    assert_eq!(numbers, [2], "it does not block its group");
    drop(two);
    assert_eq!(queue.advance(at(10)), None);
    assert_eq!(queue.why(id), Some(Why::Behind(1)));
    assert_eq!(claim(&queue, 9).1, [1], "due, it has the place of its key");
}

#[test]
fn d5_given_back_until_a_time_it_is_absent_until_then() {
    let (queue, ids) = twelve(Limit::SERIAL);
    let (mut claims, _) = claim(&queue, 1);
    claims.remove(0).give_back_at(at(5)).unwrap();
    assert_eq!(queue.why(ids[0]), Some(Why::Due(at(5))));
    let (five, numbers) = claim(&queue, 4);
    assert_eq!(numbers, [2, 3, 4, 5]);
    drop(five);
    queue.advance(at(5));
    assert_eq!(claim(&queue, 4).1, [1, 2, 3, 4]);
}

#[test]
fn d5_group_names_are_per_tenant() {
    let queue = Queue::new();
    for tenant in ["a", "b"] {
        queue
            .push(1, 1, Place::new().tenant(tenant).group("g"))
            .unwrap();
    }
    assert_eq!(claim(&queue, 9).1, [1, 1]);
}

#[test]
fn d6_never_short_while_one_is_eligible() {
    let queue = Queue::new();
    let blocked = (0..10_000).map(|n| (n, n, Place::new().group("blocked")));
    queue.push_all(blocked).unwrap();
    let (_held, _) = claim(&queue, 1);
    queue
        .push_all((20_000..20_005).map(|n| (n, n, Place::new())))
        .unwrap();
    assert_eq!(claim(&queue, 9).1, [20_000, 20_001, 20_002, 20_003, 20_004]);
}
