//! Messages that fail: attempts, poison, and back-off by the embedder's clock.

use std::time::Duration;

use conversant::error::{OutOfRange, Stale};
use conversant::limit::Limit;

use super::super::form::{Builder, Lane, NoMore, NoTurn, Poisoned, Queue, Why};
use super::{conversation, plain, serve, take};

const SECOND: Duration = Duration::from_secs(1);

fn lane<T>(queue: &Queue<T>) -> Lane<T> {
    queue.lane(1, Limit::Unlimited).unwrap()
}

fn built(builder: Builder<&'static str>) -> (Queue<&'static str>, Lane<&'static str>) {
    let queue = builder.build().unwrap();
    let lane = lane(&queue);
    (queue, lane)
}

fn attempts(n: u32) -> (Queue<&'static str>, Lane<&'static str>) {
    built(Queue::builder().attempts(Limit::AtMost(n)))
}

/// Receives the first message and gives it back.
fn fail(queue: &Queue<&'static str>, what: &str) {
    let delivery = take(queue).unwrap();
    assert_eq!(*delivery, what);
    delivery.give_back();
}

#[test]
fn the_fifth_failure_poisons_that_group_only() {
    let (queue, lane) = plain();
    let bad = lane.conversation().unwrap();
    bad.send_all(["bad 1", "bad 2"]).unwrap();
    for _ in 0..5 {
        assert_eq!(queue.poisoned(), []);
        fail(&queue, "bad 1");
    }
    let good = lane.conversation().unwrap();
    good.send("good").unwrap();
    bad.send("bad 3").unwrap();
    assert_eq!(serve(&queue), ["good"]);
    let listed = Poisoned {
        group: bad.group_id(),
        message: 1,
        attempts: 5,
        waiting: 3,
    };
    assert_eq!(queue.poisoned(), [listed]);
    assert_eq!(queue.snapshot().lanes[0].groups[0].why, Why::Poisoned);
    assert_eq!(queue.peek(bad.group_id()), Ok(Some((1, 5))));
    assert_eq!(queue.waiting_in(bad.group_id()), Ok(3));
}

#[test]
fn a_panicking_handler_counts_and_a_turn_let_go_does_not() {
    let (queue, lane) = attempts(2);
    let one = lane.conversation().unwrap();
    one.send("m").unwrap();
    for _ in 0..9 {
        drop(queue.try_receive().unwrap());
    }
    for _ in 0..2 {
        let delivery = take(&queue).unwrap();
        let handler = std::panic::AssertUnwindSafe(|| {
            let _delivery = delivery;
            panic!("the handler's");
        });
        assert!(std::panic::catch_unwind(handler).is_err());
    }
    assert_eq!(queue.poisoned()[0].attempts, 2);
}

#[test]
fn the_live_turn_of_a_poisoned_group_gives_nothing_more() {
    let (queue, lane) = attempts(1);
    let one = lane.conversation().unwrap();
    one.send_all(["a", "b"]).unwrap();
    let mut turn = queue.try_receive().unwrap();
    turn.next().unwrap().give_back();
    assert!(turn.next().is_none());
    drop(turn);
    assert!(take(&queue).is_none());
}

#[test]
fn resumed_it_starts_its_attempts_anew_and_as_the_youngest() {
    let (queue, lane) = attempts(2);
    let (bad, good) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    bad.send_all(["bad 1", "bad 2"]).unwrap();
    fail(&queue, "bad 1");
    fail(&queue, "bad 1");
    good.send("good").unwrap();
    assert_eq!(queue.resume(bad.group_id()), Ok(true));
    assert_eq!(queue.resume(bad.group_id()), Ok(false));
    assert_eq!(take(&queue).unwrap().complete(), "good");
    let again = take(&queue).unwrap();
    assert_eq!((*again, again.attempt()), ("bad 1", 1));
    again.give_back();
    assert_eq!(queue.poisoned(), []);
    assert_eq!(serve(&queue), ["bad 1", "bad 2"]);
}

#[test]
fn a_drained_group_returns_its_messages_and_is_not_poisoned() {
    let (queue, lane) = attempts(1);
    let bad = lane.conversation().unwrap();
    bad.send_all(["1", "2"]).unwrap();
    fail(&queue, "1");
    assert_eq!(queue.drain(bad.group_id()), Ok(vec!["1", "2"]));
    assert_eq!(queue.poisoned(), []);
    bad.send("3").unwrap();
    assert_eq!(serve(&queue), ["3"]);
    let id = bad.group_id();
    drop(bad);
    assert_eq!(queue.drain(id), Err(Stale));
    assert_eq!(queue.resume(id), Err(Stale));
    assert_eq!(queue.peek(id), Err(Stale));
}

