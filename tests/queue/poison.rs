//! Failures that waits report; the other tests of failures are in
//! `queue_suite/poison.rs`.

use crate::queue_support;

use std::task::Poll;
use std::time::Duration;

use conversant::limit::Limit;
use conversant::queue::{Lane, NoMore, NoTurn, Queue};

use queue_support::take;

const SECOND: Duration = Duration::from_secs(1);

fn failing() -> (Queue<&'static str>, Lane<&'static str>) {
    let queue = Queue::builder().back_off(SECOND, SECOND).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    (queue, lane)
}

#[test]
fn a_closed_queue_ends_waits_when_only_poisoned_messages_are_left() {
    let queue = Queue::builder().attempts(Limit::SERIAL).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let bad = lane.conversation().unwrap();
    bad.send_all(["1", "2"]).unwrap();
    take(&queue).unwrap().give_back();
    let (wakes, waker) = queue_support::WakeCounter::new();
    let mut wait = queue.receive();
    assert!(queue_support::poll(&mut wait, &waker).is_pending());
    queue.close();
    assert_eq!(wakes.count(), 1);
    assert_eq!(wait.wait().err(), Some(NoMore::OnlyPoisoned));
    let many = queue.receive_many(2);
    assert_eq!(many.wait().err(), Some(NoMore::OnlyPoisoned));
    let mut named = queue.receive_from(bad.group_id());
    assert!(matches!(
        queue_support::poll(&mut named, &waker),
        Poll::Ready(Err(NoTurn::Closed(NoMore::OnlyPoisoned)))
    ));
}

#[test]
fn the_end_of_a_back_off_wakes_a_receive() {
    let (queue, lane) = failing();
    let one = lane.conversation().unwrap();
    one.send("m").unwrap();
    take(&queue).unwrap().give_back();
    let (wakes, waker) = queue_support::WakeCounter::new();
    let mut wait = queue.receive();
    assert!(queue_support::poll(&mut wait, &waker).is_pending());
    assert_eq!((queue.advance(SECOND), wakes.count()), (None, 1));
    assert!(queue_support::poll(&mut wait, &waker).is_ready());
}

/// So a reader that gives its message back and stops calls `shutdown` as its last act.
#[test]
fn a_second_shutdown_ends_the_wait_for_a_message_in_back_off() {
    let (queue, lane) = failing();
    lane.conversation().unwrap().send("m").unwrap();
    let delivery = take(&queue).unwrap();
    let (wakes, waker) = queue_support::WakeCounter::new();
    let mut wait = queue.receive();
    assert!(queue_support::poll(&mut wait, &waker).is_pending());
    assert!(queue.shutdown().is_empty());
    delivery.give_back();
    assert_eq!(wakes.count(), 0);
    assert_eq!(queue.shutdown(), ["m"]);
    assert_eq!(wakes.count(), 1);
    assert_eq!(wait.wait().err(), Some(NoMore::Drained));
}

/// It is as old as the turn that failed.
#[test]
fn a_group_keeps_its_age_in_a_back_off() {
    let (queue, lane) = failing();
    let (old, young) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    old.send("old").unwrap();
    take(&queue).unwrap().give_back();
    young.send("young").unwrap();
    queue.advance(SECOND);
    assert_eq!(queue_support::serve(&queue), ["old", "young"]);
}

/// What is in flight counts; what waits counts again when the group goes on.
#[test]
fn a_tier_ends_without_what_waits_in_a_poisoned_group() {
    let queue = Queue::builder().attempts(1).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let bad = lane.group(2, 100).unwrap().conversation().unwrap();
    let next = lane.conversation().unwrap();
    for message in ["slow", "bad", "behind"] {
        bad.send_in(1, message).unwrap();
    }
    next.send_in(2, "next").unwrap();
    let slow = take(&queue).unwrap();
    take(&queue).unwrap().give_back();
    assert_eq!(queue.try_receive().err(), Some(NoTurn::Empty));
    slow.complete();
    let next = take(&queue).unwrap();
    assert_eq!(*next, "next");
    assert_eq!(queue.take_failed(bad.group_id()), Ok(Some("bad")));
    assert_eq!(queue.try_receive().err(), Some(NoTurn::Empty));
    next.complete();
    assert_eq!(queue_support::serve(&queue), ["behind"]);
}

#[test]
fn a_delivery_that_ends_in_a_back_off_makes_its_group_the_youngest() {
    let (queue, lane) = failing();
    let old = lane.group(2, 100).unwrap().conversation().unwrap();
    let young = lane.conversation().unwrap();
    old.send_all(["done", "old"]).unwrap();
    let done = take(&queue).unwrap();
    take(&queue).unwrap().give_back();
    young.send("young").unwrap();
    assert_eq!(done.complete(), "done");
    queue.advance(SECOND);
    assert_eq!(queue_support::serve(&queue), ["young", "old"]);
}

