//! The queue of waiting sends: notified in order, with all their places, and overtaken by none.

use std::time::Duration;

use conversant::error::TierGoesDown;
use conversant::keyed::Keyed;
use conversant::queue::Detached;

use super::*;

#[test]
fn a_send_wait_with_room_is_a_send() {
    let (queue, lane) = bounded(2);
    let conversation = lane.conversation().unwrap();
    conversation.send_wait(1).wait().unwrap();
    conversation
        .send_wait(2)
        .wait_timeout(Duration::ZERO)
        .unwrap()
        .unwrap();
    assert_eq!(serve(&queue), [1, 2]);
    // Without a capacity there is always room.
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let conversation = lane.conversation().unwrap();
    conversation.send_all_wait(0..1000).wait().unwrap();
    assert_eq!(serve(&queue).len(), 1000);
}

#[test]
fn one_is_told_for_each_place_in_order_of_waiting() {
    let (queue, _lane, wide) = full::<u32>(3);
    let mut sends: Vec<_> = (1..=5).map(|n| one(&wide, n)).collect();
    let woken = |sends: &[OneWaits<'_, u32>]| -> Vec<usize> {
        sends.iter().map(|w| w.wakes.count()).collect()
    };
    // A message that is given back keeps its place.
    take(&queue).unwrap().give_back();
    assert_eq!(woken(&sends), [0, 0, 0, 0, 0]);
    let hands = [(); 3].map(|()| take(&queue).unwrap());
    assert_eq!(
        woken(&sends),
        [0, 0, 0, 0, 0],
        "in flight it keeps its place"
    );
    let [first, second, third] = hands;
    first.complete();
    assert_eq!(woken(&sends), [1, 0, 0, 0, 0]);
    second.complete();
    assert_eq!(woken(&sends), [1, 1, 0, 0, 0]);
    // The second is faster, the third was not notified: the first keeps its place.
    assert!(sends[1].is_sent());
    assert!(sends[2].poll().is_pending());
    assert_eq!(woken(&sends), [1, 1, 0, 0, 0]);
    assert!(sends[0].is_sent());
    assert_eq!(held(&queue), 3);
    third.complete();
    assert_eq!(woken(&sends), [1, 1, 1, 0, 0]);
    assert!(sends[2].is_sent());
    assert_eq!(complete_one(&queue), 2);
    assert!(sends[3].is_sent());
    assert_eq!(woken(&sends), [1, 1, 1, 1, 0]);
    drop(sends);
    assert_eq!(serve(&queue), [1, 3, 4]);
}

/// An immediate send is refused while room belongs to a queued waiter, notified or not.
#[test]
fn nobody_in_line_is_overtaken() {
    let (queue, lane, wide) = full::<u32>(2);
    let other = lane.conversation().unwrap();
    let mut three = all(&wide, [1, 2]);
    complete_one(&queue);
    assert_eq!(three.wakes.count(), 0, "one place is not enough for two");
    // There is a free place, but the waiters for two places come first.
    assert_eq!(other.send(9).unwrap_err().reason, SendReason::Full);
    let mut late = one(&other, 3);
    complete_one(&queue);
    assert_eq!(wake_counts([&three]), [1]);
    assert_eq!(wake_counts([&late]), [0]);
    assert_eq!(other.send(9).unwrap_err().reason, SendReason::Full);
    assert_eq!(held(&queue), 0, "promised, and not taken yet");
    assert!(three.is_sent());
    assert!(late.poll().is_pending());
    assert_eq!(serve(&queue), [1, 2]);
    // Only `late` asks for room, and there is more.
    other.send(4).unwrap();
    assert!(late.is_sent());
    assert_eq!(serve(&queue), [4, 3]);
}

#[test]
fn by_key_nobody_is_overtaken_either() {
    let (queue, lane, wide) = full::<u32>(1);
    let orders = Keyed::new(lane);
    let mut first = one(&wide, 1);
    complete_one(&queue);
    assert_eq!(orders.send("anna", 2).unwrap_err().reason, SendReason::Full);
    assert!(first.is_sent());
    assert_eq!(serve(&queue), [1]);
    orders.send("anna", 2).unwrap();
}

#[test]
fn a_wait_that_is_never_polled_keeps_its_own_permits_only() {
    let (queue, _lane, wide) = full::<u32>(2);
    let (mut lazy, mut next) = (one(&wide, 1), one(&wide, 2));
    let mut last = one(&wide, 3);
    complete_one(&queue);
    assert_eq!(sends(&queue), (2, 1, 3));
    complete_one(&queue);
    assert_eq!(wake_counts([&next, &last]), [1, 0]);
    assert!(next.is_sent());
    assert_eq!(complete_one(&queue), 2);
    assert_eq!(wake_counts([&next, &last]), [1, 1]);
    assert!(last.is_sent());
    assert_eq!(sends(&queue), (0, 1, 1), "a snapshot names it");
    assert!(lazy.is_sent());
    assert_eq!(sends(&queue), (0, 0, 0));
    assert_eq!(serve(&queue), [3, 1]);
}

