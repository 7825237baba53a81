//! A cancel cancels: nothing starts between its batches, whoever panics.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use conversant::limit::Limit;
use conversant::scheduler::{CallerOptions, How, OnFailure, Place, Verdict};

use crate::threads::stage::{Held, end, finishes, gives, one_caller, scheduler};

/// Cancelling the last task of an open tier opens the next one.
#[test]
fn a_cancelled_tier_lets_no_higher_one_start() {
    const MANY: u64 = 5_000;
    finishes(|| {
        for shuts_down in [false, true] {
            let (scheduler, caller) = one_caller(4);
            let paused = caller.group(Limit::AtMost(0), 100).unwrap();
            let hold = scheduler.hold();
            let submit = |place: Place<'_>| caller.exec_with(place, || Ok::<_, ()>(())).unwrap();
            for _ in 0..MANY {
                submit(Place::new().tier(1)).detach();
            }
            submit(Place::new().group(&paused)).detach();
            drop(hold);
            let summary = if shuts_down {
                scheduler.shutdown(How::Cancel).wait().unwrap();
                caller.synchronize().wait().unwrap()
            } else {
                caller.release(How::Cancel).wait().unwrap()
            };
            assert_eq!((summary.ok, summary.cancelled), (0, MANY + 1));
            end(&scheduler);
        }
    });
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker's");
    }
}

#[test]
fn a_waker_that_panics_turns_no_cancel_into_a_drain() {
    const MANY: u64 = 200;
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        let mut first = gives(&caller, 1);
        for _ in 1..MANY {
            gives(&caller, 1).detach();
        }
        let mut last = gives(&caller, 1);
        let waker = Waker::from(Arc::new(Panics));
        let mut cx = Context::from_waker(&waker);
        assert!(pin!(first.outcome()).poll(&mut cx).is_pending());
        {
            let mut outcome = pin!(last.outcome());
            assert!(outcome.as_mut().poll(&mut cx).is_pending());
            let mut shutdown = pin!(scheduler.shutdown(How::Cancel));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(shutdown.as_mut().poll(&mut cx).is_pending());
        }
        held.finish();
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.ok, summary.cancelled), (1, MANY + 1));
        scheduler.shutdown(How::Drain).wait().unwrap();
    });
}

/// A synchronize reports only what it covers, so it forgives nothing else.
#[test]
fn a_failure_that_no_synchronize_has_reported_goes_on_skipping() {
    finishes(|| {
        let scheduler = scheduler(2);
        let options = CallerOptions {
            on_failure: OnFailure::SkipHigherTiers,
            ..CallerOptions::default()
        };
        let caller = scheduler.caller("main", options).unwrap();
        let held = Held::start(&caller);
        let mut covered = pin!(caller.synchronize());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(covered.as_mut().poll(&mut cx).is_pending());
        let mut fails = caller.exec(|| Err::<(), _>("failed")).unwrap();
        assert!(matches!(
            fails.outcome().wait().unwrap().verdict,
            Verdict::Failed(_)
        ));
        held.finish();
        while covered.as_mut().poll(&mut cx).is_pending() {
            std::thread::yield_now();
        }
        let above = caller.exec_with(Place::new().tier(1), || Ok::<_, ()>(()));
        let verdict = above.unwrap().outcome().wait().unwrap().verdict;
        assert!(matches!(verdict, Verdict::Skipped));
        assert_eq!(caller.synchronize().wait().unwrap().failed, 1);
        let above = caller.exec_with(Place::new().tier(1), || Ok::<_, ()>(()));
        let verdict = above.unwrap().outcome().wait().unwrap().verdict;
        assert!(matches!(verdict, Verdict::Ok(())));
        end(&scheduler);
    });
}
