//! Turns and deliveries: exclusive, up to the quantum, never of two groups.

use conversant::limit::Limit;

use super::super::form::Queue;
use super::{TWO, conversation, plain, serve, take, turn};

#[test]
fn a_turn_never_mixes_groups_and_is_exclusive() {
    let (queue, lane) = plain();
    let a = conversation(&lane, Limit::Unlimited, 100);
    let b = conversation(&lane, Limit::Unlimited, 100);
    a.send_all(["a1", "a2"]).unwrap();
    b.send_all(["b1", "b2"]).unwrap();
    let mut first = turn(&queue).unwrap();
    let mut second = turn(&queue).unwrap();
    assert!(turn(&queue).is_none(), "both groups are held");
    assert_eq!(
        (first.group_id(), second.group_id()),
        (a.group_id(), b.group_id())
    );
    let all = |turn: &mut super::super::form::Turn<'_, &'static str>| -> Vec<_> {
        std::iter::from_fn(|| turn.next().map(|d| d.complete())).collect()
    };
    assert_eq!(all(&mut second), ["b1", "b2"]);
    assert_eq!(all(&mut first), ["a1", "a2"]);
}

#[test]
fn e4_all_waiting_messages_up_to_the_quantum() {
    let queue = Queue::builder().quantum(3).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let a = conversation(&lane, Limit::SERIAL, 100);
    let b = conversation(&lane, Limit::SERIAL, 100);
    a.send_all(0..5).unwrap();
    b.send_all(10..12).unwrap();
    let mut sizes = Vec::new();
    let mut served = Vec::new();
    while let Some(mut turn) = turn(&queue) {
        let before = served.len();
        while let Some(delivery) = turn.next() {
            served.push(delivery.complete());
        }
        assert!(turn.next().is_none());
        sizes.push(served.len() - before);
    }
    assert_eq!(served, [0, 1, 2, 10, 11, 3, 4]);
    assert_eq!(sizes, [3, 2, 2]);
}

#[test]
fn the_default_quantum_is_16() {
    let (queue, lane) = plain();
    let one = conversation(&lane, Limit::Unlimited, 100);
    one.send_all(0..40).unwrap();
    let mut turn = turn(&queue).unwrap();
    let taken: Vec<_> = std::iter::from_fn(|| Some(turn.next()?.detach())).collect();
    assert_eq!(taken.len(), 16);
}

#[test]
fn next_gives_nothing_while_no_unit_is_free_and_goes_on_when_one_is() {
    let (queue, lane) = plain();
    let one = conversation(&lane, TWO, 100);
    one.send_all(1..=3).unwrap();
    let mut turn = turn(&queue).unwrap();
    let first = turn.next().unwrap().detach();
    let second = turn.next().unwrap().detach();
    assert!(turn.next().is_none());
    assert_eq!(first.complete(), 1);
    assert_eq!(turn.next().unwrap().complete(), 3);
    assert_eq!(second.complete(), 2);
    assert!(turn.next().is_none(), "empty");
    one.send(4).unwrap();
    assert_eq!(turn.next().unwrap().complete(), 4);
}

#[test]
fn a_next_that_gives_nothing_uses_up_nothing() {
    let queue = Queue::builder().quantum(2).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    one.send_all(1..=3).unwrap();
    let mut turn = turn(&queue).unwrap();
    let first = turn.next().unwrap().detach();
    assert!((0..5).all(|_| turn.next().is_none()), "no unit is free");
    first.complete();
    assert_eq!(turn.next().unwrap().complete(), 2);
    assert!(turn.next().is_none(), "used up");
}

#[test]
fn next_gives_nothing_against_the_cap_or_the_tier() {
    let (queue, lane) = plain();
    lane.set_cap(Limit::SERIAL).unwrap();
    let one = conversation(&lane, Limit::Unlimited, 100);
    one.send_all([1, 2]).unwrap();
    one.send_in(5, 3).unwrap();
    let mut turn = turn(&queue).unwrap();
    let first = turn.next().unwrap().detach();
    assert!(turn.next().is_none(), "the cap");
    lane.set_cap(TWO).unwrap();
    let second = turn.next().unwrap().detach();
    first.complete();
    assert!(
        turn.next().is_none(),
        "tier 0 is open until the second is done"
    );
    second.complete();
    assert_eq!(turn.next().unwrap().complete(), 3);
}

/// Without tiers, where a turn may take what it found without another check.
#[test]
fn a_turn_takes_no_more_than_the_cap() {
    let (queue, lane) = plain();
    lane.set_cap(TWO).unwrap();
    let one = conversation(&lane, Limit::Unlimited, 100);
    one.send_all([1, 2, 3, 4]).unwrap();
    let mut turn = turn(&queue).unwrap();
    let first = turn.next().unwrap().detach();
    let second = turn.next().unwrap().detach();
    assert!(turn.next().is_none());
    first.complete();
    assert_eq!(turn.next().unwrap().complete(), 3);
    lane.set_cap(Limit::SERIAL).unwrap();
    assert!(turn.next().is_none());
    second.complete();
    assert_eq!(turn.next().unwrap().complete(), 4);
}

