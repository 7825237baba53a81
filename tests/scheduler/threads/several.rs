//! Waits for several tasks: for the first of some, and for all there may be.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::Context;
use std::thread;
use std::time::Duration;

use conversant::error::Stalled;
use conversant::scheduler::{CallerOptions, How, OutcomeError, Summary, Task, Verdict, first};

use crate::count::Count;
use crate::threads::stage::{Held, end, finishes, gives, one_caller};

#[test]
fn whichever_ends_first_is_taken() {
    finishes(|| {
        let (scheduler, caller) = one_caller(3);
        let [a, b] = [(); 2].map(|()| Held::start(&caller));
        let mut tasks = [a.task, b.task];
        thread::scope(|scope| {
            let waits = scope.spawn(|| first(&mut tasks).wait().unwrap().0);
            b.go.send(()).unwrap();
            assert_eq!(waits.join().unwrap(), 1);
        });
        let taken = first(&mut tasks[1..]).wait().unwrap_err();
        assert_eq!(taken, OutcomeError::Taken);
        let times_out = first(&mut tasks[..1]).wait_timeout(Duration::ZERO);
        assert!(times_out.is_err());
        a.go.send(()).unwrap();
        assert_eq!(first(&mut tasks[..1]).wait().unwrap().0, 0);
        end(&scheduler);
    });
}

/// A wait that was polled, and then ends in a blocking call, leaves no waker with the other task.
#[test]
fn a_wait_for_the_first_that_is_over_leaves_no_waker() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let other = scheduler.caller("other", CallerOptions::default()).unwrap();
        let hold = scheduler.hold();
        let mut tasks = [gives(&caller, 0), gives(&other, 1)];
        let (count, waker) = Count::new();
        let mut wait = first(&mut tasks);
        let polled = Pin::new(&mut wait).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending() && !count.is_let_go());
        other.cancel_all();
        assert_eq!(wait.wait().unwrap().0, 1);
        assert!(count.is_let_go());
        drop(hold);
        end(&scheduler);
        assert_eq!(count.get(), 1, "the other task wakes nobody");
    });
}

#[test]
fn of_none_there_is_no_first() {
    let none = first(&mut [] as &mut [Task<(), ()>]).wait().unwrap_err();
    assert_eq!(none, OutcomeError::Nothing);
}

/// The task on the only worker waits for two that come after it.
#[test]
fn a_task_that_waits_for_the_first_of_its_own_scheduler_is_told() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let caller = Arc::new(caller);
        let inner = Arc::clone(&caller);
        let waits = caller.exec(move || {
            let mut tasks = [1, 2].map(|n| gives(&inner, n));
            first(&mut tasks).wait().map(drop)
        });
        let told = waits.unwrap().outcome().wait().unwrap().verdict;
        let stalled = OutcomeError::Stalled(Stalled);
        assert!(matches!(told, Verdict::Failed(error) if error == stalled));
        end(&scheduler);
    });
}

/// The other scheduler goes on whatever this one does.
#[test]
fn a_task_that_waits_for_the_first_of_two_schedulers_does_not_give_up() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (elsewhere, other) = one_caller(1);
        let Held { task, go, .. } = Held::start(&other);
        let (inner, (begins, began)) = (caller.clone(), channel());
        let mut waits = caller
            .exec(move || {
                let mut tasks = [gives(&inner, 1), task];
                begins.send(()).unwrap();
                first(&mut tasks).wait().map(|(n, _)| n)
            })
            .unwrap();
        began.recv().unwrap();
        let early = waits.outcome().wait_timeout(Duration::from_millis(20));
        assert!(early.is_err(), "the other task runs");
        go.send(()).unwrap();
        assert_eq!(waits.outcome().wait().unwrap().verdict.ok(), Some(1));
        end(&scheduler);
        end(&elsewhere);
    });
}

#[test]
fn all_of_nothing_is_an_empty_summary() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let nothing = caller.synchronize_all().wait();
        assert_eq!(nothing, Ok(Summary::default()));
        gives(&caller, 1).detach();
        assert_eq!(caller.synchronize_all().wait().unwrap().ok, 1);
        assert_eq!(caller.synchronize_all().wait().unwrap().tasks, 0);
        end(&scheduler);
    });
}

/// Also while a panic unwinds the scope.
#[test]
fn a_shutdown_at_the_end_of_a_scope_waits_for_what_runs() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        let panics = AssertUnwindSafe(|| {
            let _guard = scheduler.shutdown_at_end(How::Drain);
            held.go();
            panic!("of the test's own");
        });
        assert!(catch_unwind(panics).is_err());
        assert_eq!(scheduler.workers().live, 0);
        assert!(held.task.has_ended());
    });
}
