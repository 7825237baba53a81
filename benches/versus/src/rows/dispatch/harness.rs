//! Two senders, some readers, and a log in which every message must turn up once and in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use crossbeam_utils::CachePadded;

use crate::contender::{Contender, Sample};
use crate::race::{pin, race};
use crate::work::{Random, work};

/// How many threads send.
pub const SENDERS: usize = 2;
/// How many read, unless the cell says otherwise: each processor has a sender and a reader.
pub const READERS: usize = 2;

/// How long a sender that is done sleeps between checks.
const POLL_INTERVAL: Duration = Duration::from_micros(1_000);

/// Twelve bytes, like a message that names something.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub conversation: u32,
    sender: u32,
    seq: u32,
}

impl Message {
    /// Ends the reader that receives it.
    pub const STOP: Self = Self {
        conversation: u32::MAX,
        sender: u32::MAX,
        seq: 0,
    };

    pub fn is_stop(self) -> bool {
        self.sender == u32::MAX
    }

    /// Its number among those of its sender.
    pub fn seq(self) -> u32 {
        self.seq
    }
}

/// What has been received, counted by each reader on a cache line of its own.
pub struct Log {
    /// The last number seen, by conversation and sender.
    last: Vec<AtomicU32>,
    readers: Vec<CachePadded<Reader>>,
    hold: u64,
    base: Instant,
    /// A reader takes the time if its count has none of these bits: so it has the end of a run to
    /// within a few messages, without a thread that watches and disturbs.
    stamp_mask: AtomicU64,
}

#[derive(Default)]
struct Reader {
    /// Nanoseconds after the base.
    stamp: AtomicU64,
    count: AtomicU64,
    sum: AtomicU64,
    backwards: AtomicU64,
}

impl Log {
    pub fn new(shape: Shape) -> Self {
        let slots = shape.conversations as usize * SENDERS;
        Self {
            last: (0..slots).map(|_| AtomicU32::new(0)).collect(),
            readers: (0..shape.readers).map(|_| CachePadded::default()).collect(),
            hold: shape.hold,
            base: Instant::now(),
            stamp_mask: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        self.base.elapsed().as_nanos() as u64
    }

    /// Reader `reader` serves a message. Plain loads and stores: if two readers were in one
    /// conversation at a time, they would lose each other's numbers, and these would show as going
    /// backwards.
    #[inline]
    pub fn serve(&self, reader: usize, message: Message) {
        let mine = &self.readers[reader];
        let last = &self.last[message.conversation as usize * SENDERS + message.sender as usize];
        if last.load(Relaxed) >= message.seq {
            add(&mine.backwards, 1);
        }
        last.store(message.seq, Relaxed);
        work(self.hold);
        add(&mine.sum, u64::from(message.seq));
        add(&mine.count, 1);
        if mine.count.load(Relaxed) & self.stamp_mask.load(Relaxed) == 0 {
            mine.stamp.store(self.now(), Relaxed);
        }
    }

    fn total(&self, of: impl Fn(&Reader) -> &AtomicU64) -> u64 {
        let each = self.readers.iter().map(|reader| of(reader).load(Relaxed));
        each.sum()
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed) + more, Relaxed);
}

/// How messages get from senders to readers.
pub trait Transport: Send + Sync + 'static {
    fn send(&self, message: Message);

    /// Sends messages of one conversation.
    fn send_all(&self, messages: &[Message]) {
        messages.iter().for_each(|&message| self.send(message));
    }

    /// Sends messages of many conversations.
    fn send_many(&self, messages: &[Message]) {
        messages.iter().for_each(|&message| self.send(message));
    }

    /// Serves messages until told to stop; returns at once if a pool serves.
    fn read(&self, reader: usize, log: &Log);

    /// Tells a reader to stop: everything has been served.
    fn stop(&self, reader: usize);
}

#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub conversations: u32,
    /// How many threads read.
    pub readers: usize,
    /// How many messages go to one conversation by one call.
    pub batch: usize,
    /// Instead, each message of a batch goes to a conversation drawn for it.
    pub many: bool,
    /// Nanoseconds of work for each message.
    pub hold: u64,
    /// Only the sending is timed, without readers.
    pub submit: bool,
    /// Messages of one sender in one conversation must come in order.
    pub ordered: bool,
}

/// One contender's runs.
pub struct Harness<W> {
    transport: W,
    log: Arc<Log>,
    shape: Shape,
    /// Messages sent so far by each sender, and the sum of all numbers.
    sent: u32,
    sum: u64,
    /// If nothing is served for this long, a message is lost.
    time_out: Duration,
}

