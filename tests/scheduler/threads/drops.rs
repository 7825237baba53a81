//! What a task's function holds is dropped under no lock, however it ends: a
//! drop that calls back into the scheduler neither hangs nor is lost.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll};

use conversant::scheduler::{
    Builder, Caller, CallerOptions, How, OnFailure, Place, Reason, Scheduler, Verdict,
    WorkersStatus,
};

use crate::threads::stage::{Held, Job, end, finishes, gives, one_caller, until};

/// Calls back into the scheduler when it is dropped, and says so.
struct CallsBack {
    scheduler: Arc<Scheduler>,
    caller: Arc<Caller>,
    other: Job,
    dropped: Sender<()>,
}

impl Drop for CallsBack {
    fn drop(&mut self) {
        let _status = self.scheduler.status();
        let _workers = self.scheduler.workers();
        self.other.cancel();
        let _ = self.caller.bump(&self.other, 1);
        // Accepted or refused: both take the lock.
        if let Ok(task) = self.caller.exec(|| Ok::<_, ()>(())) {
            task.detach();
        }
        drop(self.scheduler.hold());
        self.dropped.send(()).ok();
    }
}

struct Stage {
    scheduler: Arc<Scheduler>,
    caller: Arc<Caller>,
    /// A caller of its own, for the tasks that the drops submit.
    spare: Arc<Caller>,
}

impl Stage {
    fn new(on_failure: OnFailure) -> Self {
        let (scheduler, spare) = one_caller(1);
        let options = CallerOptions {
            on_failure,
            ..CallerOptions::default()
        };
        let caller = scheduler.caller("tested", options).unwrap();
        Self {
            scheduler: Arc::new(scheduler),
            caller: Arc::new(caller),
            spare: Arc::new(spare),
        }
    }

    fn calls_back(&self, dropped: &Sender<()>) -> CallsBack {
        CallsBack {
            scheduler: Arc::clone(&self.scheduler),
            caller: Arc::clone(&self.spare),
            other: gives(&self.spare, 1),
            dropped: dropped.clone(),
        }
    }

    fn end(self) {
        end(&self.scheduler);
    }
}

#[test]
fn of_a_task_that_ran() {
    finishes(|| {
        let stage = Stage::new(OnFailure::Continue);
        let (dropped, drops) = channel();
        for panics in [false, true] {
            let captured = stage.calls_back(&dropped);
            let task = stage.caller.exec(move || {
                let _captured = captured;
                assert!(!panics, "it panics with what it captured");
                Ok::<_, ()>(())
            });
            task.unwrap().detach();
            drops.recv().unwrap();
        }
        stage.end();
    });
}

#[test]
fn of_a_task_that_was_cancelled() {
    finishes(|| {
        let stage = Stage::new(OnFailure::Continue);
        let (dropped, drops) = channel();
        let held = Held::start(&stage.caller);
        let captured = stage.calls_back(&dropped);
        let task = stage.caller.exec(move || Ok::<_, ()>(captured)).unwrap();
        assert!(task.cancel());
        drops.try_recv().expect("dropped by the call that cancels");
        held.finish();
        stage.end();
    });
}

#[test]
fn of_tasks_cancelled_by_a_release_or_a_shutdown() {
    finishes(|| {
        for shutdown in [false, true] {
            let stage = Stage::new(OnFailure::Continue);
            let (dropped, drops) = channel();
            let held = Held::start(&stage.spare);
            for _ in 0..70 {
                let captured = stage.calls_back(&dropped);
                let task = stage.caller.exec(move || Ok::<_, ()>(captured));
                task.unwrap().detach();
            }
            let none = if shutdown {
                let down = stage.scheduler.shutdown(How::Cancel);
                down.wait_timeout(Default::default()).is_err()
            } else {
                let released = stage.caller.release(How::Cancel);
                released.wait_timeout(Default::default()).is_ok()
            };
            assert!(none);
            assert_eq!(drops.try_iter().count(), 70);
            held.finish();
            stage.end();
        }
    });
}

