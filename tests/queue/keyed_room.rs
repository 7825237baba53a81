//! Sends by key that wait for room.

use crate::keyed::bad_keys::{Clumsy, Fickle, PANICS};
use crate::queue_support;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use conversant::error::TierGoesDown;
use conversant::keyed::Keyed;
use conversant::limit::Limit;
use conversant::queue::{Queue, SendReason};
use conversant::wait::Wait;

use queue_support::{WakeCounter, poll, serve, take};

fn bounded<T: Send + 'static>(capacity: u32) -> (Queue<T>, Keyed<&'static str, T>) {
    let capacity = Limit::AtMost(capacity);
    let queue = Queue::builder().capacity(capacity).build().unwrap();
    let orders = Keyed::new(queue.lane(1, Limit::Unlimited).unwrap());
    (queue, orders)
}

fn line<T>(queue: &Queue<T>) -> (usize, usize) {
    let sends = queue.counts().sends;
    (sends.waiting, sends.notified)
}

/// When there is room its group may have ended, and another begun.
#[test]
fn it_goes_to_the_group_that_its_key_has_by_then() {
    let (queue, orders) = bounded(1);
    let (counters, wakers): (Vec<_>, Vec<_>) = (0..2).map(|_| WakeCounter::new()).unzip();
    orders.send("anna", 1).unwrap();
    let before = orders.group_id(&"anna");
    let mut anna = orders.send_wait("anna", 2);
    let mut bert = orders.send_wait("bert", 3);
    assert!(poll(&mut anna, &wakers[0]).is_pending());
    assert!(poll(&mut bert, &wakers[1]).is_pending());
    assert_eq!(orders.len(), 1, "who waits has no group yet");
    assert_eq!(serve(&queue), [1]);
    assert_eq!((counters[0].count(), counters[1].count()), (1, 0));
    assert!(orders.is_empty());
    assert!(matches!(poll(&mut anna, &wakers[0]), Poll::Ready(Ok(()))));
    assert_ne!(orders.group_id(&"anna"), before);
    assert!(poll(&mut bert, &wakers[1]).is_pending());
    assert_eq!(serve(&queue), [2]);
    assert_eq!(counters[1].count(), 1);
    assert!(matches!(poll(&mut bert, &wakers[1]), Poll::Ready(Ok(()))));
    assert_eq!((serve(&queue), orders.is_empty()), (vec![3], true));
    orders.send_wait("anna", 4).wait().unwrap();
    assert_eq!(serve(&queue), [4]);
}

/// Before its first poll, while it waits, when notified, when done.
#[test]
fn dropped_at_every_stage() {
    let (queue, orders) = bounded(1);
    let message = Arc::new(());
    let alive = || Arc::strong_count(&message) - 1;
    let (wakes, waker) = WakeCounter::new();
    drop(orders.send_wait("anna", message.clone()));
    orders.send("bert", Arc::default()).unwrap();
    let mut waiting = orders.send_wait("anna", message.clone());
    assert!(poll(&mut waiting, &waker).is_pending());
    let mut told = orders.send_wait("anna", message.clone());
    assert!(poll(&mut told, &waker).is_pending());
    assert_eq!(line(&queue), (2, 0));
    drop(waiting);
    assert_eq!((alive(), line(&queue), wakes.count()), (1, (1, 0), 0));
    serve(&queue);
    assert_eq!((line(&queue), wakes.count()), ((0, 1), 1));
    let mut next = orders.send_wait("anna", message.clone());
    assert!(poll(&mut next, &waker).is_pending());
    assert!(told.into_message().is_some());
    assert_eq!((line(&queue), wakes.count()), ((0, 1), 2));
    assert!(matches!(poll(&mut next, &waker), Poll::Ready(Ok(()))));
    drop(next);
    assert_eq!((alive(), line(&queue)), (1, (0, 0)));
    drop(serve(&queue));
    assert_eq!((alive(), orders.is_empty()), (0, true));
}

