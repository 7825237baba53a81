//! Tasks with a delay. The tests check only that nothing happens too early. They
//! would not end if a worker slept through a date.

use std::time::Duration;

use conversant::scheduler::{
    Caller, CallerOptions, How, Outcome, Place, Reason, Scheduler, Verdict, Why,
};

use crate::threads::stage::{Held, Job, end, finishes, gives, one_caller, until};

const MOMENT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_secs(3600);

fn later(caller: &Caller, after: Duration, n: u64) -> Job {
    let place = Place::new().after(after);
    caller.exec_with(place, move || Ok(n)).unwrap()
}

fn done(mut task: Job) -> Outcome<u64, String> {
    task.outcome().wait().unwrap()
}

/// What the task gave; `None` if it was cancelled.
pub(super) fn gave(task: Job) -> Option<u64> {
    match done(task).verdict {
        Verdict::Ok(n) => Some(n),
        Verdict::Cancelled => None,
        other => panic!("{other:?}"),
    }
}

fn start(outcome: &Outcome<u64, String>) -> Duration {
    outcome.run.expect("it ran").start
}

#[test]
fn none_starts_before_it_is_due() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let tasks: Vec<_> = (0..20).map(|n| later(&caller, MOMENT * n, 7)).collect();
        for (n, task) in (0..).zip(tasks) {
            let outcome = done(task);
            assert!(start(&outcome) >= outcome.queued + MOMENT * n);
        }
        end(&scheduler);
    });
}

#[test]
fn one_worker_does_them_in_the_order_in_which_they_are_due() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let hold = scheduler.hold();
        let [last, first] = [3, 1].map(|n| later(&caller, MOMENT * n, 0));
        drop(hold);
        let [last, first] = [last, first].map(|task| start(&done(task)));
        assert!(first <= last);
        end(&scheduler);
    });
}

/// Workers leave as soon as they have nothing to do, except the one that keeps the time.
#[test]
fn a_worker_stays_beyond_the_idle_time() {
    finishes(|| {
        let builder = Scheduler::builder().workers(4).idle(Duration::ZERO);
        let scheduler = builder.build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        for n in 0..20 {
            let task = later(&caller, MOMENT, n);
            gives(&caller, 1).detach();
            assert_eq!(gave(task), Some(n));
        }
        let far = later(&caller, LONG, 0);
        until(|| scheduler.workers().idle == 1 && scheduler.workers().live == 1);
        let status = scheduler.status();
        assert!(matches!(status.waiting[0].why, Why::NotDue { due } if due >= LONG));
        assert!(far.cancel());
        end(&scheduler);
    });
}

#[test]
fn a_sooner_one_is_not_slept_through() {
    finishes(|| {
        let (scheduler, caller) = one_caller(3);
        let far = later(&caller, LONG, 1);
        until(|| scheduler.workers().idle == 1);
        let near = later(&caller, MOMENT, 2);
        assert_eq!(gave(near), Some(2));
        assert!(far.cancel());
        assert_eq!(gave(far), None);
        end(&scheduler);
    });
}

#[test]
fn due_while_all_workers_are_busy_it_runs_when_one_is_done() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let busy = Held::start(&caller);
        let task = later(&caller, Duration::from_nanos(1), 1);
        let again = later(&caller, MOMENT, 2);
        busy.go.send(()).unwrap();
        assert_eq!(gave(again), Some(2));
        assert_eq!(gave(task), Some(1));
        end(&scheduler);
    });
}

#[test]
fn a_drain_waits_for_it_and_a_cancel_does_not() {
    finishes(|| {
        for how in [How::Drain, How::Cancel] {
            let (scheduler, caller) = one_caller(2);
            let near = later(&caller, MOMENT, 1);
            caller.release(how).wait().unwrap();
            // The task may have been due before it was cancelled.
            assert!(gave(near).is_some() || how == How::Cancel);
            end(&scheduler);
        }
        let (scheduler, caller) = one_caller(2);
        let far = later(&caller, LONG, 1);
        scheduler.shutdown(How::Cancel).wait().unwrap();
        assert_eq!(gave(far), None);
        let (scheduler, caller) = one_caller(2);
        let near = later(&caller, MOMENT, 1);
        scheduler.shutdown(How::Drain).wait().unwrap();
        assert_eq!(scheduler.workers().live, 0);
        assert_eq!(gave(near), Some(1));
    });
}

/// The workers ignore the time that the embedder tells; it need not tell any.
#[test]
fn own_workers_keep_the_time_whatever_is_told() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let far = later(&caller, LONG, 1);
        assert_eq!(scheduler.advance(2 * LONG), None);
        assert!(!far.has_ended());
        let near = later(&caller, MOMENT, 2);
        assert_eq!(gave(near), Some(2));
        assert!(far.cancel());
        end(&scheduler);
    });
}

/// A scheduler that is shut down gives the function back.
#[test]
fn a_refused_one_comes_back() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        scheduler.shutdown(How::Drain).wait().unwrap();
        let place = Place::new().after(LONG);
        let back = caller.exec_with(place, || Ok::<_, ()>(41)).unwrap_err();
        assert_eq!((back.reason, (back.task)()), (Reason::Closed, Ok(41)));
    });
}
