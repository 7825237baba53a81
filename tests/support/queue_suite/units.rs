//! SEMANTICS 2, "A turn is the exclusive right": a turn holds a unit from its claim to its end;
//! these tests also show what becomes of the unit when a delivery is detached.

use conversant::limit::Limit;

use super::super::form::{Lane, NoTurn, Queue, SendReason, Why};
use super::{PAUSED, TWO, conversation, plain, serve, take, turn, why};

/// Units in use.
fn units<T>(queue: &Queue<T>) -> u64 {
    queue.snapshot().in_flight
}

#[test]
fn a_turn_keeps_its_unit_between_messages() {
    let (queue, lane) = plain();
    lane.set_cap(Limit::SERIAL).unwrap();
    let (one, other) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    one.send("a").unwrap();
    other.send("b").unwrap();
    let mut held = turn(&queue).unwrap();
    assert_eq!(units(&queue), 1);
    held.next().unwrap().complete();
    assert!(held.next().is_none());
    assert_eq!(units(&queue), 1);
    assert_eq!(queue.snapshot().lanes[0].groups[1].why, Why::Cap);
    assert_eq!(queue.try_receive().unwrap_err(), NoTurn::Empty);
    // And so it always has a unit for the next message.
    one.send("c").unwrap();
    assert_eq!(held.next().unwrap().complete(), "c");
    drop(held);
    assert_eq!(serve(&queue), ["b"]);
    assert_eq!(units(&queue), 0);
}

#[test]
fn a_delivery_of_a_live_turn_has_no_unit_of_its_own() {
    let (queue, lane) = plain();
    let one = conversation(&lane, TWO, 100);
    one.send_all([1, 2]).unwrap();
    let mut turn = turn(&queue).unwrap();
    let delivery = turn.next().unwrap();
    assert_eq!(units(&queue), 1);
    drop(delivery);
    assert_eq!(units(&queue), 1);
}

#[test]
fn after_a_detach_the_next_message_needs_another_unit() {
    let (queue, lane) = plain();
    let one = conversation(&lane, TWO, 100);
    one.send_all([1, 2, 3]).unwrap();
    let mut turn = turn(&queue).unwrap();
    let first = turn.next().unwrap().detach();
    assert_eq!(units(&queue), 1, "the turn is bare");
    let second = turn.next().unwrap();
    assert_eq!(units(&queue), 2);
    let second = second.detach();
    assert!(turn.next().is_none());
    assert_eq!(units(&queue), 2);
    assert_eq!(first.complete(), 1);
    assert_eq!(units(&queue), 1);
    assert_eq!(turn.next().unwrap().complete(), 3);
    assert_eq!(units(&queue), 2);
    drop(turn);
    assert_eq!(units(&queue), 1);
    second.complete();
    assert_eq!(units(&queue), 0);
}

#[test]
fn a_bare_turn_that_is_dropped_leaves_the_unit_with_its_delivery() {
    let (queue, lane) = plain();
    lane.set_cap(Limit::SERIAL).unwrap();
    let one = conversation(&lane, TWO, 100);
    one.send_all([1, 2]).unwrap();
    let mut first = turn(&queue).unwrap();
    let detached = first.next().unwrap().detach();
    assert!(first.next().is_none(), "the cap");
    drop(first);
    assert_eq!((units(&queue), why(&queue)), (1, Why::Cap));
    assert_eq!(detached.complete(), 1);
    assert_eq!(serve(&queue), [2]);
    assert_eq!(units(&queue), 0);
}

#[test]
fn a_detached_delivery_given_back_is_first_for_the_live_turn() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send_all([1, 2]).unwrap();
    let mut turn = turn(&queue).unwrap();
    turn.next().unwrap().detach().give_back();
    let again = turn.next().unwrap();
    assert_eq!((*again, again.attempt()), (1, 2));
    again.complete();
    assert_eq!(turn.next().unwrap().complete(), 2);
}

#[test]
fn a_batch_is_completed_all_or_up_to_some_number() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send_all(0..7).unwrap();
    let mut turn = turn(&queue).unwrap();
    assert!(turn.next_batch(0).is_none());
    let batch = turn.next_batch(2).unwrap();
    assert_eq!(batch.len(), 2);
    assert!(batch.iter().copied().eq(0..2));
    assert_eq!(units(&queue), 1, "one batch lent as one");
    assert!(batch.complete().eq([0, 1]));
    let batch = turn.next_batch(4).unwrap();
    assert_eq!(queue.snapshot().waiting, 1);
    assert!(batch.complete_up_to(1).eq([2]));
    // The first message that was not completed has failed, and no other.
    let again = turn.next().unwrap();
    assert_eq!((*again, again.attempt()), (3, 2));
    again.complete();
    let next = turn.next().unwrap();
    assert_eq!((*next, next.attempt()), (4, 1));
    next.complete();
    assert!(turn.next_batch(9).unwrap().complete_up_to(9).eq([5, 6]));
    assert!(turn.next_batch(9).is_none());
}

