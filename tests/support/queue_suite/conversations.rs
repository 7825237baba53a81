//! A conversation is an ordered stream; groups live until their last message.

use conversant::error::Stale;
use conversant::limit::Limit;

use super::{TWO, conversation, plain, serve, take, turn};

#[test]
fn delivered_in_send_order_whatever_the_number_of_readers() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send_all(0..10).unwrap();
    // Several readers that come while the first has its message get nothing out of turn.
    for n in 0..10 {
        let mine = take(&queue).unwrap();
        assert!((0..3).all(|_| take(&queue).is_none()));
        assert_eq!(mine.complete(), n);
    }
    assert!(take(&queue).is_none());
}

#[test]
fn a_message_not_completed_is_delivered_again_and_first() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send_all(["a1", "a2", "a3"]).unwrap();
    take(&queue).unwrap().give_back();
    drop(take(&queue).unwrap());
    let again = take(&queue).unwrap();
    assert_eq!((*again, again.attempt()), ("a1", 3));
    again.complete();
    assert_eq!(serve(&queue), ["a2", "a3"]);
}

/// A group's age is that of its last delivery, also if that ends after its turn.
#[test]
fn what_became_ready_before_a_delivery_ended_goes_first() {
    let (queue, lane) = plain();
    let (one, two) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    one.send_all(["a1", "a2"]).unwrap();
    let first = take(&queue).unwrap();
    two.send("b1").unwrap();
    first.complete();
    assert_eq!(serve(&queue), ["b1", "a2"]);
}

#[test]
fn a_redelivery_keeps_what_was_changed() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send(1).unwrap();
    *take(&queue).unwrap() += 1;
    assert_eq!(take(&queue).unwrap().complete(), 2);
}

#[test]
fn with_a_limit_above_one_a_redelivery_may_follow_later_messages() {
    let (queue, lane) = plain();
    let one = conversation(&lane, TWO, 100);
    one.send_all(1..=4).unwrap();
    let first = take(&queue).unwrap();
    let second = take(&queue).unwrap();
    assert_eq!(second.complete(), 2);
    let third = take(&queue).unwrap();
    drop(first);
    // Its place is before all waiting messages.
    assert_eq!(take(&queue).unwrap().complete(), 1);
    assert_eq!(third.complete(), 3);
    assert_eq!(serve(&queue), [4]);
}

#[test]
fn several_given_back_at_once_stand_by_number() {
    let (queue, lane) = plain();
    let one = conversation(&lane, Limit::Unlimited, 100);
    one.send_all(0..5).unwrap();
    let mut held: Vec<_> = (0..4).map(|_| take(&queue).unwrap()).collect();
    for place in [2, 0, 1, 0] {
        drop(held.remove(place));
    }
    assert_eq!(serve(&queue), [0, 1, 2, 3, 4]);
}

#[test]
fn after_the_end_what_waits_is_delivered() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send(1).unwrap();
    let group = one.group_id();
    drop(one);
    assert_eq!(queue.bump(group, 1), Ok(()), "its message waits");
    assert_eq!(serve(&queue), [1]);
    assert_eq!(
        queue.bump(group, 1),
        Err(Stale),
        "it ended after its last message"
    );
    assert!(queue.snapshot().lanes[0].groups.is_empty());
}

#[test]
fn a_group_lives_until_its_last_handle_and_message() {
    let (queue, lane) = plain();
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    let id = group.id();
    let (a, b) = (group.conversation().unwrap(), group.conversation().unwrap());
    assert_eq!((a.group_id(), b.group_id()), (id, id));
    drop((group, a));
    assert_eq!(queue.bump(id, 7), Ok(()));
    b.send(1).unwrap();
    drop(b);
    let turn = turn(&queue).unwrap();
    drop(turn);
    let delivery = take(&queue).unwrap();
    assert_eq!(queue.bump(id, 7), Ok(()), "it is in flight");
    delivery.complete();
    assert_eq!(queue.bump(id, 7), Err(Stale));
}

#[test]
fn a_turn_pins_its_group() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send(1).unwrap();
    let id = one.group_id();
    drop(one);
    let mut turn = turn(&queue).unwrap();
    turn.next().unwrap().complete();
    assert_eq!(queue.bump(id, 7), Ok(()));
    assert!(turn.next().is_none());
    drop(turn);
    assert_eq!(queue.bump(id, 7), Err(Stale));
}

#[test]
fn a_lane_goes_with_its_last_group() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send(1).unwrap();
    drop(lane);
    assert!(queue.snapshot().lanes[0].ending);
    drop(one);
    assert_eq!(serve(&queue), [1]);
    assert!(queue.snapshot().lanes.is_empty());
}

#[test]
fn conversations_of_one_group_share_its_order_and_its_lock() {
    let (queue, lane) = plain();
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    let (a, b) = (group.conversation().unwrap(), group.conversation().unwrap());
    for n in 0..6 {
        [&a, &b][n % 2].send(n).unwrap();
    }
    assert_eq!(group.waiting(), 6);
    let first = take(&queue).unwrap();
    assert!(take(&queue).is_none());
    drop(first);
    assert_eq!(serve(&queue), [0, 1, 2, 3, 4, 5]);
}
