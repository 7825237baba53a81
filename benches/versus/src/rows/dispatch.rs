//! D1 to D6, F, C1 and C2: ordered dispatch from two senders to two readers, or to more.
//!
//! Each processor has one sender and one reader. Senders never wait, so the backlog grows while a
//! run lasts; a run is over when everything has been served. The readers of the peers poll; ours
//! sleep when there is nothing.

mod growth;
mod harness;
mod latency;
mod ours;
mod peers;
mod strands;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::contender::{Cell, Entry, Role, Sample};
use crate::race::race;
use crate::work::work;

use harness::{Harness, Log, READERS, Shape, Transport};
use ours::{ByKey, Claim, Features, Ours};
use peers::{DashMailboxes, Mailboxes, Shards, Unordered};
use strands::{Rayon, Strands, Tokio};

const ONE: &str = "conversant Queue, quantum 1";
const CLAIM_ONE: &str = "conversant Queue, 32 turns at once, quantum 1";
const NEXT: &str = "conversant Queue, next";
const BATCH: &str = "conversant Queue, batches";
const CLAIM: &str = "conversant Queue, 32 turns at once, next";
const CLAIM_BATCH: &str = "conversant Queue, 32 turns at once, batches";
const BY_KEY: &str = "conversant Keyed, 32 turns at once";
const UNORDERED: &str = "SegQueue, unordered";
const SHARDS: &str = "static shards";
const MAILBOXES: &str = "mailboxes and run queue";
const DASH: &str = "DashMap mailboxes";
const RAYON: &str = "rayon strands";
const TOKIO: &str = "tokio strands";
const IDEAL: &str = "work alone";

/// Messages one by one, and nothing to do for each.
fn shape(conversations: u32) -> Shape {
    Shape {
        conversations,
        readers: READERS,
        batch: 1,
        many: false,
        hold: 0,
        submit: false,
        ordered: true,
    }
}

fn cell(row: &'static str, title: &str, shape: Shape) -> Cell {
    Cell::new(row, title, move || contenders(shape)).unit("message")
}

pub fn cells() -> Vec<Cell> {
    let long = Shape {
        hold: 1_000,
        ..shape(64)
    };
    let mut all = vec![
        cell("D1", "64 conversations, by handle", shape(64))
            .target(BATCH, 1.0, UNORDERED)
            .target(CLAIM_BATCH, 1.0, UNORDERED)
            .target(BATCH, 1.0, MAILBOXES)
            .target(CLAIM_BATCH, 1.0, MAILBOXES)
            .target(ONE, 2.5, UNORDERED)
            .target(CLAIM_ONE, 2.5, UNORDERED),
        cell("D2", "10,000 conversations, by handle", shape(10_000))
            .target(CLAIM_BATCH, 1.5, UNORDERED)
            .target(CLAIM_BATCH, 1.1, MAILBOXES)
            .target(CLAIM_BATCH, 0.45, RAYON),
        cell("D3", "1 million conversations", shape(1_000_000))
            .target(CLAIM_BATCH, 1.9, UNORDERED)
            .target(CLAIM_BATCH, 0.7, MAILBOXES)
            .target(BY_KEY, 2.5, UNORDERED)
            .target(BY_KEY, 0.5, DASH),
    ];
    all.extend(batches());
    all.push(
        cell("D5", "64 conversations, 1 us of work each", long)
            .target(NEXT, 1.0, UNORDERED)
            .target(NEXT, 1.1, IDEAL),
    );
    for (row, count) in [("F1", 64), ("F2", 10_000)] {
        let title = format!("{count} conversations, the price of each feature");
        let features = move || features(shape(count));
        all.push(Cell::new(row, &title, features).unit("message"));
    }
    all.extend(latency::cells());
    all.extend(growth::cells());
    all
}

