//! Callers with a capacity: refused, waited for, given back by every ending.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use conversant::error::Stalled;
use conversant::limit::Limit;
use conversant::scheduler::{
    Caller, CallerOptions, How, OnFailure, Place, Reason, Rejected, Scheduler, Task, Verdict,
};

use crate::count::Count;
use crate::threads::stage::{Held, end, finishes, gives, scheduler, until, until_idle};

fn roomy(scheduler: &Scheduler, capacity: u32) -> Caller {
    let options = CallerOptions {
        capacity: Limit::AtMost(capacity),
        on_failure: OnFailure::SkipHigherTiers,
        ..CallerOptions::default()
    };
    scheduler.caller("roomy", options).unwrap()
}

/// How many more tasks the caller accepts.
fn room(caller: &Caller) -> usize {
    let paused = caller.group(Limit::AtMost(0), 100).unwrap();
    let task = || caller.exec_with(Place::new().group(&paused), || Ok::<_, ()>(()));
    let taken: Vec<_> = std::iter::from_fn(|| task().ok()).collect();
    assert!(taken.iter().all(|task| task.cancel()));
    taken.len()
}

/// In the same way, a limit of 0 is a pause.
#[test]
fn a_capacity_of_0_lets_nothing_in() {
    finishes(|| {
        let scheduler = scheduler(1);
        let caller = roomy(&scheduler, 0);
        let refused = caller.exec(|| Ok::<_, ()>(7)).unwrap_err();
        assert_eq!(refused.reason, Reason::Full);
    });
}

#[test]
fn a_full_caller_refuses_and_each_ending_makes_room() {
    finishes(|| {
        let scheduler = scheduler(1);
        let caller = roomy(&scheduler, 3);
        let held = Held::submit(&caller, Place::new());
        held.wait_began();
        gives(&caller, 1).detach();
        gives(&caller, 2).detach();
        let refused = caller.clone().exec(|| Ok::<_, ()>(7)).unwrap_err();
        assert_eq!((refused.reason, (refused.task)()), (Reason::Full, Ok(7)));
        let future = caller.spawn(async { Ok::<_, ()>(1) }).unwrap_err();
        assert_eq!(future.reason, Reason::Full);
        held.finish();
        caller.synchronize().wait().unwrap();
        assert_eq!(room(&caller), 3);
        // All or none.
        let four = (0..4).map(|n| move || Ok::<_, ()>(n));
        let refused = caller.exec_all(Place::new(), four.clone()).unwrap_err();
        assert_eq!(
            (refused.reason, refused.task.len()),
            (Reason::AboveCapacity, 4)
        );
        let held = Held::submit(&caller, Place::new());
        let refused = caller.exec_all(Place::new(), four.take(3)).unwrap_err();
        assert_eq!((refused.reason, refused.task.len()), (Reason::Full, 3));
        held.finish();
        // Skipped tasks, and tasks that are refused for another reason.
        let fails = caller.exec(|| Err::<(), _>("no"));
        fails.unwrap().outcome().wait().unwrap();
        let skipped = caller.exec_with(Place::new().tier(1), || Ok::<_, ()>(()));
        let verdict = skipped.unwrap().outcome().wait().unwrap().verdict;
        assert!(matches!(verdict, Verdict::Skipped));
        let group = caller.group(1, 100).unwrap();
        let high = caller.exec_with(Place::new().group(&group), || Ok::<_, ()>(()));
        high.unwrap().detach();
        caller.synchronize().wait().unwrap();
        assert_eq!(room(&caller), 3);
        end(&scheduler);
    });
}

#[test]
fn a_task_for_which_there_is_no_worker_takes_no_room() {
    finishes(|| {
        let refuses = |_: Box<dyn FnOnce() + Send>| Err("no room".into());
        let scheduler = Scheduler::builder().workers(1).pool(refuses).build();
        let scheduler = scheduler.unwrap();
        let caller = roomy(&scheduler, 1);
        for _ in 0..3 {
            let refused = caller.exec(|| Ok::<_, ()>(())).unwrap_err();
            assert_eq!(refused.reason, Reason::NoWorker);
        }
    });
}

