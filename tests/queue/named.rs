//! Waits for a group by name; tests without waits are in `queue_suite/named.rs`.

use crate::queue_support;

use std::task::Poll;
use std::time::{Duration, Instant};

use conversant::error::TimedOut;
use conversant::limit::DEFAULT_LEVEL;
use conversant::queue::{NoMore, NoTurn, Turn};
use conversant::wait::WaitCounts;

use queue_support::{WakeCounter, plain, poll, serve, take};

fn first(mut turn: Turn<&'static str>) -> &'static str {
    turn.next().unwrap().complete()
}

#[test]
fn a_wait_has_a_deadline_and_leaves_nothing() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    let wait = queue.receive_from(one.group_id());
    assert_eq!(wait.wait_timeout(Duration::ZERO).err(), Some(TimedOut));
    let wait = queue.receive_from(one.group_id());
    assert_eq!(wait.wait_deadline(Instant::now()).err(), Some(TimedOut));
    assert_eq!(
        queue.counts().named,
        WaitCounts {
            waiting: 0,
            notified: 0
        }
    );
    one.send("m").unwrap();
    assert_eq!(serve(&queue), ["m"]);
}

#[test]
fn who_waits_by_name_goes_before_who_waits_for_any() {
    let (queue, lane) = plain();
    let (one, two) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    let (any_wakes, any_waker) = WakeCounter::new();
    let (wakes, waker) = WakeCounter::new();
    let mut any = queue.receive();
    assert!(poll(&mut any, &any_waker).is_pending());
    let mut named = queue.receive_from(one.group_id());
    assert!(poll(&mut named, &waker).is_pending());
    one.send("named").unwrap();
    assert_eq!((any_wakes.count(), wakes.count()), (0, 1));
    assert!(take(&queue).is_none(), "kept for who was woken");
    two.send("any").unwrap();
    assert_eq!((any_wakes.count(), wakes.count()), (1, 1));
    let Poll::Ready(Ok(turn)) = poll(&mut named, &waker) else {
        panic!("it was woken for this");
    };
    assert_eq!(first(turn), "named");
    one.send("again").unwrap();
    assert_eq!(serve(&queue), ["any", "again"]);
}

#[test]
fn named_receives_of_one_group_go_in_order() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send_all(["1", "2"]).unwrap();
    let held = queue.try_receive().unwrap();
    let (counters, wakers): (Vec<_>, Vec<_>) = (0..2).map(|_| WakeCounter::new()).unzip();
    let mut waits: Vec<_> = (0..2).map(|_| queue.receive_from(one.group_id())).collect();
    for (wait, waker) in waits.iter_mut().zip(&wakers) {
        assert!(poll(wait, waker).is_pending());
    }
    first(held);
    assert_eq!((counters[0].count(), counters[1].count()), (1, 0));
    // The woken wait gives up: the other one is woken, and has the message.
    drop(waits.remove(0));
    assert_eq!(counters[1].count(), 1);
    let Poll::Ready(Ok(turn)) = poll(&mut waits[0], &wakers[1]) else {
        panic!("the wake-up was passed on");
    };
    assert_eq!(first(turn), "2");
}

#[test]
fn the_last_that_gives_up_gives_the_group_back_to_the_line() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    let (wakes, waker) = WakeCounter::new();
    let mut any = queue.receive();
    assert!(poll(&mut any, &waker).is_pending());
    let (_, other) = WakeCounter::new();
    let mut named = queue.receive_from(one.group_id());
    assert!(poll(&mut named, &other).is_pending());
    one.send("m").unwrap();
    assert_eq!(wakes.count(), 0);
    drop(named);
    assert_eq!(wakes.count(), 1);
    assert!(poll(&mut any, &waker).is_ready());
}

/// The group waits for a unit of its lane's cap; so it is ready, and the oldest.
#[test]
fn a_delivery_that_ends_during_the_wait_leaves_the_group_its_age() {
    let (queue, _) = plain();
    let lane = queue.lane(1, 1).unwrap();
    let pair = lane.group(2, DEFAULT_LEVEL).unwrap();
    let (old, young) = (pair.conversation().unwrap(), lane.conversation().unwrap());
    old.send_all(["1", "2"]).unwrap();
    let one = take(&queue).unwrap();
    young.send("3").unwrap();
    let (wakes, waker) = WakeCounter::new();
    let mut wait = queue.receive_from(old.group_id());
    assert!(poll(&mut wait, &waker).is_pending());
    one.complete();
    assert_eq!(wakes.count(), 1);
    drop(wait);
    assert_eq!(serve(&queue), ["2", "3"]);
}

