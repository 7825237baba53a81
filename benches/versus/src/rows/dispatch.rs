//! D1 to D6: ordered dispatch from two senders to two readers.
//!
//! Each processor has one sender and one reader. Senders never wait, so that what waits grows while
//! a run lasts; a run is over when everything has been served. The readers of the peers look again
//! and again, ours sleep when there is nothing.

mod course;
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

use course::{Course, Log, PAIRS, Shape, Way};
use ours::{ByKey, Ours};
use peers::{DashMailboxes, Mailboxes, Shards, Unordered};
use strands::{Rayon, Strands, Tokio};

const ONE: &str = "conversant Queue, quantum 1";
const DEFAULT: &str = "conversant Queue, quantum 16";
const LONG: &str = "conversant Queue, quantum 64";
const CLAIM: &str = "conversant Queue, 32 turns at once";
const BY_KEY: &str = "conversant Queue, by key, 32 turns at once";
const UNORDERED: &str = "SegQueue, unordered";
const SHARDS: &str = "static shards";
const MAILBOXES: &str = "mailboxes and run queue";
const DASH: &str = "DashMap mailboxes";
const RAYON: &str = "rayon strands";
const TOKIO: &str = "tokio strands";
const IDEAL: &str = "work alone";

pub fn cells() -> Vec<Cell> {
    let shape = |conversations, batch| Shape {
        conversations,
        batch,
        hold: 0,
        submit: false,
        ordered: true,
    };
    let cell = |row, title: &str, shape: Shape| {
        Cell::new(row, title, move || contenders(shape)).unit("message")
    };
    let submit = |conversations, batch| Shape {
        submit: true,
        ..shape(conversations, batch)
    };
    let long = Shape {
        hold: 1_000,
        ..shape(64, 1)
    };
    let mut all = vec![
        cell("D1", "64 conversations, by handle", shape(64, 1))
            .target(CLAIM, 0.9, UNORDERED)
            .target(ONE, 1.1, UNORDERED)
            .target(CLAIM, 1.0, SHARDS)
            .target(CLAIM, 1.0, MAILBOXES)
            .target(CLAIM, 1.0, RAYON)
            .target(CLAIM, 1.0, TOKIO),
        cell("D2", "10,000 conversations, by handle", shape(10_000, 1))
            .target(CLAIM, 1.0, UNORDERED)
            .target(ONE, 2.0, UNORDERED)
            .target(CLAIM, 0.25, RAYON)
            .target(CLAIM, 0.25, TOKIO),
        cell("D3", "1 million conversations", shape(1_000_000, 1))
            .target(CLAIM, 0.9, UNORDERED)
            .target(BY_KEY, 1.5, UNORDERED)
            .target(BY_KEY, 0.7, DASH),
        cell(
            "D4",
            "64 conversations, batches of 32, served",
            shape(64, 32),
        )
        .target(CLAIM, 0.6, UNORDERED),
        cell(
            "D4",
            "10,000 conversations, batches of 32, served",
            shape(10_000, 32),
        )
        .target(CLAIM, 0.6, UNORDERED),
        cell(
            "D4",
            "10,000 conversations, batches of 32, submitting alone",
            submit(10_000, 32),
        )
        .target(DEFAULT, 0.6, UNORDERED),
        cell(
            "D4",
            "10,000 conversations, one by one, submitting alone",
            submit(10_000, 1),
        ),
        cell("D5", "64 conversations, 1 us of work each", long).target(DEFAULT, 1.1, IDEAL),
    ];
    all.extend(latency::cells());
    all
}

fn contenders(shape: Shape) -> Vec<Entry> {
    let count = shape.conversations;
    let loose = Shape {
        ordered: false,
        ..shape
    };
    let ours = |name, quantum| {
        entry(name, Role::Ours, shape, move |_| {
            Ours::new(count, quantum, 1)
        })
    };
    let mut all = vec![
        entry(UNORDERED, Role::Peer, loose, |_| Unordered::default()),
        ours(ONE, 1),
        ours(DEFAULT, 16),
        ours(LONG, 64),
        entry(CLAIM, Role::Ours, shape, move |_| Ours::new(count, 16, 32)),
        entry(SHARDS, Role::Peer, shape, |_| Shards::default()),
        entry(MAILBOXES, Role::Peer, shape, |_| Mailboxes::new(count)),
    ];
    if count >= 1_000_000 {
        all.push(entry(BY_KEY, Role::Ours, shape, |_| {
            ByKey::new(count, 16, 32)
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
            Ok(race(PAIRS, ops, |_, each| {
                move || (0..each).for_each(|_| work(shape.hold))
            }))
        };
        all.push(Entry::limit(IDEAL, alone));
    }
    all
}

fn entry<W: Way>(name: &str, role: Role, shape: Shape, way: impl FnOnce(&Arc<Log>) -> W) -> Entry {
    Entry::new(name, role, Course::new(shape, way))
}
