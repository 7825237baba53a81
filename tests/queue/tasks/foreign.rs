//! What wakers and messages may do that the queue cannot foresee: call it, or panic.

use super::*;

/// A waker that calls the queue it comes from, when it is woken and when it is dropped.
struct Reentrant {
    queue: Arc<Queue<u8>>,
    calls: Mutex<Vec<u64>>,
}

impl Wake for Reentrant {
    fn wake(self: Arc<Self>) {
        let snapshot = self.queue.snapshot();
        let lane = self.queue.lane(1, Limit::AtMost(0)).unwrap();
        lane.conversation().unwrap().send(9).unwrap();
        self.calls.lock().unwrap().push(snapshot.counts.eligible);
    }
}

impl Drop for Reentrant {
    fn drop(&mut self) {
        _ = self.queue.snapshot();
    }
}

#[test]
fn a_waker_may_call_the_queue() {
    let queue = Arc::new(Queue::new());
    let [a] = conversations(&queue);
    let reentrant = Arc::new(Reentrant {
        queue: queue.clone(),
        calls: Mutex::default(),
    });
    let waker = Waker::from(reentrant.clone());
    let mut receive = queue.receive();
    assert!(poll(&mut receive, &waker).is_pending());
    a.send(1).unwrap();
    assert_eq!(*reentrant.calls.lock().unwrap(), [1]);
    assert!(poll(&mut receive, &waker).is_ready());
    assert_eq!(queue.snapshot().waiting, 1 + 1);
}

/// The last clone of a waker is dropped when its receive leaves, or gets another waker.
#[test]
fn a_waker_may_call_the_queue_when_it_is_dropped() {
    let queue = Arc::new(Queue::new());
    let waker = || {
        Waker::from(Arc::new(Reentrant {
            queue: queue.clone(),
            calls: Mutex::default(),
        }))
    };
    let mut receive = queue.receive();
    assert!(poll(&mut receive, &waker()).is_pending());
    assert!(poll(&mut receive, &waker()).is_pending());
    drop(receive);
    assert_eq!(Arc::strong_count(&queue), 1, "both are gone");
}

/// Panics when it is woken.
struct Panicking;

impl Wake for Panicking {
    fn wake(self: Arc<Self>) {
        panic!("on purpose");
    }
}

fn panics(f: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
}

/// A waker that panics keeps neither the message nor the others from being served, also in batches
/// after the first.
#[test]
fn a_waker_that_panics_loses_nothing() {
    let queue = Queue::new();
    let [a] = conversations(&queue);
    let mut bad = queue.receive();
    let panicking = Waker::from(Arc::new(Panicking));
    assert!(poll(&mut bad, &panicking).is_pending());
    let mut waiting: Vec<_> = (0..100).map(|_| Waiting::new(&queue)).collect();
    a.send(1).unwrap();
    assert_eq!((queue.snapshot().waiting, receives(&queue)), (1, (100, 1)));
    drop(bad);
    assert_eq!(waiting.remove(0).got(), 1);
    // Closing wakes them in several batches: all of them all the same.
    let mut bad = queue.receive();
    assert!(poll(&mut bad, &panicking).is_pending());
    for _ in 0..70 {
        waiting.push(Waiting::new(&queue));
    }
    queue.close();
    assert_eq!(receives(&queue), (0, 170));
    assert!(wake_counts(&waiting).iter().all(|&count| count == 1));
}

/// A panicking waker interrupts nothing.
#[test]
fn a_completion_or_return_that_wakes_a_panicking_waker_is_done() {
    let queue = Queue::new();
    let [a, b] = conversations(&queue);
    a.send(1).unwrap();
    b.send(2).unwrap();
    let panicking = Waker::from(Arc::new(Panicking));
    let (first, second) = (take(&queue).unwrap(), take(&queue).unwrap());
    let mut bad = queue.receive();
    assert!(poll(&mut bad, &panicking).is_pending());
    drop(first);
    assert_eq!(queue.snapshot().in_flight, 1);
    let again = take(&queue).unwrap();
    assert_eq!((*again, again.attempt()), (1, 2));
    assert!(poll(&mut bad, &panicking).is_pending());
    queue.close();
    second.complete();
    assert_eq!(again.complete(), 1);
    assert_eq!(queue.snapshot().in_flight, 0);
    assert!(matches!(
        poll(&mut bad, &panicking),
        Poll::Ready(Err(NoMore::Drained))
    ));
}

