//! L1 to L6, C3, C4: locks with modes, on one resource and on a root with leaves; and how the cost
//! grows with threads and leaves.
//!
//! A read-write lock has no IX, so it takes S for reading and the other modes for writing. Now and
//! then a thread checks which threads are inside, and in the untimed check in every turn: checking
//! touches a cache line that all share, and would hide the cost of the lock itself.

mod keyed;
#[cfg(test)]
mod tests;
mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use anyhow::{Result, ensure};
use conversant::intent::IntentLock;
use conversant::modes::Mode;

use self::keyed::{Lockable, Mutexes, Naive, Owners, Renewed, Table};
use self::words::{Std, Striped, Tokio, Word};
use crate::contender::{Cell, Contender, Entry, Role, Sample};
use crate::race::race;
use crate::work::{Random, work};

const TABLE: &str = "conversant LockTable, by key";
const LAX: &str = "conversant LockTable, with a bypass";
const HANDLE: &str = "conversant IntentLock";
const STRIPES: &str = "conversant IntentLock, striped";
const READERS: &str = "conversant IntentLock, striped for readers";
const OWNERS: &str = "conversant LockTable, an owner each";
const RENEWED: &str = "conversant LockTable, owner renewed";
const WORD: &str = "count word";
const PARKING_LOT: &str = "parking_lot RwLock";
const MUTEX: &str = "parking_lot Mutex";
const MANAGER: &str = "naive keyed manager";

const LEAVES: u32 = 1 << 20;
/// While the time is taken, one turn in this many is checked.
const CHECK_EVERY: u64 = 64;
/// How many pairs of one mode come in a row where phases alternate.
const PHASE: u64 = 64;

/// What is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    Root,
    /// The leaf, and the root with the intent that it needs.
    Leaf(u32),
}

/// Locks on a root, and perhaps on leaves.
pub trait Locks: Send + Sync + 'static {
    /// What a thread needs of its own.
    type Access<'a>;

    fn access(&self) -> Self::Access<'_>;

    /// Runs `f` with the lock.
    fn with(access: &mut Self::Access<'_>, node: Node, mode: Mode, f: impl FnOnce());
}

#[derive(Clone, Copy)]
struct Shape {
    threads: usize,
    script: Script,
    /// Nanoseconds of work with the lock.
    hold: u64,
}

#[derive(Clone, Copy)]
enum Script {
    Same(Mode),
    /// S and IX, in alternating phases.
    Phases,
    /// X on a leaf that is drawn from this many.
    Leaves(u32),
}

pub fn cells() -> Vec<Cell> {
    let same = |threads, mode, hold| Shape {
        threads,
        script: Script::Same(mode),
        hold,
    };
    let root = |row, title: &str, shape| Cell::new(row, title, move || on_root(shape));
    let (s, ix, x) = (Mode::S, Mode::Ix, Mode::X);
    let mut cells = Vec::new();
    for (mode, title) in [(s, "S uncontended"), (ix, "IX uncontended")] {
        let cell = root("L1", title, same(1, mode, 0)).target(TABLE, 0.85, MANAGER);
        cells.push(cell.target(HANDLE, 1.1, WORD));
    }
    for (mode, stripes, title) in [
        (s, READERS, "S-S, two threads, held 0"),
        (ix, STRIPES, "IX-IX, two threads, held 0"),
    ] {
        let cell = root("L2", title, same(2, mode, 0)).target(TABLE, 1.1, WORD);
        cells.push(cell.target(HANDLE, 1.1, WORD).absolute(stripes, 10.0));
    }
    cells.push(
        root("L3", "IX-IX, two threads, held 1 us", same(2, ix, 1_000))
            .target(TABLE, 1.05, WORD)
            .target(HANDLE, 1.05, WORD),
    );
    let phases = Shape {
        threads: 2,
        script: Script::Phases,
        hold: 0,
    };
    cells.push(
        root("L4", "phases of 64 S and 64 IX, two threads", phases)
            .target(TABLE, 1.1, PARKING_LOT)
            .target(HANDLE, 1.1, PARKING_LOT)
            .target(STRIPES, 1.5, PARKING_LOT)
            .target(READERS, 1.5, PARKING_LOT),
    );
    for (hold, times, title) in [
        (0, 1.3, "X, two threads, held 0"),
        (1_000, 0.7, "X, two threads, held 1 us"),
    ] {
        let cell = root("L5", title, same(2, x, hold)).target(TABLE, times, MUTEX);
        cells.push(cell.target(HANDLE, times, MUTEX));
    }
    for threads in [8, 64] {
        let title = format!("X, {threads} threads, held 1 us");
        cells.push(root("C3", &title, same(threads, x, 1_000)));
    }
    let leaves = |threads, count| Shape {
        threads,
        script: Script::Leaves(count),
        hold: 0,
    };
    for (count, name) in [(1_000, "1,000"), (10_000_000, "10 million")] {
        let title = format!("root IX + leaf X over {name} leaves, two threads");
        cells.push(Cell::new("C4", title, move || on_leaves(leaves(2, count))));
    }
    for (threads, title) in [(1, "one thread"), (2, "two threads")] {
        let title = format!("root IX + leaf X over 1M leaves, {title}");
        let shape = leaves(threads, LEAVES);
        let cell = Cell::new("L6", title, move || on_leaves(shape)).target(TABLE, 0.75, MANAGER);
        cells.push(cell.target(TABLE, 0.5, MANAGER));
    }
    cells
}