#[test]
fn of_tasks_that_were_skipped() {
    finishes(|| {
        let stage = Stage::new(OnFailure::SkipHigherTiers);
        let (dropped, drops) = channel();
        let hold = stage.scheduler.hold();
        stage.caller.exec(|| Err::<(), _>(())).unwrap().detach();
        let above = |captured: CallsBack| {
            let place = Place::new().tier(1);
            let task = stage.caller.exec_with(place, move || Ok::<_, ()>(captured));
            task.unwrap().detach();
        };
        (0..40).for_each(|_| above(stage.calls_back(&dropped)));
        drop(hold);
        (0..40).for_each(|_| drops.recv().unwrap());
        // A task that is submitted after the failure is dropped by that call.
        above(stage.calls_back(&dropped));
        drops.try_recv().unwrap();
        stage.end();
    });
}

#[test]
fn of_a_task_that_was_handed_back() {
    finishes(|| {
        let stage = Stage::new(OnFailure::Continue);
        let (dropped, drops) = channel();
        let refuses = |_: Box<dyn FnOnce() + Send>| Err("never".into());
        let scheduler = Scheduler::builder().workers(1).pool(refuses).build();
        let scheduler = scheduler.unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let captured = stage.calls_back(&dropped);
        let back = caller.exec(move || Ok::<_, ()>(captured)).unwrap_err();
        assert_eq!(back.reason, Reason::NoWorker);
        assert!(drops.try_recv().is_err(), "it was handed back whole");
        drop(back);
        drops.try_recv().unwrap();
        stage.end();
    });
}

#[test]
fn of_what_a_detached_task_gave() {
    finishes(|| {
        let stage = Stage::new(OnFailure::Continue);
        let (dropped, drops) = channel();
        for fails in [false, true] {
            let captured = stage.calls_back(&dropped);
            let task = stage.caller.exec(move || match fails {
                false => Ok(captured),
                true => Err(captured),
            });
            task.unwrap().detach();
            drops.recv().unwrap();
        }
        stage.end();
    });
}

#[test]
fn of_what_a_task_gave_whose_handle_goes_later() {
    finishes(|| {
        let stage = Stage::new(OnFailure::Continue);
        let (dropped, drops) = channel();
        let captured = stage.calls_back(&dropped);
        let task = stage.caller.exec(move || Ok::<_, ()>(captured)).unwrap();
        stage.caller.synchronize().wait().unwrap();
        assert!(drops.try_recv().is_err(), "it waits in its handle");
        drop(task);
        drops.recv().unwrap();
        stage.end();
    });
}

/// A future that is ready at once with what it holds. Its drop panics.
struct Fragile(Option<Tells>);

impl Future for Fragile {
    type Output = Result<Tells, ()>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(self.0.take().ok_or(()))
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        panic!("scripted");
    }
}

/// Says that it is dropped.
struct Tells(Sender<()>);

impl Drop for Tells {
    fn drop(&mut self) {
        self.0.send(()).ok();
    }
}

#[test]
fn of_what_a_future_gave_whose_drop_panics() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (dropped, drops) = channel();
        let mut task = caller.spawn(Fragile(Some(Tells(dropped)))).unwrap();
        let outcome = task.outcome().wait().unwrap();
        assert!(matches!(outcome.verdict, Verdict::Panicked(_)));
        drops.try_recv().expect("the result is dropped");
        end(&scheduler);
    });
}

/// The caller itself, dropped by the last of its tasks.
#[test]
fn a_caller_dropped_by_its_own_task() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let caller = Arc::new(caller);
        let own = Arc::clone(&caller);
        let held = Held::start(&caller);
        let task = caller.exec(move || {
            let last = own;
            gives(&last, 1).detach();
            Ok::<_, ()>(())
        });
        task.unwrap().detach();
        drop(caller);
        held.finish();
        until(|| scheduler.status().callers.is_empty());
        end(&scheduler);
    });
}

/// A task's result. Its drop waits for another task, and says whether the wait failed.
struct WaitsFor(Job, Sender<bool>);

impl Drop for WaitsFor {
    fn drop(&mut self) {
        self.1.send(self.0.outcome().wait().is_err()).ok();
    }
}

