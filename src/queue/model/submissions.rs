//! What is submitted without the policy lock: sends, ends of turns and detached deliveries, against
//! readers that go to sleep.

use std::pin::Pin;
use std::task::{Context, Waker};

use super::{detached, queue_with_conversation, receive_one};
use crate::limit::Limit;
use crate::queue::{Conversation, NoMore, Queue, SendReason, Turn};
use crate::sync::{Arc, explore, spawn};

/// With a conversation in each of two lanes.
fn queue_with_two() -> (Queue<u8>, [Conversation<u8>; 2]) {
    let (queue, one) = queue_with_conversation();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let two = lane.conversation().unwrap();
    (queue, [one, two])
}

/// Two senders, one for each of two conversations. When a send has returned, the next snapshot
/// finds its message.
#[test]
fn what_was_sent_is_found() {
    explore("what_was_sent_is_found", Some(3), || {
        let (queue, [one, two]) = queue_with_two();
        let other = queue.clone();
        let sender = spawn(move || {
            two.send(2).unwrap();
            let found = other.snapshot().waiting;
            assert!((1..=3).contains(&found), "{found}");
            two
        });
        one.send_all([0, 1]).unwrap();
        assert!(queue.snapshot().waiting >= 2);
        let _two = sender.join().unwrap();
        assert_eq!(queue.snapshot().waiting, 3);
    });
}

/// Messages to two groups by one call, in two windows, while a reader goes to sleep: all are
/// received.
#[test]
fn a_send_to_many_races_a_sleep() {
    explore("a_send_to_many_races_a_sleep", Some(3), || {
        let (queue, [one, two]) = queue_with_two();
        let other = queue.clone();
        let sender = spawn(move || {
            let messages = [(&one, 1), (&one, 2), (&two, 4), (&two, 8)];
            other.send_many(messages).unwrap();
            [one, two]
        });
        let found = [(); 4].map(|()| receive_one(&queue).unwrap());
        assert_eq!(found.iter().sum::<u8>(), 15);
        drop(sender.join().unwrap());
    });
}

/// Two sends to two groups while two receives sleep: each wakes one, though nobody takes in what
/// was sent.
#[test]
fn two_sends_wake_two_receives() {
    explore("two_sends_wake_two_receives", Some(3), || {
        let (queue, [one, two]) = queue_with_two();
        let mut cx = Context::from_waker(Waker::noop());
        let mut receives = [(); 2].map(|()| queue.receive());
        for receive in &mut receives {
            assert!(Pin::new(receive).poll(&mut cx).is_pending());
        }
        let sender = spawn(move || {
            two.send(2).unwrap();
            two
        });
        one.send(1).unwrap();
        let two = sender.join().unwrap();
        let counts = queue.counts().receives;
        assert_eq!((counts.waiting, counts.notified), (0, 2));
        drop((receives, two));
    });
}

/// A send before the shutdown: its message is taken out by it. A send after the shutdown gets its
/// message back.
#[test]
fn a_send_races_a_shutdown() {
    explore("a_send_races_a_shutdown", None, || {
        let (queue, conversation) = queue_with_conversation();
        let sender = spawn(move || conversation.send(1).is_ok());
        let taken_out = queue.shutdown().len();
        let sent = sender.join().unwrap();
        assert_eq!(taken_out, usize::from(sent));
    });
}

/// A send before the close: its message is received, even by a reader that sleeps. A send after the
/// close gets its message back.
#[test]
fn a_send_races_a_close() {
    explore("a_send_races_a_close", Some(3), || {
        let (queue, conversation) = queue_with_conversation();
        let sender = spawn(move || match conversation.send(1) {
            Ok(()) => true,
            Err(error) => {
                assert_eq!((error.message, error.reason), (1, SendReason::Closed));
                false
            }
        });
        let other = queue.clone();
        let closer = spawn(move || other.close());
        let first = receive_one(&queue);
        assert_eq!(sender.join().unwrap(), first == Ok(1));
        closer.join().unwrap();
        assert_eq!(receive_one(&queue), Err(NoMore::Drained));
    });
}

/// A turn of two messages, and the conversation, which is kept alive.
fn turn_of_two(queue: &Queue<u8>) -> (Turn<'static, u8>, Conversation<u8>) {
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let conversation = lane.conversation().unwrap();
    drop(lane);
    conversation.send_all([1, 2]).unwrap();
    (queue.try_receive().unwrap().into_owned(), conversation)
}

/// A thread that sees what was done in a turn sees what was sent before it.
#[test]
fn turns_and_sends_are_seen_in_order() {
    explore("turns_and_sends_are_seen_in_order", None, || {
        let queue = Queue::new();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let [sent_to, turn_of] = [(); 2].map(|()| lane.group(Limit::SERIAL, 100).unwrap());
        let conversation = sent_to.conversation().unwrap();
        turn_of.conversation().unwrap().send_all([1, 2]).unwrap();
        let mut turn = queue.try_receive().unwrap().into_owned();
        // The spawned thread runs second. It is the reader, so that in the model it can find all
        // values that it may, old and new.
        let reader = spawn(move || {
            if turn_of.waiting() == 0 {
                assert_eq!(sent_to.waiting(), 1);
            }
            [turn_of, sent_to]
        });
        conversation.send(0).unwrap();
        turn.next().unwrap().complete();
        turn.next().unwrap().complete();
        drop((reader.join().unwrap(), turn, conversation));
    });
}