fn on_root(shape: Shape) -> Vec<Entry> {
    let waits = shape.threads > 1;
    let exclusive = matches!(shape.script, Script::Same(Mode::X));
    let weak = matches!(shape.script, Script::Same(Mode::S | Mode::Ix));
    let mut all = vec![
        entry(WORD, Role::Limit, Word::new(0), shape),
        entry(HANDLE, Role::Ours, IntentLock::new(), shape),
        entry(STRIPES, Role::Ours, IntentLock::striped(8), shape),
        entry(TABLE, Role::Ours, Table::new(), shape),
        entry(PARKING_LOT, Role::Peer, parking_lot::RwLock::new(()), shape),
        entry("std RwLock", Role::Peer, Std::default(), shape),
        entry("tokio RwLock", Role::Peer, Tokio::new(waits), shape),
        entry("DashMap of mutexes", Role::Peer, Mutexes::new(0), shape),
        entry(MANAGER, Role::Peer, Naive::default(), shape),
        entry("lockable", Role::Peer, Lockable::default(), shape),
    ];
    if shape.threads > 2 {
        all.push(entry(LAX, Role::Ours, Table::with_bypass(), shape));
    }
    if matches!(shape.script, Script::Same(Mode::S) | Script::Phases) {
        let lock = IntentLock::striped_for_readers(8);
        all.push(entry(READERS, Role::Ours, lock, shape));
    }
    if exclusive {
        all.push(entry(MUTEX, Role::Peer, parking_lot::Mutex::new(()), shape));
    }
    if weak && waits {
        all.push(entry(
            "striped counters",
            Role::Limit,
            Striped::default(),
            shape,
        ));
    }
    all
}

fn on_leaves(shape: Shape) -> Vec<Entry> {
    let Script::Leaves(count) = shape.script else {
        return Vec::new();
    };
    vec![
        entry("dense words", Role::Limit, Word::new(count), shape),
        entry(TABLE, Role::Ours, Table::new(), shape),
        entry(RENEWED, Role::Ours, Renewed::new(), shape),
        entry(OWNERS, Role::Ours, Owners::new(), shape),
        entry(MANAGER, Role::Peer, Naive::default(), shape),
        entry(
            "DashMap of mutexes, leaf only",
            Role::Peer,
            Mutexes::new(count),
            shape,
        ),
        entry(
            "lockable, leaf only",
            Role::Peer,
            Lockable::default(),
            shape,
        ),
    ]
}

fn entry(name: &str, role: Role, locks: impl Locks, shape: Shape) -> Entry {
    let draws = AtomicU64::new(0);
    Entry::new(
        name,
        role,
        Locked {
            locks: Arc::new(locks),
            shape,
            draws,
        },
    )
}