#[test]
fn whatever_refuses_it_gives_the_message_back_and_leaves_no_key() {
    let (queue, orders) = bounded(2);
    orders.send_in("anna", 3, 0).unwrap();
    orders.send_in("anna", 3, 0).unwrap();
    let late = orders.send_wait("bert", 1).or_return_after(Duration::ZERO);
    let late = late.unwrap_err();
    assert_eq!((late.message, late.reason), (1, SendReason::TimedOut));
    let delivery = take(&queue).unwrap();
    let own = orders.send_wait("bert", 2).wait().unwrap_err();
    assert_eq!((own.message, own.reason), (2, SendReason::OwnQueue));
    let (wakes, waker) = WakeCounter::new();
    let mut down = orders.send_wait("anna", 3).in_tier(1);
    let mut closed = orders.send_wait("bert", 4);
    assert!(poll(&mut down, &waker).is_pending());
    assert!(poll(&mut closed, &waker).is_pending());
    delivery.complete();
    assert_eq!(wakes.count(), 1);
    let Poll::Ready(Err(down)) = poll(&mut down, &waker) else {
        panic!("its tier goes down");
    };
    let reason = SendReason::TierGoesDown(TierGoesDown { last: 3, asked: 1 });
    assert_eq!((down.message, down.reason), (3, reason));
    assert_eq!(wakes.count(), 2, "the room is the next one's");
    queue.close();
    let Poll::Ready(Err(closed)) = poll(&mut closed, &waker) else {
        panic!("it is closed");
    };
    assert_eq!((closed.message, closed.reason), (4, SendReason::Closed));
    assert_eq!((orders.len(), line(&queue)), (1, (0, 0)));
    assert_eq!((serve(&queue), orders.is_empty()), (vec![0], true));
}

/// Threads that send by few keys with little room: each key has the order of each thread.
#[test]
fn threads_that_wait_for_room_by_key() {
    const EACH: u32 = 1_000;
    const KEYS: [&str; 3] = ["anna", "bert", "carl"];
    let (queue, orders) = bounded(2);
    let seen = Mutex::new(BTreeMap::<_, Vec<u32>>::new());
    std::thread::scope(|scope| {
        let senders = [0, 1, 2].map(|who| {
            let orders = &orders;
            scope.spawn(move || {
                for n in 0..EACH {
                    let key = KEYS[n as usize % KEYS.len()];
                    orders.send_wait(key, (who, key, n)).wait().unwrap();
                }
            })
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while let Ok(mut turn) = queue.receive().wait() {
                    while let Some(delivery) = turn.next() {
                        let (who, key, n) = *delivery;
                        let mut seen = seen.lock().unwrap();
                        seen.entry((who, key)).or_default().push(n);
                        drop(seen);
                        delivery.complete();
                    }
                }
            });
        }
        for sender in senders {
            sender.join().unwrap();
        }
        queue.close();
    });
    let seen = seen.into_inner().unwrap();
    assert_eq!(
        seen.values().map(Vec::len).sum::<usize>(),
        3 * EACH as usize
    );
    assert!(seen.values().all(|seen| seen.is_sorted()));
    assert!(orders.is_empty());
}

/// A panic in a poll that could have sent leaves the wait as it was, with the room that it was
/// given.
#[test]
fn a_panicking_eq_loses_no_message_that_waits() {
    for each in [false, true] {
        let queue = Queue::builder().capacity(1).build().unwrap();
        let mut orders = Keyed::new(queue.lane(1, Limit::Unlimited).unwrap());
        if each {
            orders = orders.capacity_each(9).unwrap();
        }
        let ((wakes, waker), one) = (WakeCounter::new(), 1);
        let fails = |wait: &mut Wait<_>| {
            PANICS.set(true);
            let polled = catch_unwind(AssertUnwindSafe(|| poll(wait, &waker)));
            PANICS.set(false);
            assert!(polled.is_err());
        };
        orders.send(Fickle(one), 1).unwrap();
        let mut wait = orders.send_wait(Fickle(one), 2);
        let mut given_up = orders.send_wait(Fickle(one), 3);
        if each {
            // The first lookup of the key's group.
            fails(&mut wait);
            fails(&mut given_up);
        }
        assert!(poll(&mut wait, &waker).is_pending());
        assert!(poll(&mut given_up, &waker).is_pending());
        // Idle, but kept.
        assert_eq!(serve(&queue), [1]);
        assert_eq!(wakes.count(), 1);
        if !each {
            fails(&mut wait);
            fails(&mut wait);
            assert_eq!(wakes.count(), 1, "it has its room still");
        }
        assert!(matches!(poll(&mut wait, &waker), Poll::Ready(Ok(()))));
        assert_eq!((serve(&queue), wakes.count()), (vec![2], 2));
        if !each {
            fails(&mut given_up);
        }
        assert_eq!(given_up.into_message(), Some(3));
        assert_eq!(orders.send(Fickle(2), 4), Ok(()), "its room came back");
        assert_eq!(serve(&queue), [4]);
    }
}

