//! What the tests of the queue share: helpers to receive, and a simulator whose only scheduler is
//! the queue itself.
#![allow(
    dead_code,
    unused_imports,
    reason = "every test binary uses its own part"
)]

#[path = "../random.rs"]
mod random;
pub(crate) mod tasks;

pub(crate) use random::Random;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use conversant::limit::Limit;
use conversant::queue::{Conversation, Detached, Lane, NoTurn, Queue, Turn};

/// A queue with one unlimited lane.
pub(crate) fn plain<T>() -> (Queue<T>, Lane<T>) {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    (queue, lane)
}

/// A conversation in a new group.
pub(crate) fn conversation<T>(lane: &Lane<T>, limit: Limit, level: u8) -> Conversation<T> {
    lane.group(limit, level).unwrap().conversation().unwrap()
}

/// The first delivery of the next turn, after the turn is dropped.
pub(crate) fn take<T>(queue: &Queue<T>) -> Option<Detached<T>> {
    Some(turn(queue)?.next()?.detach())
}

/// The next turn, if there is one now; the queue is not closed.
pub(crate) fn turn<T>(queue: &Queue<T>) -> Option<Turn<'_, T>> {
    match queue.try_receive() {
        Ok(turn) => Some(turn),
        Err(NoTurn::Empty) => None,
        Err(refused) => panic!("{refused}"),
    }
}

/// All messages that can be received now, each completed before the next is received.
pub(crate) fn serve<T>(queue: &Queue<T>) -> Vec<T> {
    let mut served = Vec::new();
    while let Ok(mut turn) = queue.try_receive() {
        while let Some(delivery) = turn.next() {
            served.push(delivery.complete());
        }
    }
    served
}

/// A waker that counts.
#[derive(Default)]
pub(crate) struct WakeCounter(AtomicUsize);

impl WakeCounter {
    pub(crate) fn new() -> (Arc<WakeCounter>, Waker) {
        let wakes = Arc::new(WakeCounter::default());
        (wakes.clone(), Waker::from(wakes))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// One poll.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(waker))
}
