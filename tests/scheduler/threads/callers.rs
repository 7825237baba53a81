//! One caller's handle: synchronize, epochs, release, caps, and its drop.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use conversant::limit::Limit;
use conversant::scheduler::{
    Caller, CallerOptions, How, OnFailure, Place, Reason, Record, Scheduler, Summary, SyncError,
    Verdict,
};
use conversant::wait::{Op, Wait};

use crate::threads::stage::{Held, capped, end, finishes, gives, one_caller, scheduler, until};

/// A synchronize that was polled: it covers the tasks that were submitted before.
fn begun(caller: &Caller) -> Wait<impl Op<Output = Result<Summary, SyncError>>> {
    let mut synced = caller.synchronize();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut synced).poll(&mut cx).is_pending());
    synced
}

#[test]
fn one_synchronize_too_many_is_an_immediate_error() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let nothing = Err(SyncError::NothingOutstanding);
        assert_eq!(caller.synchronize().wait(), nothing);
        gives(&caller, 1).detach();
        assert_eq!(caller.synchronize().wait().unwrap().ok, 1);
        assert_eq!(caller.synchronize().wait(), nothing);
        assert_eq!(
            caller.synchronize().wait_timeout(Duration::ZERO),
            Ok(nothing)
        );
        end(&scheduler);
    });
}

/// One synchronize too few: a task that ended before it never counts for a task
/// of a later wave that still runs.
#[test]
fn a_stale_completion_never_satisfies_a_later_wave() {
    finishes(|| {
        let (scheduler, caller) = one_caller(3);
        for _ in 0..3 {
            gives(&caller, 0).outcome().wait().unwrap();
        }
        let slow = Held::start(&caller);
        let early = caller.synchronize().wait_timeout(Duration::ZERO);
        assert!(early.is_err(), "three have ended, the fourth has not");
        slow.go();
        let all = caller.synchronize().wait().unwrap();
        assert_eq!((all.tasks, all.ok), (4, 4));
        end(&scheduler);
    });
}

#[test]
fn a_synchronize_does_not_wait_for_what_comes_after_it() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let first = Held::start(&caller);
        let synced = begun(&caller);
        let later = Held::start(&caller);
        first.go();
        assert_eq!(synced.wait().unwrap().tasks, 1);
        later.go();
        assert_eq!(caller.synchronize().wait().unwrap().tasks, 1);
        end(&scheduler);
    });
}

#[test]
fn a_second_synchronize_during_the_first_is_busy() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        let first = begun(&caller);
        assert_eq!(caller.synchronize().wait(), Err(SyncError::Busy));
        held.go();
        assert_eq!(first.wait().unwrap().tasks, 1);
        let nothing = Err(SyncError::NothingOutstanding);
        assert_eq!(caller.synchronize().wait(), nothing);
        end(&scheduler);
    });
}

/// As its docs say. It does not affect another caller.
#[test]
fn a_pending_synchronize_that_is_forgotten_keeps_its_caller_busy() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        std::mem::forget(begun(&caller));
        held.finish();
        assert_eq!(caller.synchronize().wait(), Err(SyncError::Busy));
        gives(&caller, 1).detach();
        assert_eq!(caller.synchronize().wait(), Err(SyncError::Busy));
        drop(caller);
        end(&scheduler);
    });
}

#[test]
fn a_synchronize_that_times_out_merges_its_epoch_into_the_next() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let failing = caller.exec(|| Err::<(), _>("first")).unwrap();
        let id = failing.id();
        let held = Held::start(&caller);
        let timed_out = caller.synchronize().wait_timeout(Duration::from_millis(1));
        assert!(timed_out.is_err());
        let second = caller.exec(|| Err::<(), _>("second")).unwrap();
        held.go();
        let all = caller.synchronize().wait().unwrap();
        assert_eq!((all.tasks, all.ok, all.failed), (3, 1, 2));
        assert_eq!(all.first_failure, Some(id), "the first of both epochs");
        drop((failing, second));
        end(&scheduler);
    });
}

