//! The suite of `queue_suite/` over the queue of the crate, and tests of what only that queue has:
//! words for its errors, and a `Debug`.

#[path = "../support/queue_suite/mod.rs"]
mod queue_suite;
use crate::queue_support;

use conversant::limit::Limit;
use conversant::queue as form;
use conversant::queue::{LaneError, NoMore, NoTurn, Queue, SendError, SendReason};

use queue_support::{plain, take, turn};

const TWO: Limit = Limit::AtMost(2);

/// The number of groups where a test wants many.
const MANY: usize = 1000;

#[test]
fn a_finished_queue_ends_waits() {
    let (queue, lane) = plain();
    lane.conversation().unwrap().send(1).unwrap();
    queue.close();
    take(&queue).unwrap().complete();
    assert_eq!(queue.receive().wait().unwrap_err(), NoMore::Drained);
}

#[test]
fn errors_speak_and_compare() {
    let error = SendError {
        message: 1,
        reason: SendReason::Full,
    };
    assert_eq!(error.to_string(), "not sent: the queue is full");
    assert_eq!(format!("{error:?}"), "SendError { reason: Full, .. }");
    assert_eq!(error, error.clone());
    assert_eq!(SendReason::Closed.to_string(), "closed");
    assert_eq!(LaneError::Closed.to_string(), "closed");
    assert_eq!(NoTurn::Empty.to_string(), "nothing is eligible");
    let boxed: Box<dyn std::error::Error> = Box::new(error);
    assert!(boxed.source().is_none());
}

/// From a thread that holds nothing, and from a `Debug` that runs inside the queue's callers.
#[test]
fn debug_shows_and_never_blocks() {
    let (queue, lane) = plain();
    let group = lane.group(TWO, 0).unwrap();
    let one = group.conversation().unwrap();
    one.send_all([1, 2]).unwrap();
    let mut turn = turn(&queue).unwrap();
    let shown = format!("{queue:?}");
    let starts = "Queue { closed: false, counts: Counts { groups: 1, eligible: 0, turns: 1,";
    assert!(shown.starts_with(starts), "{shown}");
    let shown_turn = format!("{turn:?}");
    let delivery = turn.next().unwrap();
    let shown_delivery = format!("{delivery:?}");
    let detached = delivery.detach();
    let batch = format!("{:?}", turn.next_batch(2));
    for shown in [
        format!("{lane:?}"),
        format!("{group:?}"),
        format!("{one:?}"),
        shown_turn,
        shown_delivery,
        batch,
        format!("{detached:?}"),
        format!("{:?}", queue.try_receive_many(0)),
        format!("{:?}", queue.receive()),
        format!("{:?}", Queue::<u8>::builder()),
    ] {
        assert!(shown.contains('{'), "{shown}");
    }
}
