//! A task that can never begin ends as cancelled: no wait for it lasts for ever.

use std::mem::forget;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use conversant::limit::Limit;
use conversant::scheduler::{CallerOptions, Ending, How, Place, Scheduler};

use crate::threads::pools::{Refused, Sent};
use crate::threads::stage::{Held, Job, capped, end, finishes, one_caller, until};

const PAUSED: Limit = Limit::AtMost(0);
const LONG: Duration = Duration::from_secs(3600);

fn ending(mut task: Job) -> Ending {
    task.outcome().wait().unwrap().verdict.ending()
}

#[test]
fn what_a_group_pauses_is_cancelled_when_scheduler_and_group_are_gone() {
    finishes(|| {
        for scheduler_first in [true, false] {
            let (scheduler, caller) = one_caller(1);
            let group = caller.group(PAUSED, 100).unwrap();
            let submit = |place: Place<'_>| caller.exec_with(place, || Ok(1)).unwrap();
            let paused = [0, 0, 3].map(|tier| submit(Place::new().group(&group).tier(tier)));
            let later = submit(Place::new().group(&group).after(LONG));
            let behind = submit(Place::new().tier(2));
            if scheduler_first {
                drop(scheduler);
                drop(group);
            } else {
                drop(group);
                drop(scheduler);
            }
            assert_eq!(paused.map(ending), [Ending::Cancelled; 3]);
            assert_eq!(ending(later), Ending::Cancelled);
            assert_eq!(ending(behind), Ending::Ok);
            let summary = caller.synchronize().wait().unwrap();
            assert_eq!((summary.ok, summary.cancelled), (1, 4));
        }
    });
}

/// So many that the test would not end if each group looked at all tasks that are not due.
#[test]
fn what_a_crowd_of_groups_pauses_is_cancelled_at_once() {
    const CROWD: usize = 30_000;
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        for _ in 0..CROWD {
            let group = caller.group(PAUSED, 100).unwrap();
            let place = Place::new().group(&group).after(LONG);
            caller.exec_detached(place, || ()).unwrap();
        }
        drop(scheduler);
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!(summary.cancelled, CROWD as u64);
    });
}

#[test]
fn a_group_that_somebody_has_can_go_on_without_its_scheduler() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let group = caller.group(PAUSED, 100).unwrap();
        let found = scheduler.group(group.id()).unwrap();
        let place = Place::new().group(&group);
        let task: Job = caller.exec_with(place, || Ok(1)).unwrap();
        let later: Job = caller
            .exec_with(place.after(Duration::from_millis(1)), || Ok(1))
            .unwrap();
        drop(scheduler);
        drop(group);
        assert!(!task.has_ended());
        found.set_limit(1).unwrap();
        drop(found);
        assert_eq!([task, later].map(ending), [Ending::Ok; 2]);
    });
}

/// Any thread may resume it by its name.
#[test]
fn a_paused_group_waits_for_as_long_as_its_scheduler_is_there() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let group = caller.group(PAUSED, 100).unwrap();
        let task: Job = caller
            .exec_with(Place::new().group(&group), || Ok(1))
            .unwrap();
        let name = group.id();
        drop(group);
        assert!(!task.has_ended());
        scheduler.group(name).unwrap().set_limit(1).unwrap();
        assert_eq!(ending(task), Ending::Ok);
        end(&scheduler);
    });
}

#[test]
fn what_a_cap_pauses_is_cancelled_with_the_last_handle_of_its_caller() {
    finishes(|| {
        let (scheduler, other) = one_caller(1);
        let caller = scheduler.caller("capped", capped(0)).unwrap();
        let again = caller.clone();
        let submit = |place: Place<'_>| caller.exec_with(place, || Ok(1)).unwrap();
        let tasks = [Place::new(), Place::new().after(LONG)].map(submit);
        drop(caller);
        assert!(!tasks[0].has_ended());
        drop(again);
        assert_eq!(tasks.map(ending), [Ending::Cancelled; 2]);
        assert_eq!(ending(other.exec(|| Ok(1)).unwrap()), Ending::Ok);
        end(&scheduler);
    });
}

/// It goes on in spite of the cap, and the drop of its caller's last handle does not cancel it.
#[test]
fn a_future_that_has_begun_goes_on_under_a_cap_of_zero() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (elsewhere, other) = one_caller(1);
        let Held { task, go, .. } = Held::start(&other);
        let task: Job = caller
            .spawn(async move {
                task.await.map_err(|error| error.to_string())?;
                Ok(1)
            })
            .unwrap();
        until(|| scheduler.counts().suspended == 1);
        caller.set_cap(0).unwrap();
        drop(caller);
        go.send(()).unwrap();
        assert_eq!(ending(task), Ending::Ok);
        end(&scheduler);
        end(&elsewhere);
    });
}

#[test]
fn a_hold_that_was_forgotten_ends_with_the_scheduler() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        forget(scheduler.hold());
        let task: Job = caller.exec(|| Ok(1)).unwrap();
        drop(scheduler);
        assert_eq!(ending(task), Ending::Ok);
    });
}

/// The pool has accepted the worker, and drops it after the scheduler is gone.
#[test]
fn what_no_worker_can_run_is_cancelled_when_the_scheduler_is_gone() {
    finishes(|| {
        let slot = Arc::new(Mutex::new(Vec::<Sent>::new()));
        let sent = Arc::clone(&slot);
        let pool = move |job: Sent| {
            sent.lock().unwrap().push(job);
            Ok::<_, Refused>(())
        };
        let scheduler = Scheduler::builder().pool(pool).build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let tasks: [Job; 2] = [1, 2].map(|n| caller.exec(move || Ok(n)).unwrap());
        drop(scheduler);
        assert!(!tasks[0].has_ended());
        let jobs = std::mem::take(&mut *slot.lock().unwrap());
        drop(jobs);
        assert_eq!(tasks.map(ending), [Ending::Cancelled; 2]);
        assert_eq!(caller.release(How::Drain).wait().unwrap().cancelled, 2);
        assert_eq!(slot.lock().unwrap().len(), 0);
    });
}