/// Borrowed and detached; the last attempt is the last all the same.
#[test]
fn a_delivery_names_its_own_pause() {
    let queue = Queue::builder().attempts(3).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    one.send_all(["busy", "behind"]).unwrap();
    let mut turn = queue.try_receive().unwrap();
    turn.next().unwrap().give_back_after(5 * SECOND);
    assert!(turn.next().is_none(), "the group pauses within a turn, too");
    drop(turn);
    assert_eq!(queue.advance(SECOND), Some(5 * SECOND));
    assert_eq!(queue.try_receive().err(), Some(NoTurn::Empty));
    assert_eq!(queue.advance(5 * SECOND), None);
    let detached = take(&queue).unwrap();
    assert_eq!((*detached, detached.attempt()), ("busy", 2));
    detached.give_back_after(2 * SECOND);
    assert_eq!(queue.advance(6 * SECOND), Some(7 * SECOND));
    queue.advance(7 * SECOND);
    take(&queue).unwrap().give_back_after(SECOND);
    assert_eq!(queue.take_failed(one.group_id()), Ok(Some("busy")));
    // Without a pause nothing keeps the next message back.
    take(&queue).unwrap().give_back_after(Duration::ZERO);
    assert_eq!(*take(&queue).unwrap(), "behind");
}

#[test]
fn a_delivery_fails_for_good_at_once() {
    let (queue, lane) = failing();
    let [one, other] = [(); 2].map(|()| lane.conversation().unwrap());
    one.send_all(["gone", "behind"]).unwrap();
    let mut turn = queue.try_receive().unwrap();
    turn.next().unwrap().fail_for_good();
    drop(turn);
    let poisoned = queue.poisoned();
    assert_eq!((poisoned.len(), poisoned[0].attempts), (1, 1));
    assert_eq!(queue.take_failed(one.group_id()), Ok(Some("gone")));
    assert_eq!(take(&queue).unwrap().complete(), "behind");
    other.send("gone too").unwrap();
    take(&queue).unwrap().fail_for_good();
    assert_eq!(queue.drain(other.group_id()), Ok(vec!["gone too"]));
    assert_eq!(queue.counts().failed, 2);
}

#[test]
fn each_poisoned_group_is_reported_once() {
    let queue = Queue::builder().attempts(1).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let all = [(); 4].map(|()| lane.conversation().unwrap());
    let fail = |n: usize| {
        all[n].send("m").unwrap();
        take(&queue).unwrap().give_back();
    };
    let (wakes, waker) = queue_support::WakeCounter::new();
    let mut waits = [(); 3].map(|()| queue.next_poisoned());
    // One failure before any wait, and one group that is resumed before its wait reports it.
    fail(0);
    fail(1);
    assert!(queue.resume(all[1].group_id()).unwrap());
    assert_eq!(take(&queue).unwrap().complete(), "m");
    let told = |poll| match poll {
        Poll::Ready(Ok(poisoned)) => {
            let poisoned: conversant::queue::Poisoned = poisoned;
            poisoned.group
        }
        other => panic!("{other:?}"),
    };
    let first = queue_support::poll(&mut waits[0], &waker);
    assert_eq!(told(first), all[0].group_id());
    for wait in &mut waits[1..] {
        assert!(queue_support::poll(wait, &waker).is_pending());
    }
    fail(2);
    assert_eq!(wakes.count(), 1);
    // A woken wait that gives up passes the report on.
    let [_, woken, mut last] = waits;
    drop(woken);
    assert_eq!(wakes.count(), 2);
    let second = queue_support::poll(&mut last, &waker);
    assert_eq!(told(second), all[2].group_id());
    // Poisoned again, the group is reported again.
    assert_eq!(queue.take_failed(all[0].group_id()), Ok(Some("m")));
    fail(0);
    let again = queue.next_poisoned().wait().unwrap();
    assert_eq!((again.group, again.waiting), (all[0].group_id(), 1));
    assert_eq!(queue.poisoned().len(), 2);
}

#[test]
fn a_wait_for_poison_ends_with_the_queue() {
    let queue = Queue::builder().attempts(1).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let bad = lane.conversation().unwrap();
    bad.send("m").unwrap();
    let held = take(&queue).unwrap();
    queue.close();
    let (wakes, waker) = queue_support::WakeCounter::new();
    let mut waits = [(); 2].map(|()| queue.next_poisoned());
    for wait in &mut waits {
        assert!(queue_support::poll(wait, &waker).is_pending());
    }
    held.give_back();
    assert_eq!(wakes.count(), 2);
    assert!(matches!(
        queue_support::poll(&mut waits[1], &waker),
        Poll::Ready(Ok(_))
    ));
    let ended = queue_support::poll(&mut waits[0], &waker);
    assert_eq!(ended, Poll::Ready(Err(NoMore::OnlyPoisoned)));
}
