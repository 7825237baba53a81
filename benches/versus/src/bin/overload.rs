//! Row O: senders that outrun the readers, in a queue without a capacity.
//!
//! It is compared with crossbeam-channel under the same load, and with a deque under a mutex, where
//! reading its length stands for the bump. Prints the messages received per second, the longest
//! receive, and, for ours, the longest bump, the longest snapshot and the longest wait with a
//! time-out of 10 ms. There is a table for each kind of queue. Its first line is the same queue
//! with the same observers, almost without load; each line of ours below has the ratio to it. A
//! receive includes the time until a message comes: without load that is most of it.
//!
//!     cargo run --release -p conversant-versus --bin overload -- --seconds 30
//!
//! takes about 20 minutes, and 10 GB for the waiting messages where senders reach 40 million a
//! second.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use comfy_table::Table;
use conversant::limit::Limit;
use conversant::queue::{Conversation, Queue};
use parking_lot::Mutex;

#[derive(Parser)]
struct Options {
    /// How long each load lasts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Only with this many readers, 1 or 2.
    #[arg(long)]
    readers: Option<usize>,
}

const SENDERS: usize = 2;

/// How many times its value without load each wait may be.
const TARGET: f64 = 10.0;

/// How fast the senders are, together.
#[derive(Clone, Copy, Debug)]
enum Rate {
    /// A thousand a second at most: each sender sleeps after each message.
    Idle,
    Full,
    PerSecond(u64),
}

#[derive(Clone, Copy, Debug)]
struct Load {
    rate: Rate,
    readers: usize,
    conversations: usize,
    duration: Duration,
}

#[derive(Default)]
struct Figures {
    sent: AtomicU64,
    received: AtomicU64,
    /// In nanoseconds, each the longest of its kind.
    receive: AtomicU64,
    bump: AtomicU64,
    snapshot: AtomicU64,
    time_out: AtomicU64,
}

impl Figures {
    /// The longest waits, by name, in milliseconds.
    fn waits(&self) -> [(&'static str, f64); 4] {
        let ms = |n: &AtomicU64| n.load(Relaxed) as f64 / 1e6;
        [
            ("receive", ms(&self.receive)),
            ("bump", ms(&self.bump)),
            ("snapshot", ms(&self.snapshot)),
            ("10 ms time-out", ms(&self.time_out)),
        ]
    }
}

fn longest(of: &AtomicU64, since: Instant) {
    of.fetch_max(since.elapsed().as_nanos() as u64, Relaxed);
}

/// Sends at the rate until told to stop.
fn send_at(rate: Rate, stop: &AtomicBool, figures: &Figures, mut send: impl FnMut(u64)) {
    let (start, mut sent) = (Instant::now(), 0);
    while !stop.load(Relaxed) {
        if let Rate::Idle = rate {
            thread::sleep(Duration::from_millis(SENDERS as u64));
            sent += 1;
            send(sent);
            continue;
        }
        if let Rate::PerSecond(most) = rate
            && sent >= start.elapsed().as_micros() as u64 * (most / SENDERS as u64) / 1_000_000
        {
            thread::yield_now();
            continue;
        }
        for _ in 0..64 {
            sent += 1;
            send(sent);
        }
    }
    figures.sent.fetch_add(sent, Relaxed);
}

fn ours(load: Load) -> Figures {
    let (figures, stop) = (Figures::default(), AtomicBool::new(false));
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).expect("open");
    let conversation = |_| lane.conversation().expect("open");
    let conversations: Vec<Conversation<u64>> = (0..load.conversations).map(conversation).collect();
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (figures, stop, conversations) = (&figures, &stop, &conversations);
            scope.spawn(move || {
                send_at(load.rate, stop, figures, |n| {
                    let at = (n as usize * SENDERS + sender) % conversations.len();
                    conversations[at].send(n).expect("open");
                });
            });
        }
        for _ in 0..load.readers {
            let (figures, stop, queue) = (&figures, &stop, &queue);
            scope.spawn(move || {
                let mut received = 0;
                while !stop.load(Relaxed) {
                    let began = Instant::now();
                    let turn = queue.receive().wait_timeout(Duration::from_millis(10));
                    longest(&figures.receive, began);
                    let Ok(Ok(mut turn)) = turn else { continue };
                    while let Some(delivery) = turn.next() {
                        delivery.complete();
                        received += 1;
                    }
                }
                figures.received.fetch_add(received, Relaxed);
            });
        }
        let (began, probe) = (
            Instant::now(),
            lane.group(Limit::AtMost(0), 0).expect("open"),
        );
        while began.elapsed() < load.duration {
            thread::sleep(Duration::from_millis(20));
            let before = Instant::now();
            conversations
                .first()
                .map(|first| queue.bump(first.group_id(), 200));
            longest(&figures.bump, before);
            let before = Instant::now();
            drop(queue.snapshot());
            longest(&figures.snapshot, before);
            let before = Instant::now();
            let nothing = queue
                .receive_from(probe.id())
                .wait_timeout(Duration::from_millis(10));
            assert!(nothing.is_err(), "a paused group gives nothing");
            longest(&figures.time_out, before);
        }
        stop.store(true, Relaxed);
    });
    // Dropping a queue takes out all that waits, which needs as much memory again.
    while let Ok(mut turn) = queue.try_receive() {
        while let Some(batch) = turn.next_batch(1_000) {
            batch.complete();
        }
    }
    figures
}

