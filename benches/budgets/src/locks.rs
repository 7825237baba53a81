//! Locks, permits and tickets: taken and given back.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use conversant::gate::TierGate;
use conversant::intent::IntentLock;
use conversant::lock_table::{LockTable, Owner, Resource};
use conversant::modes::Mode;
use conversant::semaphore::Semaphore;

use super::Path;

pub(super) const PATHS: &[Path] = &[
    ("semaphore-pair", semaphore),
    ("intent-pair", intent),
    ("gate-step", gate),
    ("lock-table-key", |n| lock_table(n, Name::Root, Mode::S)),
    ("lock-table-path", |n| lock_table(n, Name::Leaf(7), Mode::X)),
    ("lock-table-owner", |n| lock_table_owner(n, 0)),
    ("lock-table-beside-1000", |n| lock_table_owner(n, 1000)),
    ("lock-table-savepoint-of-1000", |n| savepoints(n, 1000)),
    ("lock-table-savepoints-of-one", savepoints_of_one),
    ("lock-table-hand-over", |n| crowd(n, 2, Mode::X, false)),
    ("lock-table-crowd-leave", |n| crowd(n, CROWD, Mode::S, true)),
    ("lock-table-crowd-grant", |n| {
        crowd(n, CROWD, Mode::X, false)
    }),
];

fn semaphore(rounds: usize) -> usize {
    let semaphore = Semaphore::new(2).expect("in range");
    for _ in 0..rounds {
        drop(black_box(semaphore.acquire(1).wait()));
    }
    1
}

fn intent(rounds: usize) -> usize {
    let lock = IntentLock::new();
    for _ in 0..rounds {
        drop(black_box(lock.lock(Mode::Ix).wait()));
    }
    1
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Name {
    Root,
    Leaf(u32),
}

impl Resource for Name {
    fn parent(&self) -> Option<Self> {
        matches!(self, Name::Leaf(_)).then_some(Name::Root)
    }
}

/// The cheapest hasher, so that the table itself is counted.
#[derive(Default)]
struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, n: u32) {
        self.0 = (self.0 + u64::from(n)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_isize(&mut self, n: isize) {
        self.write_u32(n as u32);
    }
}

/// A lock on a name, and on its parent if it has one, by an owner that holds nothing else.
fn lock_table(rounds: usize, name: Name, mode: Mode) -> usize {
    let locks = LockTable::with_hasher(BuildHasherDefault::<Multiply>::default());
    let mut owner = locks.owner(0);
    for _ in 0..rounds {
        let name = black_box(name);
        owner.lock(&name, mode).wait().expect("no deadlock");
        owner.release(&name).expect("it was granted");
    }
    1
}

/// Like `lock_table` of a leaf, with a new owner each time, while others keep the parent's intent.
fn lock_table_owner(rounds: usize, beside: usize) -> usize {
    let locks = LockTable::with_hasher(BuildHasherDefault::<Multiply>::default());
    let mut sessions: Vec<_> = (0..beside).map(|_| locks.owner(0)).collect();
    for session in &mut sessions {
        for _ in 0..2 {
            let savepoint = session.savepoint();
            let leaf = session.try_lock(&Name::Leaf(8), Mode::X);
            leaf.expect("nobody else is there");
            session.release_to(savepoint).expect("its own");
        }
    }
    for _ in 0..rounds {
        let mut owner = locks.owner(0);
        let leaf = black_box(Name::Leaf(7));
        owner.lock(&leaf, Mode::X).wait().expect("no deadlock");
    }
    1
}

const CROWD: usize = 10_000;

/// So many waits behind IX. In turn, the first of them leaves or gets its lock, and begins to wait
/// again behind all others.
fn crowd(rounds: usize, waits: usize, mode: Mode, leave: bool) -> usize {
    let locks = LockTable::with_hasher(BuildHasherDefault::<Multiply>::default());
    let mut holder = locks.owner(0);
    holder.try_lock(&Row(0), Mode::Ix).expect("nobody has it");
    let leaves = Cell::new(false);
    let one = |mut owner: Owner<Row, _>| {
        let leaves = &leaves;
        async move {
            while black_box(true) {
                let mut wait = owner.lock(&Row(0), mode);
                poll_fn(|cx| match leaves.take() {
                    true => Poll::Ready(()),
                    false => Pin::new(&mut wait).poll(cx).map(drop),
                })
                .await;
                drop(wait);
                owner.release_all();
            }
        }
    };
    let mut crowd: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    crowd.extend((0..waits).map(|_| Box::pin(one(locks.owner(0))) as Pin<Box<_>>));
    let mut cx = Context::from_waker(Waker::noop());
    for one in &mut crowd {
        assert!(one.as_mut().poll(&mut cx).is_pending());
    }
    let _holder = leave.then_some(holder);
    for round in 0..rounds {
        leaves.set(leave);
        assert!(crowd[round % waits].as_mut().poll(&mut cx).is_pending());
    }
    leaves.set(false);
    1
}

/// Another type than `Name`, so that the code for `Name` is the same as without these paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Row(u32);

impl Resource for Row {
    fn parent(&self) -> Option<Self> {
        (self.0 > 0).then_some(Self(0))
    }
}

/// A statement with a savepoint, which fails, by an owner that holds `held` rows; and one that
/// locks nothing.
fn savepoints(rounds: usize, held: u32) -> usize {
    let locks = LockTable::with_hasher(BuildHasherDefault::<Multiply>::default());
    let mut owner = locks.owner(0);
    for row in (1..=held).map(Row) {
        owner.try_lock(&row, Mode::X).expect("nobody else is there");
    }
    for _ in 0..rounds {
        for row in [Some(Row(held + 1)), None] {
            let savepoint = owner.savepoint();
            if let Some(row) = black_box(row) {
                owner.try_lock(&row, Mode::X).expect("nobody else is there");
            }
            owner.release_to(savepoint).expect("its own");
        }
    }
    2
}

/// One row, locked and counted after each of `rounds` savepoints, and released as often.
fn savepoints_of_one(rounds: usize) -> usize {
    let locks = LockTable::with_hasher(BuildHasherDefault::<Multiply>::default());
    let mut owner = locks.owner(0);
    let row = Row(7);
    for _ in 0..rounds {
        owner.savepoint();
        owner.try_lock(black_box(&row), Mode::X).expect("its own");
        black_box(owner.grants(&row));
    }
    for _ in 0..rounds {
        owner.release(black_box(&row)).expect("it was granted");
    }
    1
}

fn gate(rounds: usize) -> usize {
    let gate = TierGate::new();
    for round in 0..rounds {
        let mut ticket = gate.join_ref(round as u32);
        ticket.enter().wait();
        black_box(&ticket);
    }
    1
}
