//! Futures that have begun, on a pool that then refuses a worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;

use conversant::limit::Limit;
use conversant::scheduler::{CallerOptions, Ending, Place, Scheduler};

use crate::threads::doors::{Door, at_the_door, gave, through};
use crate::threads::pools::{Sent, on_pool};
use crate::threads::stage::{finishes, gives, until};

/// The pool runs the first worker at once: it polls the future, and leaves. Then the future is
/// woken, and the pool refuses a worker for it, all within the submission.
#[test]
fn a_submission_does_not_take_back_what_has_begun() {
    finishes(|| {
        let door = Door::default();
        let (starts, opened) = (AtomicU32::new(0), door.clone());
        let pool = move |job: Sent| {
            if starts.fetch_add(1, SeqCst) == 1 {
                return Err("refused once".into());
            }
            job();
            opened.open();
            Ok(())
        };
        let scheduler = Scheduler::builder().workers(1).pool(pool).build().unwrap();
        let options = CallerOptions {
            cap: Limit::SERIAL,
            ..CallerOptions::default()
        };
        let caller = scheduler.caller("main", options).unwrap();
        let mut task = through(&caller, Place::new(), &door, 1);
        // It waits for a worker, which the next submission brings. The unit of the cap is free
        // after that.
        let mut next = gives(&caller, 7);
        assert_eq!([gave(&mut task), gave(&mut next)], [1, 7]);
    });
}

/// Nobody else could ever run it.
#[test]
fn one_that_is_woken_for_nobody_is_cancelled_when_its_scheduler_is_gone() {
    finishes(|| {
        let refuses = Arc::new(AtomicBool::new(false));
        let refused = Arc::clone(&refuses);
        let (scheduler, caller) = on_pool(2, move |job: Sent| match refused.load(SeqCst) {
            true => Err("no room".into()),
            false => {
                thread::spawn(job);
                Ok(())
            }
        });
        let (door, mut task) = at_the_door(&scheduler, &caller, Place::new(), 1);
        until(|| scheduler.workers().live == 0);
        refuses.store(true, SeqCst);
        drop((scheduler, caller));
        assert!(!task.has_ended());
        door.open();
        let outcome = task.outcome().wait().unwrap();
        assert_eq!(outcome.verdict.ending(), Ending::Cancelled);
    });
}