/// Row D4.
fn batches() -> [Cell; 6] {
    let batch = |conversations| Shape {
        batch: 32,
        ..shape(conversations)
    };
    let many = Shape {
        many: true,
        ..batch(10_000)
    };
    let alone = |shape| Shape {
        submit: true,
        ..shape
    };
    let all = [
        ("64 conversations, batches of 32, served", batch(64)),
        ("10,000 conversations, batches of 32, served", batch(10_000)),
        ("10,000 conversations, batches of 32 to many, served", many),
        (
            "10,000 conversations, batches of 32, submitting alone",
            alone(batch(10_000)),
        ),
        (
            "10,000 conversations, batches of 32 to many, submitting alone",
            alone(many),
        ),
        (
            "10,000 conversations, one by one, submitting alone",
            alone(shape(10_000)),
        ),
    ];
    all.map(|(title, shape)| {
        let cell = cell("D4", title, shape);
        let ours = if shape.submit { NEXT } else { CLAIM_BATCH };
        match (shape.batch, shape.many) {
            (1, _) => cell,
            (_, false) => cell.target(ours, 0.7, UNORDERED),
            (_, true) => cell.target(ours, 1.2, UNORDERED),
        }
    })
}

fn contenders(shape: Shape) -> Vec<Entry> {
    let count = shape.conversations;
    let loose = Shape {
        ordered: false,
        ..shape
    };
    let ours = |name, claim| {
        entry(name, Role::Ours, shape, move |_| {
            Ours::new(shape, claim, Features::default())
        })
    };
    let mut all = vec![
        entry(UNORDERED, Role::Peer, loose, |_| Unordered::default()),
        ours(ONE, Claim::new(1, 1, 1)),
        ours(CLAIM_ONE, Claim::new(1, 32, 1)),
        ours(NEXT, Claim::new(16, 1, 1)),
        ours(BATCH, Claim::new(16, 1, 16)),
        ours(CLAIM, Claim::new(16, 32, 1)),
        ours(CLAIM_BATCH, Claim::new(16, 32, 16)),
        entry(SHARDS, Role::Peer, shape, |_| Shards::default()),
        entry(MAILBOXES, Role::Peer, shape, |_| Mailboxes::new(count)),
    ];
    if count >= 1_000_000 {
        let claim = Claim::new(16, 32, 16);
        all.push(entry(BY_KEY, Role::Ours, shape, move |_| {
            ByKey::new(shape, claim)
        }));
        all.push(entry(DASH, Role::Peer, shape, |_| DashMailboxes::default()));
    }
    if !shape.submit {
        let rayon = |log: &Arc<Log>| Strands::new(count, log, Rayon::new(), None);
        let tokio = |log: &Arc<Log>| {
            let (kept, pool) = Tokio::new();
            Strands::new(count, log, pool, Some(kept))
        };
        all.push(entry(RAYON, Role::Peer, shape, rayon));
        all.push(entry(TOKIO, Role::Peer, shape, tokio));
    }
    if shape.hold > 0 {
        let alone = move |ops| -> anyhow::Result<Sample> {
            Ok(race(READERS, ops, |_, each| {
                move || (0..each).for_each(|_| work(shape.hold))
            }))
        };
        all.push(Entry::limit(IDEAL, alone));
    }
    all
}

/// Rows F: the queue compared with itself, with one more feature.
fn features(shape: Shape) -> Vec<Entry> {
    let plain = Features::default();
    let detached = Features {
        detached: true,
        ..plain
    };
    let claim = Claim::new(16, 32, 1);
    let one = Claim::new(16, 1, 1);
    // Bumps and give-backs keep each conversation's order, checked by the senders' numbers.
    let ours = |name, claim, features| {
        entry(name, Role::Ours, shape, move |_| {
            Ours::new(shape, claim, features)
        })
    };
    vec![
        ours("plain", claim, plain),
        ours(
            "1 % given back",
            claim,
            Features {
                give_backs: true,
                ..plain
            },
        ),
        ours(
            "4 lanes",
            claim,
            Features {
                lanes: true,
                ..plain
            },
        ),
        ours(
            "16 levels",
            claim,
            Features {
                levels: true,
                ..plain
            },
        ),
        ours(
            "1 % bumps",
            claim,
            Features {
                bumps: true,
                ..plain
            },
        ),
        ours("cap", claim, Features { cap: true, ..plain }),
        ours(
            "capacity",
            claim,
            Features {
                capacity: true,
                ..plain
            },
        ),
        ours("all of these", claim, Features::ALL),
        ours("plain, one turn a receive", one, plain),
        ours("detached", claim, detached),
        ours("detached, one turn a receive", one, detached),
    ]
}

fn entry<W: Transport>(
    name: &str,
    role: Role,
    shape: Shape,
    transport: impl FnOnce(&Arc<Log>) -> W,
) -> Entry {
    Entry::new(name, role, Harness::new(shape, transport))
}
