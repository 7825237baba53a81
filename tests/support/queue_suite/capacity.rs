//! Queues that never hold more than their capacity.

use conversant::error::OutOfRange;
use conversant::limit::Limit;

use super::super::form::{Queue, SendReason};
use super::{serve, take};

#[test]
fn a_full_queue_gives_the_message_back_until_one_is_done() {
    let queue = Queue::builder().capacity(Limit::AtMost(2)).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let (one, two) = (lane.conversation().unwrap(), lane.conversation().unwrap());
    one.send("1").unwrap();
    two.send("2").unwrap();
    let refused = one.send("3").unwrap_err();
    assert_eq!((refused.message, refused.reason), ("3", SendReason::Full));
    // A message in flight keeps its room, so that it can always come back.
    let delivery = take(&queue).unwrap();
    assert_eq!(one.send("3").unwrap_err().reason, SendReason::Full);
    delivery.give_back();
    assert_eq!(queue.snapshot().waiting, 2);
    // A handler that sends to its own full queue gets an error.
    let delivery = take(&queue).unwrap();
    assert_eq!(one.send("own").unwrap_err().reason, SendReason::Full);
    delivery.complete();
    one.send("3").unwrap();
    assert_eq!(serve(&queue).len(), 2);
}

#[test]
fn all_or_none_of_several() {
    let queue = Queue::builder().capacity(Limit::AtMost(3)).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    one.send(0).unwrap();
    let refused = one.send_all([1, 2, 3]).unwrap_err();
    assert_eq!(
        (refused.message, refused.reason),
        (vec![1, 2, 3], SendReason::Full)
    );
    one.send_all([1, 2]).unwrap();
    assert_eq!(serve(&queue), [0, 1, 2]);
}

#[test]
fn a_capacity_beyond_all_limits_is_refused() {
    let built = Queue::<u8>::builder()
        .capacity(Limit::AtMost(Limit::MAX + 1))
        .build();
    let least = |error: OutOfRange| (error.what, error.least);
    assert_eq!(built.err().map(least), Some(("capacity", 0)));
}
