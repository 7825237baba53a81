//! This crate's queue, used as its documentation says.

use conversant::limit::Limit;
use conversant::queue::{Conversation, Lane, Queue, Turn};
use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::course::{Log, Message, PAIRS, Way};

pub struct Ours {
    queue: Queue<Message>,
    /// Turns by one receive.
    turns: usize,
    _lane: Lane<Message>,
    conversations: Vec<Conversation<Message>>,
    stops: [Conversation<Message>; PAIRS],
}

impl Ours {
    pub fn new(conversations: u32, quantum: u32, turns: usize) -> Self {
        let builder = Queue::builder().quantum(quantum);
        let queue = builder.build().expect("a quantum above 0");
        let lane = queue.lane(1, Limit::Unlimited).expect("it is open");
        let conversation = || lane.conversation().expect("it is open");
        Self {
            conversations: (0..conversations).map(|_| conversation()).collect(),
            stops: std::array::from_fn(|_| conversation()),
            queue,
            turns,
            _lane: lane,
        }
    }
}

impl Way for Ours {
    fn send(&self, message: Message) {
        let conversation = &self.conversations[message.conversation as usize];
        conversation.send(message).expect("it is open");
    }

    fn send_all(&self, messages: &[Message]) {
        let conversation = &self.conversations[messages[0].conversation as usize];
        let sent = conversation.send_all(messages.iter().copied());
        sent.expect("it is open");
    }

    fn read(&self, reader: usize, log: &Log) {
        self.serve(reader, log);
    }

    fn stop(&self, reader: usize) {
        self.stops[reader].send(Message::STOP).expect("it is open");
    }
}

impl Ours {
    fn serve(&self, reader: usize, log: &Log) {
        if self.turns == 1 {
            while let Ok(turn) = self.queue.receive().wait() {
                if !serve(turn, reader, log) {
                    return;
                }
            }
        }
        while let Ok(turns) = self.queue.receive_many(self.turns).wait() {
            // What is left behind a stop goes back to the queue.
            if !turns.into_iter().all(|turn| serve(turn, reader, log)) {
                return;
            }
        }
    }
}

/// False if it was told to stop.
fn serve(mut turn: Turn<Message>, reader: usize, log: &Log) -> bool {
    while let Some(delivery) = turn.next() {
        let message = *delivery;
        if !message.is_stop() {
            log.serve(reader, message);
        }
        delivery.complete();
        if message.is_stop() {
            return false;
        }
    }
    true
}

/// By key: a map from keys to conversations in front.
pub struct ByKey {
    ours: Ours,
    keys: DashMap<u64, Conversation<Message>, FxBuildHasher>,
}

impl ByKey {
    pub fn new(conversations: u32, quantum: u32, turns: usize) -> Self {
        let mut ours = Ours::new(conversations, quantum, turns);
        let handles = ours.conversations.drain(..).enumerate();
        let keys = handles.map(|(at, handle)| (key(at as u32), handle));
        Self {
            keys: keys.collect(),
            ours,
        }
    }
}

/// A key that does not tell its place.
pub fn key(conversation: u32) -> u64 {
    u64::from(conversation).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Way for ByKey {
    fn send(&self, message: Message) {
        let conversation = self.keys.get(&key(message.conversation));
        let sent = conversation.expect("it is there").send(message);
        sent.expect("it is open");
    }

    fn read(&self, reader: usize, log: &Log) {
        self.ours.serve(reader, log);
    }

    fn stop(&self, reader: usize) {
        self.ours.stop(reader);
    }
}
