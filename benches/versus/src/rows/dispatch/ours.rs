//! This crate's queue, used as its documentation says.

use conversant::keyed::Keyed;
use conversant::limit::Limit;
use conversant::queue::{Conversation, Delivery, Lane, Queue, Turn};
use rustc_hash::FxBuildHasher;

use super::harness::{Log, Message, Shape, Transport};

/// What the queue must do in addition to the order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Features {
    /// Each hundredth delivery is given back once.
    pub give_backs: bool,
    /// Conversations stand in four lanes.
    pub lanes: bool,
    /// Conversations stand at sixteen levels.
    pub levels: bool,
    /// Each hundredth message bumps its conversation.
    pub bumps: bool,
    /// Each lane has a cap, which is never reached.
    pub cap: bool,
    /// The queue has a capacity, which is never reached.
    pub capacity: bool,
    /// Deliveries are detached, and outlive their turns.
    pub detached: bool,
}

impl Features {
    pub const ALL: Self = Self {
        give_backs: true,
        lanes: true,
        levels: true,
        bumps: true,
        cap: true,
        capacity: false,
        detached: false,
    };
}

/// How turns are claimed and served.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub quantum: u32,
    /// How many turns one receive claims.
    pub turns: usize,
    /// How many messages one call takes in a turn.
    pub batch: usize,
}

impl Claim {
    pub const fn new(quantum: u32, turns: usize, batch: usize) -> Self {
        Self {
            quantum,
            turns,
            batch,
        }
    }
}

pub struct Ours {
    queue: Queue<Message>,
    claim: Claim,
    features: Features,
    lanes: Vec<Lane<Message>>,
    conversations: Vec<Conversation<Message>>,
    stops: Vec<Conversation<Message>>,
}

impl Ours {
    pub fn new(shape: Shape, claim: Claim, features: Features) -> Self {
        let mut builder = Queue::builder().quantum(claim.quantum);
        if features.capacity {
            builder = builder.capacity(Limit::AtMost(Limit::MAX));
        }
        let queue = builder.build().expect("a quantum above 0");
        let cap = if features.cap {
            Limit::AtMost(1_000)
        } else {
            Limit::Unlimited
        };
        let count = if features.lanes { 4 } else { 1 };
        let lane = |_| queue.lane(1, cap).expect("it is open");
        let lanes: Vec<_> = (0..count).map(lane).collect();
        let conversation = |at: u32| {
            let lane = &lanes[at as usize % count];
            let level = if features.levels { at % 16 } else { 100 };
            let group = lane.group(Limit::SERIAL, level as u8).expect("it is open");
            group.conversation().expect("it is open")
        };
        Self {
            conversations: (0..shape.conversations).map(conversation).collect(),
            stops: (0..shape.readers as u32).map(conversation).collect(),
            queue,
            claim,
            features,
            lanes,
        }
    }

    fn serve(&self, reader: usize, log: &Log) {
        if self.claim.turns == 1 {
            while let Ok(turn) = self.queue.receive().wait() {
                if !self.serve_turn(turn, reader, log) {
                    return;
                }
            }
        }
        while let Ok(mut turns) = self.queue.receive_many(self.claim.turns).wait() {
            // Turns that are left after a stop go back to the queue.
            if !turns.all(|turn| self.serve_turn(turn, reader, log)) {
                return;
            }
        }
    }

    /// Returns false if it was told to stop.
    fn serve_turn(&self, mut turn: Turn<'_, Message>, reader: usize, log: &Log) -> bool {
        if self.features.detached {
            let Some(delivery) = turn.next().map(Delivery::detach) else {
                return true;
            };
            drop(turn);
            return one(*delivery, reader, log, || _ = delivery.complete());
        }
        if self.claim.batch > 1 {
            while let Some(batch) = turn.next_batch(self.claim.batch) {
                let goes_on = batch
                    .iter()
                    .all(|&message| one(message, reader, log, || ()));
                batch.complete();
                if !goes_on {
                    return false;
                }
            }
            return true;
        }
        while let Some(delivery) = turn.next() {
            if self.features.give_backs
                && delivery.seq().is_multiple_of(100)
                && delivery.attempt() == 1
            {
                delivery.give_back();
                continue;
            }
            if !one(*delivery, reader, log, || _ = delivery.complete()) {
                return false;
            }
        }
        true
    }
}

/// Serves a message; returns false if it is a stop.
#[inline]
fn one(message: Message, reader: usize, log: &Log, complete: impl FnOnce()) -> bool {
    if !message.is_stop() {
        log.serve(reader, message);
    }
    complete();
    !message.is_stop()
}

impl Transport for Ours {
    fn send(&self, message: Message) {
        let conversation = &self.conversations[message.conversation as usize];
        if self.features.bumps && message.seq().is_multiple_of(100) {
            let bumped = self.queue.bump(conversation.group_id(), 200);
            bumped.expect("it is there");
        }
        conversation.send(message).expect("it is open");
    }

    fn send_all(&self, messages: &[Message]) {
        let conversation = &self.conversations[messages[0].conversation as usize];
        let sent = conversation.send_all(messages.iter().copied());
        sent.expect("it is open");
    }

    fn send_many(&self, messages: &[Message]) {
        let to = |message: &Message| &self.conversations[message.conversation as usize];
        let addressed = messages.iter().map(|message| (to(message), *message));
        let sent = self.queue.send_many(addressed);
        sent.map_err(|refused| refused.reason).expect("it is open");
    }

    fn read(&self, reader: usize, log: &Log) {
        self.serve(reader, log);
    }

    fn stop(&self, reader: usize) {
        self.stops[reader].send(Message::STOP).expect("it is open");
    }
}

/// Our queue by key.
pub struct ByKey {
    ours: Ours,
    keyed: Keyed<u64, Message, FxBuildHasher>,
}

impl ByKey {
    pub fn new(shape: Shape, claim: Claim) -> Self {
        let none = Shape {
            conversations: 0,
            ..shape
        };
        let mut ours = Ours::new(none, claim, Features::default());
        let lane = ours.lanes.pop().expect("one lane");
        let keyed = Keyed::with(lane, Limit::SERIAL, 100, FxBuildHasher);
        let keyed = keyed.expect("it is open").keep_idle(2_000_000);
        Self { ours, keyed }
    }
}

/// A key that does not reveal its place.
pub fn key(conversation: u32) -> u64 {
    u64::from(conversation).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Transport for ByKey {
    fn send(&self, message: Message) {
        let sent = self.keyed.send(key(message.conversation), message);
        sent.expect("it is open");
    }

    fn read(&self, reader: usize, log: &Log) {
        self.ours.serve(reader, log);
    }

    fn stop(&self, reader: usize) {
        self.ours.stop(reader);
    }
}
