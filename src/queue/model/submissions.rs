//! What is posted, and what a turn does with its hand, beside the policy lock.

use super::queue_with_conversation;
use crate::limit::Limit;
use crate::queue::{Conversation, Queue, Turn};
use crate::sync::{Arc, explore, spawn};

/// Two senders of one conversation and of another; whatever a send that has
/// returned put there, the next who looks finds.
#[test]
fn what_was_sent_is_found() {
    explore("what_was_sent_is_found", Some(3), || {
        let (queue, one) = queue_with_conversation();
        let two = Queue::lane(&queue, 1, Limit::Unlimited).unwrap();
        let two = two.conversation().unwrap();
        let other = queue.clone();
        let sender = spawn(move || {
            two.send(2).unwrap();
            let found = other.snapshot().waiting;
            assert!((1..=3).contains(&found), "{found}");
            two
        });
        one.send_all([0, 1]).unwrap();
        assert!(queue.snapshot().waiting >= 2);
        sender.join().unwrap();
        assert_eq!(queue.snapshot().waiting, 3);
    });
}

/// A send that was taken before the shutdown is in what that takes out, one that
/// comes after it has its message back.
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

/// A turn with a message in its hand; its conversation stays, since what makes
/// a group or ends it is an event, which calls hands in.
fn turn_with_hand(queue: &Queue<u8>) -> (Turn<u8>, Conversation<u8>) {
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let conversation = lane.conversation().unwrap();
    drop(lane);
    conversation.send_all([1, 2]).unwrap();
    (queue.try_receive().unwrap(), conversation)
}

/// Who sees what was done with a hand sees what was posted before it.
#[test]
fn hands_and_posts_are_seen_in_order() {
    explore("hands_and_posts_are_seen_in_order", None, || {
        let (queue, conversation) = queue_with_conversation();
        let (mut turn, _stays) = turn_with_hand(&queue);
        let worker = spawn(move || {
            conversation.send(0).unwrap();
            turn.next().unwrap().complete();
            (turn, conversation)
        });
        let picture = queue.snapshot();
        let seen = (picture.waiting, picture.in_flight);
        assert!([(1, 1), (2, 1), (2, 0)].contains(&seen), "{seen:?}");
        drop(worker.join().unwrap());
    });
}

/// The rest of a hand is called in while its turn takes from it: one message is
/// had by one of the two.
#[test]
fn a_hand_is_called_in_while_it_is_played() {
    explore("a_hand_is_called_in_while_it_is_played", None, || {
        let queue = Arc::new(Queue::new());
        let (mut turn, _stays) = turn_with_hand(&queue);
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
        let (mut turn, stays) = turn_with_hand(&queue);
        drop(stays);
        let worker = spawn(move || {
            let first = turn.next();
            drop(turn);
            first.map(|delivery| delivery.complete())
        });
        drop(queue);
        assert_eq!(worker.join().unwrap(), Some(1));
    });
}

/// A turn that is live while two post: what a send put there before the turn
/// asks is found, though the turn may ask without the policy lock.
#[test]
fn a_live_turn_finds_what_was_sent() {
    explore("a_live_turn_finds_what_was_sent", None, || {
        let (queue, one) = queue_with_conversation();
        let one = Arc::new(one);
        let also = one.clone();
        // It may be taken in between its own post and what follows.
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