#[test]
fn a_detached_delivery_outlives_its_turn() {
    let (queue, lane) = plain();
    let one = conversation(&lane, TWO, 100);
    one.send_all(1..=3).unwrap();
    let mut turn_of_1 = turn(&queue).unwrap();
    let first = turn_of_1.next().unwrap().detach();
    assert!(turn(&queue).is_none());
    drop(turn_of_1);
    // Ordered receipt, concurrent work.
    let second = take(&queue).unwrap();
    assert_eq!((*first, *second), (1, 2));
    assert!(turn(&queue).is_none(), "no unit is free");
    first.complete();
    assert_eq!(*take(&queue).unwrap(), 3);
    second.complete();
}

/// C.3: handlers that work while the turn is held work in the order of receipt, because no other
/// reader can receive from the group before the turn is dropped.
#[test]
fn the_protocol_of_system_c() {
    let (queue, lane) = plain();
    let one = conversation(&lane, Limit::Unlimited, 100);
    one.send_all(0..20).unwrap();
    let mut granted = Vec::new();
    let mut running = Vec::new();
    while let Some(mut turn) = turn(&queue) {
        let delivery = turn.next().unwrap().detach();
        assert!(
            queue.try_receive().is_err(),
            "the next receive waits for this turn"
        );
        granted.push(*delivery);
        drop(turn);
        running.push(delivery);
    }
    assert!(granted.into_iter().eq(0..20));
    assert_eq!(running.len(), 20, "the work overlaps");
    running
        .into_iter()
        .for_each(|delivery| _ = delivery.complete());
}

#[test]
fn a_turn_dropped_before_next_counts_no_attempt() {
    let (queue, lane) = plain();
    let one = conversation(&lane, TWO, 100);
    one.send_all([1, 2]).unwrap();
    for _ in 0..3 {
        drop(turn(&queue).unwrap());
    }
    let delivery = take(&queue).unwrap();
    assert_eq!((*delivery, delivery.attempt(), delivery.tier()), (1, 1, 0));
    drop(delivery);
    drop(turn(&queue).unwrap());
    assert_eq!(take(&queue).unwrap().attempt(), 2);
}

#[test]
fn a_group_whose_turn_ends_is_the_youngest() {
    let queue = Queue::builder().quantum(1).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let (a, b) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    a.send_all(["a1", "a2"]).unwrap();
    b.send_all(["b1", "b2"]).unwrap();
    assert_eq!(serve(&queue), ["a1", "b1", "a2", "b2"]);
    // 5 of A then 5 of B, claimed two at a time with limit 1.
    a.send_all(["a1"; 5]).unwrap();
    b.send_all(["b1"; 5]).unwrap();
    let pair = (take(&queue).unwrap(), take(&queue).unwrap());
    assert_eq!((*pair.0, *pair.1), ("a1", "b1"));
    assert!(take(&queue).is_none());
}

#[test]
fn a_turn_takes_what_came_back_between_others() {
    let (queue, lane) = plain();
    let one = conversation(&lane, Limit::AtMost(3), 100);
    one.send_all(["a", "b", "c", "d"]).unwrap();
    let mut first = turn(&queue).unwrap();
    let [a, b, c] = [(); 3].map(|()| first.next().unwrap().detach());
    drop(first);
    b.give_back();
    c.give_back();
    a.complete();
    let mut second = turn(&queue).unwrap();
    let served: Vec<_> = std::iter::from_fn(|| Some(second.next()?.complete())).collect();
    assert_eq!(served, ["b", "c", "d"]);
}

/// Units that are given back pay the debt first.
#[test]
fn a_limit_that_is_lowered_in_a_turn_holds_for_it() {
    let (queue, lane) = plain();
    let group = lane.group(Limit::AtMost(3), 100).unwrap();
    let one = group.conversation().unwrap();
    one.send_all(0..6).unwrap();
    let mut turn = turn(&queue).unwrap();
    let taken = [(); 3].map(|()| turn.next().unwrap().detach());
    group.set_limit(Limit::SERIAL).unwrap();
    assert!(turn.next().is_none());
    for delivery in taken {
        assert!(turn.next().is_none(), "more are in flight than may be");
        delivery.complete();
    }
    let fourth = turn.next().unwrap().detach();
    assert!(turn.next().is_none());
    fourth.complete();
    assert_eq!(turn.next().unwrap().complete(), 4);
}
