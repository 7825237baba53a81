//! Changes while turns, claimed turns, batches and detached deliveries are live: a first cap, first
//! tiers, a close, and cases that random scripts found.

use std::time::Duration;

use conversant::limit::{Bypass, Limit};

use super::super::form::{NoMore, NoTurn, Queue, SendReason, Why};
use super::{TWO, conversation, plain, serve, take, turn};

/// Units of the only lane.
fn units<T>(queue: &Queue<T>) -> u32 {
    queue.snapshot().lanes[0].in_flight
}

fn open<T>(queue: &Queue<T>) -> Option<u32> {
    queue.snapshot().lanes[0].open_tier
}

#[test]
fn a_first_cap_counts_all_that_is_live() {
    let (queue, lane) = plain();
    let one = conversation(&lane, Limit::AtMost(3), 100);
    let [two, three] = [(); 2].map(|()| lane.conversation().unwrap());
    one.send_all([1, 2, 3, 4]).unwrap();
    let mut live = turn(&queue).unwrap();
    let detached = live.next().unwrap().detach();
    let delivery = live.next().unwrap();
    two.send(20).unwrap();
    three.send(30).unwrap();
    // One detached, one with a delivery, two claimed.
    let mut turns = queue.try_receive_many(5).unwrap();
    assert_eq!(turns.len(), 2);
    lane.set_cap(Limit::AtMost(3)).unwrap();
    assert_eq!(units(&queue), 4);
    let later = lane.conversation().unwrap();
    later.send(50).unwrap();
    assert_eq!(delivery.complete(), 2);
    assert!(live.next().is_none(), "four units for a cap of three");
    assert_eq!(detached.complete(), 1);
    assert!(take(&queue).is_none());
    assert_eq!(live.next().unwrap().complete(), 3);
    let mut first = turns.next().unwrap();
    assert_eq!(first.next().unwrap().complete(), 20);
    drop(first);
    assert_eq!(take(&queue).unwrap().complete(), 50);
    drop((live, turns));
    assert_eq!(units(&queue), 0);
    assert_eq!(serve(&queue).len(), 2);
}

/// A bare turn does not count in a first cap, and needs room in the cap afterwards.
#[test]
fn a_first_cap_and_a_bare_turn() {
    let (queue, lane) = plain();
    let one = conversation(&lane, Limit::Unlimited, 100);
    one.send_all([1, 2]).unwrap();
    let mut live = turn(&queue).unwrap();
    let detached = live.next().unwrap().detach();
    lane.set_cap(Limit::SERIAL).unwrap();
    assert_eq!(units(&queue), 1);
    assert!(live.next().is_none());
    detached.complete();
    assert_eq!(units(&queue), 0);
    assert_eq!(live.next().unwrap().complete(), 2);
    assert_eq!(units(&queue), 1);
    drop(live);
    assert_eq!(units(&queue), 0);
}

#[test]
fn a_cap_lowered_between_a_claim_and_its_turn_holds_for_the_second_message() {
    let (queue, lane) = plain();
    lane.set_cap(TWO).unwrap();
    let one = lane.conversation().unwrap();
    one.send_all([1, 2]).unwrap();
    let mut turns = queue.try_receive_many(1).unwrap();
    lane.set_cap(Limit::AtMost(0)).unwrap();
    let mut turn = turns.next().unwrap();
    assert_eq!(turn.next().unwrap().complete(), 1, "it was claimed for it");
    assert!(turn.next().is_none());
    lane.set_cap(Limit::SERIAL).unwrap();
    assert_eq!(turn.next().unwrap().complete(), 2);
}

#[test]
fn first_tiers_count_what_is_live() {
    let (queue, lane) = plain();
    let one = conversation(&lane, TWO, 100);
    one.send_all([1, 2]).unwrap();
    let mut live = turn(&queue).unwrap();
    let detached = live.next().unwrap().detach();
    let delivery = live.next().unwrap();
    let [two, high] = [(); 2].map(|()| lane.conversation().unwrap());
    two.send(20).unwrap();
    let turns = queue.try_receive_many(1).unwrap();
    high.send_in(3, 30).unwrap();
    assert_eq!(open(&queue), Some(0));
    assert!(take(&queue).is_none());
    assert_eq!(detached.complete(), 1);
    assert_eq!(open(&queue), Some(0));
    assert_eq!(delivery.complete(), 2);
    drop(live);
    assert_eq!(open(&queue), Some(0), "one is claimed");
    for mut turn in turns {
        assert_eq!(turn.next().unwrap().complete(), 20);
        assert_eq!(open(&queue), Some(3));
    }
    assert_eq!(serve(&queue), [30]);
    assert_eq!(open(&queue), None);
}

/// A turn that was live when tiers came into use counts as one started message, until its next
/// step.
#[test]
fn first_tiers_and_a_turn_between_messages() {
    let (queue, lane) = plain();
    let (one, high) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    one.send(1).unwrap();
    let mut live = turn(&queue).unwrap();
    live.next().unwrap().complete();
    high.send_in(1, 10).unwrap();
    assert!(take(&queue).is_none());
    drop(live);
    assert_eq!(serve(&queue), [10]);
}

#[test]
fn first_tiers_and_a_batch_that_fails() {
    let (queue, lane) = plain();
    let (one, high) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    one.send_all([1, 2, 3]).unwrap();
    let mut live = turn(&queue).unwrap();
    let batch = live.next_batch(3).unwrap();
    high.send_in(1, 10).unwrap();
    assert!(batch.complete_up_to(1).eq([1]));
    drop(live);
    assert!(take(&queue).is_some_and(|back| *back == 2 && back.attempt() == 2));
    assert_eq!(serve(&queue), [2, 3, 10]);
    assert_eq!(open(&queue), None);
}

