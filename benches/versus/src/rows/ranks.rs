//! P1, P2: which group is next by rank.
//!
//! A group has a level and the number under which it joined. The next group has the highest level,
//! and the lowest number there. Every embedder keeps both per group, so this record is written and
//! read for all contenders alike, and the check compares with it.

mod orders;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use anyhow::{Result, ensure};

use self::orders::{Bitmap, Heap, Order, OurBacklog, OurReadyQueue, Queue, Tree};
use crate::contender::{Cell, Contender, Entry, Role, Sample};
use crate::race::{alone, pin};
use crate::work::Random;

const LIMIT: &str = "bitmap limit";
const OURS: &str = "conversant ReadyQueue";
const HEAP: &str = "BinaryHeap";

/// Standing levels are below this, bumped ones above.
const BUMPED: u16 = 256;

pub fn cells() -> Vec<Cell> {
    let sizes = [(1_000, "1k"), (100_000, "100k"), (1_000_000, "1M")];
    let mut cells = Vec::new();
    for (groups, size) in sizes {
        for (levels, spread) in [(1, "of one level"), (256, "of 256 levels")] {
            let title = format!("pop + push, {size} groups {spread}");
            let build = move || {
                contenders(Shape {
                    groups,
                    levels,
                    bumps: false,
                })
            };
            let cell = Cell::new("P1", title, build).target(OURS, 1.4, LIMIT);
            cells.push(match groups {
                100_000 => cell.target(OURS, 0.4, HEAP),
                1_000_000 => cell.target(OURS, 0.18, HEAP),
                _ => cell,
            });
        }
    }
    for (groups, size) in sizes {
        let title = format!("bump of a random pending group, {size} groups");
        let build = move || {
            contenders(Shape {
                groups,
                levels: 256,
                bumps: true,
            })
        };
        let cell = Cell::new("P2", title, build).unit("bump");
        cells.push(cell.target(OURS, 1.4, LIMIT));
    }
    cells
}

#[derive(Clone, Copy)]
struct Shape {
    groups: u32,
    levels: u32,
    /// Bumps instead of pops and pushes.
    bumps: bool,
}

/// A group's level, and the number under which it joined there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    level: u16,
    seq: u64,
}

fn contenders(shape: Shape) -> Vec<Entry> {
    let mut all = vec![
        Entry::limit(LIMIT, Pending::new(Bitmap::new(shape.groups), shape)),
        entry(OURS, Role::Ours, OurReadyQueue::default(), shape),
        entry(
            "conversant Backlog, whole turn",
            Role::Ours,
            OurBacklog::new(),
            shape,
        ),
        entry("BTreeSet", Role::Peer, Tree::default(), shape),
        entry("priority-queue", Role::Peer, Queue::default(), shape),
    ];
    let heap = if shape.bumps {
        "BinaryHeap, stale ones swept"
    } else {
        HEAP
    };
    all.push(entry(heap, Role::Peer, Heap::default(), shape));
    all
}

fn entry(name: &str, role: Role, order: impl Order + 'static, shape: Shape) -> Entry {
    Entry::new(name, role, Checked(Pending::new(order, shape)))
}

/// All groups pending, in some order.
struct Pending<O> {
    order: O,
    ranks: Vec<Rank>,
    seq: u64,
    random: Random,
    shape: Shape,
}

impl<O: Order> Pending<O> {
    fn new(mut order: O, shape: Shape) -> Self {
        let mut random = Random::new(u64::from(shape.groups));
        let mut ranks = Vec::new();
        for group in 0..shape.groups {
            let level = random.below(shape.levels) as u16;
            let level = if shape.bumps { BUMPED + level } else { level };
            order.add_group(group, level);
            ranks.push(Rank {
                level,
                seq: u64::from(group),
            });
        }
        // Not in the order of their numbers: neighbours in the queue are not neighbours in memory.
        let mut shuffled: Vec<u32> = (0..shape.groups).collect();
        for at in (1..shuffled.len()).rev() {
            shuffled.swap(at, random.below(at as u32 + 1) as usize);
        }
        let mut seq = 0;
        for group in shuffled {
            seq += 1;
            ranks[group as usize].seq = seq;
            order.push(group, &ranks);
        }
        Self {
            order,
            ranks,
            seq,
            random,
            shape,
        }
    }

    /// Pops the first and puts it back last in its level.
    #[inline(always)]
    fn pop_and_push(&mut self) -> bool {
        let Some((group, level)) = self.order.pop(&mut self.ranks) else {
            return false;
        };
        self.seq += 1;
        self.ranks[group as usize] = Rank {
            level,
            seq: self.seq,
        };
        self.order.push(group, &self.ranks);
        true
    }

    /// Bumps a random group to another random level: at its own level it would keep its rank.
    #[inline(always)]
    fn bump(&mut self) {
        let group = self.random.below(self.shape.groups);
        let level = self.ranks[group as usize].level + 1 + self.random.below(255) as u16;
        let level = BUMPED + level % 256;
        self.seq += 1;
        let to = Rank {
            level,
            seq: self.seq,
        };
        self.order.bump(group, to, &mut self.ranks);
    }
}

impl<O: Order> Contender for Pending<O> {
    fn run(&mut self, ops: u64) -> Result<Sample> {
        let mut right = true;
        pin(0);
        let sample = match self.shape.bumps {
            true => alone(ops, || (0..ops).for_each(|_| self.bump())),
            false => alone(ops, || (0..ops).for_each(|_| right &= self.pop_and_push())),
        };
        ensure!(right, "a group was lost");
        Ok(sample)
    }
}

/// Finally compares the order with the records.
struct Checked<O>(Pending<O>);

impl<O: Order> Contender for Checked<O> {
    fn run(&mut self, ops: u64) -> Result<Sample> {
        self.0.run(ops)
    }

    fn check(&mut self) -> Result<()> {
        let Pending { order, ranks, .. } = &mut self.0;
        let mut expected: Vec<u32> = (0..ranks.len() as u32).collect();
        expected.sort_by_key(|&group| {
            let rank = ranks[group as usize];
            (Reverse(rank.level), rank.seq)
        });
        for (at, &group) in expected.iter().enumerate() {
            let popped = order.pop(ranks).map(|(group, _)| group);
            ensure!(
                popped == Some(group),
                "{at}: {popped:?} came and not {group}"
            );
        }
        ensure!(order.pop(ranks).is_none(), "more came out than went in");
        Ok(())
    }
}