/// The only worker drops the result: the other task cannot start, so the wait fails.
#[test]
fn what_nobody_asks_for_may_wait_for_the_scheduler_when_it_is_dropped() {
    for detached in [false, true] {
        finishes(move || {
            let (scheduler, caller) = one_caller(1);
            let (told, was_told) = channel();
            let (go, may_go) = channel::<()>();
            let inner = caller.clone();
            let body = move || {
                may_go.recv().ok();
                Ok::<_, ()>(WaitsFor(gives(&inner, 1), told))
            };
            match detached {
                true => caller.exec_detached(Place::new(), body).unwrap(),
                false => caller.exec(body).unwrap().detach(),
            }
            go.send(()).unwrap();
            assert!(was_told.recv().unwrap());
            end(&scheduler);
        });
    }
}

fn caller_that_skips(builder: Builder) -> (Arc<Scheduler>, Caller) {
    let scheduler = Arc::new(builder.build().unwrap());
    let options = CallerOptions {
        on_failure: OnFailure::SkipHigherTiers,
        ..CallerOptions::default()
    };
    let caller = scheduler.caller("tested", options).unwrap();
    (scheduler, caller)
}

/// Looks at the workers when it is dropped, and then waits for a task.
struct Looks(Arc<Scheduler>, Job, Sender<WorkersStatus>);

impl Drop for Looks {
    fn drop(&mut self) {
        let workers = self.0.workers();
        self.1.outcome().wait().unwrap();
        self.2.send(workers).ok();
    }
}

/// So if all workers rest or have left, nothing is left to drop. The task can start when the failed
/// one ends, which skips what is dropped.
#[test]
fn a_worker_is_busy_while_it_drops_and_another_takes_what_comes() {
    let pool = |worker: Box<dyn FnOnce() + Send>| {
        std::thread::spawn(worker);
        Ok(())
    };
    for builder in [Scheduler::builder(), Scheduler::builder().pool(pool)] {
        finishes(move || {
            let (scheduler, caller) = caller_that_skips(builder.workers(2));
            let serial = caller.group(1, 100).unwrap();
            let (tells, told) = channel();
            let hold = scheduler.hold();
            let place = Place::new().group(&serial);
            let failed = caller.exec_with(place, || Err::<(), _>(()));
            failed.unwrap().detach();
            let behind = caller.exec_with(place, || Ok(1)).unwrap();
            let looks = Looks(Arc::clone(&scheduler), behind, tells);
            let place = Place::new().tier(1);
            let skipped = caller.exec_with(place, move || Ok::<_, ()>(looks));
            skipped.unwrap().detach();
            drop(hold);
            let workers = told.recv().unwrap();
            assert!(workers.busy > 0, "{workers:?}");
            end(&scheduler);
        });
    }
}

/// Waits for all these tasks when it is dropped.
struct WaitsForAll(Vec<Job>, Sender<()>);

impl Drop for WaitsForAll {
    fn drop(&mut self) {
        for task in &mut self.0 {
            task.outcome().wait().unwrap();
        }
        self.1.send(()).ok();
    }
}

/// The worker of a task that fails has more tasks in its local queue, and one of these would be
/// next. They go back before it drops what is skipped.
#[test]
fn what_a_failure_skips_may_wait_for_the_next_task_of_its_worker() {
    finishes(|| {
        let (scheduler, caller) = caller_that_skips(Scheduler::builder().workers(2));
        // After these a worker claims several tasks at once.
        for _ in 0..64 {
            gives(&caller, 1).detach();
        }
        caller.synchronize().wait().unwrap();
        let (dropped, was_dropped) = channel();
        let hold = scheduler.hold();
        caller.exec(|| Err::<(), _>(())).unwrap().detach();
        let waits = WaitsForAll((0..30).map(|_| gives(&caller, 1)).collect(), dropped);
        let skipped = caller.exec_with(Place::new().tier(1), move || Ok::<_, ()>(waits));
        skipped.unwrap().detach();
        drop(hold);
        was_dropped.recv().unwrap();
        end(&scheduler);
    });
}
