//! Failures that waits hear of; the rest of what is said about them is in
//! `queue_suite/poison.rs`.

use crate::queue_support;

use std::task::Poll;
use std::time::Duration;

use conversant::limit::Limit;
use conversant::queue::{Lane, NoMore, NoTurn, Queue};

use queue_support::take;

const SECOND: Duration = Duration::from_secs(1);

fn failing() -> (Queue<&'static str>, Lane<&'static str>) {
    let queue = Queue::builder().back_off(SECOND, SECOND).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    (queue, lane)
}

#[test]
fn a_closed_queue_ends_waits_when_only_poisoned_messages_are_left() {
    let queue = Queue::builder().attempts(Limit::SERIAL).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let bad = lane.conversation().unwrap();
    bad.send_all(["1", "2"]).unwrap();
    take(&queue).unwrap().give_back();
    let (bell, waker) = queue_support::Bell::new();
    let mut wait = queue.receive();
    assert!(queue_support::poll(&mut wait, &waker).is_pending());
    queue.close();
    assert_eq!(bell.rings(), 1);
    assert_eq!(wait.wait().err(), Some(NoMore::OnlyPoisoned));
    let many = queue.receive_many(2);
    assert_eq!(many.wait().err(), Some(NoMore::OnlyPoisoned));
    let mut named = queue.receive_from(bad.group());
    assert!(matches!(
        queue_support::poll(&mut named, &waker),
        Poll::Ready(Err(NoTurn::Closed(NoMore::OnlyPoisoned)))
    ));
}

#[test]
fn the_end_of_a_back_off_wakes_a_receive() {
    let (queue, lane) = failing();
    let one = lane.conversation().unwrap();
    one.send("m").unwrap();
    take(&queue).unwrap().give_back();
    let (bell, waker) = queue_support::Bell::new();
    let mut wait = queue.receive();
    assert!(queue_support::poll(&mut wait, &waker).is_pending());
    assert_eq!((queue.advance(SECOND), bell.rings()), (None, 1));
    assert!(queue_support::poll(&mut wait, &waker).is_ready());
}
