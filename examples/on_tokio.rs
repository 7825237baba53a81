//! A task list, awaited from tokio. The scheduler's workers run it, by tier and by group; the
//! timers are tokio's.
//!
//! `cargo run --example on_tokio`

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use conversant::prelude::*;
use conversant::scheduler::{How, Place};

/// A task's tier, whether it writes to the ledger, and its name.
const LIST: [(u32, bool, &str); 6] = [
    (0, false, "fetch rates"),
    (0, true, "book rent"),
    (0, true, "book wages"),
    (0, false, "fetch orders"),
    (1, true, "close the day"),
    (2, false, "report"),
];

async fn nightly() -> Result<(), Box<dyn Error>> {
    let scheduler = Scheduler::builder().workers(3).build()?;
    let caller = scheduler.caller("nightly", CallerOptions::default())?;
    // One at a time, in this order.
    let ledger = caller.group(Limit::SERIAL, DEFAULT_LEVEL)?;
    let done = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for (tier, writes, name) in LIST {
        let place = Place::new().tier(tier).label(name);
        let place = if writes { place.group(&ledger) } else { place };
        let done = Arc::clone(&done);
        // While it sleeps, it occupies no worker.
        let sleep = tokio::time::sleep(Duration::from_millis(1));
        let task = caller.spawn_with(place, async move {
            sleep.await;
            done.lock().unwrap().push((tier, writes, name));
            match name {
                "fetch orders" => Err("no network"),
                _ => Ok(()),
            }
        });
        tasks.push((name, task?));
    }
    for (name, task) in tasks {
        println!("{name}: {}", task.await?.verdict);
    }
    let summary = caller.synchronize().await?;
    scheduler.shutdown(How::Drain).await?;
    println!("{} of {} went well", summary.ok, summary.tasks);
    let done = done.lock().unwrap();
    println!("tier by tier: {}", done.is_sorted_by_key(|(tier, ..)| tier));
    let written = done.iter().filter(|(_, writes, _)| *writes);
    let written: Vec<_> = written.map(|(.., name)| *name).collect();
    println!("the ledger: {}", written.join(", "));
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_time().build()?.block_on(nightly())
}