/// The drop of its last waker panics.
struct DropPanics;

impl Wake for DropPanics {
    fn wake(self: Arc<Self>) {}
}

impl Drop for DropPanics {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

/// A receive that has its turn, and then drops a waker that panics, keeps its turn.
#[test]
fn no_turn_is_lost_to_a_waker_that_panics_when_it_is_dropped() {
    let queue = Queue::new();
    let [a] = conversations(&queue);
    let mut good = Waiting::new(&queue);
    let mut bad = queue.receive();
    let waker = Waker::from(Arc::new(DropPanics));
    assert!(poll(&mut bad, &waker).is_pending());
    drop(waker);
    a.send(1).unwrap();
    // It finds the turn that the other was woken for, and drops its waker.
    let Poll::Ready(Ok(turn)) = poll(&mut bad, Waker::noop()) else {
        panic!("a turn");
    };
    assert_eq!(queue.counts().eligible, 0);
    drop(turn);
    assert_eq!(queue.counts().eligible, 1);
    assert_eq!(receives(&queue), (0, 1));
    assert_eq!(good.got(), 1);
}

/// A message whose drop panics, or calls the queue.
struct Touchy {
    queue: std::sync::Weak<Queue<Touchy>>,
    panics: bool,
}

impl Drop for Touchy {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.upgrade() {
            _ = queue.snapshot();
            assert!(queue.try_receive().is_err());
        }
        assert!(!self.panics, "on purpose");
    }
}

#[test]
fn messages_are_dropped_without_the_lock() {
    let queue = Arc::new(Queue::new());
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    let touchy = |panics| Touchy {
        queue: Arc::downgrade(&queue),
        panics,
    };
    assert!(one.send(touchy(false)).is_ok());
    drop(take(&queue).unwrap().complete());
    assert!(one.send(touchy(true)).is_ok());
    panics(|| drop(take(&queue).unwrap().complete()));
    assert_eq!(queue.snapshot().in_flight, 0);

    assert!(one.send_all((0..3).map(|n| touchy(n == 1))).is_ok());
    panics(|| drop(queue.shutdown()));
    assert!(queue.is_closed());
    // Refused, and dropped by the sender.
    drop(one.send(touchy(false)));
    panics(|| drop(one.send(touchy(true))));
}

#[test]
fn a_message_that_panics_in_drop_does_not_keep_the_queue_from_going() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let one = lane.conversation().unwrap();
    let touchy = |panics| Touchy {
        queue: std::sync::Weak::new(),
        panics,
    };
    assert!(
        one.send_all([touchy(true), touchy(false), touchy(true)])
            .is_ok()
    );
    let held = take(&queue).unwrap();
    panics(|| drop(queue));
    panics(|| drop(held));
    assert!(one.send(touchy(false)).is_err());
}

/// With so many wakers that some are woken in the middle of the call.
#[test]
fn what_a_call_returns_is_not_lost_to_a_waker_that_panics() {
    let queue = Arc::new(Queue::new());
    let lane = queue.lane(1, Limit::AtMost(0)).unwrap();
    let touchy = Touchy {
        queue: Arc::downgrade(&queue),
        panics: false,
    };
    assert!(lane.conversation().unwrap().send(touchy).is_ok());
    let wakers = [Waker::from(Arc::new(Panicking)), Waker::noop().clone()];
    let wait = |n: usize| {
        let mut receive = queue.receive();
        assert!(poll(&mut receive, &wakers[n.min(1)]).is_pending());
        receive
    };
    let waiting: Vec<_> = (0..100).map(wait).collect();
    assert_eq!(queue.shutdown().len(), 1);
    let snapshot = queue.snapshot();
    assert_eq!(
        (snapshot.waiting, snapshot.counts.receives.notified),
        (0, 100)
    );
    drop(waiting);
}
