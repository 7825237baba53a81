//! The waits as futures, polled by hand and dropped at every stage.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use conversant::scheduler::{How, SyncError, Verdict};

use crate::count::Count;
use crate::threads::stage::{Held, end, finishes, gives, one_caller, until};

/// One poll.
macro_rules! poll {
    ($future:expr, $waker:expr) => {
        $future.as_mut().poll(&mut Context::from_waker($waker))
    };
}

#[test]
fn an_outcome_wakes_once_and_is_ready() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let mut held = Held::start(&caller);
        let (count, waker) = Count::new();
        held.go();
        {
            let mut outcome = pin!(held.task.outcome());
            let mut polled = poll!(outcome, &waker);
            if polled.is_pending() {
                until(|| count.get() == 1);
                polled = poll!(outcome, &waker);
            }
            let Poll::Ready(Ok(outcome)) = polled else {
                panic!("woken for nothing");
            };
            assert!(matches!(outcome.verdict, Verdict::Ok(0)));
        }
        assert!(count.get() <= 1);
        until(|| count.is_let_go());
        end(&scheduler);
    });
}

#[test]
fn an_outcome_wakes_the_last_waker_it_was_polled_with() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let mut held = Held::start(&caller);
        let (old, old_waker) = Count::new();
        let (new, new_waker) = Count::new();
        let Held { task, go, .. } = &mut held;
        let mut outcome = pin!(task.outcome());
        assert!(poll!(outcome, &old_waker).is_pending());
        assert!(poll!(outcome, &new_waker).is_pending());
        assert!(old.is_let_go());
        go.send(()).unwrap();
        until(|| new.get() == 1);
        assert_eq!(old.get(), 0);
        assert!(poll!(outcome, &new_waker).is_ready());
        end(&scheduler);
    });
}

#[test]
fn an_outcome_dropped_at_every_stage_takes_nothing() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let mut held = Held::start(&caller);
        let (count, waker) = Count::new();
        drop(held.task.outcome());
        {
            let mut outcome = pin!(held.task.outcome());
            assert!(poll!(outcome, &waker).is_pending());
        }
        assert!(count.is_let_go(), "a dropped wait leaves no waker");
        {
            let Held { task, go, .. } = &mut held;
            let mut outcome = pin!(task.outcome());
            assert!(poll!(outcome, &waker).is_pending());
            go.send(()).unwrap();
            until(|| count.get() == 1);
            // Woken, and dropped unpolled.
        }
        let outcome = held.task.outcome().wait().unwrap();
        assert!(matches!(outcome.verdict, Verdict::Ok(0)));
        assert_eq!(count.get(), 1);
        end(&scheduler);
    });
}

#[test]
fn a_synchronize_dropped_at_every_stage_merges_its_epoch() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        let (count, waker) = Count::new();
        drop(caller.synchronize());
        {
            // Never polled: it covers no tasks yet, and does not make the caller busy.
            let _unpolled = caller.synchronize();
            let mut polled = pin!(caller.synchronize());
            assert!(poll!(polled, &waker).is_pending());
            let busy = poll!(pin!(caller.synchronize()), &waker);
            assert_eq!(busy, Poll::Ready(Err(SyncError::Busy)));
            assert!(poll!(polled, &waker).is_pending(), "the first goes on");
        }
        assert!(count.is_let_go());
        {
            let mut polled = pin!(caller.synchronize());
            assert!(poll!(polled, &waker).is_pending());
            gives(&caller, 1).detach();
            held.go();
            until(|| count.get() == 1);
            // Woken and complete, and dropped unpolled.
        }
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.tasks, summary.ok), (2, 2));
        end(&scheduler);
    });
}

#[test]
fn a_synchronize_wakes_when_the_last_of_its_epoch_ends_and_not_before() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let first = Held::start(&caller);
        let second = Held::start(&caller);
        let (count, waker) = Count::new();
        let mut synced = pin!(caller.synchronize());
        assert!(poll!(synced, &waker).is_pending());
        first.finish();
        assert_eq!(count.get(), 0);
        gives(&caller, 3).outcome().wait().unwrap();
        assert_eq!(count.get(), 0, "a later task is another epoch's");
        second.go();
        until(|| count.get() == 1);
        let Poll::Ready(Ok(summary)) = poll!(synced, &waker) else {
            panic!("woken for nothing");
        };
        assert_eq!(summary.tasks, 2);
        assert_eq!(caller.synchronize().wait().unwrap().tasks, 1);
        end(&scheduler);
    });
}

#[test]
fn releases_dropped_at_every_stage_leave_no_trace() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        let (count, waker) = Count::new();
        drop(caller.release(How::Cancel));
        gives(&caller, 1).detach();
        {
            let mut released = pin!(caller.release(How::Drain));
            assert!(poll!(released, &waker).is_pending());
            assert!(poll!(released, &waker).is_pending());
        }
        assert!(count.is_let_go());
        assert!(caller.exec(|| Ok::<_, ()>(())).is_err(), "it took effect");
        let (one, one_waker) = Count::new();
        let mut first = pin!(caller.release(How::Drain));
        let mut second = pin!(caller.release(How::Drain));
        assert!(poll!(first, &waker).is_pending());
        assert!(poll!(second, &one_waker).is_pending());
        held.go();
        until(|| count.get() == 1 && one.get() == 1);
        for (release, waker) in [(&mut first, &waker), (&mut second, &one_waker)] {
            let Poll::Ready(Ok(summary)) = poll!(release, waker) else {
                panic!("woken for nothing");
            };
            assert_eq!(summary.ok, 2);
        }
        end(&scheduler);
    });
}

#[test]
fn shutdowns_dropped_at_every_stage_leave_no_trace() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        let (count, waker) = Count::new();
        drop(scheduler.shutdown(How::Cancel));
        gives(&caller, 1).detach();
        {
            let mut down = pin!(scheduler.shutdown(How::Drain));
            assert!(poll!(down, &waker).is_pending());
        }
        assert!(count.is_let_go());
        assert!(caller.exec(|| Ok::<_, ()>(())).is_err(), "it took effect");
        let mut down = pin!(scheduler.shutdown(How::Drain));
        assert!(poll!(down, &waker).is_pending());
        held.go();
        until(|| count.get() == 1);
        assert_eq!(poll!(down, &waker), Poll::Ready(Ok(())));
        assert_eq!(scheduler.workers().live, 0);
        assert_eq!(caller.synchronize().wait().unwrap().ok, 2);
    });
}

/// Only `wait()` counts as blocking: a task that merely polls is not stalled.
#[test]
fn a_poll_inside_a_task_is_not_told_that_it_is_stalled() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let caller = Arc::new(caller);
        let inner = Arc::clone(&caller);
        let mut task = caller
            .exec(move || {
                let (_, waker) = Count::new();
                let mut waited = gives(&inner, 1);
                let pending = poll!(pin!(waited.outcome()), &waker).is_pending();
                let mut synced = pin!(inner.synchronize());
                Ok::<_, ()>(pending && poll!(synced, &waker).is_pending())
            })
            .unwrap();
        let outcome = task.outcome().wait().unwrap();
        assert!(matches!(outcome.verdict, Verdict::Ok(true)));
        assert_eq!(caller.synchronize().wait().unwrap().ok, 2);
        end(&scheduler);
    });
}