#[test]
fn a_batch_that_is_dropped_fails_with_its_first() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send_all(0..3).unwrap();
    let mut held = turn(&queue).unwrap();
    drop(held.next_batch(3));
    assert_eq!(held.next_batch(3).unwrap().complete_up_to(0).len(), 0);
    drop(held);
    let mut held = turn(&queue).unwrap();
    let first = held.next().unwrap();
    assert_eq!((*first, first.attempt()), (0, 3));
    first.complete();
    let second = held.next().unwrap();
    assert_eq!((*second, second.attempt()), (1, 1));
}

#[test]
fn a_batch_counts_in_the_quantum() {
    let queue = Queue::builder().quantum(3).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    one.send_all(0..9).unwrap();
    let mut turn = turn(&queue).unwrap();
    turn.next().unwrap().complete();
    assert!(turn.next_batch(usize::MAX).unwrap().complete().eq([1, 2]));
    assert!(turn.next_batch(1).is_none() && turn.next().is_none());
}

#[test]
fn a_batch_gives_back_its_room() {
    let queue = Queue::builder().capacity(Limit::AtMost(3)).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    one.send_all(0..3).unwrap();
    let mut turn = turn(&queue).unwrap();
    let batch = turn.next_batch(3).unwrap();
    assert_eq!(one.send(9).unwrap_err().reason, SendReason::Full);
    assert!(batch.complete_up_to(2).eq([0, 1]));
    one.send_all([3, 4]).unwrap();
    assert_eq!(one.send(9).unwrap_err().reason, SendReason::Full);
}

#[test]
fn a_turn_with_a_queue_of_its_own() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send_all([1, 2, 3]).unwrap();
    let mut turn = turn(&queue).unwrap();
    turn.next().unwrap().complete();
    let mut owned = turn.into_owned();
    assert_eq!((owned.group_id(), units(&queue)), (one.group_id(), 1));
    assert!(take(&queue).is_none(), "it is the same turn");
    assert_eq!(owned.next().unwrap().complete(), 2);
    let clone = queue.clone();
    drop(queue);
    assert!(!clone.is_closed(), "another handle of it lives");
    assert_eq!(owned.next().unwrap().complete(), 3);
    drop(owned);
    assert_eq!(units(&clone), 0);
}

/// Four groups with two messages each.
fn four(lane: &Lane<u32>) -> Vec<super::super::form::Conversation<u32>> {
    let all: Vec<_> = (0..4).map(|_| lane.conversation().unwrap()).collect();
    for (n, one) in all.iter().enumerate() {
        one.send_all([10 * n as u32, 10 * n as u32 + 1]).unwrap();
    }
    all
}

#[test]
fn turns_dropped_half_way_begin_and_end() {
    let (queue, lane) = plain();
    lane.set_cap(Limit::AtMost(3)).unwrap();
    let _four = four(&lane);
    let mut turns = queue.try_receive_many(4).unwrap();
    assert_eq!((turns.len(), units(&queue)), (3, 3));
    let mut first = turns.next().unwrap();
    assert_eq!(first.next().unwrap().complete(), 0);
    drop(turns);
    assert_eq!((units(&queue), queue.snapshot().waiting), (1, 7));
    drop(first);
    // In the order in which they ended.
    assert_eq!(serve(&queue), [30, 31, 10, 11, 20, 21, 1]);
}

#[test]
fn no_more_than_32_are_claimed_at_once() {
    let (queue, lane) = plain();
    let all: Vec<_> = (0..40).map(|_| lane.conversation().unwrap()).collect();
    for (n, one) in all.iter().enumerate() {
        one.send(n).unwrap();
    }
    assert_eq!(queue.try_receive_many(40).unwrap().len(), 32);
}

/// "a group that was paused meanwhile begins all the same, and `next()` gives
/// nothing" (DESIGN).
#[test]
fn what_was_claimed_begins_whatever_happens_meanwhile() {
    let (queue, lane) = plain();
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    let (one, two) = (group.conversation().unwrap(), lane.conversation().unwrap());
    one.send(1).unwrap();
    two.send(2).unwrap();
    let mut turns = queue.try_receive_many(2).unwrap();
    group.set_limit(PAUSED).unwrap();
    assert_eq!(queue.drain(two.group_id()), Ok(vec![2]));
    let [mut paused, mut drained] = [(); 2].map(|()| turns.next().unwrap());
    assert!(paused.next().is_none() && drained.next().is_none());
    two.send(3).unwrap();
    assert_eq!(drained.next().unwrap().complete(), 3);
    group.set_limit(Limit::SERIAL).unwrap();
    assert_eq!(paused.next().unwrap().complete(), 1);
}

/// A bump after the claim is for the turn that was claimed, which uses it up.
#[test]
fn a_bump_between_a_claim_and_its_turn_is_used_up() {
    let (queue, lane) = plain();
    let four = four(&lane);
    let turns = queue.try_receive_many(4).unwrap();
    queue.bump(four[3].group_id(), 9).unwrap();
    drop(turns);
    assert_eq!(take(&queue).unwrap().complete(), 0);
}