/// The waiting messages are taken out while a turn takes from them: each message comes out once.
#[test]
fn a_shutdown_while_a_turn_is_live() {
    explore("a_shutdown_while_a_turn_is_live", None, || {
        let queue = Queue::new();
        let (mut turn, _stays) = turn_of_two(&queue);
        let worker = spawn(move || {
            let mut done = Vec::new();
            while let Some(delivery) = turn.next() {
                done.push(delivery.complete());
            }
            done
        });
        let mut all = queue.shutdown();
        assert_eq!(queue.snapshot().waiting, 0);
        let done = worker.join().unwrap();
        all.splice(0..0, done);
        all.extend(queue.shutdown());
        assert_eq!(all, [1, 2]);
        let left = queue.snapshot();
        assert_eq!((left.waiting, left.in_flight), (0, 0));
    });
}

/// A turn that outlives its queue keeps nothing alive: loom looks for leaks.
#[test]
fn a_turn_outlives_its_queue() {
    explore("a_turn_outlives_its_queue", None, || {
        let queue = Queue::new();
        let (mut turn, stays) = turn_of_two(&queue);
        drop(stays);
        let worker = spawn(move || {
            let first = turn.next().map(|delivery| delivery.complete());
            drop(turn);
            first
        });
        drop(queue);
        assert_eq!(worker.join().unwrap(), Some(1));
    });
}

/// Two threads send while a turn is live. A message that was sent before the turn asks is found,
/// though the turn may ask without any lock.
#[test]
fn a_live_turn_finds_what_was_sent() {
    explore("a_live_turn_finds_what_was_sent", None, || {
        let (queue, one) = queue_with_conversation();
        let one = Arc::new(one);
        let also = one.clone();
        let first = spawn(move || also.send(1).unwrap());
        let second = spawn(move || {
            one.send(2).unwrap();
            one
        });
        let turn = queue.try_receive();
        let one = second.join().unwrap();
        if let Ok(mut turn) = turn {
            let mut found = Vec::new();
            while let Some(delivery) = turn.next() {
                found.push(delivery.complete());
            }
            assert!(found.contains(&2), "{found:?}");
        }
        first.join().unwrap();
        drop(one);
    });
}

/// Two sends while the turn of their group ends and its reader goes to sleep: both messages are
/// received, by one token or by two.
#[test]
fn two_sends_race_the_end_of_a_turn_and_a_sleep() {
    explore(
        "two_sends_race_the_end_of_a_turn_and_a_sleep",
        Some(3),
        || {
            let (queue, one) = queue_with_conversation();
            one.send(0).unwrap();
            let mut turn = queue.try_receive().unwrap();
            let one = Arc::new(one);
            let senders = [1, 2].map(|message| {
                let one = one.clone();
                spawn(move || one.send(message).unwrap())
            });
            assert_eq!(turn.next().unwrap().complete(), 0);
            drop(turn);
            let found = [(); 2].map(|()| receive_one(&queue).unwrap());
            assert_eq!(found[0] + found[1], 3);
            for sender in senders {
                sender.join().unwrap();
            }
            let left = queue.snapshot();
            assert_eq!(
                (left.waiting, left.in_flight, left.counts.eligible),
                (0, 0, 0)
            );
        },
    );
}

/// The turn of a serial group is dropped while its detached delivery is completed and a reader goes
/// to sleep: the last of them puts the group in line.
#[test]
fn a_detached_delivery_races_the_end_of_its_turn() {
    explore(
        "a_detached_delivery_races_the_end_of_its_turn",
        Some(3),
        || {
            let queue = Queue::new();
            let (mut turn, stays) = turn_of_two(&queue);
            let delivery = turn.next().unwrap().detach();
            let ending = spawn(move || drop(turn));
            let worker = spawn(move || delivery.complete());
            assert_eq!(receive_one(&queue), Ok(2));
            ending.join().unwrap();
            assert_eq!(worker.join().unwrap(), 1);
            let left = queue.snapshot();
            assert_eq!(
                (left.waiting, left.in_flight, left.counts.eligible),
                (0, 0, 0)
            );
            drop(stays);
        },
    );
}

/// A delivery is given back against a send and a reader that goes to sleep: both messages are
/// received, the first one first.
#[test]
fn a_delivery_given_back_races_a_send() {
    explore("a_delivery_given_back_races_a_send", Some(3), || {
        let (queue, one) = queue_with_conversation();
        one.send(1).unwrap();
        let delivery = detached(&queue);
        let worker = spawn(move || drop(delivery));
        let sender = spawn(move || {
            one.send(2).unwrap();
            one
        });
        for expected in [1, 2] {
            assert_eq!(receive_one(&queue), Ok(expected));
        }
        worker.join().unwrap();
        drop(sender.join().unwrap());
    });
}
