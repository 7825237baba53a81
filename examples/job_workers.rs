//! Job workers: two tenants, a group for each account (one of its jobs at a time), leases,
//! second tries after a pause, jobs that die. One worker vanishes with all that it has
//! claimed: when its lease is over, others do that.
//!
//! `cargo run --example job_workers`

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use conversant::job_queue::Place;
use conversant::prelude::*;

/// Until the queue is closed and no job is left that could be claimed.
fn work(jobs: &JobQueue<u32, String>, done: &Mutex<BTreeMap<String, u32>>) {
    while let Ok(claims) = jobs.claim(4).wait() {
        for claim in claims {
            let attempt = claim.attempt();
            let fails = *claim == "bank 3.2" || *claim == "shop 1.5" && attempt == 1;
            // Whoever is too late has changed nothing: another has the job.
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
    // Has leases run out and second tries come.
    let _ticker = Ticker::spawn(jobs.clone(), Instant::now())?;
    jobs.set_weight("shop", 2)?;
    // By key: what is urgent first.
    for urgency in 0..8 {
        for tenant in ["bank", "shop"] {
            for account in 0..5 {
                let place = Place::new().tenant(tenant).group(account);
                jobs.push(urgency, format!("{tenant} {account}.{urgency}"), place)?;
            }
        }
    }
    // Nothing more comes in; what waits is still done.
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
