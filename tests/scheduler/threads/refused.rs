//! Futures that have begun, on a pool that then refuses a worker.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;

use conversant::limit::Limit;
use conversant::scheduler::{CallerOptions, Ending, Scheduler};

use crate::threads::pools::{Sent, on_pool};
use crate::threads::stage::{finishes, gives, until};

/// Where a future leaves its waker.
type Bell = Arc<Mutex<Option<Waker>>>;

/// Leaves its waker when it is first polled, and ends when it is polled again.
fn twice(bell: &Bell) -> impl Future<Output = Result<u32, ()>> + use<> {
    let (bell, mut polls) = (Arc::clone(bell), 0);
    poll_fn(move |cx| {
        polls += 1;
        if polls > 1 {
            return Poll::Ready(Ok(polls));
        }
        *bell.lock().unwrap() = Some(cx.waker().clone());
        Poll::Pending
    })
}

fn ring(bell: &Bell) {
    let waker = bell.lock().unwrap().take();
    waker.into_iter().for_each(Waker::wake);
}

/// The pool runs the first worker at once: it polls the future, and leaves. Then the future is
/// woken, and the pool refuses a worker for it, all within the submission.
#[test]
fn a_submission_does_not_take_back_what_has_begun() {
    finishes(|| {
        let bell = Bell::default();
        let (starts, rung) = (AtomicU32::new(0), Arc::clone(&bell));
        let pool = move |job: Sent| {
            if starts.fetch_add(1, SeqCst) == 1 {
                return Err("refused once".into());
            }
            job();
            ring(&rung);
            Ok(())
        };
        let scheduler = Scheduler::builder().workers(1).pool(pool).build().unwrap();
        let options = CallerOptions {
            cap: Limit::SERIAL,
            ..CallerOptions::default()
        };
        let caller = scheduler.caller("main", options).unwrap();
        let mut task = caller.spawn(twice(&bell)).map_err(|e| e.reason).unwrap();
        // It waits for a worker, which the next submission brings. The unit of the cap is free
        // after that.
        let mut next = gives(&caller, 7);
        assert_eq!(task.outcome().wait().unwrap().verdict.ok(), Some(2));
        assert_eq!(next.outcome().wait().unwrap().verdict.ok(), Some(7));
    });
}

/// Nobody else could ever run it.
#[test]
fn one_that_is_woken_for_nobody_is_cancelled_when_its_scheduler_is_gone() {
    finishes(|| {
        let (bell, refuses) = (Bell::default(), Arc::new(AtomicBool::new(false)));
        let refused = Arc::clone(&refuses);
        let (scheduler, caller) = on_pool(2, move |job: Sent| match refused.load(SeqCst) {
            true => Err("no room".into()),
            false => {
                thread::spawn(job);
                Ok(())
            }
        });
        let mut task = caller.spawn(twice(&bell)).map_err(|e| e.reason).unwrap();
        until(|| bell.lock().unwrap().is_some() && scheduler.workers().live == 0);
        refuses.store(true, SeqCst);
        drop((scheduler, caller));
        assert!(!task.has_ended());
        ring(&bell);
        let outcome = task.outcome().wait().unwrap();
        assert_eq!(outcome.verdict.ending(), Ending::Cancelled);
    });
}
