//! Loom models of a dialog: both sides at once.

use std::time::Duration;

use super::{Dialogs, Endpoint, Event, Fault, Received, Refused};
use crate::limit::Limit;
use crate::queue::Queue;
use crate::sync::{explore, spawn};

type Notes = Queue<Received<u8>>;

/// One queue for both sides, so that all events meet there.
fn dialog() -> (Notes, Dialogs<u8>, Endpoint<u8>, Endpoint<u8>) {
    let queue = Notes::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let dialogs = Dialogs::new();
    let (near, far) = dialogs.pair(&lane, &lane).unwrap();
    (queue, dialogs, near, far)
}

fn assert_nothing_left(queue: &Notes, dialogs: &Dialogs<u8>) {
    assert!(dialogs.is_empty());
    let snapshot = queue.snapshot();
    assert_eq!((snapshot.waiting, snapshot.in_flight), (0, 0));
}

/// Each side tells the other its end and leaves. Neither event stays in the queue.
#[test]
fn both_sides_end_at_once() {
    explore("both_sides_end_at_once", None, || {
        let (queue, dialogs, near, far) = dialog();
        let other = spawn(move || drop(far));
        drop(near);
        other.join().unwrap();
        assert_nothing_left(&queue, &dialogs);
    });
}

/// The far side is sent an error while its timer is due. It ends once, and nothing follows.
#[test]
fn an_error_against_a_timer() {
    explore("an_error_against_a_timer", None, || {
        let (queue, dialogs, near, far) = dialog();
        far.set_timer(Duration::ZERO).unwrap();
        let ending = spawn(move || {
            let told = near.end_with(Fault::new(1, "model").unwrap());
            told.unwrap();
        });
        dialogs.advance(Duration::ZERO);
        ending.join().unwrap();
        let mut turn = queue.try_receive().unwrap();
        let told = turn.next().unwrap().complete();
        assert!(matches!(told.event, Event::Error(_)));
        drop((told, turn));
        assert_eq!(far.refusal(), Some(Refused::Ended));
        assert_nothing_left(&queue, &dialogs);
    });
}

/// The message is refused, or the end takes it out. It never arrives after the end.
#[test]
fn a_send_against_the_end_of_its_side() {
    explore("a_send_against_the_end_of_its_side", None, || {
        let (queue, dialogs, near, far) = dialog();
        let ending = spawn(move || drop(far));
        if let Err(refused) = near.send(1) {
            assert_eq!(refused.message, 1);
        }
        ending.join().unwrap();
        let mut turn = queue.try_receive().unwrap();
        let end = turn.next().unwrap().complete();
        assert_eq!(end.event, Event::End);
        drop((end, turn, near));
        assert_nothing_left(&queue, &dialogs);
    });
}
