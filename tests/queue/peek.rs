//! Peeks at the first waiting message: they show it, and change nothing.

use crate::queue_support;

use std::sync::Arc;
use std::task::{Wake, Waker};

use conversant::limit::{Bypass, Limit};
use conversant::queue::{NoMore, NoTurn, Peek, Queue, SendReason, Why};

use queue_support::{Random, WakeCounter, conversation, plain, poll, serve, take};

fn refused<T>(peek: Result<Peek<T>, NoTurn>) -> NoTurn {
    peek.expect_err("refused")
}

#[test]
fn the_message_is_seen_and_stays() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    assert_eq!(refused(queue.try_peek(one.group_id())), NoTurn::Empty);
    one.send_all(["1", "2"]).unwrap();
    take(&queue).unwrap().give_back();
    let (wakes, waker) = WakeCounter::new();
    let peek = queue.try_peek(one.group_id()).unwrap();
    assert_eq!((*peek, peek.number(), peek.attempts()), ("1", 1, 1));
    assert_eq!(peek.group_id(), one.group_id());
    assert_eq!(queue.peek(one.group_id()), Ok(Some((1, 1))));
    // The message waits and is not in flight; the group is held.
    let snapshot = queue.snapshot();
    assert_eq!(
        (
            snapshot.waiting,
            snapshot.in_flight,
            snapshot.counts.eligible
        ),
        (2, 0, 0)
    );
    assert_eq!(snapshot.lanes[0].groups[0].why, Why::Held);
    assert_eq!(queue.waiting_in(one.group_id()), Ok(2));
    let held = queue.try_receive_from(one.group_id()).err();
    assert_eq!(held, Some(NoTurn::Held));
    assert_eq!(refused(queue.try_peek(one.group_id())), NoTurn::Held);
    let mut receive = queue.receive();
    assert!(poll(&mut receive, &waker).is_pending());
    one.send("3").unwrap();
    assert_eq!(wakes.count(), 0);
    drop(peek);
    assert_eq!(wakes.count(), 1, "the group is in line again");
    drop(receive);
    let delivery = take(&queue).unwrap();
    assert_eq!((*delivery, delivery.attempt()), ("1", 2));
    delivery.complete();
    assert_eq!(serve(&queue), ["2", "3"]);
    let turnless = one.group_id();
    drop(one);
    assert_eq!(refused(queue.try_peek(turnless)), NoTurn::Stale);
}

#[test]
fn a_turn_and_a_look_exclude_each_other() {
    let (queue, lane) = plain();
    let one = conversation(&lane, Limit::Unlimited, 100);
    one.send_all(["1", "2"]).unwrap();
    let mut turn = queue.try_receive().unwrap();
    assert_eq!(refused(queue.try_peek(one.group_id())), NoTurn::Held);
    let first = turn.next().unwrap().detach();
    drop(turn);
    // Detached deliveries do not: the peek shows the first waiting message.
    let peek = queue.try_peek(one.group_id()).unwrap();
    assert_eq!((*peek, peek.number()), ("2", 2));
    first.give_back();
    assert_eq!(queue.peek(one.group_id()), Ok(Some((1, 1))), "before it");
    drop(peek);
    assert_eq!(serve(&queue), ["1", "2"]);
}

#[test]
fn whatever_keeps_the_group_does_not_keep_its_message_from_being_seen() {
    let builder = Queue::builder().attempts(Limit::AtMost(1));
    let queue = builder.build().unwrap();
    let lane = queue.lane(1, Limit::AtMost(0)).unwrap();
    let capped = lane.conversation().unwrap();
    capped.send("capped").unwrap();
    assert_eq!(*queue.try_peek(capped.group_id()).unwrap(), "capped");
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let paused = conversation(&lane, Limit::AtMost(0), 100);
    paused.send_in(1, "paused").unwrap();
    let late = lane.conversation().unwrap();
    late.send_in(2, "late").unwrap();
    for (one, text) in [(&paused, "paused"), (&late, "late")] {
        assert_eq!(*queue.try_peek(one.group_id()).unwrap(), text);
    }
    let poisoned = lane.conversation().unwrap();
    poisoned.send_in(0, "poisoned").unwrap();
    take(&queue).unwrap().give_back();
    let peek = queue.try_peek(poisoned.group_id()).unwrap();
    assert_eq!((*peek, peek.attempts()), ("poisoned", 1));
    // A resume meanwhile resets the attempts, also those of the message that is peeked at.
    assert_eq!(queue.resume(poisoned.group_id()), Ok(true));
    drop(peek);
    assert_eq!(queue.peek(poisoned.group_id()), Ok(Some((1, 0))));
    assert_eq!(take(&queue).unwrap().complete(), "poisoned");
}

/// A tier waits for the message that is peeked at, whatever comes after it in its group.
#[test]
fn it_keeps_its_tier() {
    let (queue, lane) = plain();
    let (one, two) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    one.send_in(0, "0").unwrap();
    two.send_in(1, "1").unwrap();
    let peek = queue.try_peek(one.group_id()).unwrap();
    one.send_in(1, "later").unwrap();
    assert_eq!(queue.try_receive().err(), Some(NoTurn::Empty));
    drop(peek);
    assert_eq!(serve(&queue), ["0", "later", "1"]);
}

