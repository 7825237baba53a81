//! What happens where no worker starts: futures that have begun, errors and names that panic.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;

use conversant::limit::Limit;
use conversant::scheduler::{CallerOptions, Ending, Place, Scheduler};

use crate::threads::doors::{Door, at_the_door, gave, through};
use crate::threads::pools::{Sent, on_pool, refused};
use crate::threads::stage::{end, finishes, gives, until};

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

/// What is submitted comes back, and what ended in the same event has its ending.
#[test]
fn a_refusal_that_cannot_be_shown_loses_nothing() {
    #[derive(Debug)]
    struct Rude;
    impl fmt::Display for Rude {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            std::panic::resume_unwind(Box::new("shown"))
        }
    }
    impl std::error::Error for Rude {}
    finishes(|| {
        let (scheduler, caller) = on_pool(1, |_: Sent| Err(Rude.into()));
        refused(&scheduler, &caller, 1, "the start panicked");
        let other = scheduler.caller("other", CallerOptions::default()).unwrap();
        let paused = other.group(0, 100).unwrap();
        let waits = other.exec_with(Place::new().group(&paused), || Ok::<_, ()>(()));
        let mut waits = waits.unwrap();
        other.cancel_all();
        let outcome = waits.outcome().wait().unwrap();
        assert_eq!(outcome.verdict.ending(), Ending::Cancelled);
        end(&scheduler);
    });
}

#[test]
fn a_thread_whose_name_is_bad_is_reported() {
    finishes(|| {
        let builder = Scheduler::builder().workers(1).thread_name("a\0b");
        let scheduler = builder.build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        refused(&scheduler, &caller, 1, "the start panicked");
        end(&scheduler);
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
