//! The peers: their readers poll, and never sleep.

use std::collections::VecDeque;
use std::hint::spin_loop;
use std::thread::yield_now;

use crossbeam_queue::SegQueue;
use dashmap::DashMap;
use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;

use super::harness::{Log, Message, READERS, Transport};
use super::ours::key;

/// The most that is taken out of a mailbox at a time.
pub const CLAIM: usize = 32;

/// Polls until there is something; yields now and then.
fn poll<T>(pop: impl Fn() -> Option<T>) -> T {
    let mut tries = 0_u32;
    loop {
        if let Some(found) = pop() {
            return found;
        }
        tries += 1;
        match tries % 64 {
            0 => yield_now(),
            _ => spin_loop(),
        }
    }
}

/// One queue and no order: any reader takes any message.
#[derive(Default)]
pub struct Unordered(SegQueue<Message>);

impl Transport for Unordered {
    fn send(&self, message: Message) {
        self.0.push(message);
    }

    fn read(&self, reader: usize, log: &Log) {
        drain(&self.0, reader, log);
    }

    fn stop(&self, _: usize) {
        self.0.push(Message::STOP);
    }
}

fn drain(queue: &SegQueue<Message>, reader: usize, log: &Log) {
    loop {
        let message = poll(|| queue.pop());
        if message.is_stop() {
            return;
        }
        log.serve(reader, message);
    }
}

/// A queue for each reader: ordered, but a reader with nothing to do helps nobody.
#[derive(Default)]
pub struct Shards([SegQueue<Message>; READERS]);

impl Transport for Shards {
    fn send(&self, message: Message) {
        let shard = (key(message.conversation) >> 32) as usize % READERS;
        self.0[shard].push(message);
    }

    fn read(&self, reader: usize, log: &Log) {
        drain(&self.0[reader], reader, log);
    }

    fn stop(&self, reader: usize) {
        self.0[reader].push(Message::STOP);
    }
}

/// What waits for one key, and whether the key is in the run queue or being served.
#[derive(Default)]
pub struct Mailbox {
    waiting: VecDeque<Message>,
    scheduled: bool,
}

impl Mailbox {
    /// Puts messages in; returns whether the key must be scheduled.
    pub fn put(&mut self, messages: &[Message]) -> bool {
        self.waiting.extend(messages);
        !std::mem::replace(&mut self.scheduled, true)
    }

    /// Takes the next few messages to be served.
    fn take(&mut self, into: &mut Vec<Message>) {
        let count = self.waiting.len().min(CLAIM);
        into.extend(self.waiting.drain(..count));
    }

    /// The taken messages have been served; returns whether the key must be scheduled again.
    fn finish(&mut self) -> bool {
        self.scheduled = !self.waiting.is_empty();
        self.scheduled
    }
}

/// Serves some messages of a mailbox; returns whether it must be scheduled again.
pub fn serve(mailbox: &Mutex<Mailbox>, reader: usize, log: &Log, some: &mut Vec<Message>) -> bool {
    mailbox.lock().take(some);
    for message in some.drain(..) {
        log.serve(reader, message);
    }
    mailbox.lock().finish()
}

/// A mailbox for each key, and a queue of the keys that have work.
pub struct Mailboxes {
    boxes: Vec<Mutex<Mailbox>>,
    run: SegQueue<u32>,
}

const STOP: u32 = u32::MAX;

impl Mailboxes {
    pub fn new(conversations: u32) -> Self {
        Self {
            boxes: (0..conversations).map(|_| Mutex::default()).collect(),
            run: SegQueue::new(),
        }
    }
}

impl Transport for Mailboxes {
    fn send(&self, message: Message) {
        self.send_all(&[message]);
    }

    fn send_all(&self, messages: &[Message]) {
        let conversation = messages[0].conversation;
        if self.boxes[conversation as usize].lock().put(messages) {
            self.run.push(conversation);
        }
    }

    fn read(&self, reader: usize, log: &Log) {
        let mut some = Vec::with_capacity(CLAIM);
        loop {
            let conversation = poll(|| self.run.pop());
            if conversation == STOP {
                return;
            }
            let mailbox = &self.boxes[conversation as usize];
            if serve(mailbox, reader, log, &mut some) {
                self.run.push(conversation);
            }
        }
    }

    fn stop(&self, _: usize) {
        self.run.push(STOP);
    }
}

/// The same by key: a mailbox is made when a message comes, and removed when it is empty.
#[derive(Default)]
pub struct DashMailboxes {
    boxes: DashMap<u64, Mailbox, FxBuildHasher>,
    run: SegQueue<u64>,
}

impl Transport for DashMailboxes {
    fn send(&self, message: Message) {
        let key = key(message.conversation);
        if self.boxes.entry(key).or_default().put(&[message]) {
            self.run.push(key);
        }
    }

    fn read(&self, reader: usize, log: &Log) {
        let mut some = Vec::with_capacity(CLAIM);
        loop {
            let key = poll(|| self.run.pop());
            if key == u64::MAX {
                return;
            }
            let mailbox = self.boxes.get_mut(&key);
            mailbox.expect("it is scheduled").take(&mut some);
            for message in some.drain(..) {
                log.serve(reader, message);
            }
            // Under the shard's lock: no message can come in between.
            if self
                .boxes
                .remove_if_mut(&key, |_, mailbox| !mailbox.finish())
                .is_none()
            {
                self.run.push(key);
            }
        }
    }

    fn stop(&self, _: usize) {
        self.run.push(u64::MAX);
    }
}