#[test]
fn the_first_failure_of_merged_epochs_is_the_first_in_time() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let (go, gone) = channel::<()>();
        let mut early = caller.exec(move || gone.recv()).unwrap();
        let synced = begun(&caller);
        let mut late = caller.exec(|| Err::<(), _>("first")).unwrap();
        late.outcome().wait().unwrap();
        drop(go);
        early.outcome().wait().unwrap();
        drop(synced);
        let all = caller.synchronize().wait().unwrap();
        assert_eq!((all.tasks, all.failed), (2, 2));
        assert_eq!(all.first_failure, Some(late.id()));
        end(&scheduler);
    });
}

#[test]
fn releasing_twice_is_harmless_and_closes_the_caller() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        gives(&caller, 1).detach();
        let first = caller.release(How::Drain).wait().unwrap();
        let again = caller.release(How::Drain).wait().unwrap();
        let cancel = caller.release(How::Cancel).wait().unwrap();
        assert_eq!((first.tasks, first.ok), (1, 1));
        assert_eq!((again, cancel), (first, first));
        let refused = caller.exec(|| Ok::<_, ()>(7)).unwrap_err();
        assert_eq!(refused.reason, Reason::Closed);
        assert_eq!((refused.task)(), Ok(7), "the function comes back");
        assert!(scheduler.status().callers[0].released);
        end(&scheduler);
    });
}

/// What a synchronize has begun to cover, a release leaves to it, until it is dropped.
#[test]
fn a_release_tells_of_what_no_synchronize_covers() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        let covers = begun(&caller);
        let own = gives(&caller, 1);
        held.go();
        assert_eq!(caller.release(How::Drain).wait().unwrap().ok, 1);
        assert_eq!(caller.release(How::Cancel).wait().unwrap().ok, 1);
        drop(covers);
        assert_eq!(caller.release(How::Drain).wait().unwrap().ok, 2);
        drop(own);
        end(&scheduler);
    });
}

#[test]
fn release_with_tasks_outstanding_drains_by_default() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        let tasks: Vec<_> = (0..5).map(|n| gives(&caller, n)).collect();
        thread::scope(|scope| {
            let released = scope.spawn(|| caller.release(How::default()).wait().unwrap());
            until(|| scheduler.status().callers[0].released);
            held.go();
            assert_eq!(released.join().unwrap().ok, 6);
        });
        drop(tasks);
        end(&scheduler);
    });
}

#[test]
fn release_with_cancel_ends_what_waits_and_lets_run_what_runs() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        // More wakers than a batch holds.
        let mut tasks: Vec<_> = (0..100).map(|n| gives(&caller, n)).collect();
        thread::scope(|scope| {
            let released = scope.spawn(|| caller.release(How::Cancel).wait().unwrap());
            for task in &mut tasks {
                let outcome = task.outcome().wait().unwrap();
                assert!(matches!(outcome.verdict, Verdict::Cancelled));
                assert!(outcome.run.is_none());
            }
            held.go();
            let summary = released.join().unwrap();
            assert_eq!((summary.tasks, summary.cancelled), (101, 100));
            assert_eq!(summary.ok, 1);
        });
        end(&scheduler);
    });
}

#[test]
fn a_release_that_times_out_can_be_made_again_with_cancel() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        let waits = gives(&caller, 1);
        let drained = caller.release(How::Drain).wait_timeout(Duration::ZERO);
        assert!(drained.is_err());
        let cancelled = caller.release(How::Cancel).wait_timeout(Duration::ZERO);
        assert!(cancelled.is_err(), "one still runs");
        held.finish();
        let summary = caller.release(How::Drain).wait().unwrap();
        assert_eq!((summary.ok, summary.cancelled), (1, 1));
        drop(waits);
        end(&scheduler);
    });
}

#[test]
fn a_caller_that_goes_away_leaks_nothing_and_its_tasks_are_done() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let held = Held::start(&caller);
        let mut later = gives(&caller, 3);
        drop(caller);
        assert_eq!(scheduler.status().callers.len(), 1, "its tasks run");
        held.finish();
        let outcome = later.outcome().wait().unwrap();
        assert!(matches!(outcome.verdict, Verdict::Ok(3)));
        until(|| scheduler.status().callers.is_empty());
        end(&scheduler);
    });
}