#[test]
fn the_end_of_a_group_and_of_a_queue_end_the_wait() {
    let (queue, lane) = plain::<&str>();
    let (one, two) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    let (wakes, waker) = WakeCounter::new();
    let mut of_one = queue.receive_from(one.group_id());
    let mut of_two = queue.receive_from(two.group_id());
    assert!(poll(&mut of_one, &waker).is_pending());
    assert!(poll(&mut of_two, &waker).is_pending());
    drop(one);
    assert_eq!(wakes.count(), 1);
    assert!(matches!(
        poll(&mut of_one, &waker),
        Poll::Ready(Err(NoTurn::Stale))
    ));
    queue.close();
    assert_eq!(wakes.count(), 2);
    assert!(matches!(
        poll(&mut of_two, &waker),
        Poll::Ready(Err(NoTurn::Closed(NoMore::Drained)))
    ));
}

#[test]
fn more_than_a_batch_of_waits_end_together() {
    let (queue, lane) = plain::<&str>();
    let one = lane.conversation().unwrap();
    let (wakes, waker) = WakeCounter::new();
    let mut waits: Vec<_> = (0..100)
        .map(|_| queue.receive_from(one.group_id()))
        .collect();
    for wait in &mut waits {
        assert!(poll(wait, &waker).is_pending());
    }
    queue.close();
    assert_eq!(wakes.count(), 100);
}

#[test]
fn a_thread_waits_for_its_group() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| queue.receive_from(one.group_id()).wait().map(first));
        one.send("m").unwrap();
        assert_eq!(reader.join().unwrap(), Ok("m"));
    });
}

#[test]
fn a_wait_over_a_clone_keeps_the_queue() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    let (_, waker) = WakeCounter::new();
    let (own, group) = (queue.clone(), one.group_id());
    let mut wait = Box::pin(async move {
        let turn = own.receive_from(group).await.map(Turn::into_owned);
        (turn, own)
    });
    assert!(poll(&mut wait, &waker).is_pending());
    drop(queue);
    one.send("m").unwrap();
    let Poll::Ready((Ok(turn), own)) = poll(&mut wait, &waker) else {
        panic!("the queue is there");
    };
    assert_eq!(first(turn), "m");
    one.send("closed?").unwrap();
    drop(own);
    assert!(one.send("gone").is_err());
}

/// Before its first poll, while it waits, when notified, when done: the group is free at once.
#[test]
fn dropped_at_every_stage() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    let (wakes, waker) = WakeCounter::new();
    let named = || {
        let named = queue.counts().named;
        (named.waiting, named.notified)
    };
    let fresh = queue.receive_from(one.group_id());
    one.send("1").unwrap();
    assert_eq!(
        (named(), serve(&queue)),
        ((0, 0), vec!["1"]),
        "not kept for it"
    );
    drop(fresh);
    let mut waiting = queue.receive_from(one.group_id());
    assert!(poll(&mut waiting, &waker).is_pending());
    assert_eq!(named(), (1, 0));
    drop(waiting);
    one.send("2").unwrap();
    assert_eq!((named(), serve(&queue)), ((0, 0), vec!["2"]));
    let mut told = queue.receive_from(one.group_id());
    assert!(poll(&mut told, &waker).is_pending());
    one.send("3").unwrap();
    assert_eq!((named(), wakes.count()), ((0, 1), 1));
    drop(told);
    assert_eq!((named(), serve(&queue)), ((0, 0), vec!["3"]));
    let mut done = queue.receive_from(one.group_id());
    one.send("4").unwrap();
    let turn = poll(&mut done, &waker);
    drop(done);
    assert_eq!((named(), take(&queue).is_none()), ((0, 0), true));
    drop(turn);
    assert_eq!(serve(&queue), ["4"]);
}
