//! S1, S2, S3: permits. C5: how the cost grows with threads.

#[cfg(test)]
mod tests;

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread::yield_now;

use anyhow::{Result, ensure};
use conversant::semaphore::Semaphore;

use crate::contender::{Cell, Contender, Entry, Role, Sample};
use crate::drive::drive;
use crate::race::race;
use crate::work::work;

const OURS: &str = "conversant Semaphore";
const PAIR: &str = "fetch pair";
const LOOP: &str = "CAS-and-yield loop";
const PARKING_LOT: &str = "parking_lot mutex+condvar";
const TOKIO: &str = "tokio";

/// While the time is taken, one turn in this many is checked.
const CHECK_EVERY: u64 = 64;

pub fn cells() -> Vec<Cell> {
    let alone = Cell::new("S1", "semaphore, uncontended", || {
        let shape = Shape {
            threads: 1,
            permits: 1,
            hold: 0,
        };
        let mut all = vec![
            entry(PAIR, Role::Limit, FetchPair(AtomicI64::new(1)), shape),
            entry(
                "conversant try_acquire",
                Role::Ours,
                OursTry(ours(1)),
                shape,
            ),
        ];
        all.extend(contenders(shape));
        all
    });
    let contended =
        |row, title: &str, shape: Shape| Cell::new(row, title, move || contenders(shape));
    let shape = |threads, permits, hold| Shape {
        threads,
        permits,
        hold,
    };
    vec![
        alone.target(OURS, 1.45, PAIR).target(OURS, 0.5, TOKIO),
        contended("S2", "two threads, one permit, held 0", shape(2, 1, 0)).target(OURS, 1.5, LOOP),
        contended(
            "S2",
            "two threads, one permit, held 1 us",
            shape(2, 1, 1_000),
        )
        .target(OURS, 1.15, LOOP),
        contended(
            "S3",
            "eight threads, 3 permits held 1 us",
            shape(8, 3, 1_000),
        )
        .target(OURS, 1.0, PARKING_LOT),
        contended("S3", "eight threads, 64 permits held 0", shape(8, 64, 0)).target(
            OURS,
            1.2,
            PARKING_LOT,
        ),
        contended("C5", "8 threads, one permit, held 1 us", shape(8, 1, 1_000)),
        contended(
            "C5",
            "64 threads, one permit, held 1 us",
            shape(64, 1, 1_000),
        ),
    ]
}

#[derive(Clone, Copy)]
struct Shape {
    threads: usize,
    permits: u32,
    /// Nanoseconds of work with the permit.
    hold: u64,
}

/// A number of permits.
trait Permits: Send + Sync + 'static {
    /// Runs `f` with one permit.
    fn with(&self, f: impl FnOnce());

    /// How many are free while no thread has one.
    fn free(&self) -> i64;
}

fn contenders(shape: Shape) -> Vec<Entry> {
    let count = shape.permits as usize;
    let all = i64::from(shape.permits);
    let blocking = shape.threads > 1;
    let tokio = tokio::sync::Semaphore::new(count);
    let async_lock = async_lock::Semaphore::new(count);
    vec![
        entry(LOOP, Role::Limit, Spin(AtomicI64::new(all)), shape),
        entry(OURS, Role::Ours, ours(shape.permits), shape),
        entry(PARKING_LOT, Role::Peer, ParkingLot::new(all), shape),
        entry("async-lock", Role::Peer, async_lock, shape),
        entry(
            TOKIO,
            Role::Peer,
            Tokio {
                semaphore: tokio,
                blocking,
            },
            shape,
        ),
    ]
}

fn ours(permits: u32) -> Semaphore {
    Semaphore::new(permits).expect("in range")
}

fn entry(name: &str, role: Role, peer: impl Permits, shape: Shape) -> Entry {
    Entry::new(name, role, Shared { peer, shape })
}

/// Each thread takes a permit, works, and gives it back. More threads inside than permits are an
/// error; this is checked now and then, and at the end in every turn. So is a permit that is
/// missing after a run.
struct Shared<P> {
    peer: P,
    shape: Shape,
}

impl<P: Permits> Contender for Shared<P> {
    fn run(&mut self, ops: u64) -> Result<Sample> {
        let many = self.shape.threads > 1;
        self.run_checked(ops, |turn| many && turn % CHECK_EVERY == CHECK_EVERY / 3)
    }

