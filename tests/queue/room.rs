//! Sends that wait for room: which are notified, in what order, and where messages and permits go.

use crate::queue_support;

mod back;
mod callers;
mod line;
mod parts;
mod parts_random;
mod parts_threads;
mod random;
mod reserved;
mod threads;
mod wakers;

use std::sync::Arc;
use std::task::{Poll, Waker};

use conversant::limit::Limit;
use conversant::queue::{Conversation, Lane, Queue, SendError, SendReason, Sending};
use conversant::wait::{Wait, WaitCounts};

use queue_support::{WakeCounter, conversation, poll, serve, take};

/// A waiting send that the test polls, with its waker.
struct Waiting<'a, O, M, S, E = SendError<M>> {
    wait: Wait<Sending<'a, O, M, Result<S, E>>>,
    wakes: Arc<WakeCounter>,
    waker: Waker,
}

impl<'a, O, M, S, E> Waiting<'a, O, M, S, E> {
    fn of(wait: Wait<Sending<'a, O, M, Result<S, E>>>) -> Self {
        let (wakes, waker) = WakeCounter::new();
        let mut waiting = Self { wait, wakes, waker };
        assert!(waiting.poll().is_pending());
        waiting
    }

    fn poll(&mut self) -> Poll<Result<S, E>> {
        poll(&mut self.wait, &self.waker)
    }

    fn is_sent(&mut self) -> bool {
        matches!(self.poll(), Poll::Ready(Ok(_)))
    }
}

impl<O, M, S> Waiting<'_, O, M, S> {
    /// The reason for which it was refused, with the message.
    fn refused(&mut self) -> (M, SendReason) {
        match self.poll() {
            Poll::Ready(Err(error)) => (error.message, error.reason),
            other => panic!("refused, not {}", other.is_ready()),
        }
    }
}

type To<'a, T> = (Option<u32>, &'a Conversation<T>);
type OneWaits<'a, T> = Waiting<'a, To<'a, T>, T, ()>;
type AllWait<'a, T> = Waiting<'a, To<'a, T>, Vec<T>, ()>;

fn one<T>(conversation: &Conversation<T>, message: T) -> OneWaits<'_, T> {
    Waiting::of(conversation.send_wait(message))
}

fn all<T>(conversation: &Conversation<T>, messages: impl IntoIterator<Item = T>) -> AllWait<'_, T> {
    Waiting::of(conversation.send_all_wait(messages))
}

fn wake_counts<O, M, S, E, const N: usize>(waiting: [&Waiting<'_, O, M, S, E>; N]) -> [usize; N] {
    waiting.map(|w| w.wakes.count())
}

/// A queue with this capacity, filled by a group without a limit.
fn full<T: Default>(capacity: u32) -> (Queue<T>, Lane<T>, Conversation<T>) {
    let (queue, lane) = bounded(capacity);
    let wide = conversation(&lane, Limit::Unlimited, 100);
    wide.send_all((0..capacity).map(|_| T::default())).unwrap();
    (queue, lane, wide)
}

fn bounded<T>(capacity: u32) -> (Queue<T>, Lane<T>) {
    let capacity = Limit::AtMost(capacity);
    let queue = Queue::builder().capacity(capacity).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    (queue, lane)
}

fn held<T>(queue: &Queue<T>) -> u64 {
    let snapshot = queue.snapshot();
    snapshot.waiting + snapshot.in_flight
}

fn sends<T>(queue: &Queue<T>) -> (usize, usize, u64) {
    let counts = queue.counts();
    let WaitCounts { waiting, notified } = counts.sends;
    (waiting, notified, counts.asked)
}

fn complete_one<T>(queue: &Queue<T>) -> T {
    take(queue).unwrap().complete()
}