struct Locked<L> {
    locks: Arc<L>,
    shape: Shape,
    /// Every run draws other leaves.
    draws: AtomicU64,
}

impl<L: Locks> Contender for Locked<L> {
    fn run(&mut self, ops: u64) -> Result<Sample> {
        let many = self.shape.threads > 1 && !self.on_leaves();
        self.run_checked(ops, |turn| many && turn % CHECK_EVERY == CHECK_EVERY / 3)
    }

    /// Every turn is checked. Leaves that are drawn from many are hardly ever contended, so here
    /// they are few.
    fn check(&mut self) -> Result<()> {
        match self.on_leaves() {
            true => self.few_leaves(),
            false => self.run_checked(4_000, |_| true).map(|_| ()),
        }
    }
}

impl<L: Locks> Locked<L> {
    fn on_leaves(&self) -> bool {
        matches!(self.shape.script, Script::Leaves(_))
    }

    /// In the turns that `is_checked` picks, a thread checks which threads are inside.
    fn run_checked(&self, ops: u64, is_checked: impl Fn(u64) -> bool + Sync) -> Result<Sample> {
        let inside = Inside::default();
        let sample = self.turns(ops, self.shape.script, |turn, _, mode| {
            let is_checked = is_checked(turn);
            if is_checked {
                inside.enter(mode);
            }
            work(self.shape.hold);
            if is_checked {
                inside.leave(mode);
            }
        });
        inside.check()?;
        Ok(sample)
    }

    fn few_leaves(&self) -> Result<()> {
        const FEW: u32 = 4;
        let counts: [AtomicU32; FEW as usize] = Default::default();
        let sample = self.turns(4_000, Script::Leaves(FEW), |_, node, _| {
            if let Node::Leaf(leaf) = node {
                // Not one atomic operation: without the lock, some counts are lost.
                let count = &counts[leaf as usize];
                let before = count.load(Ordering::Relaxed);
                work(100);
                count.store(before + 1, Ordering::Relaxed);
            }
        });
        let seen: u32 = counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .sum();
        ensure!(
            u64::from(seen) == sample.ops,
            "{seen} of {} seen",
            sample.ops
        );
        Ok(())
    }

    fn turns(&self, ops: u64, script: Script, f: impl Fn(u64, Node, Mode) + Sync) -> Sample {
        race(self.shape.threads, ops, |_, each| {
            let mut access = self.locks.access();
            let mut random = Random::new(self.draws.fetch_add(1, Ordering::Relaxed));
            let f = &f;
            move || {
                for turn in 0..each {
                    let (node, mode) = match script {
                        Script::Same(mode) => (Node::Root, mode),
                        Script::Phases if (turn / PHASE).is_multiple_of(2) => (Node::Root, Mode::S),
                        Script::Phases => (Node::Root, Mode::Ix),
                        Script::Leaves(leaves) => (Node::Leaf(random.below(leaves)), Mode::X),
                    };
                    L::with(&mut access, node, mode, || f(turn, node, mode));
                }
            }
        })
    }
}

/// How many of the checking threads are inside, by mode.
#[derive(Default)]
struct Inside {
    counts: [AtomicU32; Mode::ALL.len()],
    wrong: AtomicU64,
}

impl Inside {
    fn enter(&self, mode: Mode) {
        let others = self.counts[mode as usize].fetch_add(1, Ordering::SeqCst);
        let conflicts = |&other: &Mode| {
            let count = match other == mode {
                true => others,
                false => self.counts[other as usize].load(Ordering::SeqCst),
            };
            count > 0 && !mode.compatible(other)
        };
        if [Mode::S, Mode::Ix, Mode::X].iter().any(conflicts) {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn leave(&self, mode: Mode) {
        self.counts[mode as usize].fetch_sub(1, Ordering::SeqCst);
    }

    fn check(&self) -> Result<()> {
        let wrong = self.wrong.load(Ordering::Relaxed);
        ensure!(
            wrong == 0,
            "{wrong} looks saw somebody who must not be inside"
        );
        Ok(())
    }
}
