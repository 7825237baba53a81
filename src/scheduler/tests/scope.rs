//! Tasks that borrow from the stack. CI runs these under the address sanitizer too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, mpsc};
use std::thread::{self, sleep, yield_now};
use std::time::Duration;

use crate::limit::Limit;
use crate::scheduler::{
    Caller, CallerOptions, How, OnFailure, Place, Reason, Scheduler, Scope, TaskResult, Verdict,
};

fn with_workers(workers: u32) -> (Scheduler, Caller) {
    let scheduler = Scheduler::builder().workers(workers).build().unwrap();
    let caller = scheduler.caller("main", CallerOptions::default());
    (scheduler, caller.unwrap())
}

/// A value of a task: it borrows, and its drop takes long.
struct Owned<'a>(&'a AtomicU32);

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        sleep(Duration::from_millis(5));
        self.0.fetch_add(1, SeqCst);
    }
}

fn owns(dropped: &AtomicU32) -> impl FnOnce() -> Result<(), ()> + Send {
    let owned = Owned(dropped);
    move || {
        drop(owned);
        Ok(())
    }
}

/// The message of the panic of `f`.
fn panic_of<T>(f: impl FnOnce() -> T) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).err();
    let payload = payload.expect("it panics");
    let literal = payload.downcast_ref::<&str>().map(ToString::to_string);
    literal.unwrap_or_else(|| payload.downcast_ref::<String>().unwrap().clone())
}

#[test]
fn each_task_writes_to_its_part_and_gives_a_result() {
    let (_scheduler, caller) = with_workers(2);
    let mut numbers: Vec<u64> = (0..1000).collect();
    let step = String::from("1");
    let sum: u64 = caller.scope(|s| {
        let tasks = numbers.chunks_mut(100).map(|part| {
            let step = &step[..];
            s.exec(move || {
                part.iter_mut()
                    .for_each(|n| *n += step.parse::<u64>().unwrap());
                Ok::<_, ()>(part.iter().sum::<u64>())
            })
        });
        let tasks: Vec<_> = tasks.map(Result::unwrap).collect();
        let sums = tasks.into_iter().map(|mut task| task.outcome().wait());
        sums.map(|sum| sum.unwrap().verdict.ok().unwrap()).sum()
    });
    assert!(numbers.iter().copied().eq(1..=1000));
    assert_eq!(sum, 500_500);
    assert_eq!(caller.synchronize().wait().unwrap().ok, 10);
}

#[test]
fn they_are_tasks_of_their_caller() {
    let (scheduler, caller) = with_workers(1);
    let group = caller.group(Limit::SERIAL, 100).unwrap();
    let order = Mutex::new(Vec::new());
    let note = |n: u32| {
        let order = &order;
        move || {
            order.lock().unwrap().push(n);
            Ok::<_, ()>(())
        }
    };
    caller.scope(|s| {
        let hold = scheduler.hold();
        let high = Place::new().tier(1);
        s.exec_detached(high, note(4)).unwrap();
        let bumped = s.exec_with(high, note(3)).unwrap();
        for n in 0..3 {
            let place = Place::new().group(&group);
            s.exec_detached(place, note(n)).unwrap();
        }
        caller.bump(&bumped, 255).unwrap();
        drop(hold);
    });
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
}

fn split<'scope>(s: &'scope Scope<'scope, '_>, done: &'scope AtomicU32, depth: u32) {
    for _ in 0..2 {
        let more = move || {
            done.fetch_add(1, SeqCst);
            if depth > 0 {
                split(s, done, depth - 1);
            }
            Ok::<_, ()>(())
        };
        s.exec_detached(Place::new(), more).unwrap();
    }
}

#[test]
fn a_task_submits_more_to_its_scope() {
    let (_scheduler, caller) = with_workers(2);
    let done = AtomicU32::new(0);
    caller.scope(|s| split(s, &done, 5));
    assert_eq!(done.load(SeqCst), 126);
}

#[test]
fn a_body_that_panics_waits_for_its_tasks() {
    let (_scheduler, caller) = with_workers(2);
    let dropped = AtomicU32::new(0);
    let panicked = panic_of(|| {
        caller.scope(|s| {
            (0..3).for_each(|_| s.exec(owns(&dropped)).unwrap().detach());
            panic!("of the body");
        });
    });
    assert_eq!((&*panicked, dropped.load(SeqCst)), ("of the body", 3));
}

