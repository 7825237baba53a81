//! Three ways from senders to whoever decides, in miniature: which of them feeds
//! the queue. Two senders, one taker, messages of 12 bytes to groups drawn at
//! random; the taker puts each into its group's list and takes it out again, as
//! a claim would.
//!
//!     cargo bench --bench inbox
//!
//! - `one list`: all append to one list under one mutex, which the taker swaps
//!   for an empty one. It is what `src/tokens.rs` does.
//! - `inboxes and tokens`: a mutex and a list for each group; who finds its group
//!   idle appends the group to a list of tokens.
//! - `lock-free mailboxes`: a lock-free queue for each group, a flag, and a
//!   lock-free queue of groups.
//!
//! The senders are not held back, so that what waits grows while they send.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use crossbeam_queue::SegQueue;
use parking_lot::Mutex;

type Message = [u32; 3];

/// A way from senders to the taker.
trait Way: Sync {
    fn send(&self, group: usize, message: Message);
    /// Hands over what has come, and says how many.
    fn take(&self, lists: &mut [VecDeque<Message>]) -> usize;
}

fn put(lists: &mut [VecDeque<Message>], group: usize, message: Message) {
    lists[group].push_back(message);
    black_box(lists[group].pop_front());
}

struct OneList(Mutex<Vec<(u32, Message)>>, Mutex<Vec<(u32, Message)>>);

impl Way for OneList {
    fn send(&self, group: usize, message: Message) {
        self.0.lock().push((group as u32, message));
    }

    fn take(&self, lists: &mut [VecDeque<Message>]) -> usize {
        let mut taken = self.1.lock();
        std::mem::swap(&mut *self.0.lock(), &mut *taken);
        let count = taken.len();
        for (group, message) in taken.drain(..) {
            put(lists, group as usize, message);
        }
        count
    }
}

#[derive(Default)]
struct Inbox {
    messages: Vec<Message>,
    scheduled: bool,
}

struct Inboxes {
    groups: Vec<Mutex<Inbox>>,
    tokens: Mutex<Vec<u32>>,
    taken: Mutex<(Vec<u32>, Vec<Message>)>,
}

impl Way for Inboxes {
    fn send(&self, group: usize, message: Message) {
        let mut inbox = self.groups[group].lock();
        inbox.messages.push(message);
        if !std::mem::replace(&mut inbox.scheduled, true) {
            self.tokens.lock().push(group as u32);
        }
    }

    fn take(&self, lists: &mut [VecDeque<Message>]) -> usize {
        let (tokens, messages) = &mut *self.taken.lock();
        std::mem::swap(&mut *self.tokens.lock(), tokens);
        let mut count = 0;
        for group in tokens.drain(..) {
            let mut inbox = self.groups[group as usize].lock();
            inbox.scheduled = false;
            // Its block stays, so that no message costs an allocation.
            std::mem::swap(&mut inbox.messages, messages);
            drop(inbox);
            count += messages.len();
            for message in messages.drain(..) {
                put(lists, group as usize, message);
            }
        }
        count
    }
}

struct Mailboxes {
    groups: Vec<(SegQueue<Message>, AtomicBool)>,
    tokens: SegQueue<u32>,
}

impl Way for Mailboxes {
    fn send(&self, group: usize, message: Message) {
        let (messages, scheduled) = &self.groups[group];
        messages.push(message);
        if !scheduled.swap(true, Ordering::AcqRel) {
            self.tokens.push(group as u32);
        }
    }

    fn take(&self, lists: &mut [VecDeque<Message>]) -> usize {
        let mut count = 0;
        while let Some(group) = self.tokens.pop() {
            let (messages, scheduled) = &self.groups[group as usize];
            // Before the look: who comes after it posts a token of its own.
            scheduled.swap(false, Ordering::AcqRel);
            while let Some(message) = messages.pop() {
                put(lists, group as usize, message);
                count += 1;
            }
        }
        count
    }
}

/// Wall time until `count` messages of two senders have been taken.
fn run(way: &impl Way, lists: &mut [VecDeque<Message>], count: u64) -> Duration {
    let each = count.div_ceil(2);
    let groups = lists.len() as u64;
    let start = Instant::now();
    std::thread::scope(|scope| {
        for sender in 0..2u64 {
            scope.spawn(move || {
                let mut drawn = sender + 1;
                for seq in 0..each {
                    drawn = drawn.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(99);
                    let group = ((drawn >> 33) % groups) as usize;
                    way.send(group, [group as u32, sender as u32, seq as u32]);
                }
            });
        }
        let mut left = 2 * each;
        while left > 0 {
            let taken = way.take(lists) as u64;
            left -= taken;
            if taken == 0 {
                std::thread::yield_now();
            }
        }
    });
    start.elapsed()
}

fn inbox(c: &mut Criterion) {
    for groups in [64usize, 10_000, 1_000_000] {
        let mut bench = c.benchmark_group(format!("inbox, {groups} groups"));
        bench.throughput(Throughput::Elements(1)).sample_size(20);
        let mut lists: Vec<_> = (0..groups).map(|_| VecDeque::with_capacity(1)).collect();
        let list = OneList(Mutex::default(), Mutex::default());
        let inboxes = Inboxes {
            groups: (0..groups).map(|_| Mutex::default()).collect(),
            tokens: Mutex::default(),
            taken: Mutex::default(),
        };
        let mailbox = |_| (SegQueue::new(), AtomicBool::new(false));
        let mailboxes = Mailboxes {
            groups: (0..groups).map(mailbox).collect(),
            tokens: SegQueue::new(),
        };
        let mut add = |name: &str, run: &mut dyn FnMut(u64) -> Duration| {
            bench.bench_function(BenchmarkId::from_parameter(name), |b| {
                b.iter_custom(&mut *run)
            });
        };
        add("one list", &mut |n| run(&list, &mut lists, n));
        add("inboxes and tokens", &mut |n| run(&inboxes, &mut lists, n));
        add("lock-free mailboxes", &mut |n| {
            run(&mailboxes, &mut lists, n)
        });
        bench.finish();
    }
}

criterion_group!(benches, inbox);
criterion_main!(benches);