#[test]
fn several_wait_for_all_their_places_at_once() {
    let (queue, lane, wide) = full::<u32>(3);
    let mut three = all(&wide, [1, 2, 3]);
    assert_eq!(sends(&queue), (1, 0, 3));
    complete_one(&queue);
    complete_one(&queue);
    assert_eq!(three.wakes.count(), 0);
    complete_one(&queue);
    assert_eq!(three.wakes.count(), 1);
    assert!(three.is_sent());
    // As one request: a second conversation's message comes after.
    let mut next = one(&wide, 4);
    assert_eq!(complete_one(&queue), 1);
    assert!(next.is_sent());
    assert_eq!(serve(&queue), [2, 3, 4]);
    // A send of no messages needs no room; more than the capacity is refused at once.
    wide.send_all([5, 6, 7]).unwrap();
    wide.send_all_wait([]).wait().unwrap();
    let many = wide.send_all_wait(0..4).wait().unwrap_err();
    assert_eq!(
        (many.message, many.reason),
        (vec![0, 1, 2, 3], SendReason::AboveCapacity)
    );
    assert_eq!(
        wide.send_all(0..4).unwrap_err().reason,
        SendReason::AboveCapacity
    );
    drop(lane);
}

/// Whatever takes a message out makes room.
#[test]
fn room_comes_from_everything_that_takes_out() {
    let (queue, _lane, wide) = full::<u32>(2);
    let mut waiting = one(&wide, 1);
    assert_eq!(queue.drain(wide.group_id()), Ok(vec![0, 0]));
    assert!(waiting.is_sent());
    wide.send(2).unwrap();
    // Failed five times: poisoned, it keeps its place until it is drained.
    let mut waiting = one(&wide, 3);
    for _ in 0..5 {
        take(&queue).unwrap().give_back();
    }
    assert_eq!(queue.poisoned().len(), 1);
    assert_eq!(waiting.wakes.count(), 0);
    assert_eq!(queue.drain(wide.group_id()), Ok(vec![1, 2]));
    assert_eq!(waiting.wakes.count(), 1);
    assert!(waiting.is_sent());
    // In flight while its queue is gone: the place is freed with its delivery.
    assert_eq!(queue.shutdown(), [3]);
}

#[test]
fn the_tier_is_that_of_the_moment_and_can_be_said() {
    let (queue, _lane, wide) = full::<u32>(2);
    wide.send_in(3, 9).unwrap_err();
    let mut down = Waiting::of(wide.send_wait(1).in_tier(1));
    let mut last = one(&wide, 2);
    let mut up = Waiting::of(wide.send_wait(3).in_tier(7));
    assert_eq!(queue.drain(wide.group_id()), Ok(vec![0, 0]));
    // One of these two was faster, and its tier does not go down.
    assert!(down.is_sent());
    assert!(last.is_sent());
    let tiers = |queue| {
        let delivery: Detached<u32> = take(queue).unwrap();
        (delivery.tier(), delivery.complete())
    };
    assert_eq!(tiers(&queue), (1, 1));
    assert!(up.is_sent());
    let mut down = Waiting::of(wide.send_wait(4).in_tier(2));
    let mut next = one(&wide, 5);
    assert_eq!(tiers(&queue), (1, 2));
    assert_eq!(wake_counts([&down, &next]), [1, 0]);
    let reason = SendReason::TierGoesDown(TierGoesDown { last: 7, asked: 2 });
    assert_eq!(down.refused(), (4, reason));
    assert_eq!(next.wakes.count(), 1, "its room is the next one's");
    assert!(next.is_sent());
    assert_eq!(tiers(&queue), (7, 3));
    assert_eq!(tiers(&queue), (7, 5));
    wide.send_all_wait([6, 7]).in_tier(8).wait().unwrap();
    assert_eq!([tiers(&queue), tiers(&queue)], [(8, 6), (8, 7)]);
}

#[test]
fn sending_nothing_changes_no_tier() {
    let (queue, lane) = bounded(4);
    let [idle, busy] = [(); 2].map(|()| lane.conversation().unwrap());
    busy.send(1).unwrap();
    for one in [&idle, &busy] {
        one.send_all_wait([]).in_tier(5).wait().unwrap();
        one.send(2).unwrap();
    }
    let tiers = [take(&queue), take(&queue)].map(|one| one.unwrap().tier());
    assert_eq!(tiers, [0, 0]);
    busy.send_in(0, 3).unwrap();
    assert_eq!(serve(&queue).len(), 4);
}
