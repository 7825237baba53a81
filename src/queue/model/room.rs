//! Sends that wait for room: the semaphore of the capacity against completions,
//! cancels, closes and ends.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

use super::{detached, receive_one};
use crate::limit::Limit;
use crate::queue::permit_cache::PermitCache;
use crate::queue::{Conversation, Detached, Queue, SendReason};
use crate::sync::{Arc, AtomicBool, Ordering, explore, spawn, thread_number};

/// A queue with room for one message, two conversations, and the delivery that has the room.
#[allow(clippy::type_complexity)]
fn full() -> (Queue<u8>, [Arc<Conversation<u8>>; 2], Detached<u8>) {
    let (queue, both) = about_to_be_full();
    let delivery = detached(&queue);
    (queue, both, delivery)
}

/// As [`full`], before its message is received.
fn about_to_be_full() -> (Queue<u8>, [Arc<Conversation<u8>>; 2]) {
    let queue = Queue::builder().capacity(Limit::AtMost(1)).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let both = [(); 2].map(|()| Arc::new(lane.conversation().unwrap()));
    both[0].send(0).unwrap();
    (queue, both)
}

fn left(queue: &Queue<u8>) -> (u64, usize, usize) {
    let snapshot = queue.snapshot();
    let (held, sends) = (snapshot.waiting + snapshot.in_flight, snapshot.counts.sends);
    (held, sends.waiting, sends.notified)
}

/// Two senders wait, or are about to wait, while the only permit is freed twice.
#[test]
fn a_completion_wakes_one_send_after_the_other() {
    explore(
        "a_completion_wakes_one_send_after_the_other",
        Some(2),
        || {
            let (queue, both, delivery) = full();
            let [one, two] =
                both.map(|conversation| spawn(move || conversation.send_wait(1).wait().unwrap()));
            delivery.complete();
            assert_eq!(receive_one(&queue), Ok(1));
            one.join().unwrap();
            two.join().unwrap();
            assert_eq!(left(&queue), (1, 0, 0));
        },
    );
}

/// The first waiter was notified, or is being notified, and is dropped: the next is notified.
#[test]
fn a_cancelled_send_passes_its_room_on() {
    explore("a_cancelled_send_passes_its_room_on", Some(3), || {
        let (queue, [one, two], delivery) = full();
        let mut first = one.send_wait(1);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut first).poll(&mut cx).is_pending());
        let worker = spawn(move || delivery.complete());
        let sender = spawn(move || two.send_wait(2).wait().unwrap());
        assert_eq!(first.into_message(), Some(1));
        worker.join().unwrap();
        sender.join().unwrap();
        assert_eq!(left(&queue), (1, 0, 0));
    });
}

/// A close while the permit comes back: the message is sent or given back, and no sender sleeps on.
#[test]
fn a_close_ends_a_send_that_waits() {
    explore("a_close_ends_a_send_that_waits", Some(3), || {
        let (queue, [one, _two], delivery) = full();
        let sender = spawn(move || one.send_wait(1).wait());
        let other = queue.clone();
        let closer = spawn(move || other.close());
        delivery.complete();
        let sent = match sender.join().unwrap() {
            Ok(()) => 1,
            Err(error) => {
                assert_eq!((error.message, error.reason), (1, SendReason::Closed));
                0
            }
        };
        closer.join().unwrap();
        assert_eq!(left(&queue), (sent, 0, 0));
    });
}

/// A close, and no permit comes back: the message is given back.
#[test]
fn a_close_alone_ends_a_send_that_waits() {
    explore("a_close_alone_ends_a_send_that_waits", None, || {
        let (queue, [one, _two], delivery) = full();
        let sender = spawn(move || one.send_wait(1).wait().unwrap_err().reason);
        queue.close();
        assert_eq!(sender.join().unwrap(), SendReason::Closed);
        drop(delivery);
        assert_eq!(left(&queue), (1, 0, 0));
    });
}

/// Sends that do not wait never take room that was granted to a waiter.
#[test]
fn an_immediate_send_takes_no_promised_room() {
    explore("an_immediate_send_takes_no_promised_room", Some(3), || {
        let (queue, [one, two]) = about_to_be_full();
        // On another thread: the thread that has received the delivery may not wait.
        let other = queue.clone();
        let delivery = spawn(move || detached(&other)).join().unwrap();
        let mut first = one.send_wait(1);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut first).poll(&mut cx).is_pending());
        let immediate = spawn(move || two.send(2).unwrap_err().reason);
        let worker = spawn(move || delivery.complete());
        first.wait().unwrap();
        worker.join().unwrap();
        assert_eq!(immediate.join().unwrap(), SendReason::Full);
        assert_eq!(left(&queue), (1, 0, 0));
    });
}

/// A send waits for room for two while two permits come back, of which one is cached by a thread,
/// or about to be.
#[test]
fn a_send_that_waits_finds_what_threads_have_cached() {
    explore(
        "a_send_that_waits_finds_what_threads_have_cached",
        Some(3),
        || {
            let queue = Queue::builder().capacity(Limit::AtMost(2)).build().unwrap();
            let lane = queue.lane(1, Limit::Unlimited).unwrap();
            let group = lane.group(Limit::Unlimited, 100).unwrap();
            let one = group.conversation().unwrap();
            one.send_all([0, 0]).unwrap();
            let deliveries = [(); 2].map(|()| detached(&queue));
            // On another thread: the thread that has received the deliveries may not wait.
            let sender = spawn(move || {
                one.send_all_wait([1, 2]).wait().unwrap();
                one
            });
            assert_eq!(deliveries.map(Detached::complete), [0, 0]);
            drop(sender.join().unwrap());
            assert_eq!(left(&queue), (2, 0, 0));
        },
    );
}

/// What happened before a permit came back is visible to the thread that takes it from the same
/// word.
#[test]
fn a_cached_permit_brings_what_was_done_before_it() {
    explore(
        "a_cached_permit_brings_what_was_done_before_it",
        None,
        || {
            let cache = Arc::new(PermitCache::new(1, 1));
            // The first statement opens the word, the second takes what is available.
            assert!(cache.permits().take(1) && !cache.put(thread_number(), 1));
            cache.take(1, &mut false).unwrap();
            let done = Arc::new(AtomicBool::new(false));
            let worker = spawn({
                let (cache, done) = (cache.clone(), done.clone());
                move || {
                    // Relaxed: the word orders it.
                    done.store(true, Ordering::Relaxed);
                    assert!(!cache.put(thread_number(), 1));
                }
            });
            let taker = spawn({
                let (cache, done) = (cache.clone(), done.clone());
                move || {
                    if cache.take(1, &mut false).is_ok() {
                        assert!(done.load(Ordering::Relaxed));
                    }
                }
            });
            taker.join().unwrap();
            worker.join().unwrap();
        },
    );
}

/// A debt is made while a word is opened, or about to be: what comes back pays it.
#[test]
fn what_comes_back_pays_a_debt() {
    explore("what_comes_back_pays_a_debt", None, || {
        let cache = Arc::new(PermitCache::new(2, 1));
        assert!(cache.permits().take(1));
        let worker = spawn({
            let cache = cache.clone();
            // It may open the thread's word.
            move || assert!(!cache.put(thread_number(), 1))
        });
        (0..3).for_each(|_| assert!(!cache.take_past()));
        worker.join().unwrap();
        assert!(!cache.put(thread_number(), 1));
        assert_eq!(cache.permits().available(), 0);
    });
}
