//! SEMANTICS 2 and 3, sentence by sentence, for queues without waits. Runs over `super::form`,
//! which is the queue of the crate in `queue::rules`, and the one of `mutex_queue/` in
//! `queue::rules_oracle`.

mod admission;
mod bad_use;
mod capacity;
mod closing;
mod conversations;
mod live;
mod many;
mod named;
mod pitfalls;
mod poison;
mod rank_and_fairness;
mod requests;
mod tiers;
mod turns;
mod units;

use conversant::limit::Limit;

use super::form::{Conversation, Detached, Lane, NoTurn, Queue, Turn, Why};

const TWO: Limit = Limit::AtMost(2);
const PAUSED: Limit = Limit::AtMost(0);

/// A queue with one unlimited lane.
fn plain<T>() -> (Queue<T>, Lane<T>) {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    (queue, lane)
}

/// A conversation in a new group.
fn conversation<T>(lane: &Lane<T>, limit: Limit, level: u8) -> Conversation<T> {
    lane.group(limit, level).unwrap().conversation().unwrap()
}

/// The first delivery of the next turn, after the turn is dropped.
fn take<T>(queue: &Queue<T>) -> Option<Detached<T>> {
    Some(turn(queue)?.next()?.detach())
}

/// The next turn, if there is one now; the queue is not closed.
fn turn<T>(queue: &Queue<T>) -> Option<Turn<'_, T>> {
    match queue.try_receive() {
        Ok(turn) => Some(turn),
        Err(NoTurn::Empty) => None,
        Err(refused) => panic!("{refused}"),
    }
}

/// All messages that can be received now, each completed before the next is received.
fn serve<T>(queue: &Queue<T>) -> Vec<T> {
    let mut served = Vec::new();
    while let Ok(mut turn) = queue.try_receive() {
        while let Some(delivery) = turn.next() {
            served.push(delivery.complete());
        }
    }
    served
}

/// Why the only group of the only lane waits.
fn why<T>(queue: &Queue<T>) -> Why {
    queue.snapshot().lanes[0].groups[0].why
}