#[test]
fn a_group_that_is_resumed_during_a_look_becomes_the_youngest() {
    let queue = Queue::builder().attempts(1).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let [poisoned, other] = [(); 2].map(|()| lane.conversation().unwrap());
    poisoned.send(1).unwrap();
    take(&queue).unwrap().give_back();
    other.send(2).unwrap();
    let peek = queue.try_peek(poisoned.group_id()).unwrap();
    assert_eq!(queue.resume(poisoned.group_id()), Ok(true));
    drop(peek);
    assert_eq!(serve(&queue), [2, 1]);
}

/// A group that is poisoned or resumed during a look counts as without it.
#[test]
fn it_counts_in_its_tier_like_what_waits() {
    let queue = Queue::builder().attempts(1).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = conversation(&lane, Limit::AtMost(2), 100);
    let two = lane.conversation().unwrap();
    for text in ["bad", "behind"] {
        one.send_in(0, text).unwrap();
    }
    two.send_in(1, "1").unwrap();
    let bad = take(&queue).unwrap();
    let peek = queue.try_peek(one.group_id()).unwrap();
    bad.give_back();
    assert_eq!(serve(&queue), ["1"], "a poisoned group blocks no tier");
    two.send_in(1, "later").unwrap();
    assert_eq!(queue.resume(one.group_id()), Ok(true));
    assert_eq!(queue.try_receive().err(), Some(NoTurn::Empty));
    drop(peek);
    assert_eq!(serve(&queue), ["bad", "behind", "later"]);
}

#[test]
fn a_peeked_message_is_neither_drained_nor_shut_down() {
    let message = Arc::new(());
    let alive = || Arc::strong_count(&message) - 1;
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send_all([message.clone(), message.clone()]).unwrap();
    let peek = queue.try_peek(one.group_id()).unwrap();
    assert_eq!(queue.drain(one.group_id()).unwrap().len(), 1);
    assert_eq!((alive(), queue.snapshot().waiting), (1, 1));
    assert!(queue.shutdown().is_empty());
    let receive = queue.try_receive().err();
    assert_eq!(receive, Some(NoTurn::Empty), "there is one to come");
    drop(peek);
    assert_eq!(serve(&queue).len(), 1);
    assert_eq!(
        queue.try_receive().err(),
        Some(NoTurn::Closed(NoMore::Drained))
    );

    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send(message.clone()).unwrap();
    let peek = queue.try_peek(one.group_id()).unwrap();
    drop((queue, one, lane));
    assert_eq!((Arc::strong_count(&peek), alive()), (2, 1));
    drop(peek);
    assert_eq!(alive(), 0);
}

#[test]
fn a_peeked_message_keeps_its_permit_and_its_thread_is_a_holder() {
    let queue = Queue::builder().capacity(Limit::AtMost(1)).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    one.send(1).unwrap();
    let peek = queue.try_peek(one.group_id()).unwrap();
    assert_eq!(one.send(2).unwrap_err().reason, SendReason::Full);
    let own = one.send_wait(2).wait().unwrap_err();
    assert_eq!(own.reason, SendReason::OwnQueue);
    drop(peek);
    assert_eq!(serve(&queue), [1]);
    one.send_wait(2).wait().unwrap();
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker");
    }
}

#[test]
fn a_waker_that_panics_at_its_end_loses_nothing() {
    let (queue, lane) = plain();
    let one = lane.conversation().unwrap();
    one.send("1").unwrap();
    let peek = queue.try_peek(one.group_id()).unwrap();
    let mut receive = queue.receive();
    let waker = Waker::from(Arc::new(Panics));
    assert!(poll(&mut receive, &waker).is_pending());
    drop(peek);
    drop(receive);
    assert_eq!(serve(&queue), ["1"]);
}

/// The same random events in two queues, one of which is peeked at between any two receives: both
/// serve in the same order.
#[test]
fn looks_change_no_order() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let queues = [(); 2].map(|()| {
            let builder = Queue::builder().bypass(Bypass::AtMost(2));
            let queue = builder.build().unwrap();
            let lane = queue.lane(1, Limit::Unlimited).unwrap();
            let group = |n| conversation(&lane, Limit::AtMost(1 + n % 2), (n % 3) as u8);
            let groups: Vec<_> = (0..6u32).map(group).collect();
            (queue, groups)
        });
        let [(plain, _), (seen, _)] = &queues;
        let mut hands = Vec::new();
        for n in 0..150 {
            let at = random.below(6);
            let level = random.below(4) as u8;
            let kind = random.below(5);
            let looked = seen.try_peek(queues[1].1[random.below(6)].group_id());
            for (queue, groups) in &queues {
                match kind {
                    0 | 1 => groups[at].send(n).unwrap(),
                    2 => queue.bump(groups[at].group_id(), level).unwrap(),
                    _ => {}
                }
            }
            drop(looked);
            match kind {
                3 => {
                    let taken = [take(plain), take(seen)];
                    let texts = taken.each_ref().map(|d| d.as_ref().map(|d| **d));
                    assert_eq!(texts[0], texts[1], "seed {seed}, event {n}");
                    hands.push(taken);
                }
                4 if !hands.is_empty() => {
                    let back = hands.swap_remove(random.below(hands.len()));
                    if level > 0 {
                        for hand in back.into_iter().flatten() {
                            hand.complete();
                        }
                    }
                }
                _ => {}
            }
        }
        drop(hands);
        assert_eq!(serve(plain), serve(seen));
        assert_eq!(plain.snapshot().waiting, seen.snapshot().waiting);
    }
}