fn crossbeam(load: Load) -> Figures {
    let (to, from) = crossbeam_channel::unbounded::<u64>();
    let send = |n| to.send(n).expect("open");
    let receive = || from.recv_timeout(Duration::from_millis(10)).is_ok();
    unordered(load, send, receive, None::<fn()>)
}

/// The cost of a lock that these threads share, shown next to the time of our bumps.
fn mutex(load: Load) -> Figures {
    let queue = Mutex::new(VecDeque::new());
    let send = |n| queue.lock().push_back(n);
    let receive = || {
        let received = queue.lock().pop_front().is_some();
        if !received {
            thread::yield_now();
        }
        received
    };
    let read_len = || _ = queue.lock().len();
    unordered(load, send, receive, Some(read_len))
}

/// `read_len` is timed like our bump.
fn unordered(
    load: Load,
    send: impl Fn(u64) + Sync,
    receive: impl Fn() -> bool + Sync,
    read_len: Option<impl Fn()>,
) -> Figures {
    let (figures, stop) = (Figures::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| send_at(load.rate, &stop, &figures, &send));
        }
        for _ in 0..load.readers {
            scope.spawn(|| {
                let mut received = 0;
                while !stop.load(Relaxed) {
                    let began = Instant::now();
                    let one = receive();
                    longest(&figures.receive, began);
                    received += u64::from(one);
                }
                figures.received.fetch_add(received, Relaxed);
            });
        }
        let began = Instant::now();
        while began.elapsed() < load.duration {
            thread::sleep(Duration::from_millis(20));
            if let Some(read_len) = &read_len {
                let before = Instant::now();
                read_len();
                longest(&figures.bump, before);
            }
        }
        stop.store(true, Relaxed);
    });
    figures
}

/// Measures one kind of queue without load, and under each load.
fn measure_queue(idle: Load) -> Table {
    let mut table = Table::new();
    let without = ours(idle);
    let names = without.waits().map(|(name, _)| format!("{name} ms"));
    let mut header = vec!["load".into(), "who".into()];
    header.extend(["sent M/s", "received M/s"].map(String::from));
    header.extend(names);
    header.push(format!("each <= {TARGET}x"));
    table.set_header(header);
    table.add_row(row(idle, "conversant", &without, None));
    // Full speed comes last: the gigabytes that it leaves disturb what runs next.
    let rates = [
        Rate::PerSecond(1_000_000),
        Rate::PerSecond(2_000_000),
        Rate::Full,
    ];
    for rate in rates {
        let load = Load { rate, ..idle };
        table.add_row(row(load, "conversant", &ours(load), Some(&without)));
        table.add_row(row(load, "crossbeam", &crossbeam(load), None));
        table.add_row(row(load, "a mutex", &mutex(load), None));
    }
    table
}

/// A line of the table, with ratios to the values without load.
fn row(load: Load, who: &str, figures: &Figures, without: Option<&Figures>) -> Vec<String> {
    let million = |n: &AtomicU64| {
        let rate = n.load(Relaxed) as f64 / load.duration.as_secs_f64() / 1e6;
        format!("{rate:.3}")
    };
    let mut row = vec![format!("{:?}", load.rate), who.into()];
    row.extend([&figures.sent, &figures.received].map(million));
    let mut missed = Vec::new();
    for (at, (name, ms)) in figures.waits().into_iter().enumerate() {
        row.push(match without.map(|without| ms / without.waits()[at].1) {
            Some(times) => {
                missed.extend((times > TARGET).then_some(name));
                format!("{ms:.3} = {times:.1}x")
            }
            // The others have no snapshots and no time-outs.
            None if ms == 0.0 => String::new(),
            None => format!("{ms:.3}"),
        });
    }
    row.push(match (without, missed.is_empty()) {
        (None, _) => String::new(),
        (Some(_), true) => "yes".into(),
        (Some(_), false) => format!("no: {}", missed.join(", ")),
    });
    row
}

fn main() {
    let options = Options::parse();
    for readers in [1, 2] {
        if options.readers.is_some_and(|only| only != readers) {
            continue;
        }
        for conversations in [1, 10_000] {
            thread::sleep(Duration::from_secs(2));
            let table = measure_queue(Load {
                rate: Rate::Idle,
                readers,
                conversations,
                duration: Duration::from_secs(options.seconds),
            });
            println!("readers: {readers}, conversations: {conversations}\n{table}\n");
        }
    }
}
