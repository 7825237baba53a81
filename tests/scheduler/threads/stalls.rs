//! Tasks that wait for their own scheduler: the newest such wait gives up when
//! nothing else can go on, and not before.

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use conversant::error::Stalled;
use conversant::limit::Limit;
use conversant::scheduler::{
    Caller, How, Outcome, OutcomeError, Place, Scheduler, SyncError, Task, Verdict,
};

use crate::threads::stage::{Held, Job, end, finishes, gives, one_caller, shared, until};

const STALLED: OutcomeError = OutcomeError::Stalled(Stalled);

/// What a task that waited for another task found.
type Found = Result<Outcome<u64, String>, OutcomeError>;

fn gave(found: &Found, n: u64) -> bool {
    matches!(found, Ok(Outcome { verdict: Verdict::Ok(given), .. }) if *given == n)
}

/// A task that submits another, waits for it, and gives what it found and the
/// other's handle.
fn waits_for_its_own(caller: &Arc<Caller>) -> Task<(Found, Job), ()> {
    let inner = Arc::clone(caller);
    let body = move || {
        let mut task = gives(&inner, 7);
        let found = task.outcome().wait();
        Ok((found, task))
    };
    caller.exec(body).unwrap()
}

fn result<R, E: std::fmt::Debug>(task: &mut Task<R, E>) -> R {
    match task.outcome().wait().unwrap().verdict {
        Verdict::Ok(result) => result,
        Verdict::Panicked(panic) => std::panic::resume_unwind(panic),
        _ => panic!("no result"),
    }
}

fn shared_caller(workers: u32) -> (Scheduler, Arc<Caller>) {
    let (scheduler, caller) = one_caller(workers);
    (scheduler, Arc::new(caller))
}

#[test]
fn a_task_that_waits_for_its_own_scheduler_with_one_worker_is_told() {
    finishes(|| {
        let (scheduler, caller) = shared_caller(1);
        let (found, mut inner) = result(&mut waits_for_its_own(&caller));
        assert_eq!(found.unwrap_err(), STALLED);
        // The task waited for is untouched and can be waited for again.
        assert!(gave(&inner.outcome().wait(), 7));
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.tasks, summary.ok), (2, 2));
        end(&scheduler);
    });
}

#[test]
fn with_a_second_worker_it_gets_what_it_waits_for() {
    finishes(|| {
        let (scheduler, caller) = shared_caller(2);
        for _ in 0..200 {
            let (found, _) = result(&mut waits_for_its_own(&caller));
            assert!(gave(&found, 7));
        }
        end(&scheduler);
    });
}

#[test]
fn it_does_not_give_up_while_another_task_runs() {
    finishes(|| {
        let (scheduler, caller) = shared_caller(2);
        let held = Held::start(&caller);
        let mut outer = waits_for_its_own(&caller);
        until(|| scheduler.status().waiting.len() == 1);
        let early = outer.outcome().wait_timeout(Duration::from_millis(5));
        assert!(early.is_err(), "the worker of the other will be free");
        held.finish();
        let (found, _) = result(&mut outer);
        assert!(gave(&found, 7));
        end(&scheduler);
    });
}

#[test]
fn of_two_that_are_blocked_the_newest_gives_up_and_the_other_gets_its_task() {
    finishes(|| {
        let (scheduler, caller) = shared_caller(2);
        let (go, may_go) = channel::<()>();
        let (found, finds) = channel();
        // Both run before either submits: no worker is left for the tasks that they submit.
        let both = Arc::new(Barrier::new(2));
        let older = {
            let (inner, found) = (Arc::clone(&caller), found.clone());
            let both = Arc::clone(&both);
            let body = move || {
                both.wait();
                let mut task = gives(&inner, 1);
                found.send(("older", task.outcome().wait())).unwrap();
                Ok::<_, ()>(())
            };
            caller.exec(body).unwrap()
        };
        let newer = {
            let inner = Arc::clone(&caller);
            let body = move || {
                both.wait();
                may_go.recv().unwrap();
                let mut task = gives(&inner, 2);
                found.send(("newer", task.outcome().wait())).unwrap();
                Ok::<_, ()>(())
            };
            caller.exec(body).unwrap()
        };
        until(|| scheduler.workers().busy == 2 && scheduler.status().waiting.len() == 1);
        // The older task sleeps, or is about to. A wait for its inner task from here
        // would not show which, so this gives it time to fall asleep.
        (0..10_000).for_each(|_| std::thread::yield_now());
        go.send(()).unwrap();
        let first = finds.recv().unwrap();
        let second = finds.recv().unwrap();
        let stalled = |f: &Found| matches!(f, Err(error) if *error == STALLED);
        assert!(stalled(&first.1), "{first:?}");
        assert!(!stalled(&second.1), "one gives up, not both: {second:?}");
        assert_ne!(first.0, second.0);
        drop((older, newer));
        caller.synchronize().wait().unwrap();
        end(&scheduler);
    });
}

