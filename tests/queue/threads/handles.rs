//! The handles that keep a queue alive are dropped in every order: handles of the queue,
//! conversations, turns and detached deliveries, each on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use conversant::limit::Limit;
use conversant::queue::Queue;

const ROUNDS: usize = if cfg!(miri) { 10 } else { 2_000 };

/// Counts itself while it exists.
struct Message(Arc<AtomicUsize>);

impl Message {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self(alive.clone())
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn handles_go_in_every_order() {
    let alive = Arc::<AtomicUsize>::default();
    for round in 0..ROUNDS {
        let queue = Queue::new();
        let lane = queue.lane(1, Limit::Unlimited).unwrap();
        let group = lane.group(Limit::AtMost(3), 100).unwrap();
        let one = group.conversation().unwrap();
        let other = group.conversation().unwrap();
        drop((lane, group));
        for _ in 0..4 {
            one.send(Message::new(&alive)).unwrap();
        }
        let mut turn = queue.try_receive().unwrap();
        let detached = turn.next().unwrap().detach();
        let second = turn.next().unwrap().detach();
        let turn = turn.into_owned();
        thread::scope(|scope| {
            scope.spawn(move || drop(one));
            scope.spawn(move || drop(detached.complete()));
            scope.spawn(move || match round % 2 {
                0 => drop(second),
                _ => drop(second.complete()),
            });
            scope.spawn(move || drop(turn));
            scope.spawn(move || drop(queue));
            _ = other.send(Message::new(&alive));
            drop(other);
        });
        assert_eq!(alive.load(Ordering::SeqCst), 0, "round {round}");
    }
}
