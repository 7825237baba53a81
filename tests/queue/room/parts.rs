//! Capacities of groups and lanes: which sends are refused or wait, and what makes room.

mod together;

use conversant::dialog::{Dialogs, Refused};
use conversant::error::{OutOfRange, TierGoesDown};
use conversant::keyed::Keyed;
use conversant::limit::Limit::{AtMost, Unlimited};
use conversant::queue::{Detached, GroupStatus, LaneStatus};

use crate::queue_support::plain;

use super::*;

/// A queue without a capacity, its lane, and a conversation whose group may have this many messages
/// waiting, and has them.
fn full_group(most: u32) -> (Queue<u32>, Lane<u32>, Conversation<u32>) {
    let (queue, lane) = plain();
    let wide = conversation(&lane, Unlimited, 100);
    wide.set_capacity(most).unwrap();
    wide.send_all(0..most).unwrap();
    (queue, lane, wide)
}

fn reason<M>(sent: Result<(), SendError<M>>) -> SendReason {
    sent.unwrap_err().reason
}

fn status(queue: &Queue<u32>, of: &Conversation<u32>) -> GroupStatus {
    let group = queue.groups().find(|group| group.id == of.group_id());
    group.unwrap()
}

fn lanes(queue: &Queue<u32>) -> Vec<LaneStatus> {
    queue.snapshot().lanes
}

/// Exactly `room` more messages fit.
fn has_room(of: &Conversation<u32>, room: u32, full: SendReason) {
    for n in 0..room {
        assert!(of.send(n).is_ok(), "{n} of {room}");
    }
    assert_eq!(reason(of.send(0)), full);
}

#[test]
fn a_full_group_refuses_and_leaves_room_for_others() {
    let (queue, lane) = bounded(10);
    let [dead, alive] = [(); 2].map(|()| lane.conversation().unwrap());
    dead.set_capacity(3).unwrap();
    dead.send_all(0..2).unwrap();
    let refused = dead.send_all([7, 8]).unwrap_err();
    assert_eq!(refused.message, [7, 8], "all or none");
    assert_eq!(refused.reason, SendReason::GroupFull);
    dead.send(2).unwrap();
    let refused = dead.send(9).unwrap_err();
    assert_eq!(
        (refused.message, refused.reason),
        (9, SendReason::GroupFull)
    );
    assert_eq!(reason(dead.send_in(0, 9)), SendReason::GroupFull);
    assert_eq!(dead.try_reserve().unwrap_err(), SendReason::GroupFull);
    assert_eq!(reason(dead.send_all(0..4)), SendReason::AboveCapacity);
    assert_eq!(queue.room(), Some(7), "what is refused holds nothing");
    has_room(&alive, 7, SendReason::Full);
    assert_eq!(serve(&queue), [0, 1, 2, 0, 1, 2, 3, 4, 5, 6]);
    has_room(&dead, 3, SendReason::GroupFull);
}

#[test]
fn a_full_lane_refuses_in_all_its_groups() {
    let (queue, lane) = bounded(10);
    let other = queue.lane(1, Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    one.send(0).unwrap();
    lane.set_capacity(3).unwrap();
    let later = lane.conversation().unwrap();
    later.send(1).unwrap();
    later.set_capacity(1).unwrap();
    assert_eq!(reason(later.send(9)), SendReason::GroupFull);
    has_room(&one, 1, SendReason::LaneFull);
    later.set_capacity(2).unwrap();
    assert_eq!(reason(later.send(9)), SendReason::LaneFull);
    later.set_capacity(Unlimited).unwrap();
    assert_eq!(reason(later.send(9)), SendReason::LaneFull);
    has_room(&other.conversation().unwrap(), 7, SendReason::Full);
    serve(&queue);
    has_room(&later, 3, SendReason::LaneFull);
    lane.set_capacity(Unlimited).unwrap();
    has_room(&one, 7, SendReason::Full);
}

/// A lane's capacity ends with the lane, and does not apply to the next lane of its index.
#[test]
fn the_smaller_of_two_capacities_holds() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    for (own, of_lane, full) in [(2, 1, SendReason::LaneFull), (1, 2, SendReason::GroupFull)] {
        one.set_capacity(own).unwrap();
        lane.set_capacity(of_lane).unwrap();
        has_room(&one, 1, full);
        serve(&queue);
    }
}