#[test]
fn a_synchronize_inside_an_own_task_is_told_and_leaves_the_epoch() {
    finishes(|| {
        let (scheduler, caller) = shared_caller(2);
        let inner = Arc::clone(&caller);
        let mut task = caller
            .exec(move || Ok::<_, ()>(inner.synchronize().wait()))
            .unwrap();
        let told = result(&mut task);
        assert_eq!(told, Err(SyncError::Stalled(Stalled)));
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.tasks, summary.ok), (1, 1), "merged into the next");
        end(&scheduler);
    });
}

#[test]
fn a_release_or_shutdown_inside_an_own_task_is_told() {
    finishes(|| {
        let (scheduler, caller) = shared_caller(2);
        let (scheduler, for_task) = shared(scheduler);
        let inner = Arc::clone(&caller);
        let mut task = caller
            .exec(move || {
                let released = inner.release(How::Drain).wait();
                let down = for_task.shutdown(How::Drain).wait();
                Ok::<_, ()>((released.err(), down.err()))
            })
            .unwrap();
        assert_eq!(result(&mut task), (Some(Stalled), Some(Stalled)));
        assert_eq!(caller.release(How::Drain).wait().unwrap().ok, 1);
        scheduler.shutdown(How::Drain).wait().unwrap();
    });
}

#[test]
fn a_timed_wait_does_not_count() {
    finishes(|| {
        let (scheduler, caller) = shared_caller(1);
        let inner = Arc::clone(&caller);
        let mut task = caller
            .exec(move || {
                let mut waited = gives(&inner, 1);
                let timed = waited.outcome().wait_timeout(Duration::from_millis(2));
                let untimed = waited.outcome().wait();
                Ok::<_, ()>((timed.is_err(), untimed.err()))
            })
            .unwrap();
        assert_eq!(result(&mut task), (true, Some(STALLED)));
        end(&scheduler);
    });
}

#[test]
fn a_wait_on_another_scheduler_or_thread_does_not_count() {
    finishes(|| {
        let (scheduler, caller) = shared_caller(1);
        let (other, theirs) = shared_caller(1);
        let Held { task, go, .. } = Held::start(&theirs);
        let (begins, began) = channel();
        let mut waits = caller
            .exec(move || {
                let mut theirs = task;
                begins.send(()).unwrap();
                Ok::<_, ()>(theirs.outcome().wait().is_ok())
            })
            .unwrap();
        began.recv().unwrap();
        (0..1000).for_each(|_| std::thread::yield_now());
        assert!(waits.outcome().wait_timeout(Duration::ZERO).is_err());
        go.send(()).unwrap();
        assert!(result(&mut waits));
        end(&scheduler);
        end(&other);
    });
}

/// If nothing can go on because of a pause, the waiter is told, and may wait again.
#[test]
fn a_wait_for_something_paused_is_told() {
    finishes(|| {
        let (scheduler, caller) = shared_caller(3);
        let group = caller.group(Limit::AtMost(0), 100).unwrap();
        let inner = Arc::clone(&caller);
        let (group, for_task) = shared(group);
        let mut task = caller
            .exec(move || {
                let place = Place::new().group(&for_task);
                let mut paused = inner.exec_with(place, || Ok::<_, ()>(5)).unwrap();
                let told = paused.outcome().wait().err();
                for_task.set_limit(Limit::SERIAL).unwrap();
                let given = paused.outcome().wait().unwrap();
                Ok::<_, ()>((told, matches!(given.verdict, Verdict::Ok(5))))
            })
            .unwrap();
        assert_eq!(result(&mut task), (Some(STALLED), true));
        drop(group);
        end(&scheduler);
    });
}

