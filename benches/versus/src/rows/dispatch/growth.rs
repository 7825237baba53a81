//! C1, C2: how the cost grows with conversations, and with readers that outnumber the processors.
//!
//! With many readers a peer must sleep too: so its queues are channels.

use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::Mutex;

use super::harness::{Log, Message, Shape, Transport};
use super::ours::{Claim, Features, Ours};
use super::peers::{CLAIM, Mailbox, Mailboxes, Unordered, serve};
use super::{BATCH, CLAIM_BATCH, MAILBOXES, NEXT, ONE, UNORDERED, entry, shape};
use crate::contender::{Cell, Entry, Role};

const CHANNEL: &str = "crossbeam-channel, unordered";
const POSTED: &str = "mailboxes and a channel";

pub fn cells() -> Vec<Cell> {
    let counts = [
        (10, "10"),
        (1_000, "1,000"),
        (100_000, "100,000"),
        (10_000_000, "10 million"),
    ];
    let more = counts.map(|(count, name)| {
        let title = format!("{name} conversations");
        let build = move || more_conversations(shape(count));
        Cell::new("C1", title, build).unit("message")
    });
    let crowd = [1, 4, 16, 64].map(|readers| {
        let shape = Shape {
            readers,
            ..shape(64)
        };
        let title = format!("{readers} readers, 64 conversations");
        Cell::new("C2", title, move || crowd(shape)).unit("message")
    });
    more.into_iter().chain(crowd).collect()
}

fn ours(name: &str, shape: Shape, claim: Claim) -> Entry {
    entry(name, Role::Ours, shape, |_| {
        Ours::new(shape, claim, Features::default())
    })
}

fn more_conversations(shape: Shape) -> Vec<Entry> {
    let loose = Shape {
        ordered: false,
        ..shape
    };
    let boxes = |_: &_| Mailboxes::new(shape.conversations);
    vec![
        entry(UNORDERED, Role::Peer, loose, |_| Unordered::default()),
        ours(ONE, shape, Claim::new(1, 1, 1)),
        ours(NEXT, shape, Claim::new(16, 1, 1)),
        ours(CLAIM_BATCH, shape, Claim::new(16, 32, 16)),
        entry(MAILBOXES, Role::Peer, shape, boxes),
    ]
}

pub(super) fn crowd(shape: Shape) -> Vec<Entry> {
    let loose = Shape {
        ordered: false,
        ..shape
    };
    let posted = |_: &_| Posted::new(shape.conversations);
    vec![
        entry(CHANNEL, Role::Peer, loose, |_| Channel::new()),
        ours(ONE, shape, Claim::new(1, 1, 1)),
        ours(NEXT, shape, Claim::new(16, 1, 1)),
        ours(BATCH, shape, Claim::new(16, 1, 16)),
        ours(CLAIM_BATCH, shape, Claim::new(16, 32, 16)),
        entry(POSTED, Role::Peer, shape, posted),
    ]
}

/// One channel and no order.
struct Channel(Sender<Message>, Receiver<Message>);

impl Channel {
    fn new() -> Self {
        let (sender, receiver) = unbounded();
        Self(sender, receiver)
    }
}

impl Transport for Channel {
    fn send(&self, message: Message) {
        self.0.send(message).expect("it is open");
    }

    fn read(&self, reader: usize, log: &Log) {
        let messages = self.1.iter();
        let until_stop = messages.take_while(|message| !message.is_stop());
        until_stop.for_each(|message| log.serve(reader, message));
    }

    fn stop(&self, _: usize) {
        self.send(Message::STOP);
    }
}

/// A mailbox for each conversation, and a channel of those that have work.
struct Posted {
    boxes: Vec<Mutex<Mailbox>>,
    run: (Sender<Option<u32>>, Receiver<Option<u32>>),
}

impl Posted {
    fn new(conversations: u32) -> Self {
        Self {
            boxes: (0..conversations).map(|_| Mutex::default()).collect(),
            run: unbounded(),
        }
    }

    fn schedule(&self, conversation: Option<u32>) {
        self.run.0.send(conversation).expect("it is open");
    }
}

impl Transport for Posted {
    fn send(&self, message: Message) {
        let conversation = message.conversation;
        if self.boxes[conversation as usize].lock().put(&[message]) {
            self.schedule(Some(conversation));
        }
    }

    fn read(&self, reader: usize, log: &Log) {
        let mut some = Vec::with_capacity(CLAIM);
        for conversation in self.run.1.iter().map_while(|stop| stop) {
            let mailbox = &self.boxes[conversation as usize];
            if serve(mailbox, reader, log, &mut some) {
                self.schedule(Some(conversation));
            }
        }
    }

    fn stop(&self, _: usize) {
        self.schedule(None);
    }
}