#[test]
fn values_of_a_task_are_dropped_before_the_scope_ends() {
    let (scheduler, caller) = with_workers(1);
    let options = CallerOptions {
        capacity: 1.into(),
        ..CallerOptions::default()
    };
    let small = scheduler.caller("small", options).unwrap();
    let paused = caller.group(0, 100).unwrap();
    let dropped = AtomicU32::new(0);
    let ended = |so_many| assert_eq!(dropped.swap(0, SeqCst), so_many);
    // The task ran.
    caller.scope(|s| s.exec(owns(&dropped)).unwrap().detach());
    ended(1);
    // The task panicked.
    let panicked = caller.scope(|s| {
        let owned = Owned(&dropped);
        let panics = move || {
            let _owned = owned;
            panic!("of the task");
            #[allow(unreachable_code)]
            Ok::<(), ()>(())
        };
        s.exec(panics).unwrap()
    });
    drop(panicked);
    ended(1);
    // The task was refused.
    small.scope(|s| {
        let hold = scheduler.hold();
        s.exec(owns(&dropped)).unwrap().detach();
        let refused = s.exec(owns(&dropped)).map(drop);
        assert_eq!(refused, Err(Reason::Full));
        drop(hold);
    });
    ended(2);
    // The task was cancelled by another thread.
    thread::scope(|threads| {
        caller.scope(|s| {
            let place = Place::new().group(&paused);
            s.exec_detached(place, owns(&dropped)).unwrap();
            let task = s.exec_with(place, owns(&dropped)).unwrap();
            threads.spawn(|| caller.cancel_all());
            task.detach();
        });
        ended(2);
    });
    // The caller takes no more tasks.
    scheduler.shutdown(How::Drain).wait().unwrap();
    let refused = caller.scope(|s| s.exec(owns(&dropped)).map(drop));
    assert_eq!(refused, Err(Reason::Closed));
    ended(1);
}

#[test]
fn a_scope_does_not_wait_for_a_skipped_task() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let options = CallerOptions {
        on_failure: OnFailure::SkipHigherTiers,
        ..CallerOptions::default()
    };
    let caller = scheduler.caller("main", options).unwrap();
    let dropped = AtomicU32::new(0);
    let skipped = caller.scope(|s| {
        let _hold = scheduler.hold();
        s.exec_detached(Place::new(), || Err::<(), _>(())).unwrap();
        s.exec_with(Place::new().tier(1), owns(&dropped)).unwrap()
    });
    assert_eq!(dropped.load(SeqCst), 1);
    let mut skipped = skipped;
    let verdict = skipped.outcome().wait().unwrap().verdict;
    assert!(matches!(verdict, Verdict::Skipped));
}

#[test]
fn a_panic_is_reported_by_the_outcome_or_else_by_the_scope() {
    let (_scheduler, caller) = with_workers(1);
    let fails = || -> Result<(), ()> { panic!("of the task") };
    let verdict = caller.scope(|s| {
        let mut task = s.exec(fails).unwrap();
        task.outcome().wait().unwrap().verdict
    });
    assert_eq!(verdict.ending().to_string(), "panicked");
    let after = AtomicU32::new(0);
    let panicked = panic_of(|| {
        caller.scope(|s| {
            s.exec_detached(Place::new(), fails).unwrap();
            s.exec_detached(Place::new(), owns(&after)).unwrap();
        });
    });
    assert_eq!(panicked, "a task of a scope panicked");
    assert_eq!(after.load(SeqCst), 1);
    // The panic of the body is passed on first.
    let panicked = panic_of(|| {
        caller.scope(|s| {
            s.exec_detached(Place::new(), fails).unwrap();
            panic!("of the body");
        });
    });
    assert_eq!(panicked, "of the body");
    let detached = caller.scope(|s| s.exec_detached(Place::new(), || Err::<(), _>(1)));
    assert_eq!(detached, Ok(()), "an error is none");
}

/// Whether the handle goes before the panic or after it.
#[test]
fn a_panic_that_no_handle_tells_is_passed_on() {
    let (scheduler, caller) = with_workers(1);
    let fails = || -> Result<(), ()> { panic!("of the task") };
    let dropped_first = panic_of(|| {
        caller.scope(|s| {
            let _hold = scheduler.hold();
            s.exec(fails).unwrap().detach();
        });
    });
    assert_eq!(dropped_first, "a task of a scope panicked");
    // Its panic is told when all have ended.
    let after = AtomicU32::new(0);
    let dropped_last = panic_of(|| {
        caller.scope(|s| {
            let task = s.exec(fails).unwrap();
            caller.synchronize().wait().unwrap();
            assert!(task.has_ended());
            s.exec_detached(Place::new(), owns(&after)).unwrap();
            drop(task);
        });
    });
    assert_eq!(dropped_last, "a task of a scope panicked");
    assert_eq!(after.load(SeqCst), 1);
    // Another task has the handle, and drops it.
    let moved = panic_of(|| {
        caller.scope(|s| {
            let task = s.exec(fails).unwrap();
            s.exec_detached(Place::new(), move || drop(task)).unwrap();
        });
    });
    assert_eq!(moved, "a task of a scope panicked");
}

