//! Tiers of work through a lock table, with real threads: each reader takes the next task and S on
//! its tier under one mutex, so that S is granted in the order of the list, then IX on the tier
//! before it, which waits until nobody there holds S any more.
//!
//! ```text
//! cargo run --release --example tier_locks
//! ```
//!
//! This is what a lock table can do. `TierGate` does it with less, and holds back a tier also if the
//! one just before it is empty.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use conversant::lock_table::{LockError, LockTable, Resource};
use conversant::modes::Mode;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Tier(u32);

impl Resource for Tier {
    fn parent(&self) -> Option<Self> {
        None
    }
}

struct Task {
    id: usize,
    tier: u32,
    length: Duration,
}

#[derive(Debug)]
struct Row {
    id: usize,
    tier: u32,
    start: Duration,
    end: Duration,
}

fn main() {
    // Tiers, tasks in each, and their length in hundredths of the original's.
    let tiers = [
        (100, 4, 101),
        (200, 2, 92),
        (300, 1, 83),
        (400, 2, 74),
        (500, 1, 65),
    ];
    let tasks = tiers
        .into_iter()
        .flat_map(|(tier, n, ms)| (0..n).map(move |_| (tier, ms)));
    let tasks = (1..).zip(tasks).map(|(id, (tier, ms))| Task {
        id,
        tier,
        length: Duration::from_millis(ms),
    });
    let queue = Mutex::new(tasks.collect::<VecDeque<Task>>());
    let locks = LockTable::new();
    let rows = Mutex::new(Vec::new());
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| {
                while let Some(row) = next(&queue, &locks, begin).expect("no circle in a list") {
                    rows.lock().unwrap().push(row);
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap();
    rows.sort_by_key(|row| row.id);
    println!(
        "{:>4} {:>5} {:>9} {:>9}",
        "task", "tier", "start ms", "end ms"
    );
    for Row {
        id,
        tier,
        start,
        end,
    } in &rows
    {
        println!(
            "{id:>4} {tier:>5} {:>9} {:>9}",
            start.as_millis(),
            end.as_millis()
        );
    }
    for (one, other) in rows
        .iter()
        .flat_map(|one| rows.iter().map(move |other| (one, other)))
    {
        assert!(one.tier >= other.tier || one.end <= other.start);
    }
    assert!(locks.is_empty() && locks.deadlocks().is_empty());
}

/// Does the next task, if there is one.
fn next(
    queue: &Mutex<VecDeque<Task>>,
    locks: &LockTable<Tier>,
    begin: Instant,
) -> Result<Option<Row>, LockError<Tier>> {
    let mut owner = locks.owner(0);
    let mut receive = queue.lock().unwrap();
    let Some(Task { id, tier, length }) = receive.pop_front() else {
        return Ok(None);
    };
    owner.lock(&Tier(tier), Mode::S).wait()?;
    // Not before S is held: the order of the list would be lost.
    drop(receive);
    owner.lock(&Tier(tier - 100), Mode::Ix).wait()?;
    let start = begin.elapsed();
    thread::sleep(length);
    let end = begin.elapsed();
    // Both are released with the owner.
    Ok(Some(Row {
        id,
        tier,
        start,
        end,
    }))
}
