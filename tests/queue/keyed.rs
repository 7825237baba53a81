//! Sending by key: order, one group a key, nothing left behind.

pub mod bad_keys;

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use conversant::keyed::Keyed;
use conversant::limit::Limit;
use conversant::queue::{LaneError, NoTurn, Queue, SendReason};

fn keyed<K: Send + 'static, T: Send + 'static>(queue: &Queue<T>) -> Keyed<K, T> {
    let lane = queue.lane(1, Limit::Unlimited).expect("the queue is open");
    Keyed::new(lane)
}

fn served<T>(queue: &Queue<T>) -> Vec<T> {
    let mut served = Vec::new();
    while let Ok(mut turn) = queue.try_receive() {
        while let Some(delivery) = turn.next() {
            served.push(delivery.complete());
        }
    }
    served
}

#[test]
fn one_group_a_key_as_long_as_something_is_outstanding() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    orders.send("anna", 1).unwrap();
    let group = orders.group_id(&"anna").expect("it has one");
    let mut turn = queue.try_receive().unwrap();
    let delivery = turn.next().unwrap().detach();
    drop(turn);
    // Nothing waits, one message is in flight: the group stays.
    orders.send("anna", 2).unwrap();
    assert_eq!(orders.group_id(&"anna"), Some(group));
    assert_eq!(queue.try_receive().unwrap_err(), NoTurn::Empty);
    assert_eq!(delivery.complete(), 1);
    assert_eq!(served(&queue), [2]);
    assert_eq!((orders.group_id(&"anna"), orders.len()), (None, 0));
    orders.send("anna", 3).unwrap();
    assert_ne!(orders.group_id(&"anna"), Some(group));
}

#[test]
fn a_key_by_reference_is_copied_only_when_its_group_is_made() {
    thread_local!(static COPIES: Cell<u32> = const { Cell::new(0) });

    #[derive(Debug, PartialEq, Eq, Hash)]
    struct Name(&'static str);
    impl Clone for Name {
        fn clone(&self) -> Self {
            COPIES.set(COPIES.get() + 1);
            Self(self.0)
        }
    }

    let queue = Queue::new();
    let orders = keyed::<Name, _>(&queue);
    for n in 0..3 {
        orders.send_ref(&Name("anna"), n).unwrap();
    }
    orders.send(Name("anna"), 3).unwrap();
    assert_eq!((COPIES.get(), orders.len()), (1, 1));
    orders.send_ref(&Name("bert"), 4).unwrap();
    assert_eq!(COPIES.get(), 2);
    assert_eq!(served(&queue), [0, 1, 2, 3, 4]);
    queue.close();
    let refused = orders.send_ref(&Name("anna"), 5).unwrap_err();
    assert_eq!((refused.message, refused.reason), (5, SendReason::Closed));
}

#[test]
fn keys_are_served_side_by_side_and_in_order() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    for n in 0..3 {
        for key in ["a", "b"] {
            orders.send(key, (key, n)).unwrap();
        }
    }
    let waiting = |key| orders.group(key).unwrap().waiting();
    assert_eq!((orders.len(), waiting("a"), waiting("c")), (2, 3, 0));
    let (mut first, mut second) = (queue.try_receive().unwrap(), queue.try_receive().unwrap());
    assert_eq!(*first.next().unwrap(), ("a", 0));
    assert_eq!(*second.next().unwrap(), ("b", 0));
    drop((first, second));
    let in_order = |key| (0..3).map(move |n| (key, n));
    assert!(
        served(&queue)
            .into_iter()
            .eq(in_order("a").chain(in_order("b")))
    );
    assert!(orders.is_empty());
}

#[test]
fn a_bump_is_for_a_key_that_is_there() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    for key in ["a", "b", "c"] {
        orders.send(key, key).unwrap();
    }
    let bump = |key| orders.group_id(&key).map(|group| queue.bump(group, 1));
    assert_eq!(bump("c"), Some(Ok(())));
    assert_eq!(bump("d"), None);
    assert_eq!(served(&queue), ["c", "a", "b"]);
    assert_eq!(bump("c"), None);
}

