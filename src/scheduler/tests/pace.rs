//! How many tasks a worker claims, by how long recent tasks took.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::scheduler::caller::CallerOptions;
use crate::scheduler::{Place, Scheduler};

/// How many of three tasks were claimed when the first of them ran; for each of two workers, one
/// after the other on a pool.
fn taken_at_first(claim_time: Duration) -> Vec<u64> {
    let (to_run, workers) = channel::<Box<dyn FnOnce() + Send>>();
    let pool = move |worker| to_run.send(worker).map_err(|_| "gone".into());
    let builder = Scheduler::builder().workers(1).claim_time(claim_time);
    let scheduler = builder.pool(pool).build().unwrap();
    let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
    let (taken, found) = channel();
    for _ in 0..2 {
        for _ in 0..3 {
            let (shared, taken) = (Arc::clone(&scheduler.shared), taken.clone());
            let tell = move || taken.send(shared.lock().taken).map_err(drop);
            caller.exec_detached(Place::new(), tell).unwrap();
        }
        workers.try_iter().for_each(|worker| worker());
    }
    let found: Vec<_> = found.try_iter().collect();
    vec![found[0], found[3] - found[2]]
}

#[test]
fn a_worker_that_has_run_no_task_uses_the_pace_of_the_last_one() {
    assert_eq!(taken_at_first(Duration::MAX), [1, 3]);
    assert_eq!(taken_at_first(Duration::ZERO), [1, 1]);
}
