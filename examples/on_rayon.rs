//! Tasks on rayon's pool: the files of a build are compiled side by side, in tiers, and linked one
//! at a time. A task that fails is tried again later; a ticker keeps the time, since no worker of a
//! pool waits for a date.
//!
//! `cargo run --example on_rayon`

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conversant::prelude::*;
use conversant::scheduler::Place;

fn main() -> Result<(), Box<dyn Error>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build()?;
    let scheduler = Scheduler::builder()
        .workers(2) // no more than the pool has threads
        .pool(move |worker| {
            pool.spawn(worker);
            Ok(())
        })
        .build()?;
    let scheduler = Arc::new(scheduler);
    let _ticker = Ticker::spawn(Arc::clone(&scheduler), Instant::now())?;
    let build = scheduler.caller("build", CallerOptions::default())?;

    // Tier 1 begins when all of tier 0 has ended.
    let compile = |file| move || Ok::<_, String>(format!("{file}.o"));
    let objects = ["main", "net", "disk"].map(compile);
    let mut tasks = build.exec_all(Place::new(), objects)?;
    let linker = build.group(Limit::SERIAL, DEFAULT_LEVEL)?;
    for program in ["app", "tests"] {
        let place = Place::new().tier(1).group(&linker);
        tasks.push(build.exec_with(place, move || Ok(program.to_string()))?);
    }
    for task in &mut tasks {
        let made = task.outcome().wait()?.verdict.ok();
        println!("made {}", made.ok_or("it failed")?);
    }
    println!("{}", build.synchronize().wait()?);

    let mut upload = build.exec(|| Err::<&str, _>("no network"))?;
    let verdict = upload.outcome().wait()?.verdict;
    println!("upload: {verdict}");
    let soon = Place::new().after(Duration::from_millis(5));
    let mut again = build.exec_with(soon, || Ok::<_, String>("uploaded"))?;
    println!("again: {}", again.outcome().wait()?.verdict);
    Ok(())
}
