//! What the figures share: the workload W10, and rows by task.

use std::time::Duration;

use conversant::scheduler::{CallerOptions, Record};
use conversant::simulator::{CallerId, Simulation, Work};

/// Tier, number of tasks, and the length of each in tenths of a second.
pub(crate) const W10: [(u32, u64, u64); 5] = [
    (100, 4, 101),
    (200, 2, 92),
    (300, 1, 83),
    (400, 2, 74),
    (500, 1, 65),
];

pub(crate) fn tenths(n: u64) -> Duration {
    Duration::from_millis(n * 100)
}

pub(crate) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A simulation with one caller that has the default options.
pub(crate) fn one_caller(workers: u32) -> (Simulation, CallerId) {
    let mut sim = Simulation::new(workers).unwrap();
    let caller = sim.caller("main", CallerOptions::default()).unwrap();
    (sim, caller)
}

/// Submits one tier of W10.
pub(crate) fn submit_tier(sim: &mut Simulation, caller: CallerId, row: (u32, u64, u64)) {
    let (tier, tasks, takes) = row;
    for _ in 0..tasks {
        sim.submit(caller, Work::takes(tenths(takes)).tier(tier))
            .unwrap();
    }
}

/// The rows in the order of their tasks' numbers.
pub(crate) fn by_id(sim: &Simulation) -> Vec<Record> {
    let mut rows = sim.records().to_vec();
    rows.sort_by_key(|row| row.task.id);
    rows
}

/// Start and end of the task of this number, from 1.
pub(crate) fn span(sim: &Simulation, id: u64) -> (Duration, Duration) {
    let rows = sim.records().iter();
    let row = rows.clone().find(|row| row.task.id.get() == id);
    let run = row.and_then(|row| row.run).expect("it ran");
    (run.start, run.end)
}

/// The numbers of the tasks in the order of their starts; those that start at one
/// instant in the order of their workers.
pub(crate) fn order_of_starts(sim: &Simulation) -> Vec<u64> {
    let runs = sim.records().iter();
    let mut starts: Vec<(Duration, u32, u64)> = runs
        .filter_map(|row| {
            row.run
                .map(|run| (run.start, run.worker, row.task.id.get()))
        })
        .collect();
    starts.sort();
    starts.into_iter().map(|(.., id)| id).collect()
}