#[test]
fn a_poisoned_group_that_nobody_pins_is_there_until_it_is_drained() {
    let (queue, lane) = attempts(1);
    let bad = lane.conversation().unwrap();
    bad.send("1").unwrap();
    let id = bad.group_id();
    drop(bad);
    fail(&queue, "1");
    assert_eq!(queue.drain(id), Ok(vec!["1"]));
    assert!(queue.snapshot().lanes[0].groups.is_empty());
}

#[test]
fn a_tier_with_a_poisoned_group_drains() {
    let (queue, lane) = attempts(1);
    let (bad, good) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    bad.send_in(0, "bad").unwrap();
    bad.send_in(0, "behind it").unwrap();
    good.send_in(1, "tier 1").unwrap();
    good.send_in(2, "tier 2").unwrap();
    fail(&queue, "bad");
    let first = take(&queue).unwrap();
    assert_eq!(*first, "tier 1");
    // Resumed, it is a late arrival: after one drain of the open tier it goes first.
    assert_eq!(queue.resume(bad.group_id()), Ok(true));
    assert!(take(&queue).is_none());
    first.complete();
    assert_eq!(serve(&queue), ["bad", "behind it", "tier 2"]);
    assert_eq!(queue.snapshot().lanes[0].open_tier, None);
}

#[test]
fn what_is_sent_into_a_poisoned_group_holds_no_tier() {
    let (queue, lane) = attempts(1);
    let (bad, good) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    bad.send("bad").unwrap();
    fail(&queue, "bad");
    bad.send("later").unwrap();
    good.send_in(3, "tier 3").unwrap();
    assert_eq!(serve(&queue), ["tier 3"]);
    assert_eq!(queue.drain(bad.group_id()), Ok(vec!["bad", "later"]));
    assert_eq!(queue.snapshot().lanes[0].open_tier, None);
}

#[test]
fn in_a_group_of_two_the_other_delivery_goes_on() {
    let (queue, lane) = attempts(1);
    let two = conversation(&lane, Limit::AtMost(2), 100);
    two.send_all(["a", "b", "c"]).unwrap();
    let (a, b) = (take(&queue).unwrap(), take(&queue).unwrap());
    a.give_back();
    b.complete();
    assert!(take(&queue).is_none());
    assert_eq!(queue.drain(two.group_id()), Ok(vec!["a", "c"]));
}

#[test]
fn a_closed_queue_ends_when_only_poisoned_messages_are_left() {
    let (queue, lane) = attempts(1);
    let bad = lane.conversation().unwrap();
    bad.send_all(["1", "2"]).unwrap();
    fail(&queue, "1");
    queue.close();
    let only_poisoned = Some(NoTurn::Closed(NoMore::OnlyPoisoned));
    assert_eq!(queue.try_receive().err(), only_poisoned);
    assert_eq!(queue.try_receive_many(2).err(), only_poisoned);
    assert_eq!(queue.resume(bad.group_id()), Ok(true));
    assert_eq!(serve(&queue), ["1", "2"]);
    let drained = Some(NoTurn::Closed(NoMore::Drained));
    assert_eq!(queue.try_receive().err(), drained);
}

/// Also by name: the poisoned group and another give different answers.
#[test]
fn a_closed_queue_is_drained_when_the_poisoned_messages_are_taken_out() {
    let (queue, lane) = attempts(1);
    let (bad, good) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    bad.send("1").unwrap();
    fail(&queue, "1");
    queue.close();
    let only_poisoned = Some(NoTurn::Closed(NoMore::OnlyPoisoned));
    let drained = Some(NoTurn::Closed(NoMore::Drained));
    assert_eq!(queue.try_receive_from(bad.group_id()).err(), only_poisoned);
    assert_eq!(queue.try_receive_from(good.group_id()).err(), drained);
    assert_eq!(queue.drain(bad.group_id()), Ok(vec!["1"]));
    assert_eq!(queue.try_receive_from(bad.group_id()).err(), drained);
    assert_eq!(queue.try_receive().err(), drained);
}