impl<W: Transport> Harness<W> {
    pub fn new(shape: Shape, transport: impl FnOnce(&Arc<Log>) -> W) -> Self {
        let log = Arc::new(Log::new(shape));
        Self {
            transport: transport(&log),
            log,
            shape,
            sent: 0,
            sum: 0,
            time_out: Duration::from_secs(10),
        }
    }

    #[cfg(test)]
    pub fn time_out(mut self, time_out: Duration) -> Self {
        self.time_out = time_out;
        self
    }

    /// Sends `count` messages, to conversations drawn at random.
    fn submit(&self, sender: usize, count: u32) {
        let mut random = Random::new(u64::from(self.sent) * SENDERS as u64 + sender as u64);
        let mut batch = Vec::with_capacity(self.shape.batch);
        let mut seq = self.sent;
        while seq < self.sent + count {
            let mut random = || random.below(self.shape.conversations);
            let mut next = |conversation| {
                seq += 1;
                Message {
                    conversation,
                    sender: sender as u32,
                    seq,
                }
            };
            if self.shape.batch == 1 {
                self.transport.send(next(random()));
                continue;
            }
            batch.clear();
            let places = 0..self.shape.batch;
            if self.shape.many {
                batch.extend(places.map(|_| next(random())));
                self.transport.send_many(&batch);
            } else {
                let one = random();
                batch.extend(places.map(|_| next(one)));
                self.transport.send_all(&batch);
            }
        }
    }

    /// Waits until `goal` messages have been served, or none has been for too long.
    fn wait_served(&self, goal: u64) {
        let mut seen = (0, Instant::now());
        loop {
            let count = self.log.total(|reader| &reader.count);
            if count >= goal {
                return;
            }
            if count != seen.0 {
                seen = (count, Instant::now());
            } else if seen.1.elapsed() > self.time_out {
                return;
            }
            // A sender that checked all the time would take half of its reader's processor.
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn timed(&self, count: u32, goal: u64) -> Sample {
        if !self.shape.submit {
            let stamp_mask = if count < 4_096 { 0 } else { 15 };
            self.log.stamp_mask.store(stamp_mask, Relaxed);
            let start = AtomicU64::new(u64::MAX);
            let threads = SENDERS + self.shape.readers;
            let mut sample = race(threads, threads as u64, |number, _| {
                let start = &start;
                move || match number.checked_sub(SENDERS) {
                    Some(reader) => self.transport.read(reader, &self.log),
                    None => {
                        start.fetch_min(self.log.now(), Relaxed);
                        self.submit(number, count);
                        self.wait_served(goal);
                        let mine = (number..self.shape.readers).step_by(SENDERS);
                        mine.for_each(|reader| self.transport.stop(reader));
                    }
                }
            });
            let ends = self.log.readers.iter();
            let end = ends.map(|reader| reader.stamp.load(Relaxed)).max();
            let took = end.unwrap_or(0).saturating_sub(start.into_inner());
            sample.took = Duration::from_nanos(took.max(1));
            return sample;
        }
        let sample = race(SENDERS, SENDERS as u64, |sender, _| {
            move || self.submit(sender, count)
        });
        thread::scope(|scope| {
            for reader in 0..self.shape.readers {
                scope.spawn(move || {
                    pin(reader);
                    self.transport.read(reader, &self.log);
                });
            }
            self.wait_served(goal);
            (0..self.shape.readers).for_each(|reader| self.transport.stop(reader));
        });
        sample
    }
}

impl<W: Transport> Contender for Harness<W> {
    fn run(&mut self, ops: u64) -> Result<Sample> {
        let each = ops.div_ceil(SENDERS as u64);
        let count = u32::try_from(each.next_multiple_of(self.shape.batch as u64))?;
        let last = u64::from(self.sent + count);
        let goal = last * SENDERS as u64;
        let mut sample = self.timed(count, goal);
        sample.ops = u64::from(count) * SENDERS as u64;
        self.sent += count;
        self.sum = last * (last + 1) / 2 * SENDERS as u64;
        let served = self.log.total(|reader| &reader.count);
        ensure!(served == goal, "{served} of {goal} messages were served");
        let sum = self.log.total(|reader| &reader.sum);
        ensure!(sum == self.sum, "not the messages that were sent");
        let backwards = self.log.total(|reader| &reader.backwards);
        ensure!(
            backwards == 0 || !self.shape.ordered,
            "{backwards} messages out of order"
        );
        Ok(sample)
    }
}