    fn check(&mut self) -> Result<()> {
        self.run_checked(4_000, |_| true).map(|_| ())
    }
}

impl<P: Permits> Shared<P> {
    fn run_checked(&self, ops: u64, is_checked: impl Fn(u64) -> bool + Sync) -> Result<Sample> {
        let (inside, wrong) = (AtomicU64::new(0), AtomicU64::new(0));
        let (most, hold) = (self.shape.permits, self.shape.hold);
        let turn = |turn: u64| {
            self.peer.with(|| {
                let is_checked = is_checked(turn);
                if is_checked && inside.fetch_add(1, Ordering::Relaxed) >= u64::from(most) {
                    wrong.fetch_add(1, Ordering::Relaxed);
                }
                work(hold);
                if is_checked {
                    inside.fetch_sub(1, Ordering::Relaxed);
                }
            });
        };
        let sample = race(self.shape.threads, ops, |_, each| {
            let turn = &turn;
            move || (0..each).for_each(turn)
        });
        let wrong = wrong.into_inner();
        ensure!(wrong == 0, "{wrong} times more inside than permits");
        let free = self.peer.free();
        ensure!(
            free == i64::from(most),
            "{free} of {most} permits came back"
        );
        Ok(sample)
    }
}

/// The least that counting can cost; it never waits, so it is no semaphore.
struct FetchPair(AtomicI64);

impl Permits for FetchPair {
    fn with(&self, f: impl FnOnce()) {
        black_box(self.0.fetch_sub(1, Ordering::Acquire));
        f();
        black_box(self.0.fetch_add(1, Ordering::Release));
    }

    fn free(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Exact, but a thread that finds no permit keeps its processor busy.
struct Spin(AtomicI64);

impl Permits for Spin {
    fn with(&self, f: impl FnOnce()) {
        let mut tries = 0_u32;
        let take = |free: i64| (free > 0).then(|| free - 1);
        while self
            .0
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, take)
            .is_err()
        {
            tries += 1;
            match tries % 64 {
                0 => yield_now(),
                _ => spin_loop(),
            }
        }
        f();
        self.0.fetch_add(1, Ordering::Release);
    }

    fn free(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct ParkingLot {
    free: parking_lot::Mutex<i64>,
    returned: parking_lot::Condvar,
}

impl ParkingLot {
    fn new(permits: i64) -> Self {
        Self {
            free: parking_lot::Mutex::new(permits),
            returned: parking_lot::Condvar::new(),
        }
    }
}

impl Permits for ParkingLot {
    fn with(&self, f: impl FnOnce()) {
        let mut free = self.free.lock();
        while *free == 0 {
            self.returned.wait(&mut free);
        }
        *free -= 1;
        drop(free);
        f();
        *self.free.lock() += 1;
        self.returned.notify_one();
    }

    fn free(&self) -> i64 {
        *self.free.lock()
    }
}

struct Tokio {
    semaphore: tokio::sync::Semaphore,
    blocking: bool,
}

impl Permits for Tokio {
    fn with(&self, f: impl FnOnce()) {
        let permit = drive(self.semaphore.acquire(), self.blocking).expect("not closed");
        f();
        drop(permit);
    }

    fn free(&self) -> i64 {
        self.semaphore.available_permits() as i64
    }
}

impl Permits for async_lock::Semaphore {
    fn with(&self, f: impl FnOnce()) {
        let permit = self.acquire_blocking();
        f();
        drop(permit);
    }

    fn free(&self) -> i64 {
        // It has no count: takes all permits that there are.
        let permits: Vec<_> = std::iter::from_fn(|| self.try_acquire()).collect();
        permits.len() as i64
    }
}

impl Permits for Semaphore {
    fn with(&self, f: impl FnOnce()) {
        let permit = self.acquire(1).wait().expect("not closed");
        f();
        drop(permit);
    }

    fn free(&self) -> i64 {
        self.available()
    }
}

struct OursTry(Semaphore);

impl Permits for OursTry {
    fn with(&self, f: impl FnOnce()) {
        let permit = self.0.try_acquire(1).expect("nobody else is there");
        f();
        drop(permit);
    }

    fn free(&self) -> i64 {
        self.0.available()
    }
}