#[test]
fn a_lane_that_has_gone_leaves_no_capacity_behind() {
    let (queue, lane) = plain();
    let of_group = lane.conversation().unwrap();
    lane.set_capacity(0).unwrap();
    drop(lane);
    let second = queue.lane(1, Unlimited).unwrap();
    has_none(&second);
    drop(of_group);
    let third = queue.lane(1, Unlimited).unwrap();
    has_none(&third);
    third.set_capacity(0).unwrap();
    drop(third);
    has_none(&queue.lane(1, Unlimited).unwrap());
}

fn has_none(lane: &Lane<u32>) {
    lane.conversation().unwrap().send(1).unwrap();
}

#[test]
fn sending_nothing_needs_no_room() {
    let (_queue, lane, wide) = full_group(2);
    wide.set_capacity(0).unwrap();
    lane.set_capacity(0).unwrap();
    assert_eq!(reason(wide.send(0)), SendReason::GroupFull);
    wide.send_all([]).unwrap();
}

#[test]
fn what_is_taken_out_makes_room() {
    let full = SendReason::GroupFull;
    let (queue, _lane, wide) = full_group(4);
    let mut turn = queue.try_receive().unwrap();
    // The first message comes with the turn.
    has_room(&wide, 1, full);
    drop(turn.next_batch(3).unwrap().complete());
    has_room(&wide, 2, full);
    turn.next().unwrap().complete();
    has_room(&wide, 1, full);
    drop(turn.next().unwrap().detach());
    assert_eq!(reason(wide.send(0)), full);
    drop(turn);
    assert_eq!(queue.drain(wide.group_id()).unwrap().len(), 4);
    has_room(&wide, 4, full);
    let peek = queue.try_peek(wide.group_id()).unwrap();
    assert_eq!(reason(wide.send(0)), full, "it waits all the same");
    drop(peek);
    assert_eq!(reason(wide.send(0)), full);
    assert_eq!(status(&queue, &wide).waiting, 4);
}

#[test]
fn what_comes_back_waits_whether_there_is_room_or_not() {
    let full = SendReason::GroupFull;
    let (queue, _lane, wide) = full_group(2);
    let one = take(&queue).unwrap();
    has_room(&wide, 1, full);
    drop(one);
    assert_eq!(
        (status(&queue, &wide).waiting, reason(wide.send(0))),
        (3, full)
    );
    take(&queue).unwrap().complete();
    assert_eq!(reason(wide.send(0)), full);
    // A delivery that is given back within its turn, and one that was not looked at.
    let mut turn = queue.try_receive().unwrap();
    has_room(&wide, 1, full);
    turn.next().unwrap().give_back();
    drop(turn);
    assert_eq!(
        (status(&queue, &wide).waiting, reason(wide.send(0))),
        (3, full)
    );
    drop(queue.try_receive().unwrap());
    assert_eq!(
        (status(&queue, &wide).waiting, reason(wide.send(0))),
        (3, full)
    );
    assert_eq!(serve(&queue).len(), 3);
    has_room(&wide, 2, full);
}

/// By the group's next event it would be counted in any case: a change of the lane is not one.
#[test]
fn what_comes_back_is_counted_at_once() {
    let full = SendReason::LaneFull;
    let (queue, lane) = plain();
    let wide = lane.conversation().unwrap();
    lane.set_capacity(2).unwrap();
    wide.send_all([1, 2]).unwrap();
    let mut turn = queue.try_receive().unwrap();
    has_room(&wide, 1, full);
    turn.next().unwrap().give_back();
    lane.set_capacity(3).unwrap();
    assert_eq!(reason(wide.send(0)), full);
    drop(turn);
    assert_eq!(serve(&queue).len(), 3);
    has_room(&wide, 3, full);
    let turn = queue.try_receive().unwrap();
    has_room(&wide, 1, full);
    drop(turn);
    lane.set_capacity(4).unwrap();
    assert_eq!(reason(wide.send(0)), full);
    assert_eq!(serve(&queue).len(), 4);
}