#[test]
fn after_all_handles_are_gone_every_count_is_at_its_baseline() {
    finishes(|| {
        let (scheduler, caller) = one_caller(3);
        for n in 0..50 {
            gives(&caller, n).detach();
        }
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        for n in 0..50 {
            let place = Place::new().group(&group).tier(n / 10);
            caller
                .exec_with(place, || Ok::<_, ()>(()))
                .unwrap()
                .detach();
        }
        drop(caller);
        drop(group);
        until(|| scheduler.status().callers.is_empty());
        let status = scheduler.status();
        assert!(status.running.is_empty() && status.waiting.is_empty());
        end(&scheduler);
    });
}

#[test]
fn at_most_as_many_at_once_as_the_cap_says() {
    finishes(|| {
        let scheduler = scheduler(8);
        let caller = scheduler.caller("capped", capped(3)).unwrap();
        let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        for _ in 0..1000 {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            let task = caller.exec(move || {
                most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                thread::yield_now();
                now.fetch_sub(1, SeqCst);
                Ok::<_, ()>(())
            });
            task.unwrap().detach();
        }
        assert_eq!(caller.synchronize().wait().unwrap().ok, 1000);
        assert!(most.load(SeqCst) <= 3);
        assert!(scheduler.workers().live <= 3, "no worker without use");
        end(&scheduler);
    });
}

/// The three that the cap allows do run at once: each waits for the other two.
#[test]
fn as_many_at_once_as_the_cap_allows() {
    finishes(|| {
        let scheduler = scheduler(8);
        let caller = scheduler.caller("capped", capped(3)).unwrap();
        let meet = Arc::new(std::sync::Barrier::new(3));
        for _ in 0..9 {
            let meet = Arc::clone(&meet);
            let task = caller.exec(move || {
                meet.wait();
                Ok::<_, ()>(())
            });
            task.unwrap().detach();
        }
        assert_eq!(caller.synchronize().wait().unwrap().ok, 9);
        end(&scheduler);
    });
}

#[test]
fn a_task_of_another_caller_does_not_wait_for_a_long_list() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (log, rows) = crossbeam_channel::bounded::<Record>(1000);
        drop((scheduler, caller));
        let scheduler = Scheduler::builder().workers(1).log(log).build().unwrap();
        let hold = scheduler.hold();
        let many = scheduler.caller("many", CallerOptions::default()).unwrap();
        (0..600).for_each(|n| gives(&many, n).detach());
        let one = scheduler.caller("one", CallerOptions::default()).unwrap();
        gives(&one, 1).detach();
        drop(hold);
        end(&scheduler);
        let rows: Vec<_> = rows.try_iter().collect();
        let at = rows.iter().position(|row| &*row.task.caller == "one");
        assert_eq!((rows.len(), at), (601, Some(1)));
    });
}

#[test]
fn a_failure_skips_higher_tiers_if_the_caller_says_so() {
    finishes(|| {
        let scheduler = scheduler(3);
        let options = CallerOptions {
            on_failure: OnFailure::SkipHigherTiers,
            ..CallerOptions::default()
        };
        let caller = scheduler.caller("careful", options).unwrap();
        let hold = scheduler.hold();
        let mut failing = caller.exec(|| Err::<(), _>("no")).unwrap();
        let above = Place::new().tier(1);
        let ran = Arc::new(AtomicU32::new(0));
        let mut skipped: Vec<_> = (0..100)
            .map(|_| {
                let ran = Arc::clone(&ran);
                let body = move || Ok::<_, ()>(ran.fetch_add(1, SeqCst));
                caller.exec_with(above, body).unwrap()
            })
            .collect();
        drop(hold);
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.failed, summary.skipped), (1, 100));
        assert!(matches!(
            failing.outcome().wait().unwrap().verdict,
            Verdict::Failed("no")
        ));
        for task in &mut skipped {
            let outcome = task.outcome().wait().unwrap();
            assert!(matches!(outcome.verdict, Verdict::Skipped));
        }
        assert_eq!(ran.load(SeqCst), 0);
        end(&scheduler);
    });
}

#[test]
fn a_clone_is_the_same_caller_which_is_released_with_the_last() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let clone = caller.clone();
        drop(caller);
        gives(&clone, 1).detach();
        let again = clone.clone();
        assert_eq!(again.synchronize().wait().unwrap().ok, 1);
        assert_eq!(scheduler.status().callers.len(), 1);
        drop((clone, again));
        assert!(scheduler.status().callers.is_empty());
        end(&scheduler);
    });
}