#[test]
fn those_who_wait_for_room_are_served_in_order() {
    finishes(|| {
        let scheduler = scheduler(1);
        let caller = roomy(&scheduler, 1);
        let held = Held::submit(&caller, Place::new());
        held.wait_began();
        let (count, waker) = Count::new();
        let mut cx = Context::from_waker(&waker);
        let mut first = pin!(caller.exec_wait(Place::new(), || Ok::<_, ()>(1)));
        let mut second = pin!(caller.spawn_wait(Place::new(), async { Ok::<_, ()>(2) }));
        assert!(first.as_mut().poll(&mut cx).is_pending());
        assert!(second.as_mut().poll(&mut cx).is_pending());
        held.finish();
        // There is room, but it is promised to a waiter.
        let refused = caller.exec(|| Ok::<_, ()>(3)).unwrap_err();
        assert_eq!(refused.reason, Reason::Full);
        until(|| count.get() == 1);
        let mut ready = None;
        until(|| match first.as_mut().poll(&mut cx) {
            Poll::Ready(task) => ready.replace(task.unwrap()).is_none(),
            Poll::Pending => false,
        });
        let outcome = ready.unwrap().outcome().wait().unwrap();
        assert!(matches!(outcome.verdict, Verdict::Ok(1)));
        let mut ready = None;
        until(|| match second.as_mut().poll(&mut cx) {
            Poll::Ready(task) => ready.replace(task.unwrap()).is_none(),
            Poll::Pending => false,
        });
        let outcome = ready.unwrap().outcome().wait().unwrap();
        assert!(matches!(outcome.verdict, Verdict::Ok(2)));
        caller.synchronize().wait().unwrap();
        until(|| room(&caller) == 1);
        end(&scheduler);
    });
}

#[test]
fn who_gives_up_waiting_has_its_function_back() {
    finishes(|| {
        let scheduler = scheduler(1);
        let caller = roomy(&scheduler, 1);
        let held = Held::submit(&caller, Place::new());
        let wait = caller.exec_wait(Place::new(), || Ok::<_, ()>(1));
        let back = wait.or_return_after(Duration::ZERO).unwrap_err();
        assert_eq!((back.reason, (back.task)()), (Reason::TimedOut, Ok(1)));
        let wait = caller.exec_wait(Place::new(), || Ok::<_, ()>(2));
        assert_eq!((wait.into_message().unwrap())(), Ok(2));
        held.finish();
        end(&scheduler);
    });
}

#[test]
fn a_release_and_a_shutdown_refuse_who_waits_for_room() {
    finishes(|| {
        for shuts_down in [false, true] {
            let scheduler = scheduler(1);
            let caller = roomy(&scheduler, 1);
            let held = Held::submit(&caller, Place::new());
            held.wait_began();
            thread::scope(|s| {
                let waits = s.spawn(|| caller.exec_wait(Place::new(), || Ok::<_, ()>(1)).wait());
                let ends = s.spawn(|| match shuts_down {
                    true => scheduler.shutdown(How::Drain).wait().unwrap(),
                    false => _ = caller.release(How::Drain).wait().unwrap(),
                });
                let refused = waits.join().unwrap().unwrap_err();
                assert_eq!((refused.reason, (refused.task)()), (Reason::Closed, Ok(1)));
                held.go();
                ends.join().unwrap();
            });
            let refused = caller.exec(|| Ok::<_, ()>(2)).unwrap_err();
            assert_eq!(refused.reason, Reason::Closed);
            end(&scheduler);
        }
    });
}

/// A task has ended, and its worker runs a long one that it claimed with it. The sender that
/// wants room comes then, or has come before.
#[test]
fn room_is_there_when_a_task_has_ended_though_its_worker_has_more() {
    finishes(|| {
        let quick = Scheduler::builder().workers(1).claim_time(Duration::MAX);
        let scheduler = quick.build().unwrap();
        let caller = roomy(&scheduler, 3);
        // From now on the worker claims as many tasks as it may.
        gives(&caller, 0).outcome().wait().unwrap();
        until_idle(&scheduler);
        for when in ["refused or not", "then", "before"] {
            let (count, waker) = Count::new();
            let mut cx = Context::from_waker(&waker);
            let mut more = pin!(caller.exec_wait(Place::new(), || Ok::<_, ()>(4)));
            let hold = scheduler.hold();
            gives(&caller, 1).detach();
            let long = Held::submit(&caller, Place::new());
            gives(&caller, 3).detach();
            if when == "before" {
                assert!(more.as_mut().poll(&mut cx).is_pending());
            }
            drop(hold);
            long.wait_began();
            match when {
                "refused or not" => gives(&caller, 4).detach(),
                "then" => assert!(more.as_mut().poll(&mut cx).is_ready()),
                _ => {
                    assert_eq!(count.get(), 1, "it is told");
                    assert!(more.as_mut().poll(&mut cx).is_ready());
                }
            }
            long.finish();
            assert!(caller.synchronize().wait().unwrap().all_ok());
            until_idle(&scheduler);
        }
        end(&scheduler);
    });
}

/// What a task that waits for room is told, and what the function gives that came back.
fn told<R>(refused: Result<R, Rejected<impl FnOnce() -> Result<u64, ()>>>) -> (Reason, u64) {
    match refused {
        Ok(_) => panic!("there was room"),
        Err(Rejected { task, reason }) => (reason, task().unwrap()),
    }
}

