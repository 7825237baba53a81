//! Loom models of a queue. A lost wake-up shows as a deadlock, which loom reports. Each model
//! prints its number of interleavings and its bound.

mod bumps;
mod flags;
mod parts;
mod room;
mod submissions;
mod units;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

use super::{Conversation, Delivery, Detached, NoMore, Queue};
use crate::limit::Limit;
use crate::sync::{Arc, AtomicBool, Ordering, explore, spawn};

fn queue_with_conversation() -> (Queue<u8>, Conversation<u8>) {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let conversation = lane.conversation().unwrap();
    (queue, conversation)
}

fn receive_one(queue: &Queue<u8>) -> Result<u8, NoMore> {
    let mut turn = queue.receive().wait()?;
    Ok(turn.next().unwrap().complete())
}

/// The first message of the next turn; the turn is dropped.
fn detached(queue: &Queue<u8>) -> Detached<u8> {
    let mut turn = queue.try_receive().unwrap();
    turn.next().map(Delivery::detach).unwrap()
}

/// The first wait races the first send.
#[test]
fn a_send_wakes_a_receive() {
    explore("a_send_wakes_a_receive", Some(3), || {
        let (queue, conversation) = queue_with_conversation();
        // The conversation stays: its end would wake the receive, too.
        let sender = spawn(move || {
            conversation.send(1).unwrap();
            conversation
        });
        assert_eq!(receive_one(&queue), Ok(1));
        drop(sender.join().unwrap());
    });
}

/// Two messages of one serial group: the second becomes eligible when the first is done, and
/// then wakes the waiting receive.
#[test]
fn the_end_of_a_turn_wakes_the_next_receive() {
    explore("the_end_of_a_turn_wakes_the_next_receive", None, || {
        let (queue, conversation) = queue_with_conversation();
        conversation.send_all([1, 2]).unwrap();
        let other = queue.clone();
        let reader = spawn(move || receive_one(&other).unwrap());
        let mine = receive_one(&queue).unwrap();
        assert_eq!(mine + reader.join().unwrap(), 3);
    });
}

/// A receive is dropped when it was notified, or is about to be: the other is woken.
#[test]
fn a_cancelled_receive_passes_its_wake_on() {
    explore("a_cancelled_receive_passes_its_wake_on", Some(3), || {
        let (queue, conversation) = queue_with_conversation();
        let mut first = queue.receive();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut first).poll(&mut cx).is_pending());
        let other = queue.clone();
        let reader = spawn(move || receive_one(&other));
        let sender = spawn(move || conversation.send(1).unwrap());
        drop(first);
        assert_eq!(reader.join().unwrap(), Ok(1));
        sender.join().unwrap();
        let receives = queue.counts().receives;
        assert_eq!((receives.waiting, receives.notified), (0, 0));
    });
}

/// The last completion and the close, in either order, end a blocked receive.
#[test]
fn the_end_wakes_a_receive() {
    explore("the_end_wakes_a_receive", Some(3), || {
        let (queue, conversation) = queue_with_conversation();
        conversation.send(1).unwrap();
        let last = detached(&queue);
        let worker = spawn(move || last.complete());
        let other = queue.clone();
        let closer = spawn(move || other.close());
        assert_eq!(receive_one(&queue), Err(NoMore::Drained));
        assert_eq!(worker.join().unwrap(), 1);
        closer.join().unwrap();
    });
}

/// A receive is woken, but another takes the turn: it sleeps again, and is woken for the next.
#[test]
fn a_receive_that_was_woken_for_nothing_is_woken_again() {
    explore(
        "a_receive_that_was_woken_for_nothing_is_woken_again",
        None,
        || {
            let (queue, conversation) = queue_with_conversation();
            let other = queue.clone();
            let reader = spawn(move || receive_one(&other).unwrap());
            conversation.send(1).unwrap();
            let mut expected = 1;
            if let Ok(mut turn) = queue.try_receive() {
                assert_eq!(turn.next().unwrap().complete(), 1);
                drop(turn);
                conversation.send(2).unwrap();
                expected = 2;
            }
            assert_eq!(reader.join().unwrap(), expected);
        },
    );
}

/// SEMANTICS 1E: two readers never take the same top entry. The second takes the next best one,
/// even if a bump changes at that moment which one this is.
#[test]
fn two_readers_and_a_bump_take_the_best_two() {
    explore("two_readers_and_a_bump_take_the_best_two", Some(3), || {
        let queue = Queue::new();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        // Two messages each, limit 2, and a level of its own: only the turn keeps the second
        // reader away.
        let groups = [102, 101, 100].map(|level| lane.group(Limit::Unlimited, level).unwrap());
        for group in &groups {
            group.conversation().unwrap().send_all([1, 2]).unwrap();
        }
        let [top, next, bumped] = groups.each_ref().map(|group| group.id());
        let has_bumped = Arc::new(AtomicBool::new(false));
        let readers = [(); 2].map(|()| {
            let (queue, has_bumped) = (queue.clone(), has_bumped.clone());
            spawn(move || {
                let bumped = has_bumped.load(Ordering::Acquire);
                (queue.try_receive().unwrap().into_owned(), bumped)
            })
        });
        queue.bump(bumped, 255).unwrap();
        has_bumped.store(true, Ordering::Release);
        let taken = readers.map(|reader| reader.join().unwrap());
        let saw_it = taken.iter().any(|(_, bumped)| *bumped);
        let mut names = taken.each_ref().map(|(turn, _)| turn.group_id());
        names.sort_unstable();
        assert!(names == [top, bumped] || names == [top, next] && !saw_it);
    });
}

/// An arrival races the last completion and the end of its turn: it is
/// received, and no group is stranded.
#[test]
fn a_send_races_the_end_of_a_turn() {
    explore("a_send_races_the_end_of_a_turn", Some(3), || {
        let (queue, conversation) = queue_with_conversation();
        conversation.send(1).unwrap();
        let mut turn = queue.try_receive().unwrap().into_owned();
        let worker = spawn(move || {
            assert_eq!(turn.next().unwrap().complete(), 1);
            drop(turn);
        });
        let sender = spawn(move || conversation.send(2).unwrap());
        assert_eq!(receive_one(&queue), Ok(2));
        worker.join().unwrap();
        sender.join().unwrap();
        let left = queue.snapshot();
        assert_eq!(
            (left.waiting, left.in_flight, left.counts.eligible),
            (0, 0, 0)
        );
    });
}
