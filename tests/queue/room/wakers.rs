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

fn sends(lane: &Lane<i32>) -> (Arc<Sends>, Waker) {
    let sends = Sends(lane.conversation().unwrap(), AtomicBool::new(false));
    let sends = Arc::new(sends);
    (Arc::clone(&sends), Waker::from(sends))
}

#[test]
fn of_a_detached_delivery() {
    let (queue, lane) = bounded(2);
    let (from, (sends, waker)) = (lane.conversation().unwrap(), sends(&lane));
    from.send_all([1, 2]).unwrap();
    let detached = take(&queue).unwrap();
    let mut next = pin!(queue.receive());
    assert!(
        next.as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    detached.complete();
    assert!(sends.1.load(SeqCst), "there was room");
}

#[test]
fn of_the_last_message_of_a_tier() {
    let (queue, lane) = bounded(2);
    let other = queue.lane(1, Limit::Unlimited).unwrap();
    let (sends, waker) = sends(&other);
    let [low, high] = [(); 2].map(|()| lane.conversation().unwrap());
    low.send_in(0, 1).unwrap();
    high.send_in(1, 2).unwrap();
    let mut turn = queue.try_receive().unwrap();
    let last = turn.next().unwrap();
    let mut next = pin!(queue.receive());
    assert!(
        next.as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    last.complete();
    assert!(sends.1.load(SeqCst), "there was room");
}