#[test]
fn a_panic_that_a_handle_tells_is_not_passed_on() {
    let (scheduler, caller) = with_workers(1);
    let fails = || -> Result<(), ()> { panic!("of the task") };
    // It outlives the scope, also to be dropped then.
    let [mut first, second] = caller.scope(|s| [s.exec(fails).unwrap(), s.exec(fails).unwrap()]);
    let verdict = first.outcome().wait().unwrap().verdict;
    assert!(matches!(verdict, Verdict::Panicked(_)));
    drop(second);
    // The handles of tasks that end otherwise are dropped.
    caller.scope(|s| {
        let _hold = scheduler.hold();
        s.exec(|| Err::<(), _>(1)).unwrap().detach();
        s.exec(|| ()).unwrap().cancel();
    });
}

#[test]
fn a_panic_of_a_users_result_is_one_of_its_task() {
    struct Breaks;
    impl TaskResult for Breaks {
        type Ok = ();
        type Error = ();

        fn into_result(self) -> Result<(), ()> {
            panic!("of the result")
        }
    }
    let (_scheduler, caller) = with_workers(1);
    let panicked = panic_of(|| {
        caller.scope(|s| s.exec_detached(Place::new(), || Breaks).unwrap());
    });
    assert_eq!(panicked, "a task of a scope panicked");
}

/// No worker is left for its tasks.
#[test]
fn a_scope_that_is_stalled_cancels_its_tasks_alone() {
    let (scheduler, caller) = with_workers(1);
    let of_task = caller.clone();
    let mut task = caller.exec(move || {
        let dropped = AtomicU32::new(0);
        let other = of_task.exec(|| Ok::<_, ()>(1)).unwrap();
        let panicked = panic_of(|| {
            of_task.scope(|s| {
                s.exec_detached(Place::new(), owns(&dropped)).unwrap();
                s.exec(owns(&dropped)).unwrap().detach();
            });
        });
        assert_eq!(dropped.load(SeqCst), 2);
        Ok::<_, ()>((panicked, other))
    });
    let given = task.as_mut().unwrap().outcome().wait().unwrap().verdict;
    let (panicked, mut other) = given.ok().expect("it did not panic");
    assert!(panicked.starts_with("a scope is stalled"), "{panicked}");
    let other = other.outcome().wait().unwrap().verdict;
    assert_eq!(other.ok(), Some(1));
    let summary = caller.synchronize().wait().unwrap();
    assert_eq!((summary.ok, summary.cancelled), (2, 2));
    scheduler.shutdown(How::Drain).wait().unwrap();
}

/// Both workers are in a scope, and none is left for their tasks: one scope gives up, and its
/// worker serves the other.
#[test]
fn of_two_scopes_that_wait_for_workers_one_goes_on() {
    let (_scheduler, caller) = with_workers(2);
    let meet = std::sync::Barrier::new(2);
    let done = AtomicU32::new(0);
    let stalled = caller.scope(|outer| {
        let open = || {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                caller.scope(|s| {
                    let count = || Ok::<_, ()>(done.fetch_add(1, SeqCst));
                    meet.wait();
                    s.exec(count).unwrap().detach();
                });
            }));
            Ok::<_, ()>(panicked.is_err())
        };
        let tasks = [outer.exec(open), outer.exec(open)];
        let panicked = tasks.map(|task| task.unwrap().outcome().wait().unwrap().verdict.ok());
        panicked.iter().filter(|&&it| it == Some(true)).count()
    });
    assert_eq!((stalled, done.load(SeqCst)), (1, 1));
}

/// The scope must wait for its running task, whose own wait can give up.
#[test]
fn a_task_of_a_stalled_scope_gives_up() {
    let (scheduler, caller) = with_workers(2);
    let paused = caller.group(0, 100).unwrap();
    let place = Place::new().group(&paused);
    let mut never = caller.exec_with(place, || Ok::<_, ()>(())).unwrap();
    let blocked = |so_many| {
        let blocked = || scheduler.shared.lock().core.stalls.len();
        while blocked() < so_many {
            yield_now();
        }
    };
    let (tell, told) = mpsc::channel();
    let verdict = caller.scope(|outer| {
        let (caller, blocked) = (&caller, &blocked);
        let opens = move || {
            caller.scope(|s| {
                let waits = || Ok::<_, ()>(tell.send(never.outcome().wait().is_err()));
                s.exec(waits).unwrap().detach();
                blocked(1);
            });
            Ok::<_, ()>(())
        };
        let mut task = outer.exec(opens).unwrap();
        task.outcome().wait().unwrap().verdict
    });
    assert_eq!(told.recv(), Ok(true));
    assert_eq!(verdict.ok(), Some(()), "nothing of its scope was cancelled");
}
