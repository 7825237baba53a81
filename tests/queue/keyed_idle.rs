//! Sending by key: how many idle groups are kept.

use crate::queue_support;

use conversant::keyed::Keyed;
use conversant::limit::Limit;
use conversant::queue::{Delivery, Queue};

use queue_support::serve;

fn keyed(queue: &Queue<u32>) -> Keyed<u32, u32> {
    Keyed::new(queue.lane(1, Limit::Unlimited).expect("the queue is open"))
}

/// However messages are received: only a bounded number of idle keys is kept.
#[test]
fn idle_keys_are_forgotten_by_a_receive_that_finds_nothing() {
    for waits in [false, true] {
        let queue = Queue::new();
        let orders = keyed(&queue);
        for key in 0..10_000_u32 {
            orders.send(key, key).unwrap();
        }
        assert_eq!(serve(&queue).len(), 10_000);
        if waits {
            let late = queue.receive().wait_timeout(std::time::Duration::ZERO);
            assert!(late.is_err());
        }
        let kept = queue.snapshot().lanes[0].groups.len();
        assert!(kept <= 1024, "{kept}");
        assert!(orders.is_empty());
    }
}

/// The idle groups that a burst lets the senders keep are forgotten with its end.
#[test]
fn a_burst_raises_the_bound_of_idle_keys_while_it_is_there() {
    let queue = Queue::new();
    let orders = keyed(&queue).keep_idle(10);
    for key in 0..1_000 {
        orders.send(key, key).unwrap();
    }
    assert_eq!(serve(&queue).len(), 1_000);
    let mut most = 0;
    for key in 1_000..2_000 {
        orders.send(key, key).unwrap();
        // No receive finds nothing.
        let mut turn = queue.try_receive().unwrap();
        assert_eq!(turn.next().map(Delivery::complete), Some(key));
        drop(turn);
        most = most.max(queue.counts().groups);
    }
    assert!(most <= 32, "{most} groups, all idle but one");
}

/// This many idle keys may stay, whether or not others are busy; with a few more a shard forgets
/// its idle ones.
#[test]
fn idle_keys_are_kept_up_to_a_number() {
    for at_once in [true, false] {
        let queue = Queue::new();
        let orders = keyed(&queue).keep_idle(20_000);
        let groups = || queue.snapshot().lanes[0].groups.len();
        for _ in 0..2 {
            for key in 0..10_000_u32 {
                orders.send(key, key).unwrap();
                if !at_once {
                    assert_eq!(serve(&queue), [key]);
                }
            }
            let left = serve(&queue).len();
            assert_eq!(left, if at_once { 10_000 } else { 0 });
            assert_eq!(groups(), 10_000);
        }
        for key in 10_000..40_000 {
            orders.send(key, key).unwrap();
            assert_eq!(serve(&queue).len(), 1);
        }
        assert!(groups() <= 20_000, "{}", groups());
    }
}

/// A group with a handle stays, and so does its bump; a bump alone keeps no group.
#[test]
fn a_handle_keeps_the_bump_of_an_idle_key() {
    for keeps in [true, false] {
        let queue = Queue::new();
        let orders = keyed(&queue);
        let handle = orders.group(2).unwrap();
        handle.bump(255);
        let _kept = keeps.then_some(handle);
        assert!(orders.is_empty(), "this forgets what is idle");
        assert_eq!(queue.counts().groups, usize::from(keeps));
        for key in [1, 2] {
            orders.send(key, key).unwrap();
        }
        assert_eq!(serve(&queue), if keeps { [2, 1] } else { [1, 2] });
    }
}

/// Groups that differ stay, and count as busy ones do: twice their number may be kept.
#[test]
fn groups_that_differ_stay_and_count() {
    let queue = Queue::new();
    let orders = keyed(&queue).keep_idle(4);
    for key in 0..100 {
        orders.group(key).unwrap().set_limit(0).unwrap();
    }
    let mut most = 0;
    for key in 1_000..1_400 {
        orders.send(key, key).unwrap();
        assert_eq!(serve(&queue), [key]);
        most = most.max(queue.snapshot().lanes[0].groups.len());
    }
    assert!((200..=202).contains(&most), "{most}");
    assert!(orders.is_empty());
    assert_eq!(queue.snapshot().lanes[0].groups.len(), 100);
}
