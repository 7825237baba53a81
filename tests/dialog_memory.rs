//! What dialogs leave behind: a bounded number of bytes, however they end, also if their queues are
//! dropped while everything is open. A binary of its own, with an allocator that counts.

#[path = "support/counting_heap/mod.rs"]
mod counting_heap;

use std::time::Duration;

use conversant::dialog::{Dialogs, Fault, Received};
use conversant::limit::Limit;
use conversant::queue::{Lane, Queue};

use counting_heap::live;

const COUNT: u64 = if cfg!(debug_assertions) {
    20_000
} else {
    200_000
};

/// Slots and queues at their smallest, and the submissions, of two queues.
const LEFT_OVER: isize = 192 * 1024;

type Notes = Queue<Received<u64>>;

fn notes() -> (Notes, Lane<Received<u64>>) {
    let queue = Notes::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    (queue, lane)
}

fn drain(queue: &Notes) {
    while let Ok(mut turn) = queue.try_receive() {
        while let Some(delivery) = turn.next() {
            drop(delivery.complete());
        }
    }
}

/// One test, so that nothing else allocates meanwhile.
#[test]
fn memory_is_given_back() {
    let ((near, near_lane), (far, far_lane)) = (notes(), notes());
    let dialogs = Dialogs::new();
    let baseline = live();
    // All open at once, with a timer each, ended in every way.
    let mut open = Vec::new();
    for n in 0..COUNT {
        let endpoint = dialogs.begin(&near_lane, &far_lane).unwrap();
        endpoint.send(n).unwrap();
        endpoint.set_timer(Duration::from_secs(n % 7)).unwrap();
        open.push(endpoint);
    }
    dialogs.advance(Duration::from_secs(3));
    for (n, endpoint) in open.into_iter().enumerate() {
        match n % 3 {
            0 => drop(endpoint),
            1 => endpoint.end().unwrap(),
            _ => endpoint
                .end_with(Fault::new(1, "on purpose").unwrap())
                .unwrap(),
        }
    }
    drain(&near);
    drain(&far);
    assert!(dialogs.is_empty());
    let left = live() - baseline;
    assert!(left <= LEFT_OVER, "after {COUNT} dialogs: {left} bytes");

    // No side of these is ended: the queues are dropped.
    let ((other_near, other_lane), (other_far, far_lane)) = (notes(), notes());
    for n in 0..COUNT / 10 {
        let (near, far) = dialogs.pair(&other_lane, &far_lane).unwrap();
        near.send(n).unwrap();
        far.send(n).unwrap();
        far.set_timer(Duration::from_secs(n % 7)).unwrap();
        near.detach();
        far.detach();
    }
    drop(other_near);
    drop(other_far);
    assert!(dialogs.is_empty());
    drop((other_lane, far_lane));
    let left = live() - baseline;
    assert!(
        left <= LEFT_OVER,
        "after the queues are dropped: {left} bytes"
    );
    ends_beside_a_backlog();
}

/// A side for which nothing waits ends, by itself or by an event that it receives. It moves no
/// message of others in its group: they wait in blocks, which would be trees if moved.
fn ends_beside_a_backlog() {
    let ((near, near_lane), (far, far_lane)) = (notes(), notes());
    let shared = far_lane.group(Limit::SERIAL, 100).unwrap();
    let dialogs = Dialogs::new();
    let pair = || dialogs.pair(&near_lane, &shared).unwrap();
    let (sender, receiver) = pair();
    let [silent, told, failed, asked, late] = [(); 5].map(|()| pair());
    for (near, _) in [&told, &failed, &asked] {
        near.send(0).unwrap();
    }
    drop(told.0);
    drop(failed.1.detach());
    drop(late.1.detach());
    for n in 0..COUNT / 10 {
        sender.send(n).unwrap();
    }
    let mut turn = far.try_receive().unwrap();
    turn.next().unwrap().complete();
    turn.next().unwrap().complete();
    let before = live();
    // The question to it is in flight.
    let question = turn.next().unwrap();
    question.endpoint().end().unwrap();
    question.complete();
    // The end of `told`.
    turn.next().unwrap().complete();
    drop(silent.1);
    failed
        .0
        .end_with(Fault::new(1, "on purpose").unwrap())
        .unwrap();
    late.0
        .end_with(Fault::new(1, "on purpose").unwrap())
        .unwrap();
    turn.next().unwrap().complete();
    turn.next().unwrap().complete();
    let moved = live() - before;
    assert!(moved.abs() < 16 * 1024, "{moved} bytes were moved");
    drop(turn);

    // And messages that wait behind them are dropped with their side.
    drop(receiver);
    assert_eq!(far.snapshot().waiting, 0);
    drop((sender, silent.0, asked.0, near));
    assert_eq!(dialogs.len(), 0);
}