#[test]
fn a_closed_queue_takes_nothing_and_keeps_no_key() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    orders.send(1, "before").unwrap();
    queue.close();
    let refused = orders.send(2, "after").unwrap_err();
    assert_eq!(
        (refused.message, refused.reason),
        ("after", SendReason::Closed)
    );
    assert_eq!(orders.len(), 1);
    assert_eq!(queue.shutdown(), ["before"]);
    assert_eq!(orders.len(), 0);
}

#[test]
fn the_shape_is_tried_first() {
    let queue = Queue::<()>::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let hasher = std::hash::RandomState::new();
    let above = Keyed::<u8, _, _>::with(lane, Limit::AtMost(u32::MAX), 1, hasher);
    assert!(matches!(above.unwrap_err(), LaneError::OutOfRange(_)));
}

#[test]
fn a_tier_does_not_go_down_within_a_key() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    orders.send_in("a", 2, 'x').unwrap();
    let refused = orders.send_in("a", 1, 'y').unwrap_err();
    assert_eq!(refused.message, 'y');
    orders.send_in("b", 1, 'z').unwrap();
    // Nothing of tier 2 runs, so the lower one opens.
    assert_eq!(served(&queue), ['z', 'x']);
}

#[test]
fn what_is_in_flight_keeps_its_group() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    orders.send("a", 1).unwrap();
    let mut turn = queue.try_receive().unwrap();
    let group = turn.group_id();
    let delivery = turn.next().unwrap().detach();
    drop(turn);
    assert_eq!((orders.len(), orders.group_id(&"a")), (1, Some(group)));
    orders.send("a", 2).unwrap();
    assert_eq!(queue.try_receive().unwrap_err(), NoTurn::Empty);
    delivery.complete();
    assert_eq!(served(&queue), [2]);
    assert!(orders.is_empty());
}

#[test]
fn a_dropped_keeper_leaves_its_messages() {
    let queue = Queue::new();
    let orders = keyed(&queue);
    orders.send("a", 1).unwrap();
    drop(orders);
    assert_eq!(served(&queue), [1]);
    assert!(queue.snapshot().lanes.is_empty());
}

/// The same hash for every key.
#[derive(Default)]
struct Same;

impl Hasher for Same {
    fn write(&mut self, _: &[u8]) {}

    fn finish(&self) -> u64 {
        7
    }
}

/// "10^6 keys used once leave nothing behind", here from several threads, with
/// readers that end groups while others send to them.
#[test]
fn senders_and_readers_race_over_few_keys() {
    const EACH: u32 = 20_000;
    let queue = Queue::<(u8, usize, u32)>::new();
    let orders = keyed::<u8, _>(&queue);
    let busy: Vec<AtomicBool> = (0..4).map(|_| AtomicBool::new(false)).collect();
    let seen = Mutex::new(HashMap::<(u8, usize), Vec<u32>>::new());
    let read = || {
        while let Ok(mut turn) = queue.receive().wait() {
            while let Some(delivery) = turn.next() {
                let (key, sender, n) = *delivery;
                assert!(!busy[usize::from(key)].swap(true, Ordering::SeqCst));
                seen.lock()
                    .unwrap()
                    .entry((key, sender))
                    .or_default()
                    .push(n);
                busy[usize::from(key)].store(false, Ordering::SeqCst);
                delivery.complete();
            }
        }
    };
    thread::scope(|scope| {
        let readers = [(), ()].map(|()| scope.spawn(read));
        let senders = [0, 1].map(|sender| {
            let orders = &orders;
            scope.spawn(move || {
                for n in 0..EACH {
                    let key = (n % 4) as u8;
                    orders.send(key, (key, sender, n)).unwrap();
                }
            })
        });
        for sender in senders {
            sender.join().unwrap();
        }
        queue.close();
        for reader in readers {
            reader.join().unwrap();
        }
    });
    let seen = seen.into_inner().unwrap();
    assert_eq!(
        seen.values().map(Vec::len).sum::<usize>(),
        2 * EACH as usize
    );
    assert!(seen.values().all(|served| served.is_sorted()));
    assert!(orders.is_empty());
}
