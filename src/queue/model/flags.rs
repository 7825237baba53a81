//! Flags that the policy sets while a plain step of their group is under way: each
//! step sees a flag or comes before it.

use super::receive_one;
use crate::limit::Limit;
use crate::queue::{Conversation, Group, NoTurn, Queue, Snapshot, Why};
use crate::sync::{explore, spawn};

const PAUSED: Limit = Limit::AtMost(0);

fn group(queue: &Queue<u8>) -> (Group<u8>, Conversation<u8>) {
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let group = lane.group(Limit::SERIAL, 100).unwrap();
    let conversation = group.conversation().unwrap();
    (group, conversation)
}

/// The group is paused and its message waits; resumed, it is received.
fn assert_paused(queue: &Queue<u8>, group: &Group<u8>, message: u8) {
    let paused = queue.snapshot();
    assert_eq!((paused.waiting, paused.in_flight), (1, 0));
    assert_eq!(why(&paused), Why::Paused);
    assert_eq!(queue.try_receive().err(), Some(NoTurn::Empty));
    group.set_limit(Limit::SERIAL).unwrap();
    assert_eq!(receive_one(queue), Ok(message));
}

fn why(snapshot: &Snapshot) -> Why {
    snapshot.lanes[0].groups[0].why
}

/// The token of the send may be on its way when the group is paused.
#[test]
fn a_pause_races_a_send() {
    explore("a_pause_races_a_send", None, || {
        let queue = Queue::new();
        let (group, conversation) = group(&queue);
        let sender = spawn(move || {
            conversation.send(1).unwrap();
            conversation
        });
        group.set_limit(PAUSED).unwrap();
        let stays = sender.join().unwrap();
        assert_paused(&queue, &group, 1);
        drop(stays);
    });
}

#[test]
fn a_pause_races_the_end_of_a_turn() {
    explore("a_pause_races_the_end_of_a_turn", None, || {
        let queue = Queue::new();
        let (group, conversation) = group(&queue);
        conversation.send_all([1, 2]).unwrap();
        let mut turn = queue.try_receive().unwrap().into_owned();
        assert_eq!(turn.next().unwrap().complete(), 1);
        let ending = spawn(move || drop(turn));
        group.set_limit(PAUSED).unwrap();
        ending.join().unwrap();
        assert_paused(&queue, &group, 2);
    });
}

/// A resume against the end of a turn: the later of the two puts the group in line, and wakes the
/// receive that sleeps.
#[test]
fn a_resume_races_the_end_of_a_turn() {
    explore("a_resume_races_the_end_of_a_turn", Some(3), || {
        let queue = Queue::new();
        let (group, conversation) = group(&queue);
        conversation.send_all([1, 2]).unwrap();
        let mut turn = queue.try_receive().unwrap().into_owned();
        assert_eq!(turn.next().unwrap().complete(), 1);
        group.set_limit(PAUSED).unwrap();
        let ending = spawn(move || drop(turn));
        let resuming = spawn(move || group.set_limit(Limit::SERIAL).unwrap());
        assert_eq!(receive_one(&queue), Ok(2));
        ending.join().unwrap();
        resuming.join().unwrap();
    });
}

/// A lane gets its first cap while a turn ends and a message comes. The units counted as in use
/// come back, no more and no less.
#[test]
fn a_first_cap_races_the_end_of_a_turn_and_a_send() {
    explore(
        "a_first_cap_races_the_end_of_a_turn_and_a_send",
        Some(3),
        || {
            let queue = Queue::new();
            let lane = queue.lane(1, Limit::Unlimited).unwrap();
            let [one, two] = [(); 2].map(|()| lane.conversation().unwrap());
            one.send_all([1, 2]).unwrap();
            let mut turn = queue.try_receive().unwrap().into_owned();
            assert_eq!(turn.next().unwrap().complete(), 1);
            let ending = spawn(move || drop(turn));
            let sender = spawn(move || {
                two.send(3).unwrap();
                two
            });
            lane.set_cap(Limit::SERIAL).unwrap();
            ending.join().unwrap();
            let stays = sender.join().unwrap();
            assert_eq!(queue.counts().eligible, 1);
            let first = queue.try_receive().unwrap();
            assert_eq!(queue.try_receive().err(), Some(NoTurn::Empty));
            drop(first);
            assert_eq!(queue.counts().eligible, 1);
            drop(stays);
        },
    );
}

/// A receive by name races the send of a message: it gets the message, and is woken.
#[test]
fn a_named_receive_races_a_send() {
    explore("a_named_receive_races_a_send", Some(3), || {
        let queue = Queue::new();
        let (group, conversation) = group(&queue);
        let sender = spawn(move || {
            conversation.send(1).unwrap();
            conversation
        });
        let mut turn = queue.receive_from(group.id()).wait().unwrap();
        assert_eq!(turn.next().unwrap().complete(), 1);
        drop(turn);
        drop(sender.join().unwrap());
        let left = queue.snapshot();
        assert_eq!(
            (left.waiting, left.in_flight, left.counts.eligible),
            (0, 0, 0)
        );
    });
}
