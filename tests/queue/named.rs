//! Waits for a group by name; tests without waits are in `queue_suite/named.rs`.

use crate::queue_support;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use conversant::error::TimedOut;
use conversant::limit::DEFAULT_LEVEL;
use conversant::limit::Limit;
use conversant::queue::{Group, Lane, NoMore, NoTurn, Queue, Turn};
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

/// A group with a message, for which a wait sleeps: the lane's cap is used up.
type Kept<'a> = (
    Group<&'static str>,
    Arc<WakeCounter>,
    Pin<Box<dyn Future<Output = Result<Turn<'a, &'static str>, NoTurn>> + 'a>>,
);

fn kept<'a>(queue: &'a Queue<&'static str>, lane: &Lane<&'static str>) -> Kept<'a> {
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    group.conversation().unwrap().send("m").unwrap();
    let (wakes, waker) = WakeCounter::new();
    let mut wait = Box::pin(queue.receive_from(group.id()).into_future());
    assert!(poll(&mut wait, &waker).is_pending());
    (group, wakes, wait)
}

/// As [`kept`], but the group backs off for a second.
fn paused<'a>(queue: &'a Queue<&'static str>, lane: &Lane<&'static str>) -> Kept<'a> {
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    group.conversation().unwrap().send("m").unwrap();
    let mut turn = queue.try_receive_from(group.id()).unwrap();
    turn.next().unwrap().give_back_after(Duration::from_secs(1));
    drop(turn);
    let (wakes, waker) = WakeCounter::new();
    let mut wait = Box::pin(queue.receive_from(group.id()).into_future());
    assert!(poll(&mut wait, &waker).is_pending());
    (group, wakes, wait)
}

/// So many turns, which use up the cap.
fn used_up<'a>(
    queue: &'a Queue<&'static str>,
    lane: &Lane<&'static str>,
    cap: u32,
) -> Vec<Turn<'a, &'static str>> {
    lane.set_cap(cap).unwrap();
    let turn = |_| {
        lane.conversation().unwrap().send("other").unwrap();
        queue.try_receive().unwrap()
    };
    (0..cap).map(turn).collect()
}

#[test]
fn as_many_are_woken_as_there_is_room() {
    let (queue, lane) = plain();
    let mut held = used_up(&queue, &lane, 2);
    let mut kept: Vec<_> = (0..5).map(|_| kept(&queue, &lane)).collect();
    let woken = |kept: &[Kept<'_>]| -> Vec<_> { kept.iter().map(|one| one.1.count()).collect() };
    kept[0].0.bump(200);
    assert_eq!(woken(&kept), [0, 0, 0, 0, 0]);
    drop(held.pop());
    assert_eq!(woken(&kept), [1, 0, 0, 0, 0]);
    // Whoever was woken is not forgotten when its group changes.
    kept[0].0.bump(100);
    assert_eq!(woken(&kept), [1, 0, 0, 0, 0]);
    drop(held.pop());
    assert_eq!(woken(&kept), [1, 1, 0, 0, 0]);
    let turn = poll(&mut kept[0].2, Waker::noop());
    assert!(matches!(turn, Poll::Ready(Ok(_))));
    assert_eq!(woken(&kept), [1, 1, 0, 0, 0]);
    // One that gives up passes it on.
    drop(kept.remove(1));
    assert_eq!(woken(&kept), [1, 1, 0, 0]);
    drop(turn);
    assert_eq!(woken(&kept), [1, 1, 1, 0]);
}

/// Many back-offs end at once, so the lane has kept nobody yet: one that is woken and never looks
/// keeps no room from the others.
#[test]
fn all_that_leave_their_back_off_are_woken() {
    let queue = Queue::new();
    let lane = queue.lane(1, 1).unwrap();
    let mut kept: Vec<_> = (0..100).map(|_| paused(&queue, &lane)).collect();
    queue.advance(Duration::from_secs(1));
    assert!(kept.iter().all(|one| one.1.count() == 1));
    let mut turn = poll(&mut kept[1].2, Waker::noop());
    for later in &mut kept[2..] {
        assert!(poll(&mut later.2, Waker::noop()).is_pending());
    }
    for later in &mut kept[2..] {
        drop(turn);
        turn = poll(&mut later.2, Waker::noop());
        assert!(matches!(turn, Poll::Ready(Ok(_))));
    }
    drop(turn);
    let last = poll(&mut kept[0].2, Waker::noop());
    assert!(matches!(last, Poll::Ready(Ok(_))));
}

#[test]
fn each_is_admitted_in_turn() {
    let (queue, lane) = plain();
    let mut held = used_up(&queue, &lane, 1);
    let mut kept: Vec<_> = (0..3).map(|_| kept(&queue, &lane)).collect();
    let mut admitted = Vec::new();
    for _ in 0..6 {
        let before: Vec<_> = kept.iter().map(|one| one.1.count()).collect();
        drop(held);
        let mut all = 0..3;
        let woken = all.find(|&n| kept[n].1.count() > before[n]).unwrap();
        admitted.push(woken);
        // Another turn is quicker.
        held = used_up(&queue, &lane, 1);
        let waker = Waker::from(Arc::clone(&kept[woken].1));
        assert!(poll(&mut kept[woken].2, &waker).is_pending());
    }
    assert_eq!(admitted, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn one_taken_by_another_receive_keeps_no_room() {
    let (queue, lane) = plain();
    let mut held = used_up(&queue, &lane, 2);
    let kept: Vec<_> = (0..2).map(|_| kept(&queue, &lane)).collect();
    drop(held.pop());
    let turn = queue.try_receive_from(kept[0].0.id()).unwrap();
    assert_eq!((kept[0].1.count(), kept[1].1.count()), (1, 0));
    drop(held.pop());
    assert_eq!((kept[0].1.count(), kept[1].1.count()), (1, 1));
    drop(turn);
}

#[test]
fn one_that_cannot_have_its_turn_any_more_passes_it_on() {
    let (queue, lane) = plain();
    let held = used_up(&queue, &lane, 1);
    let kept: Vec<_> = (0..2).map(|_| kept(&queue, &lane)).collect();
    drop(held);
    assert_eq!((kept[0].1.count(), kept[1].1.count()), (1, 0));
    kept[0].0.set_limit(0).unwrap();
    assert_eq!((kept[0].1.count(), kept[1].1.count()), (1, 1));
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
