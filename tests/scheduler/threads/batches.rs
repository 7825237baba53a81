//! Many tasks submitted at one instant: all or none.

use std::panic::{AssertUnwindSafe, catch_unwind};

use conversant::limit::Limit;
use conversant::scheduler::{Caller, How, Place, Reason, Scheduler, SyncError, Task, Verdict};

use crate::threads::stage::{Held, end, finishes, one_caller};

fn numbers(from: u64, to: u64) -> impl Iterator<Item = impl FnOnce() -> Result<u64, String>> {
    (from..to).map(|n| move || Ok(n))
}

fn none_is_in(caller: &Caller) {
    let nothing = Err(SyncError::NothingOutstanding);
    assert_eq!(caller.synchronize().wait(), nothing);
}

#[test]
fn all_arrive_at_one_instant_in_order() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let held = Held::submit(&caller, Place::new().group(&group));
        held.wait_began();
        let place = Place::new().group(&group).tier(0);
        let mut tasks: Vec<Task<u64, String>> = caller.exec_all(place, numbers(0, 50)).unwrap();
        let status = scheduler.status();
        let queued: Vec<_> = status.waiting.iter().map(|t| (t.id, t.queued)).collect();
        assert_eq!(queued.len(), 50);
        assert!(queued.iter().all(|(_, at)| *at == queued[0].1));
        assert!(
            queued
                .iter()
                .map(|(id, _)| *id)
                .eq(tasks.iter().map(Task::id))
        );
        held.finish();
        for (n, task) in tasks.iter_mut().enumerate() {
            let verdict = task.outcome().wait().unwrap().verdict;
            assert!(matches!(verdict, Verdict::Ok(given) if given == n as u64));
        }
        end(&scheduler);
    });
}

#[test]
fn refused_they_all_come_back() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (elsewhere, other) = one_caller(1);
        let given = |rejected: Vec<_>| -> Vec<u64> {
            let run = |f: Box<dyn FnOnce() -> Result<u64, String> + Send>| f().unwrap();
            rejected.into_iter().map(run).collect()
        };
        let boxed = || {
            let boxed = |f| Box::new(f) as Box<dyn FnOnce() -> Result<u64, String> + Send>;
            numbers(1, 4).map(boxed)
        };
        for foreign in [
            &other,
            &scheduler.caller("third", Default::default()).unwrap(),
        ] {
            let group = foreign.group(Limit::SERIAL, 100).unwrap();
            let rejected = caller.exec_all(Place::new().group(&group), boxed());
            let rejected = rejected.unwrap_err();
            assert_eq!(rejected.reason, Reason::ForeignGroup);
            assert_eq!(given(rejected.task), [1, 2, 3]);
        }
        let group = caller.group(Limit::AtMost(0), 100).unwrap();
        let above = caller.exec_with(Place::new().group(&group).tier(5), || Ok::<_, ()>(()));
        let above = above.unwrap();
        let below = Place::new().group(&group).tier(4);
        let rejected = caller.exec_all(below, boxed()).unwrap_err();
        assert!(matches!(rejected.reason, Reason::TierGoesDown(_)));
        assert_eq!(given(rejected.task), [1, 2, 3]);
        assert!(above.cancel());
        assert_eq!(caller.synchronize().wait().unwrap().tasks, 1);
        caller.release(How::Drain).wait().unwrap();
        let rejected = caller.exec_all(Place::new(), boxed()).unwrap_err();
        assert_eq!(rejected.reason, Reason::Closed);
        assert_eq!(given(rejected.task), [1, 2, 3]);
        end(&scheduler);
        end(&elsewhere);
    });
}

#[test]
fn without_a_worker_they_all_come_back() {
    finishes(|| {
        let refuses = |_job| Err("no room".into());
        let builder = Scheduler::builder().workers(2).pool(refuses);
        let scheduler = builder.build().unwrap();
        let caller = scheduler.caller("main", Default::default()).unwrap();
        let rejected = caller.exec_all(Place::new(), numbers(0, 5)).unwrap_err();
        assert_eq!(
            (rejected.reason, rejected.task.len()),
            (Reason::NoWorker, 5)
        );
        none_is_in(&caller);
        end(&scheduler);
    });
}

#[test]
fn nothing_is_submitted_by_none_or_by_an_iterator_that_panics() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let none: Vec<Task<u64, String>> = caller.exec_all(Place::new(), numbers(0, 0)).unwrap();
        assert!(none.is_empty());
        let panics = numbers(0, 9).map(|f| {
            let n = f().unwrap();
            assert!(n < 5, "it panics in the middle");
            move || Ok::<_, String>(n)
        });
        let all = AssertUnwindSafe(|| caller.exec_all(Place::new(), panics).map(drop));
        assert!(catch_unwind(all).is_err());
        none_is_in(&caller);
        end(&scheduler);
    });
}