/// The task keeps the only worker, and the room itself.
#[test]
fn who_waits_in_a_task_for_the_room_that_it_keeps_itself_is_told() {
    finishes(|| {
        let scheduler = scheduler(1);
        let caller = Arc::new(roomy(&scheduler, 1));
        let own = Arc::clone(&caller);
        let waits = move || {
            let f = || Ok::<_, ()>(1);
            let twice = [(); 2].map(|()| told(own.exec_wait(Place::new(), f).wait()));
            let future = own
                .spawn_wait(Place::new(), async { Ok::<_, ()>(2) })
                .wait();
            Ok::<_, ()>((twice, future.unwrap_err().reason))
        };
        let mut task = caller.exec(waits).unwrap();
        let outcome = task.outcome().wait().unwrap();
        let stalled = Reason::Stalled(Stalled);
        let expected = ([(stalled, 1); 2], stalled);
        assert_eq!(outcome.verdict.ok(), Some(expected));
        until(|| room(&caller) == 1);
        end(&scheduler);
    });
}

/// One task waits for the room that both keep, the other for a task that no worker can run.
#[test]
fn who_waits_for_room_hides_no_other_stall() {
    finishes(|| {
        let scheduler = scheduler(2);
        let caller = Arc::new(roomy(&scheduler, 2));
        let other = scheduler.caller("other", CallerOptions::default()).unwrap();
        let (own, both) = (Arc::clone(&caller), Arc::new(Barrier::new(2)));
        let begin = Arc::clone(&both);
        let first = caller.exec(move || {
            begin.wait();
            Ok::<_, ()>(
                own.exec_wait(Place::new(), || Ok::<_, ()>(1))
                    .wait()
                    .is_err(),
            )
        });
        let second = caller.exec(move || {
            both.wait();
            Ok::<_, ()>(gives(&other, 7).outcome().wait().is_err())
        });
        let tasks = [first.unwrap(), second.unwrap()];
        let stalled = tasks.map(|mut task| task.outcome().wait().unwrap().verdict.ok());
        assert!(stalled.contains(&Some(true)) && stalled.contains(&Some(false)));
        end(&scheduler);
    });
}

/// The room of a task is free a moment after its end is known.
#[test]
fn who_waits_for_room_that_comes_is_not_stalled() {
    finishes(|| {
        let scheduler = scheduler(2);
        let caller = Arc::new(roomy(&scheduler, 2));
        for _ in 0..200 {
            let held = Held::start(&caller);
            let own = Arc::clone(&caller);
            let waits = move || {
                let task = own.exec_wait(Place::new(), || Ok::<_, ()>(1)).wait();
                task.map(Task::detach).map_err(|refused| refused.reason)
            };
            let mut waits = caller.exec(waits).unwrap();
            until(|| scheduler.counts().blocked == 1);
            held.go();
            assert_eq!(waits.outcome().wait().unwrap().verdict.ok(), Some(()));
            assert!(caller.synchronize().wait().unwrap().all_ok());
            drop(held);
        }
        end(&scheduler);
    });
}

struct AtWake(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Wake for AtWake {
    fn wake(self: Arc<Self>) {
        let act = self.0.lock().unwrap().take();
        act.into_iter().for_each(|act| act());
    }
}

/// The room is there, and before it is given to the wait that is ahead, a task blocks for it.
#[test]
fn a_task_that_saw_the_room_of_another_wait_gives_up() {
    finishes(|| {
        let scheduler = Arc::new(scheduler(1));
        let main = scheduler.caller("main", CallerOptions::default()).unwrap();
        let caller = roomy(&scheduler, 1);
        let paused = caller.group(0, 100).unwrap();
        let first = caller.exec_with(Place::new().group(&paused), || Ok::<_, ()>(()));
        let mut first = first.unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let mut ahead = pin!(caller.exec_wait(Place::new(), || Ok::<_, ()>(())));
        assert!(ahead.as_mut().poll(&mut cx).is_pending());
        let same = caller.clone();
        let waits = move || {
            let sent = same.exec_wait(Place::new(), || Ok::<_, ()>(())).wait();
            sent.map(Task::detach).map_err(|refused| refused.reason)
        };
        let (gives, given) = channel();
        let blocks = {
            let scheduler = Arc::clone(&scheduler);
            move || {
                gives.send(main.exec(waits).unwrap()).unwrap();
                until(|| scheduler.counts().blocked == 1);
            }
        };
        let waker = Waker::from(Arc::new(AtWake(Mutex::new(Some(Box::new(blocks))))));
        let mut at_wake = Context::from_waker(&waker);
        assert!(Pin::new(&mut first).poll(&mut at_wake).is_pending());
        assert!(first.cancel());
        let Poll::Ready(sent) = ahead.as_mut().poll(&mut cx) else {
            panic!("it has no room");
        };
        sent.unwrap().detach();
        let outcome = given.recv().unwrap().outcome().wait().unwrap();
        let gave_up = Verdict::<(), _>::Failed(Reason::Stalled(Stalled));
        assert_eq!(format!("{:?}", outcome.verdict), format!("{gave_up:?}"));
        end(&scheduler);
    });
}
