//! Tiers of work through a lock table, with real threads. Under one mutex each reader takes the
//! next task and S on its tier, so that S is granted in the order of the list. Then it takes IX on
//! the tier before, which waits until no reader holds S there.
//!
//! ```text
//! cargo run --release --example tier_locks
//! ```
//!
//! This shows what a lock table can do. `TierGate` does it with less, and holds a tier back
//! even if the tier just before it is empty.

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
pub(crate) struct Row {
    id: usize,
    tier: u32,
    start: Duration,
    end: Duration,
}

fn main() {
    println!(
        "{:>4} {:>5} {:>9} {:>9}",
        "task", "tier", "start ms", "end ms"
    );
    for row in run(Duration::from_millis(1)) {
        let (start, end) = (row.start.as_millis(), row.end.as_millis());
        println!("{:>4} {:>5} {start:>9} {end:>9}", row.id, row.tier);
    }
}

/// Runs all tasks on five readers; returns their rows by number. A tenth of a second of the
/// original takes `tenth`.
pub(crate) fn run(tenth: Duration) -> Vec<Row> {
    // Tiers, number of tasks in each, and their length in tenths of a second.
    let tiers = [
        (100, 4, 101),
        (200, 2, 92),
        (300, 1, 83),
        (400, 2, 74),
        (500, 1, 65),
    ];
    let tasks = tiers
        .into_iter()
        .flat_map(|(tier, n, tenths)| (0..n).map(move |_| (tier, tenths)));
    let tasks = (1..).zip(tasks).map(|(id, (tier, tenths))| Task {
        id,
        tier,
        length: tenth * tenths,
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
    for (one, other) in rows
        .iter()
        .flat_map(|one| rows.iter().map(move |other| (one, other)))
    {
        assert!(one.tier >= other.tier || one.end <= other.start);
    }
    assert!(locks.is_empty() && locks.deadlocks().is_empty());
    rows
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
    // Not before S is held: otherwise the order of the list is lost.
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
