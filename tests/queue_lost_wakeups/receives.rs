//! The queued receives: threads that sleep, and waits that the test polls.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use conversant::queue::{Detached, NoMore, Queue, Turn};
use conversant::wait::WaitCounts;

use crate::queue_support::{Random, WakeCounter, poll};

/// What a reader is to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Complete,
    /// Detached, and handed to the test.
    Hold,
    /// Dropped, and completed the next time.
    Fail,
}

/// What readers have done.
#[derive(Default)]
pub(crate) struct Tally {
    /// Turns that are over.
    pub(crate) served: AtomicU64,
    /// Readers that have left since the queue is closed.
    left: AtomicUsize,
    pub(crate) held: Mutex<Option<Detached<Message>>>,
}

impl Tally {
    /// Takes one message, and drops the turn before it counts.
    fn serve(&self, mut turn: Turn<'_, Message>) {
        let mut delivery = turn.next().expect("a turn begins with a message");
        match *delivery {
            Message::Complete => _ = delivery.complete(),
            Message::Hold => *self.held.lock().unwrap() = Some(delivery.detach()),
            Message::Fail => {
                *delivery = Message::Complete;
                delivery.give_back();
            }
        }
        drop(turn);
        self.served.fetch_add(1, SeqCst);
    }
}

/// A receive that the test polls.
struct Polled {
    wait: Pin<Box<dyn Future<Output = Result<Turn<'static, Message>, NoMore>>>>,
    wakes: Arc<WakeCounter>,
    waker: Waker,
}

pub(crate) struct Receives {
    queue: &'static Queue<Message>,
    pub(crate) tally: Arc<Tally>,
    threads: Vec<JoinHandle<()>>,
    polled: Vec<Polled>,
    /// How many turns there must have been.
    expected: u64,
    pub(crate) closed: bool,
}

/// Only turns a hang into a failure.
const LONG: Duration = Duration::from_secs(120);

impl Receives {
    pub(crate) fn new(queue: &'static Queue<Message>, threads: usize) -> Self {
        let tally = Arc::new(Tally::default());
        let thread = |n: usize| {
            let tally = tally.clone();
            thread::spawn(move || {
                read(queue, &tally, n % 2 == 1);
                tally.left.fetch_add(1, SeqCst);
            })
        };
        Self {
            queue,
            threads: (0..threads).map(thread).collect(),
            polled: Vec::new(),
            expected: 0,
            closed: false,
            tally,
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    pub(crate) fn polled(&self) -> usize {
        self.polled.len()
    }

    pub(crate) fn served(&self) -> u64 {
        self.expected
    }

    /// Queues one more receive, unless there is work for it.
    pub(crate) fn queue_one(&mut self) {
        let (wakes, waker) = WakeCounter::new();
        let mut wait = self.queue.receive();
        match poll(&mut wait, &waker) {
            Poll::Pending => self.polled.push(Polled {
                wait: Box::pin(wait),
                wakes,
                waker,
            }),
            Poll::Ready(turn) => self.tally.serve(turn.expect("it is open")),
        }
    }

    /// Waits until all receives are queued, un-notified.
    pub(crate) fn wait_for_all(&self) {
        let waiting = self.threads.len() + self.polled.len();
        let all = WaitCounts {
            waiting,
            notified: 0,
        };
        self.until("in line", || self.queue.counts().receives == all);
    }

    /// Waits until `turns` more turns are over. Polled waits are polled again when they are
    /// woken, and some of them give up then.
    pub(crate) fn expect(&mut self, turns: u64, random: &mut Random) {
        self.expected += turns;
        let begun = Instant::now();
        loop {
            let woken = self.polled.iter().position(|one| one.wakes.count() > 0);
            if let Some(woken) = woken {
                self.poll_woken(woken, random);
            } else if self.tally.served.load(SeqCst) == self.expected {
                return;
            } else if !self.threads.is_empty() {
                self.pause(begun, "served");
            } else {
                assert!(self.polled.is_empty(), "nobody was notified");
                self.queue_one();
            }
        }
    }

    fn poll_woken(&mut self, woken: usize, random: &mut Random) {
        let mut one = self.polled.remove(woken);
        // The last receive that could serve does not give up.
        if random.below(2) == 0 && self.threads.len() + self.polled.len() > 0 {
            return;
        }
        match poll(&mut one.wait, &one.waker) {
            Poll::Ready(Ok(turn)) => self.tally.serve(turn),
            Poll::Ready(Err(_)) => assert!(self.closed),
            Poll::Pending => assert!(!self.threads.is_empty(), "nobody else took it"),
        }
    }

    /// The queue is closed and empty: all receives end.
    pub(crate) fn end(self) {
        let Self {
            ref tally,
            ref polled,
            ..
        } = self;
        for one in polled {
            assert_eq!(one.wakes.count(), 1);
        }
        self.until("closed", || tally.left.load(SeqCst) == self.threads.len());
        for mut one in self.polled {
            assert!(matches!(
                poll(&mut one.wait, &one.waker),
                Poll::Ready(Err(_))
            ));
        }
        for thread in self.threads {
            thread.join().unwrap();
        }
    }

    fn until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !done() {
            self.pause(begun, what);
        }
    }

    fn pause(&self, begun: Instant, what: &str) {
        thread::yield_now();
        if begun.elapsed() > LONG {
            let left = self.tally.left.load(SeqCst);
            let served = self.tally.served.load(SeqCst);
            let (expected, queue) = (self.expected, self.queue.snapshot());
            panic!("not {what}: {served} of {expected} served, {left} left, {queue:?}");
        }
    }
}

fn read(queue: &Queue<Message>, tally: &Tally, many: bool) {
    if many {
        while let Ok(turns) = queue.receive_many(2).wait() {
            turns.for_each(|turn| tally.serve(turn));
        }
    } else {
        while let Ok(turn) = queue.receive().wait() {
            tally.serve(turn);
        }
    }
}
