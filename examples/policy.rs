//! One policy, tried in virtual time and then run on a worker: weights, tiers, groups and
//! a bump. Both start the tasks in the same order.
//!
//! `cargo run --example policy`

use std::error::Error;
use std::time::Duration;

use conversant::prelude::*;
use conversant::scheduler::{How, Place, Record};
use conversant::simulator::{Simulation, Work};

/// A task: whose it is, its tier, whether it is in the caller's serial group, its bump.
type Task = (usize, u32, bool, Option<u8>);
/// Callers by name and weight.
const CALLERS: [(&str, u32); 2] = [("web", 2), ("etl", 1)];
const WEB: usize = 0;
const ETL: usize = 1;

fn tasks() -> Vec<Task> {
    let mut tasks = Vec::new();
    tasks.extend([(ETL, 1, true, None); 3]);
    tasks.extend([(ETL, 0, false, None); 2]);
    tasks.extend([(WEB, 0, false, None); 5]);
    tasks.push((WEB, 0, false, Some(200)));
    tasks
}

fn options(weight: u32) -> CallerOptions {
    CallerOptions {
        weight,
        ..CallerOptions::default()
    }
}

fn simulate(tasks: &[Task]) -> Result<Vec<Record>, Box<dyn Error>> {
    let mut sim = Simulation::new(1)?;
    let mut callers = Vec::new();
    for (name, weight) in CALLERS {
        let caller = sim.caller(name, options(weight))?;
        callers.push((caller, sim.group(caller, 1, 100)?));
    }
    for &(caller, tier, serial, bump) in tasks {
        let (caller, group) = callers[caller];
        let mut work = Work::takes(Duration::from_secs(1)).tier(tier);
        if serial {
            work = work.group(group);
        }
        if let Some(level) = bump {
            work = work.bump(level);
        }
        sim.submit(caller, work)?;
    }
    sim.run();
    println!("in virtual time it takes {:?}", sim.now());
    Ok(sim.take_records())
}

fn run(tasks: &[Task]) -> Result<Vec<Record>, Box<dyn Error>> {
    let (log, records) = crossbeam_channel::unbounded();
    // Exactly in order: one worker, which takes one task at a time.
    let scheduler = Scheduler::builder().workers(1).claims(1).log(log).build()?;
    let mut callers = Vec::new();
    for (name, weight) in CALLERS {
        let caller = scheduler.caller(name, options(weight))?;
        let group = caller.group(1, 100)?;
        callers.push((caller, group));
    }
    // All of them arrive at one instant.
    let hold = scheduler.hold();
    for &(caller, tier, serial, bump) in tasks {
        let (caller, group) = &callers[caller];
        let mut place = Place::new().tier(tier);
        if serial {
            place = place.group(group);
        }
        if let Some(level) = bump {
            place = place.bump(level);
        }
        caller.exec_with(place, || Ok::<_, String>(()))?.detach();
    }
    drop(hold);
    scheduler.shutdown(How::Drain).wait()?;
    Ok(records.try_iter().collect())
}

/// In order of their starts.
fn order(mut records: Vec<Record>) -> Vec<String> {
    records.sort_by_key(|record| record.run.map(|run| run.start));
    let name = |Record { task, .. }| format!("{}{}.{}", task.caller, task.tier, task.id);
    records.into_iter().map(name).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let tasks = tasks();
    let (simulated, run) = (order(simulate(&tasks)?), order(run(&tasks)?));
    println!("simulated: {}", simulated.join(" "));
    println!("run:       {}", run.join(" "));
    assert_eq!(simulated, run);
    Ok(())
}
