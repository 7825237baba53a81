//! Threads that lock in every order: each request ends, incompatible holders are never inside
//! together, and the table ends empty.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use conversant::limit::Bypass;
use conversant::lock_table::{LockError, LockTable, Owner, Resource};
use conversant::modes::Mode;

/// Two levels: a number below 8 is a root, others are below `n % 8`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Name(u32);

impl Resource for Name {
    fn parent(&self) -> Option<Self> {
        (self.0 >= 8).then_some(Name(self.0 % 8))
    }
}

const NAMES: u32 = 40;

/// xorshift: the same schedule of requests in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// The holders inside each resource: negative for one X, otherwise the number of S.
type Inside = Vec<AtomicI64>;

/// A resource, and if it is a root all below it.
fn below(name: u32) -> impl Iterator<Item = usize> {
    (name..NAMES)
        .filter(move |n| *n == name || name < 8 && n % 8 == name)
        .map(|n| n as usize)
}

/// An owner really holds what it was told that it holds: X alone, S only with S.
fn enter(inside: &Inside, name: u32, mode: Mode) {
    for one in below(name) {
        if mode == Mode::X {
            assert_eq!(inside[one].fetch_sub(1_000_000, Ordering::Relaxed), 0);
        } else {
            assert!(inside[one].fetch_add(1, Ordering::Relaxed) >= 0);
        }
    }
}

fn leave(inside: &Inside, name: u32, mode: Mode) {
    for one in below(name) {
        let change = if mode == Mode::X { 1_000_000 } else { -1 };
        inside[one].fetch_add(change, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Tally {
    granted: AtomicU64,
    deadlocks: AtomicU64,
    timed_out: AtomicU64,
}

fn session(owner: &mut Owner<Name>, random: &mut Random, inside: &Inside, tally: &Tally) -> u64 {
    let mut held: Vec<(u32, Mode)> = Vec::new();
    let mut requests = 0;
    for _ in 0..2 + random.below(4) {
        let name = random.below(u64::from(NAMES)) as u32;
        if held
            .iter()
            .any(|(other, _)| *other == name || other % 8 == name % 8)
        {
            continue;
        }
        let mode = if random.below(3) == 0 {
            Mode::S
        } else {
            Mode::X
        };
        requests += 1;
        let wait = owner.lock(&Name(name), mode);
        let result = match random.below(8) {
            0 => wait.wait_timeout(Duration::from_micros(random.below(200))),
            _ => Ok(wait.wait()),
        };
        match result {
            Ok(Ok(())) => {
                tally.granted.fetch_add(1, Ordering::Relaxed);
                enter(inside, name, mode);
                held.push((name, mode));
            }
            Ok(Err(LockError::Deadlock(deadlock))) => {
                assert_eq!(deadlock.victim, owner.id());
                assert!(deadlock.cycle.len() > 1);
                tally.deadlocks.fetch_add(1, Ordering::Relaxed);
                break;
            }
            Ok(Err(error)) => panic!("{error}"),
            Err(_) => {
                tally.timed_out.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    for &(name, mode) in &held {
        leave(inside, name, mode);
    }
    owner.release_all();
    requests
}

#[test]
fn deadlock_storm() {
    storm(LockTable::new());
}

#[test]
fn deadlock_storm_with_overtaking() {
    storm(LockTable::new().with_bypass(Bypass::AtMost(64)));
}

fn storm(locks: LockTable<Name>) {
    const OWNERS: u64 = 32;
    let total: u64 = if cfg!(debug_assertions) {
        30_000
    } else {
        1_000_000
    };
    let inside: Inside = (0..NAMES).map(|_| AtomicI64::new(0)).collect();
    let tally = Tally::default();
    let begun = Instant::now();
    thread::scope(|scope| {
        for n in 0..OWNERS {
            let mut owner = locks.owner((n % 3) as i32);
            let (inside, tally) = (&inside, &tally);
            scope.spawn(move || {
                let mut random = Random(0x9e37_79b9 + n);
                let mut requests = 0;
                while requests < total / OWNERS {
                    requests += session(&mut owner, &mut random, inside, tally);
                }
            });
        }
    });
    let elapsed = begun.elapsed();
    let snapshot = locks.snapshot();
    assert_eq!((snapshot.owners, snapshot.resources.len()), (0, 0));
    let deadlocks = tally.deadlocks.load(Ordering::Relaxed);
    assert!(deadlocks > 0, "the storm met none");
    println!(
        "{total} requests in {elapsed:.2?}: {} granted, {deadlocks} deadlocks, {} timed out",
        tally.granted.load(Ordering::Relaxed),
        tally.timed_out.load(Ordering::Relaxed),
    );
}

/// With one order of depth and hash there is no cycle, whatever the order of the lists.
#[test]
fn lock_many_alone_never_deadlocks() {
    let locks = LockTable::new();
    let rounds = if cfg!(debug_assertions) { 300 } else { 20_000 };
    thread::scope(|scope| {
        for n in 0..8u64 {
            let mut owner = locks.owner(0);
            scope.spawn(move || {
                let mut random = Random(77 + n);
                for _ in 0..rounds {
                    let names: Vec<_> = (0..4)
                        .map(|_| (Name(random.below(u64::from(NAMES)) as u32), Mode::X))
                        .collect();
                    owner.lock_many(names).wait().expect("no deadlock");
                    // Others come, and wait half-way.
                    thread::yield_now();
                    owner.release_all();
                }
            });
        }
    });
    assert!(locks.is_empty() && locks.deadlocks().is_empty());
}

/// A counter protected only by X: each owner sees what the previous one did.
#[test]
fn grants_publish_what_was_done_before() {
    struct Cell(std::cell::UnsafeCell<u64>);
    // SAFETY: in this test only the holder of X on its resource touches the cell.
    unsafe impl Sync for Cell {}
    let locks = LockTable::new();
    let cell = Cell(std::cell::UnsafeCell::new(0));
    let rounds = if cfg!(debug_assertions) {
        2_000
    } else {
        100_000
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            let (mut owner, cell) = (locks.owner(0), &cell);
            scope.spawn(move || {
                for _ in 0..rounds {
                    owner.lock(&Name(9), Mode::X).wait().unwrap();
                    // SAFETY: X on the resource is held until the release below.
                    unsafe { *cell.0.get() += 1 };
                    owner.release(&Name(9)).unwrap();
                }
            });
        }
    });
    assert_eq!(cell.0.into_inner(), 4 * rounds);
}