#[test]
fn what_is_poisoned_waits_until_it_is_taken_out() {
    let queue = Queue::builder().attempts(1).build().unwrap();
    let bad = queue.lane(1, Unlimited).unwrap().conversation().unwrap();
    bad.set_capacity(2).unwrap();
    bad.send_all([1, 2]).unwrap();
    queue.try_receive().unwrap().next().unwrap().give_back();
    assert_eq!(reason(bad.send(3)), SendReason::GroupFull);
    let mut waits = one(&bad, 3);
    assert_eq!(queue.take_failed(bad.group_id()), Ok(Some(1)));
    assert_eq!(wake_counts([&waits]), [1]);
    assert!(waits.is_sent());
    assert_eq!(serve(&queue), [2, 3]);
}

/// In order, without overtaking, each as soon as there is room for it.
#[test]
fn who_waits_is_served_in_order() {
    let (queue, lane, wide) = full_group(2);
    let mut two = all(&wide, [7, 8]);
    let mut last = one(&wide, 9);
    lane.conversation().unwrap().send(6).unwrap();
    let counts = |queue: &Queue<u32>| status(queue, &wide).sends;
    assert_eq!((counts(&queue).waiting, counts(&queue).notified), (2, 0));
    assert_eq!(take(&queue).unwrap().complete(), 0);
    assert_eq!(
        (wake_counts([&two]), wake_counts([&last])),
        ([0], [0]),
        "too little for the first"
    );
    assert_eq!(reason(wide.send(5)), SendReason::GroupFull);
    while wake_counts([&two]) == [0] {
        take(&queue).unwrap().complete();
    }
    assert_eq!(
        reason(wide.send(5)),
        SendReason::GroupFull,
        "it is promised"
    );
    assert!(last.poll().is_pending());
    assert!(two.is_sent());
    // A wait that gives up passes its room on.
    let next = one(&wide, 10);
    take(&queue).unwrap().complete();
    assert_eq!((wake_counts([&last]), wake_counts([&next])), ([1], [0]));
    drop(last);
    assert_eq!(wake_counts([&next]), [1]);
    assert_eq!(next.wait.into_message(), Some(10));
    assert_eq!(counts(&queue).waiting + counts(&queue).notified, 0);
}

/// A wait for a dead group keeps no room of the lane or of the queue.
#[test]
fn who_waits_for_its_group_keeps_no_permit_of_lane_or_queue() {
    let (queue, lane) = bounded(4);
    let [dead, alive, last] = [(); 3].map(|()| lane.conversation().unwrap());
    dead.set_capacity(1).unwrap();
    lane.set_capacity(3).unwrap();
    dead.send(0).unwrap();
    let waiting = [1, 2, 3, 4].map(|n| one(&dead, n));
    has_room(&alive, 2, SendReason::LaneFull);
    let mut in_lane = one(&alive, 5);
    assert_eq!(queue.room(), Some(1));
    assert_eq!(lanes(&queue)[0].sends.waiting, 1);
    lane.set_capacity(4).unwrap();
    assert_eq!(wake_counts([&in_lane]), [1]);
    lane.set_capacity(5).unwrap();
    last.send(6).unwrap();
    // It has its room in the lane by now, and waits for the queue's.
    assert!(in_lane.poll().is_pending());
    assert_eq!(lanes(&queue)[0].sends, WaitCounts::default());
    assert_eq!(sends(&queue), (1, 0, 1));
    drop(waiting);
    assert_eq!(lanes(&queue)[0].capacity, AtMost(5));
    serve(&queue);
    assert!(in_lane.is_sent());
    assert_eq!(serve(&queue), [5]);
}

#[test]
fn nothing_lets_nothing_in_until_it_is_raised() {
    let (queue, _lane, wide) = full_group(1);
    wide.set_capacity(0).unwrap();
    assert_eq!(serve(&queue), [0]);
    assert_eq!(reason(wide.send(0)), SendReason::GroupFull);
    let mut two = all(&wide, [1, 2]);
    let mut three = all(&wide, [1, 2, 3]);
    wide.set_capacity(2).unwrap();
    assert!(two.is_sent());
    assert_eq!(three.refused(), (vec![1, 2, 3], SendReason::AboveCapacity));
    // Lowered below the number that waits: nothing is lost, and nothing enters until it fits.
    wide.set_capacity(1).unwrap();
    assert_eq!(
        (status(&queue, &wide).waiting, reason(wide.send(0))),
        (2, SendReason::GroupFull)
    );
    take(&queue).unwrap().complete();
    assert_eq!(reason(wide.send(0)), SendReason::GroupFull);
    take(&queue).unwrap().complete();
    has_room(&wide, 1, SendReason::GroupFull);
}

