//! D7: bytes that a conversation and a waiting message take, counted by the allocator.
//!
//!     cargo run --release -p conversant-versus --bin memory -- [conversations..]
//!
//! 10^5 conversations by default. A burst of more than 2 * 10^8 messages is left out.

use std::alloc::System;
use std::collections::VecDeque;

use comfy_table::{CellAlignment, Table, presets::ASCII_MARKDOWN};
use conversant::limit::Limit;
use conversant::queue::{Conversation, Lane, Queue};
use dashmap::DashMap;
use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The most messages of one burst; more take more memory than most machines have.
const MAX_MESSAGES: u32 = 200_000_000;

/// Twelve bytes.
type Message = [u32; 3];

/// Bytes allocated and not freed.
fn allocated() -> i64 {
    let stats = ALLOCATOR.stats();
    // A reallocation counts by its difference.
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}

/// What is measured.
trait Store {
    fn send(&mut self, conversation: u32, message: Message);

    /// Serves all that waits, and returns how many there were.
    fn drain(&mut self) -> u64;
}

struct Ours {
    queue: Queue<Message>,
    _lane: Lane<Message>,
    conversations: Vec<Conversation<Message>>,
}

impl Ours {
    fn new(count: u32) -> Self {
        let queue = Queue::new();
        let lane = queue.lane(1, Limit::Unlimited).expect("it is open");
        let mut conversations = Vec::with_capacity(count as usize);
        let conversation = |_| lane.conversation().expect("it is open");
        conversations.extend((0..count).map(conversation));
        Self {
            queue,
            _lane: lane,
            conversations,
        }
    }
}

impl Store for Ours {
    fn send(&mut self, conversation: u32, message: Message) {
        let sent = self.conversations[conversation as usize].send(message);
        sent.expect("it is open");
    }

    fn drain(&mut self) -> u64 {
        let mut served = 0;
        while let Ok(mut turn) = self.queue.try_receive() {
            while let Some(delivery) = turn.next() {
                delivery.complete();
                served += 1;
            }
        }
        served
    }
}

/// A mutexed deque for each conversation, and the run queue.
struct Mailboxes {
    boxes: Vec<Mutex<(VecDeque<Message>, bool)>>,
    run: VecDeque<u32>,
}

impl Mailboxes {
    fn new(count: u32) -> Self {
        let mut boxes = Vec::with_capacity(count as usize);
        boxes.extend((0..count).map(|_| Mutex::default()));
        let run = VecDeque::new();
        Self { boxes, run }
    }
}

impl Store for Mailboxes {
    fn send(&mut self, conversation: u32, message: Message) {
        let (waiting, scheduled) = &mut *self.boxes[conversation as usize].lock();
        waiting.push_back(message);
        if !std::mem::replace(scheduled, true) {
            self.run.push_back(conversation);
        }
    }

    fn drain(&mut self) -> u64 {
        let mut served = 0;
        for conversation in self.run.drain(..) {
            let (waiting, scheduled) = &mut *self.boxes[conversation as usize].lock();
            served += waiting.drain(..).len() as u64;
            *scheduled = false;
        }
        served
    }
}

/// The same by key. Mailboxes are kept for ever, like those of conversations that go on.
#[derive(Default)]
struct DashMailboxes(DashMap<u64, VecDeque<Message>, FxBuildHasher>);

impl DashMailboxes {
    fn new(count: u32) -> Self {
        let boxes = Self::default();
        for key in 0..u64::from(count) {
            boxes.0.insert(key, VecDeque::new());
        }
        boxes
    }
}

impl Store for DashMailboxes {
    fn send(&mut self, conversation: u32, message: Message) {
        let mailbox = self.0.get_mut(&u64::from(conversation));
        mailbox.expect("it is there").push_back(message);
    }

    fn drain(&mut self) -> u64 {
        let all = self.0.iter_mut();
        all.map(|mut mailbox| mailbox.drain(..).len() as u64).sum()
    }
}

/// One message each, 2 each, 16 each and 64 each; idle before and after.
fn measure<S: Store>(name: &str, count: u32, grid: &mut Table, new: impl Fn(u32) -> S) {
    let start = allocated();
    let mut store = new(count);
    let per = |bytes: i64, count: u32| format!("{:.1}", bytes as f64 / f64::from(count));
    let idle = allocated();
    let mut row = vec![name.to_owned(), per(idle - start, count)];
    for burst in [1, 2, 16, 64] {
        let messages = count.saturating_mul(burst);
        if messages > MAX_MESSAGES {
            row.push("-".into());
            continue;
        }
        let before = allocated();
        for number in 0..burst {
            for conversation in 0..count {
                store.send(conversation, [conversation, number, 0]);
            }
        }
        row.push(per(allocated() - before, messages));
        assert_eq!(store.drain(), u64::from(messages), "{name}");
    }
    row.push(per(allocated() - start, count));
    grid.add_row(row);
}

fn table(count: u32) {
    let mut grid = Table::new();
    grid.load_preset(ASCII_MARKDOWN);
    grid.set_header([
        "bytes",
        "idle conversation",
        "message, 1 waiting",
        "message, 2 waiting",
        "message, 16 waiting",
        "message, 64 waiting",
        "conversation after the bursts",
    ]);
    for column in grid.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let handle = size_of::<Conversation<Message>>();
    let ours = "conversant Queue, with handles";
    measure(ours, count, &mut grid, Ours::new);
    measure("mailboxes and run queue", count, &mut grid, Mailboxes::new);
    measure("DashMap mailboxes", count, &mut grid, DashMailboxes::new);
    println!("{count} conversations, messages of 12 bytes; a handle is {handle} bytes.\n");
    println!("{grid}\n");
}

fn main() {
    let asked = std::env::args().skip(1);
    let mut counts: Vec<u32> = asked.map(|n| n.parse().expect("a number")).collect();
    if counts.is_empty() {
        counts.push(100_000);
    }
    counts.into_iter().for_each(table);
}
