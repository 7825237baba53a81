//! Job workers: two tenants, one group for each account (one of its jobs at a time), leases,
//! retries after a back-off, dead jobs. One worker vanishes with its claims; when the lease is
//! over, other workers do those jobs.
//!
//! `cargo run --example job_workers`

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use conversant::job_queue::Place;
use conversant::prelude::*;

/// Runs until the queue is closed and no job is left to claim.
fn work(jobs: &JobQueue<u32, String>, done: &Mutex<BTreeMap<String, u32>>) {
    while let Ok(claims) = jobs.claim(4).wait() {
        for claim in claims {
            let attempt = claim.attempt();
            let fails = *claim == "bank 3.2" || *claim == "shop 1.5" && attempt == 1;
            // A worker that is too late has changed nothing: another has the job.
            if fails {
                claim.fail().ok();
            } else if let Ok(taken) = claim.complete() {
                let name = taken.job;
                assert_eq!(
                    done.lock().unwrap().insert(name, attempt),
                    None,
                    "done once"
                );
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let jobs = JobQueue::builder()
        .lease(Duration::from_millis(200))
        .attempts(3)
        .back_off(Duration::from_millis(1), Duration::from_secs(1))
        .build()?;
    // Ends leases and back-offs on time.
    let _ticker = Ticker::spawn(jobs.clone(), Instant::now())?;
    jobs.set_weight("shop", 2)?;
    // By key: urgent jobs first.
    for urgency in 0..8 {
        for tenant in ["bank", "shop"] {
            for account in 0..5 {
                let place = Place::new().tenant(tenant).group(account);
                jobs.push(urgency, format!("{tenant} {account}.{urgency}"), place)?;
            }
        }
    }
    // Nothing more comes in; waiting jobs are still done.
    jobs.close();

    let lost = jobs.try_claim(6);
    let names: Vec<&str> = lost.iter().map(|claim| claim.as_str()).collect();
    println!("a worker vanishes with {}", names.join(", "));

    let done = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| work(&jobs, &done));
        }
    });
    let done = done.into_inner()?;
    println!("{} jobs are done, each once", done.len());
    for name in ["shop 0.0", "shop 1.5"] {
        println!("{name} was tried again: {}", done[name] > 1);
    }
    for id in jobs.dead() {
        let dead = jobs.remove(id)?;
        println!("{} is dead after {} attempts", dead.job, dead.attempts);
    }
    let late = lost.into_iter().filter_map(|claim| claim.complete().err());
    println!(
        "{} claims of the worker that vanished are refused",
        late.count()
    );
    Ok(())
}
