//! The waker of a receive finds the room of the message whose end has woken it.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Wake, Waker};

use super::*;

/// Its task goes on at once, as in an executor that polls where it is woken.
struct Sends(Conversation<i32>, AtomicBool);

impl Wake for Sends {
    fn wake(self: Arc<Self>) {
        self.1.store(self.0.send(9).is_ok(), SeqCst);
    }
}

/// A receive waits; what it is woken by is `ends`, and its waker sends into this lane.
fn finds_room(queue: &Queue<i32>, lane: &Lane<i32>, ends: impl FnOnce()) {
    let sends = Sends(lane.conversation().unwrap(), AtomicBool::new(false));
    let sends = Arc::new(sends);
    let waker = Waker::from(Arc::clone(&sends));
    let mut next = pin!(queue.receive());
    let waits = next.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(waits.is_pending());
    ends();
    assert!(sends.1.load(SeqCst), "there was room");
}

#[test]
fn of_a_detached_delivery() {
    let (queue, lane) = bounded(2);
    let from = lane.conversation().unwrap();
    from.send_all([1, 2]).unwrap();
    let detached = take(&queue).unwrap();
    finds_room(&queue, &lane, || _ = detached.complete());
}

#[test]
fn of_the_last_message_of_a_tier() {
    let (queue, lane) = bounded(2);
    let [low, high] = [(); 2].map(|()| lane.conversation().unwrap());
    low.send_in(0, 1).unwrap();
    high.send_in(1, 2).unwrap();
    let mut turn = queue.try_receive().unwrap();
    let last = turn.next().unwrap();
    let other = queue.lane(1, Limit::Unlimited).unwrap();
    finds_room(&queue, &other, || _ = last.complete());
}
