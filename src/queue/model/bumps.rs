//! Bumps, which take only their group's lock, against operations that take the group out of line or
//! put it there.

use super::{Delivery, Queue, receive_one};
use crate::limit::Limit;
use crate::queue::{Conversation, Group, Lane};
use crate::sync::{explore, spawn};

fn queue_with_lane() -> (Queue<u8>, Lane<u8>) {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    (queue, lane)
}

/// A group in which these messages wait.
fn group(lane: &Lane<u8>, messages: &[u8]) -> (Group<u8>, Conversation<u8>) {
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    let conversation = group.conversation().unwrap();
    conversation.send_all(messages.to_vec()).unwrap();
    (group, conversation)
}

fn first(queue: &Queue<u8>) -> Option<u8> {
    queue.try_receive().ok()?.next().map(Delivery::complete)
}

/// All that can be received now, in order.
fn rest(queue: &Queue<u8>) -> Vec<u8> {
    std::iter::from_fn(|| first(queue)).collect()
}

/// The last of three groups is bumped, and bumped again, while a group is claimed. Each group is
/// served once, and the bumped one is the first or the second.
#[test]
fn a_bump_races_a_claim() {
    explore("a_bump_races_a_claim", Some(3), || {
        let (queue, lane) = queue_with_lane();
        let [_one, _two, three] = [1, 2, 3].map(|message| group(&lane, &[message]));
        let other = queue.clone();
        let reader = spawn(move || first(&other).unwrap());
        three.0.bump(8);
        three.0.bump(7);
        let claimed = reader.join().unwrap();
        let served = (claimed, rest(&queue));
        assert!(served == (1, vec![3, 2]) || served == (3, vec![1, 2]));
    });
}

/// The group with the live turn is bumped while the turn ends: then the group is first.
#[test]
fn a_bump_races_the_end_of_a_turn() {
    explore("a_bump_races_the_end_of_a_turn", None, || {
        let (queue, lane) = queue_with_lane();
        let (bumped, _stays) = group(&lane, &[1, 2]);
        let mut turn = queue.try_receive().unwrap().into_owned();
        let _older = group(&lane, &[3]);
        let bumper = spawn(move || {
            bumped.bump(7);
            bumped
        });
        assert_eq!(turn.next().unwrap().complete(), 1);
        drop(turn);
        let bumped = bumper.join().unwrap();
        assert_eq!(rest(&queue), [2, 3]);
        drop(bumped);
    });
}

/// An idle group is bumped while a message is sent to it: then it is first.
#[test]
fn a_bump_races_a_send() {
    explore("a_bump_races_a_send", None, || {
        let (queue, lane) = queue_with_lane();
        let _older = group(&lane, &[1]);
        let (bumped, conversation) = group(&lane, &[]);
        let sender = spawn(move || {
            conversation.send(2).unwrap();
            conversation
        });
        bumped.bump(7);
        let conversation = sender.join().unwrap();
        assert_eq!(rest(&queue), [2, 1]);
        drop(conversation);
    });
}

/// A group is bumped in line while it is taken out and comes back. It stands there once, at the
/// place of the bump.
#[test]
fn a_bump_races_a_pause() {
    explore("a_bump_races_a_pause", Some(3), || {
        let (queue, lane) = queue_with_lane();
        let _older = group(&lane, &[1]);
        let (bumped, _stays) = group(&lane, &[2]);
        let id = bumped.id();
        let pauser = spawn(move || {
            bumped.set_limit(Limit::AtMost(0)).unwrap();
            bumped.set_limit(Limit::SERIAL).unwrap();
            bumped
        });
        queue.bump(id, 7).unwrap();
        let bumped = pauser.join().unwrap();
        assert_eq!(queue.counts().eligible, 2);
        assert_eq!(rest(&queue), [2, 1]);
        drop(bumped);
    });
}

/// A bumped group is sent to while a receive goes to sleep.
#[test]
fn a_send_to_a_bumped_group_wakes_a_receive() {
    explore("a_send_to_a_bumped_group_wakes_a_receive", Some(3), || {
        let (queue, lane) = queue_with_lane();
        let (bumped, conversation) = group(&lane, &[]);
        bumped.bump(7);
        // Kept alive: its end would wake the receive, too.
        let sender = spawn(move || {
            conversation.send(1).unwrap();
            conversation
        });
        assert_eq!(receive_one(&queue), Ok(1));
        drop((sender.join().unwrap(), bumped));
    });
}

/// A group is bumped by name while it ends: the name is valid, or stale.
#[test]
fn a_bump_by_name_races_the_end_of_a_group() {
    explore("a_bump_by_name_races_the_end_of_a_group", Some(3), || {
        let (queue, lane) = queue_with_lane();
        let (bumped, conversation) = group(&lane, &[]);
        let id = bumped.id();
        drop(conversation);
        let ender = spawn(move || drop(bumped));
        _ = queue.bump(id, 7);
        ender.join().unwrap();
        assert!(queue.bump(id, 7).is_err());
    });
}