/// A chain of tasks, each waiting for the next, deeper than there are workers.
#[test]
fn a_chain_of_waits_unwinds_from_its_end() {
    fn link(caller: &Arc<Caller>, left: u64) -> Task<u64, ()> {
        let inner = Arc::clone(caller);
        let body = move || match left {
            0 => Ok(0),
            _ => {
                let mut next = link(&inner, left - 1);
                Ok(match next.outcome().wait() {
                    Ok(outcome) => match outcome.verdict {
                        Verdict::Ok(depth) => depth + 1,
                        _ => unreachable!(),
                    },
                    Err(_stalled) => 1,
                })
            }
        };
        caller.exec(body).unwrap()
    }
    finishes(|| {
        for workers in 1..=4 {
            let (scheduler, caller) = shared_caller(workers);
            let depth = result(&mut link(&caller, 8));
            let most = u64::from(workers);
            assert!((1..=most).contains(&depth), "{depth}, {workers} workers");
            // The links below go on, and submit more meanwhile.
            let mut ok = 0;
            until(|| {
                ok += caller.synchronize().wait().map_or(0, |all| all.ok);
                ok == 9
            });
            end(&scheduler);
        }
    });
}

/// At its first stall nothing of it is to be cancelled; at its second a task is.
#[test]
fn a_scope_that_could_not_give_up_is_asked_again() {
    finishes(|| {
        let (scheduler, caller) = shared_caller(2);
        let paused = caller.group(0, 100).unwrap();
        let blocks = |scheduler: &Scheduler| {
            until(|| scheduler.status().running.iter().any(|task| task.blocked));
        };
        let (of_scope, of_task) = (Arc::clone(&caller), Arc::new(scheduler));
        let scheduler = Arc::clone(&of_task);
        let mut task = caller.exec(move || {
            let never = Place::new().group(&paused);
            let awaited = Mutex::new(of_scope.exec_with(never, || ()).unwrap());
            of_scope.scope(|scope| {
                let gives_up = || {
                    let mut awaited = awaited.lock().unwrap();
                    let stalled = awaited.outcome().wait();
                    assert_eq!(stalled.unwrap_err(), OutcomeError::Stalled(Stalled));
                    awaited.cancel();
                    scope
                        .exec_detached(Place::new().group(&paused), || ())
                        .unwrap();
                };
                scope.exec_detached(Place::new(), gives_up).unwrap();
                // So the scope is the newest of two that are blocked.
                blocks(&of_task);
            });
        });
        let outcome = task.as_mut().unwrap().outcome().wait().unwrap();
        let Verdict::Panicked(panic) = outcome.verdict else {
            panic!("the scope must say that it was stalled");
        };
        assert!(
            panic
                .downcast_ref::<String>()
                .unwrap()
                .starts_with("a scope is")
        );
        end(&scheduler);
    });
}

/// Raising the maximum from outside lets a waiting task go on unharmed.
#[test]
fn a_task_waiting_beside_a_timed_wait_goes_on_when_workers_are_raised() {
    finishes(|| {
        let (scheduler, caller) = shared_caller(2);
        let held = Held::start(&caller);
        let mut outer = waits_for_its_own(&caller);
        until(|| scheduler.status().waiting.len() == 1);
        scheduler.set_workers(3).unwrap();
        let (found, _) = result(&mut outer);
        assert!(gave(&found, 7));
        held.finish();
        end(&scheduler);
    });
}

#[test]
fn a_hold_that_somebody_else_will_drop_is_no_stall() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let (give, given) = channel::<Job>();
        let mut waits = caller
            .exec(move || Ok::<_, ()>(given.recv().unwrap().outcome().wait()))
            .unwrap();
        let hold = scheduler.hold();
        give.send(gives(&caller, 7)).unwrap();
        // Long enough for the task to block, and enough events for the scheduler to notice it.
        for _ in 0..2_000 {
            caller.set_cap(Limit::Unlimited).unwrap();
            std::thread::yield_now();
        }
        drop(hold);
        assert!(gave(&result(&mut waits), 7));
        end(&scheduler);
    });
}

/// Neither is told, since neither scheduler knows of the other: a timed wait is the way out.
#[test]
fn tasks_of_two_schedulers_that_wait_for_each_other_need_a_timed_wait() {
    finishes(|| {
        let ((one, here), (other, there)) = (one_caller(1), one_caller(1));
        let (give, given) = channel::<Task<bool, ()>>();
        let body = move || {
            let mut over_there = given.recv().unwrap();
            let waited = over_there.outcome().wait_timeout(Duration::from_millis(1));
            Ok::<_, ()>((waited.is_err(), over_there))
        };
        let mut first = here.exec(body).unwrap();
        let mut behind = gives(&here, 7);
        let waits = there.exec(move || Ok(gave(&behind.outcome().wait(), 7)));
        give.send(waits.unwrap()).unwrap();
        let (timed_out, mut over_there) = result(&mut first);
        assert!(timed_out, "the one behind cannot start");
        assert!(result(&mut over_there), "it was never told");
        end(&one);
        end(&other);
    });
}