#[test]
fn without_a_limit_nothing_is_poisoned() {
    let (queue, lane) = built(Queue::builder().attempts(Limit::Unlimited));
    let one = lane.conversation().unwrap();
    one.send("m").unwrap();
    for _ in 0..100 {
        fail(&queue, "m");
    }
    assert_eq!(queue.poisoned(), []);
    let none = Queue::<u8>::builder().attempts(Limit::AtMost(0)).build();
    assert!(matches!(
        none.err(),
        Some(OutOfRange {
            what: "attempts",
            ..
        })
    ));
}

#[test]
fn the_back_off_doubles_and_holds_only_its_group() {
    let (queue, lane) = built(Queue::builder().back_off(SECOND, 3 * SECOND));
    let (bad, good) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    bad.send_all(["bad 1", "bad 2"]).unwrap();
    let mut now = Duration::ZERO;
    assert_eq!(queue.advance(now), None);
    for pause in [1, 2, 3, 3] {
        fail(&queue, "bad 1");
        assert_eq!(queue.snapshot().lanes[0].groups[0].why, Why::BackingOff);
        good.send("good").unwrap();
        assert_eq!(serve(&queue), ["good"]);
        now += pause * SECOND;
        let early = now - Duration::from_nanos(1);
        assert_eq!(queue.advance(early), Some(now));
        assert!(take(&queue).is_none());
        assert_eq!(queue.advance(now), None);
    }
    fail(&queue, "bad 1");
    assert_eq!(queue.poisoned()[0].attempts, 5);
    assert_eq!(queue.advance(now), None);
}

#[test]
fn a_tier_waits_for_a_group_in_back_off() {
    let (queue, lane) = built(Queue::builder().back_off(SECOND, SECOND));
    let (slow, next) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    slow.send("tier 0").unwrap();
    next.send_in(1, "tier 1").unwrap();
    fail(&queue, "tier 0");
    assert!(take(&queue).is_none());
    assert_eq!(queue.advance(SECOND), None);
    assert_eq!(serve(&queue), ["tier 0", "tier 1"]);
}

#[test]
fn a_back_off_ends_early_by_resume_drain_and_shutdown() {
    let (queue, lane) = built(Queue::builder().back_off(SECOND, SECOND));
    let one = lane.conversation().unwrap();
    one.send_all(["a", "b"]).unwrap();
    fail(&queue, "a");
    assert_eq!(queue.resume(one.group_id()), Ok(true));
    fail(&queue, "a");
    assert_eq!(queue.drain(one.group_id()), Ok(vec!["a", "b"]));
    one.send("c").unwrap();
    fail(&queue, "c");
    assert_eq!(queue.shutdown(), ["c"]);
    assert_eq!(queue.advance(SECOND), None);
}

/// One event: the lane has something eligible before it and after it, so that
/// it keeps its place among the lanes.
#[test]
fn a_lane_whose_group_is_poisoned_keeps_its_turn() {
    let queue = Queue::builder().attempts(Limit::SERIAL).build().unwrap();
    let (mine, other) = (lane(&queue), lane(&queue));
    let bad = conversation(&mine, Limit::AtMost(2), 100);
    let good = mine.conversation().unwrap();
    let [c, d] = [(); 2].map(|()| other.conversation().unwrap());
    bad.send_all(["bad 1", "bad 2"]).unwrap();
    good.send_in(1, "good").unwrap();
    c.send("c").unwrap();
    d.send("d").unwrap();
    let failing = take(&queue).unwrap();
    assert_eq!(take(&queue).unwrap().complete(), "c");
    // This drains the lane's open tier, and the next one opens.
    drop(failing);
    assert_eq!(serve(&queue), ["good", "d"]);
}

#[test]
fn a_shorter_back_off_does_not_end_a_longer_one() {
    let (queue, lane) = built(Queue::builder().back_off(SECOND, 8 * SECOND));
    let pair = conversation(&lane, Limit::AtMost(2), 100);
    pair.send_all(["a", "b"]).unwrap();
    fail(&queue, "a");
    assert_eq!(queue.advance(SECOND), None);
    let (a, b) = (take(&queue).unwrap(), take(&queue).unwrap());
    // Until 3, and then until 2.
    drop(a);
    drop(b);
    assert_eq!(queue.advance(2 * SECOND), Some(3 * SECOND));
    assert!(take(&queue).is_none());
    assert_eq!(queue.advance(3 * SECOND), None);
    assert_eq!(serve(&queue), ["a", "b"]);
}