#[test]
fn without_a_capacity_again_all_sends_go_on() {
    let (queue, lane, wide) = full_group(1);
    let mut waits = [1, 2].map(|n| one(&wide, n));
    assert_eq!(status(&queue, &wide).capacity, AtMost(1));
    wide.set_capacity(Unlimited).unwrap();
    assert_eq!(status(&queue, &wide).capacity, Unlimited);
    assert!(waits.iter_mut().all(Waiting::is_sent));
    lane.set_capacity(2).unwrap();
    let mut waits = [3, 4].map(|n| one(&wide, n));
    // The old semaphore is gone: the waiters are queued at the new one.
    lane.set_capacity(Unlimited).unwrap();
    lane.set_capacity(4).unwrap();
    assert_eq!(waits.each_mut().map(Waiting::is_sent), [true, false]);
    assert_eq!(lanes(&queue)[0].capacity, AtMost(4));
    lane.set_capacity(Unlimited).unwrap();
    assert!(waits[1].is_sent());
    assert_eq!(serve(&queue), [0, 1, 2, 3, 4]);
    let range = |error: OutOfRange| (error.what, error.most);
    let above = wide.set_capacity(Limit::MAX + 1).map_err(range);
    assert_eq!(above, Err(("capacity", Limit::MAX)));
    assert_eq!(lane.set_capacity(Limit::MAX + 1).map_err(range), above);
}

/// The queue is closed, or gone.
#[test]
fn who_waits_is_told_that_the_queue_is_closed() {
    for gone in [false, true] {
        let (queue, lane, wide) = full_group(1);
        lane.set_capacity(1).unwrap();
        let other = lane.conversation().unwrap();
        let mut waits = [one(&wide, 7), one(&other, 8)];
        let mut reserves = Waiting::of(wide.reserve());
        match gone {
            true => drop(queue),
            false => queue.close(),
        }
        assert_eq!(wake_counts(waits.each_ref()), [1, 1]);
        let refused = waits.each_mut().map(Waiting::refused);
        assert_eq!(refused, [(7, SendReason::Closed), (8, SendReason::Closed)]);
        assert!(matches!(
            reserves.poll(),
            Poll::Ready(Err(SendReason::Closed))
        ));
        assert_eq!(reason(wide.send(1)), SendReason::Closed);
        wide.set_capacity(5).unwrap();
        lane.set_capacity(5).unwrap();
        assert_eq!(reason(wide.send_wait(1).wait()), SendReason::Closed);
    }
}

#[test]
fn room_that_is_reserved_counts_in_the_group_and_the_lane() {
    let (queue, lane) = bounded(4);
    let (one, other) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    one.set_capacity(1).unwrap();
    lane.set_capacity(2).unwrap();
    let reserved = one.try_reserve().unwrap();
    assert_eq!(reason(one.send(0)), SendReason::GroupFull);
    has_room(&other, 1, SendReason::LaneFull);
    reserved.send(7).unwrap();
    assert_eq!(reason(one.send(0)), SendReason::GroupFull);
    let mut waits = Waiting::of(one.reserve());
    assert_eq!(serve(&queue).len(), 2);
    let Poll::Ready(Ok(reserved)) = waits.poll() else {
        panic!("there is room");
    };
    assert_eq!(one.try_reserve().unwrap_err(), SendReason::GroupFull);
    drop(reserved);
    has_room(&one, 1, SendReason::GroupFull);
    has_room(&other, 1, SendReason::LaneFull);
    assert_eq!(queue.room(), Some(2));
}

/// A thread that holds a turn of a queue with a capacity does not wait for itself.
#[test]
fn a_handler_is_told() {
    let (queue, lane) = bounded(9);
    let own = lane.conversation().unwrap();
    own.set_capacity(1).unwrap();
    own.send_all([1]).unwrap();
    let turn = queue.try_receive().unwrap();
    own.send(2).unwrap();
    assert_eq!(reason(own.send_wait(3).wait()), SendReason::OwnQueue);
    drop(turn);
}
