//! Tasks that receive: which are woken, what becomes of an unused wake-up, and what wakers and
//! messages may do that the queue cannot foresee.

mod foreign;
mod looks;
use crate::queue_support;
mod waking;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use conversant::error::TimedOut;
use conversant::limit::Limit;
use conversant::queue::{Conversation, NoMore, Queue, Turn};
use conversant::wait::WaitCounts;

use queue_support::{WakeCounter, conversation, plain, poll, serve, take, turn};

/// Runs tasks one after the other whenever they are woken, until all are done or all sleep.
struct Executor<'a> {
    tasks: Vec<Option<std::pin::Pin<Box<dyn Future<Output = ()> + 'a>>>>,
    woken: Vec<Arc<Woken>>,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl<'a> Executor<'a> {
    fn new() -> Self {
        let (tasks, woken) = (Vec::new(), Vec::new());
        Self { tasks, woken }
    }

    fn spawn(&mut self, task: impl Future<Output = ()> + 'a) {
        self.tasks.push(Some(Box::pin(task)));
        self.woken.push(Arc::new(Woken(AtomicBool::new(true))));
    }

    /// How many tasks are left asleep.
    fn run(&mut self) -> usize {
        let is_woken = |woken: &Arc<Woken>| woken.0.swap(false, Ordering::SeqCst);
        while let Some(n) = self.woken.iter().position(is_woken) {
            let waker = Waker::from(self.woken[n].clone());
            if let Some(task) = &mut self.tasks[n]
                && task
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_ready()
            {
                self.tasks[n] = None;
            }
        }
        self.tasks.iter().flatten().count()
    }
}

/// A waiting receive, its waker, and how often that was woken.
struct Waiting<'a> {
    receive: Pin<Box<dyn Future<Output = Result<Turn<'a, u8>, NoMore>> + 'a>>,
    wakes: Arc<WakeCounter>,
    waker: Waker,
}

impl<'a> Waiting<'a> {
    fn new(queue: &'a Queue<u8>) -> Self {
        let (wakes, waker) = WakeCounter::new();
        let mut receive: Pin<Box<dyn Future<Output = _>>> = Box::pin(queue.receive());
        assert!(poll(&mut receive, &waker).is_pending());
        Self {
            receive,
            wakes,
            waker,
        }
    }

    fn poll(&mut self) -> Poll<Result<Turn<'a, u8>, NoMore>> {
        poll(&mut self.receive, &self.waker)
    }

    fn got(&mut self) -> u8 {
        let Poll::Ready(Ok(mut turn)) = self.poll() else {
            panic!("a turn");
        };
        turn.next().unwrap().complete()
    }
}

fn receives(queue: &Queue<u8>) -> (usize, usize) {
    let WaitCounts { waiting, notified } = queue.counts().receives;
    (waiting, notified)
}

fn wake_counts(waiting: &[Waiting<'_>]) -> Vec<usize> {
    waiting.iter().map(|w| w.wakes.count()).collect()
}

fn conversations<const N: usize>(queue: &Queue<u8>) -> [Conversation<u8>; N] {
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    [(); N].map(|()| lane.conversation().unwrap())
}