#[test]
fn a_close_with_every_kind_of_live_thing() {
    let (queue, lane) = plain();
    let one = conversation(&lane, TWO, 100);
    one.send_all([1, 2]).unwrap();
    let mut live = turn(&queue).unwrap();
    let detached = live.next().unwrap().detach();
    let delivery = live.next().unwrap();
    let [two, three] = [(); 2].map(|()| lane.conversation().unwrap());
    two.send(20).unwrap();
    three.send_all([30, 31]).unwrap();
    let mut by_name = queue.try_receive_from(three.group_id()).unwrap();
    let batch = by_name.next_batch(2).unwrap();
    let mut turns = queue.try_receive_many(1).unwrap();
    queue.close();
    assert_eq!(one.send(9).unwrap_err().reason, SendReason::Closed);
    let closed = || queue.try_receive().err() == Some(NoTurn::Closed(NoMore::Drained));
    detached.complete();
    delivery.complete();
    drop(live);
    assert!(batch.complete().eq([30, 31]));
    let never = NoTurn::Closed(NoMore::Drained);
    assert_eq!(
        queue.try_receive_from(three.group_id()).err(),
        Some(NoTurn::Held)
    );
    drop(by_name);
    assert_eq!(queue.try_receive_from(three.group_id()).err(), Some(never));
    assert!(!closed(), "one is claimed");
    let mut last = turns.next().unwrap();
    last.next().unwrap().complete();
    assert!(!closed(), "a turn with its unit is in flight");
    drop(last);
    assert!(closed());
}

/// A bare turn holds nothing that could still come back.
#[test]
fn a_close_and_a_bare_turn() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send(1).unwrap();
    let mut live = turn(&queue).unwrap();
    let detached = live.next().unwrap().detach();
    queue.close();
    assert_eq!(queue.try_receive().err(), Some(NoTurn::Empty));
    detached.give_back();
    assert_eq!(queue.try_receive().err(), Some(NoTurn::Empty));
    live.next().unwrap().detach().complete();
    assert_eq!(
        queue.try_receive().err(),
        Some(NoTurn::Closed(NoMore::Drained))
    );
    drop(live);
    assert_eq!(
        queue.try_receive().err(),
        Some(NoTurn::Closed(NoMore::Drained))
    );
}

#[test]
fn a_held_group_is_held_also_when_nothing_waits_in_it() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send(1).unwrap();
    let held = turn(&queue).unwrap();
    assert_eq!(queue.snapshot().lanes[0].groups[0].why, Why::Held);
    let refused = queue.try_receive_from(one.group_id()).unwrap_err();
    assert_eq!(refused, NoTurn::Held);
    drop(held);
}

/// A group that was taken out of the middle of the ready queue must not become its first.
#[test]
fn the_oldest_is_somebody_after_a_receive_by_name() {
    let queue = Queue::builder().bypass(Bypass::AtMost(0)).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let low = [(); 4].map(|()| conversation(&lane, Limit::SERIAL, 0));
    for (n, one) in low.iter().enumerate() {
        one.send(n).unwrap();
    }
    let by_name = queue.try_receive_from(low[1].group_id()).unwrap();
    assert_eq!(take(&queue).unwrap().complete(), 0);
    let high = conversation(&lane, Limit::SERIAL, 9);
    high.send(9).unwrap();
    assert_eq!(serve(&queue), [2, 3, 9]);
    drop(by_name);
    assert_eq!(serve(&queue), [1]);
}

/// The end of a delivery updates its lane once, whether completed or not.
#[test]
fn a_lane_keeps_its_place_when_a_detached_delivery_ends() {
    for (done, expected) in [
        (true, &["mine 2", "other"][..]),
        (false, &["mine 1", "mine 2", "other"]),
    ] {
        let queue = Queue::builder().capacity(Limit::AtMost(9)).build().unwrap();
        let [mine, other] = [(); 2].map(|()| queue.lane(2, Limit::AtMost(8)).unwrap());
        let one = conversation(&mine, TWO, 100);
        one.send_all(["mine 1", "mine 2"]).unwrap();
        let detached = take(&queue).unwrap();
        let two = other.conversation().unwrap();
        two.send("other").unwrap();
        if done {
            detached.complete();
        } else {
            detached.give_back();
        }
        assert_eq!(serve(&queue), expected);
    }
}

/// "Ready time is a sequence number taken ... when a turn or delivery ends."
#[test]
fn a_group_that_a_detached_delivery_sets_aside_is_the_youngest() {
    let second = Duration::from_secs(1);
    let queue = Queue::builder().back_off(second, second).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let (old, young) = (conversation(&lane, TWO, 100), lane.conversation().unwrap());
    old.send_all(["old 1", "old 2"]).unwrap();
    let failing = take(&queue).unwrap();
    young.send("young").unwrap();
    failing.give_back();
    assert_eq!(queue.advance(second), None);
    assert_eq!(serve(&queue), ["young", "old 1", "old 2"]);
}

#[test]
fn a_poisoned_group_keeps_no_tier_open_while_its_turn_is_live() {
    let queue = Queue::builder().attempts(Limit::SERIAL).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    one.send(1).unwrap();
    let mut live = turn(&queue).unwrap();
    live.next().unwrap().detach().give_back();
    assert_eq!(open(&queue), None);
    drop(live);
    assert_eq!(open(&queue), None);
}