/// The wait's key is in the map by then.
#[test]
fn a_forgotten_key_whose_drop_panics_loses_no_message_that_waits() {
    let queue = Queue::builder().capacity(1).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let orders = Keyed::new(lane).keep_idle(1).capacity_each(9).unwrap();
    orders.send(Clumsy(1), 1).unwrap();
    assert_eq!(serve(&queue), [1]);
    let (_, waker) = WakeCounter::new();
    let mut wait = orders.send_wait(Clumsy(2), 2);
    PANICS.set(true);
    let polled = catch_unwind(AssertUnwindSafe(|| poll(&mut wait, &waker)));
    assert!(polled.is_err());
    assert!(matches!(poll(&mut wait, &waker), Poll::Ready(Ok(()))));
    assert_eq!(serve(&queue), [2]);
}

/// Its own key, which the map does not need or which is refused.
#[test]
fn a_key_whose_drop_panics_loses_no_message_that_waits() {
    for (capacity, closes, is_full) in [
        (Some(1), false, false),
        (Some(1), true, false),
        (Some(1), true, true),
        (None, false, false),
        (None, true, false),
    ] {
        let limit = capacity.map_or(Limit::Unlimited, Limit::AtMost);
        let queue = Queue::builder().capacity(limit).build().unwrap();
        let orders = Keyed::new(queue.lane(1, Limit::Unlimited).unwrap());
        orders.send(Clumsy(1), 1).unwrap();
        let (_, waker) = WakeCounter::new();
        let mut wait = orders.send_wait(Clumsy(1), 2);
        if capacity.is_some() {
            assert!(poll(&mut wait, &waker).is_pending());
        }
        if !is_full {
            assert_eq!(serve(&queue), [1]);
        }
        if closes {
            assert_eq!(orders.is_empty(), !is_full);
            queue.close();
        }
        PANICS.set(true);
        let polled = catch_unwind(AssertUnwindSafe(|| poll(&mut wait, &waker)));
        assert!(polled.is_err());
        assert_eq!(serve(&queue), [1].repeat(is_full.into()));
        match poll(&mut wait, &waker) {
            Poll::Ready(Err(refused)) if closes => {
                assert_eq!((refused.message, refused.reason), (2, SendReason::Closed));
            }
            Poll::Ready(Ok(())) if !closes => assert_eq!(serve(&queue), [2]),
            _ => panic!("closes: {closes}, is full: {is_full}"),
        }
    }
}

/// A capacity of 0 closes one key, until it is raised: also when idle groups are forgotten.
#[test]
fn a_key_is_closed_and_opened() {
    let queue = Queue::<u32>::new();
    let orders = Keyed::new(queue.lane(1, Limit::Unlimited).unwrap()).keep_idle(0);
    orders.send("anna", 1).unwrap();
    orders.group("anna").unwrap().set_capacity(0).unwrap();
    orders.send("bert", 2).unwrap();
    assert_eq!(serve(&queue), [1, 2]);
    assert!(orders.is_empty());
    let refused = orders.send("anna", 3).unwrap_err();
    assert_eq!(
        (refused.message, refused.reason),
        (3, SendReason::GroupFull)
    );
    let (counter, waker) = WakeCounter::new();
    let mut waits = orders.send_wait("anna", 4);
    assert!(poll(&mut waits, &waker).is_pending());
    orders
        .group("anna")
        .unwrap()
        .set_capacity(Limit::Unlimited)
        .unwrap();
    assert_eq!(counter.count(), 1);
    assert!(poll(&mut waits, &waker).is_ready());
    assert_eq!(serve(&queue), [4]);
}
