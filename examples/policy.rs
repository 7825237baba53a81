//! One policy, tried in virtual time and then run on a worker: weights, tiers, groups and a
//! bump. The code is the same; both start the tasks in the same order.
//!
//! `cargo run --example policy`

use std::error::Error;
use std::time::Duration;

use conversant::prelude::*;
use conversant::scheduler::Record;
use conversant::simulator::{Driver, Simulation, Work};

/// Two callers: one with urgent tasks, in turns; one with tiers.
fn policy<D: Driver>(driver: &mut D) -> Result<(), Box<dyn Error>> {
    let weight = |weight| CallerOptions {
        weight,
        ..CallerOptions::default()
    };
    let web = driver.caller("web", weight(2))?;
    let etl = driver.caller("etl", weight(1))?;
    let ledger = driver.group(&etl, Limit::SERIAL, DEFAULT_LEVEL)?;
    let second = Work::takes(Duration::from_secs(1));
    let done = || Ok(());
    driver.at_once(|driver| {
        for _ in 0..3 {
            driver.submit(&etl, Some(&ledger), second.tier(1), done)?;
        }
        for _ in 0..2 {
            driver.submit(&etl, None, second, done)?;
        }
        for _ in 0..5 {
            driver.submit(&web, None, second, done)?;
        }
        driver.submit(&web, None, second.bump(200), done)
    })?;
    driver.synchronize(&web)?;
    driver.synchronize(&etl)?;
    Ok(())
}

/// In the order of their starts.
fn order(mut records: Vec<Record>) -> String {
    records.sort_by_key(|record| record.run.map(|run| run.start));
    let name = |Record { task, .. }| format!("{}{}.{}", task.caller, task.tier, task.id);
    let names: Vec<_> = records.into_iter().map(name).collect();
    names.join(" ")
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut sim = Simulation::new(1)?;
    policy(&mut sim)?;
    println!("in virtual time it takes {:?}", sim.now());

    let (log, records) = crossbeam_channel::unbounded();
    // Exact order: one worker that takes one task at a time.
    let scheduler = Scheduler::builder().workers(1).claims(1).log(log).build()?;
    policy(&mut &scheduler)?;

    let (simulated, run) = (
        order(sim.take_records()),
        order(records.try_iter().collect()),
    );
    println!("simulated: {simulated}\nrun:       {run}");
    assert_eq!(simulated, run);
    Ok(())
}
