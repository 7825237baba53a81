//! Capacities of a group and its lane: sends that wait against what makes room, a close, and the
//! removal of a capacity.

use super::{queue_with_conversation, receive_one};
use crate::limit::Limit;
use crate::queue::{Conversation, Queue, SendReason};
use crate::sync::{Arc, explore, spawn};

/// A group that may have one waiting message, and has it.
fn full() -> (Queue<u8>, Arc<Conversation<u8>>) {
    let (queue, conversation) = queue_with_conversation();
    conversation.set_capacity(1).unwrap();
    conversation.send(0).unwrap();
    (queue, Arc::new(conversation))
}

/// A send waits, or is about to wait, while the message is taken out.
#[test]
fn a_turn_that_takes_a_message_wakes_a_send() {
    explore("a_turn_that_takes_a_message_wakes_a_send", Some(4), || {
        let (queue, conversation) = full();
        let sender = spawn(move || conversation.send_wait(1).wait().unwrap());
        assert_eq!(receive_one(&queue), Ok(0));
        sender.join().unwrap();
        assert_eq!(receive_one(&queue), Ok(1));
    });
}

/// A waiting send is told of a close, or of the removal of the capacity.
#[test]
fn a_capacity_that_goes_wakes_a_send() {
    for close in [false, true] {
        explore("a_capacity_that_goes_wakes_a_send", Some(4), move || {
            let (queue, conversation) = full();
            let waits = Arc::clone(&conversation);
            let sender = spawn(move || waits.send_wait(1).wait());
            let reason = match close {
                true => {
                    queue.close();
                    Some(SendReason::Closed)
                }
                false => {
                    conversation.set_capacity(Limit::Unlimited).unwrap();
                    None
                }
            };
            let sent = sender.join().unwrap();
            assert_eq!(sent.err().map(|error| error.reason), reason);
        });
    }
}

/// Messages are sent, and taken out by turns, while the capacity is set: it counts those that wait.
#[test]
fn a_capacity_counts_what_waits_when_it_is_set() {
    explore(
        "a_capacity_counts_what_waits_when_it_is_set",
        Some(4),
        || {
            let (queue, conversation) = queue_with_conversation();
            let conversation = Arc::new(conversation);
            let sends = Arc::clone(&conversation);
            let sender = spawn(move || sends.send(1).unwrap());
            conversation.set_capacity(2).unwrap();
            sender.join().unwrap();
            conversation.send(2).unwrap();
            let refused = conversation.send(3).unwrap_err();
            assert_eq!(refused.reason, SendReason::GroupFull);
            assert_eq!(receive_one(&queue), Ok(1));
        },
    );
}
