//! D6: the time from a send until a reader has the message, one message at a time.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use conversant::limit::Limit;
use conversant::queue::{Conversation, Lane, Queue};
use crossbeam_queue::SegQueue;
use parking_lot::Mutex;

use crate::contender::{Cell, Contender, Entry, Role, Sample};
use crate::race::race;

const OURS: &str = "conversant Queue";
const CROSSBEAM: &str = "crossbeam-channel";

/// About how long all the pauses of a run may take.
const LONGEST: Duration = Duration::from_millis(10);

pub fn cells() -> Vec<Cell> {
    let cell = |title, pause| {
        Cell::new("D6", title, move || contenders(pause)).unit("message, median of a run")
    };
    vec![
        cell("latency, reader just done", 1).target(OURS, 1.15, CROSSBEAM),
        cell("latency, reader idle for 100 us", 100).target(OURS, 1.0, CROSSBEAM),
    ]
}

fn contenders(pause: u64) -> Vec<Entry> {
    vec![
        entry("spinning SegQueue", Role::Limit, SegQueue::new(), pause),
        entry(OURS, Role::Ours, Ours::new(), pause),
        entry(CROSSBEAM, Role::Peer, crossbeam_channel::unbounded(), pause),
        entry("tokio mpsc, blocking", Role::Peer, Tokio::new(), pause),
    ]
}

fn entry(name: &str, role: Role, link: impl Link, pause: u64) -> Entry {
    let pause = Duration::from_micros(pause);
    Entry::new(name, role, Latency { link, pause })
}

/// A number, and when it was sent.
#[derive(Clone, Copy)]
pub struct Note(u64, Instant);

#[cfg(test)]
impl Note {
    /// The next note.
    pub fn next(self) -> Self {
        Self(self.0 + 1, self.1)
    }
}

/// From one sender to one reader.
pub trait Link: Send + Sync + 'static {
    fn send(&self, note: Note);

    fn receive(&self) -> Note;
}

pub struct Latency<W> {
    pub link: W,
    pub pause: Duration,
}

impl<W: Link> Contender for Latency<W> {
    fn run(&mut self, ops: u64) -> Result<Sample> {
        // A run's size does not allow for the pauses.
        let pause = self.pause.max(Duration::from_micros(1));
        let ops = ops.min((LONGEST.as_nanos() / pause.as_nanos()) as u64);
        let (seen, wrong) = (AtomicU64::new(0), AtomicU64::new(0));
        let all = Mutex::new(Vec::with_capacity(ops as usize));
        let send = || {
            for number in 1..=ops {
                self.link.send(Note(number, Instant::now()));
                while seen.load(Ordering::Acquire) < number {
                    spin_loop();
                }
                let pause = Instant::now();
                while pause.elapsed() < self.pause {
                    spin_loop();
                }
            }
        };
        let receive = || {
            let mut all = all.lock();
            for number in 1..=ops {
                let Note(received, sent) = self.link.receive();
                all.push(sent.elapsed());
                wrong.fetch_add(u64::from(received != number), Ordering::Relaxed);
                seen.store(number, Ordering::Release);
            }
        };
        let mut sample = race(2, 2, |number, _| {
            let (send, receive) = (&send, &receive);
            move || match number {
                0 => send(),
                _ => receive(),
            }
        });
        let wrong = wrong.into_inner();
        ensure!(wrong == 0, "{wrong} other messages than were sent");
        let mut all = all.into_inner();
        all.sort();
        sample.took = all[all.len() / 2] * u32::try_from(ops)?;
        sample.ops = ops;
        Ok(sample)
    }
}

impl Link for SegQueue<Note> {
    fn send(&self, note: Note) {
        self.push(note);
    }

    fn receive(&self) -> Note {
        loop {
            if let Some(note) = self.pop() {
                return note;
            }
            spin_loop();
        }
    }
}

impl Link
    for (
        crossbeam_channel::Sender<Note>,
        crossbeam_channel::Receiver<Note>,
    )
{
    fn send(&self, note: Note) {
        self.0.send(note).expect("it is open");
    }

    fn receive(&self) -> Note {
        self.1.recv().expect("it is open")
    }
}

struct Tokio {
    sender: tokio::sync::mpsc::UnboundedSender<Note>,
    receiver: Mutex<tokio::sync::mpsc::UnboundedReceiver<Note>>,
}

impl Tokio {
    fn new() -> Self {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        let receiver = Mutex::new(receiver);
        Self { sender, receiver }
    }
}

impl Link for Tokio {
    fn send(&self, note: Note) {
        self.sender.send(note).expect("it is open");
    }

    fn receive(&self) -> Note {
        self.receiver.lock().blocking_recv().expect("it is open")
    }
}

struct Ours {
    queue: Queue<Note>,
    _lane: Lane<Note>,
    conversation: Conversation<Note>,
}

impl Ours {
    fn new() -> Self {
        let queue = Queue::new();
        let lane = queue.lane(1, Limit::Unlimited).expect("it is open");
        let conversation = lane.conversation().expect("it is open");
        Self {
            queue,
            _lane: lane,
            conversation,
        }
    }
}

impl Link for Ours {
    fn send(&self, note: Note) {
        self.conversation.send(note).expect("it is open");
    }

    fn receive(&self) -> Note {
        let mut turn = self.queue.receive().wait().expect("it is open");
        turn.next().expect("a turn begins with one").complete()
    }
}
