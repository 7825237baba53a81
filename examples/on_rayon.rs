//! A scheduler whose workers are jobs on a rayon pool: squares in one tier,
//! their sum in the next. Prints a summary.
//!
//! `cargo run --example on_rayon`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use conversant::scheduler::{CallerOptions, Place, Scheduler, Verdict};

const THREADS: u32 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(THREADS as usize)
        .build()?;
    let scheduler = Scheduler::builder()
        // No more workers than the pool has threads.
        .workers(THREADS)
        .pool(move |job| {
            pool.spawn(job);
            Ok(())
        })
        .build()?;
    let caller = scheduler.caller("squares", CallerOptions::default())?;

    let total = Arc::new(AtomicU64::new(0));
    for n in 1..=1000_u64 {
        let total = Arc::clone(&total);
        let square = move || {
            total.fetch_add(n * n, Relaxed);
            Ok::<_, String>(())
        };
        let place = Place::new().tier(1);
        caller
            .exec_with(place, square)
            .map_err(|refused| refused.reason)?
            .detach();
    }
    // The second tier starts when the first is done.
    let mut sum = caller
        .exec_with(Place::new().tier(2), move || {
            Ok::<_, String>(total.load(Relaxed))
        })
        .map_err(|refused| refused.reason)?;

    let summary = caller.synchronize().wait()?;
    println!("{} tasks, {} gave a result", summary.tasks, summary.ok);
    let outcome = sum.outcome().wait()?;
    match outcome.verdict {
        Verdict::Ok(sum) => println!("1² + 2² + ... + 1000² = {sum}"),
        other => println!("no sum: {other:?}"),
    }
    if let Some(run) = outcome.run {
        println!("the sum was taken by worker {} of {THREADS}", run.worker);
    }
    scheduler
        .shutdown(conversant::scheduler::How::Drain)
        .wait()?;
    Ok(())
}
