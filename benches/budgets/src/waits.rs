//! What waits in a task, and is woken.

use std::collections::VecDeque;
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use conversant::intent::IntentLock;
use conversant::job_queue::{JobQueue, Place};
use conversant::limit::Limit;
use conversant::modes::Mode;
use conversant::queue::{Conversation, Queue};
use conversant::semaphore::Semaphore;

use super::Path;

pub(super) const PATHS: &[Path] = &[
    ("receive-waits", |n| receive(n, 1)),
    ("receive-waits-beside-1000", |n| receive(n, 1000)),
    ("receive-waits-by-name", |n| by_name(n, 0)),
    ("receive-waits-by-name-beside-1000", |n| by_name(n, 1000)),
    ("send-waits-for-room", room),
    ("semaphore-hand-over", semaphore),
    ("intent-hand-over", intent),
    ("job-claim-waits", job),
];

fn poll<F: Future + Unpin>(wait: &mut F) -> Poll<F::Output> {
    Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls a wait for the first time.
fn waits<F: Future + Unpin>(mut wait: F) -> F {
    assert!(poll(&mut wait).is_pending());
    wait
}

fn ready<F: Future + Unpin>(mut wait: F) -> F::Output {
    match poll(&mut wait) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it was woken"),
    }
}

fn conversation(queue: &Queue<usize>) -> Conversation<usize> {
    let lane = queue.lane(1, Limit::Unlimited).expect("open");
    lane.conversation().expect("open")
}

/// So many receives wait; each message wakes the first, which then waits again behind the others.
fn receive(rounds: usize, waiting: usize) -> usize {
    let queue = Queue::new();
    let conversation = conversation(&queue);
    let mut receives: VecDeque<_> = (0..waiting).map(|_| waits(queue.receive())).collect();
    for round in 0..rounds {
        conversation.send(black_box(round)).expect("open");
        let mut turn = ready(receives.pop_front().expect("one waits")).expect("open");
        black_box(turn.next().map(|delivery| delivery.complete()));
        drop(turn);
        receives.push_back(waits(queue.receive()));
    }
    1
}

/// So many receives wait for other conversations.
fn by_name(rounds: usize, others: usize) -> usize {
    let queue = Queue::new();
    let conversation = conversation(&queue);
    let others: Vec<_> = (0..others).map(|_| self::conversation(&queue)).collect();
    let by_name = |other: &Conversation<_>| waits(queue.receive_from(other.group_id()));
    let _waits: Vec<_> = others.iter().map(by_name).collect();
    for round in 0..rounds {
        let receive = waits(queue.receive_from(conversation.group_id()));
        conversation.send(black_box(round)).expect("open");
        let mut turn = ready(receive).expect("open");
        black_box(turn.next().map(|delivery| delivery.complete()));
    }
    1
}

/// A send waits until the message before it is done.
fn room(rounds: usize) -> usize {
    let queue = Queue::builder().capacity(1).build().expect("in range");
    let conversation = conversation(&queue);
    conversation.send(0).expect("there is room");
    for round in 0..rounds {
        let send = waits(conversation.send_wait(black_box(round)));
        let mut turn = queue.try_receive().expect("one waits");
        black_box(turn.next().map(|delivery| delivery.complete()));
        drop(turn);
        ready(send).expect("open");
    }
    1
}

fn semaphore(rounds: usize) -> usize {
    let semaphore = Semaphore::new(1).expect("in range");
    let mut held = semaphore.try_acquire(1).expect("free");
    for _ in 0..rounds {
        let next = waits(semaphore.acquire(black_box(1)));
        drop(held);
        held = ready(next).expect("open");
    }
    1
}

fn intent(rounds: usize) -> usize {
    let lock = IntentLock::new();
    let mut held = lock.try_lock(Mode::X).expect("free");
    for _ in 0..rounds {
        let next = waits(lock.lock(black_box(Mode::X)));
        drop(held);
        held = ready(next);
    }
    1
}

fn job(rounds: usize) -> usize {
    let queue = JobQueue::new();
    for round in 0..rounds {
        let claim = waits(queue.claim_one());
        let pushed = queue.push(black_box(round), round, Place::new());
        pushed.expect("open");
        let claim = ready(claim).expect("open");
        black_box(claim.complete()).expect("no lease");
    }
    1
}
