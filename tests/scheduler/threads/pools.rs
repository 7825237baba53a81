//! Workers on the embedder's pool: pools that serve, and pools that do not.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use conversant::limit::Limit;
use conversant::scheduler::{Caller, CallerOptions, How, Place, Pool, Reason, Scheduler, Verdict};
use conversant::ticker::keep_time;

use crate::threads::stage::{Held, capped, end, finishes, gives, until};

pub(super) type Sent = Box<dyn FnOnce() + Send>;

/// Why a pool refuses to run a worker.
pub(super) type Refused = Box<dyn std::error::Error + Send + Sync>;

pub(super) fn on_pool(workers: u32, pool: impl Pool + 'static) -> (Scheduler, Caller) {
    let builder = Scheduler::builder().workers(workers).pool(pool);
    let scheduler = builder.build().unwrap();
    let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
    (scheduler, caller)
}

/// Runs the job at once, on the thread that submits it.
pub(super) fn inline(job: Sent) -> Result<(), Refused> {
    job();
    Ok(())
}

/// Starts a thread for each job, like a pool that always has room.
pub(super) fn thread_each(job: Sent) -> Result<(), Refused> {
    thread::spawn(job);
    Ok(())
}

/// Checks a refusal: the task comes back, nothing is outstanding, the slot is free.
pub(super) fn refused(scheduler: &Scheduler, caller: &Caller, failures: u64, why: &str) {
    let back = caller.exec(|| Ok::<_, ()>(41)).unwrap_err();
    assert_eq!(back.reason, Reason::NoWorker);
    assert_eq!((back.task)(), Ok(41));
    let workers = scheduler.workers();
    assert_eq!((workers.live, workers.busy, workers.idle), (0, 0, 0));
    assert!(workers.start_failures >= failures);
    assert_eq!(workers.start_error.as_deref(), Some(why));
    assert!(caller.synchronize().wait().is_err(), "nothing outstanding");
    assert!(scheduler.status().waiting.is_empty());
}

#[test]
fn a_pool_that_refuses_is_reported_and_the_task_handed_back() {
    finishes(|| {
        let (scheduler, caller) = on_pool(2, |_: Sent| Err("no room".into()));
        for failures in 1..5 {
            refused(&scheduler, &caller, failures, "no room");
        }
        end(&scheduler);
    });
}

#[test]
fn a_pool_that_drops_the_job_unrun_is_reported() {
    finishes(|| {
        let drops = |job: Sent| {
            drop(job);
            Ok(())
        };
        let (scheduler, caller) = on_pool(2, drops);
        for failures in 1..5 {
            refused(
                &scheduler,
                &caller,
                failures,
                "the worker was dropped unrun",
            );
        }
        end(&scheduler);
    });
}

#[test]
fn a_pool_that_panics_in_submit_is_reported() {
    struct Rude;
    impl Drop for Rude {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("again"));
        }
    }
    finishes(|| {
        let panics = |_: Sent| -> Result<(), Refused> { std::panic::resume_unwind(Box::new(())) };
        let (scheduler, caller) = on_pool(2, panics);
        refused(&scheduler, &caller, 1, "the start panicked");
        end(&scheduler);
        let panics = |_: Sent| -> Result<(), Refused> { std::panic::resume_unwind(Box::new(Rude)) };
        let (scheduler, caller) = on_pool(2, panics);
        refused(&scheduler, &caller, 1, "the start panicked");
        end(&scheduler);
    });
}

#[test]
fn a_pool_that_fails_once_then_works() {
    finishes(|| {
        let failed = AtomicBool::new(false);
        let once = move |job: Sent| match failed.swap(true, SeqCst) {
            false => Err("not yet".into()),
            true => thread_each(job),
        };
        let (scheduler, caller) = on_pool(2, once);
        // Either the task came back, or the next event found the pool working.
        let first = caller.exec(|| Ok::<_, ()>(1));
        let second = gives(&caller, 2).outcome().wait().unwrap();
        assert!(matches!(second.verdict, Verdict::Ok(2)));
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!(summary.tasks, 1 + u64::from(first.is_ok()));
        assert_eq!(scheduler.workers().start_failures, 1);
        end(&scheduler);
    });
}

/// The second worker cannot be started: the first runs all tasks.
#[test]
fn a_pool_with_room_for_one_worker_loses_nothing() {
    finishes(|| {
        let sent = AtomicU32::new(0);
        let one_only = move |job: Sent| match sent.fetch_add(1, SeqCst) {
            0 => thread_each(job),
            _ => Err("one is all".into()),
        };
        let (scheduler, caller) = on_pool(4, one_only);
        let held = Held::start(&caller);
        let tasks: Vec<_> = (0..50).map(|n| gives(&caller, n)).collect();
        assert_eq!(scheduler.workers().live, 1);
        held.go();
        assert_eq!(caller.synchronize().wait().unwrap().ok, 51);
        assert!(scheduler.workers().start_failures >= 1);
        drop(tasks);
        end(&scheduler);
    });
}

#[test]
fn a_pool_that_runs_the_job_inline_on_the_submitting_thread() {
    finishes(|| {
        let (scheduler, caller) = on_pool(1, inline);
        let here = thread::current().id();
        let mut task = caller
            .exec(move || Ok::<_, ()>(thread::current().id() == here))
            .unwrap();
        let outcome = task.outcome().wait().unwrap();
        assert!(matches!(outcome.verdict, Verdict::Ok(true)));
        let panics = caller.exec(|| -> Result<(), ()> { std::panic::resume_unwind(Box::new(())) });
        panics.unwrap().detach();
        let hold = scheduler.hold();
        (0..100).for_each(|n| gives(&caller, n).detach());
        assert_eq!(scheduler.workers().live, 0);
        drop(hold);
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.tasks, summary.ok), (102, 101));
        end(&scheduler);
    });
}

/// Delays that end before, while and after a task is submitted.
fn delays() -> impl Iterator<Item = Place<'static>> {
    let nanos = (0..20_000).step_by(5);
    nanos.map(|n| Place::new().after(Duration::from_nanos(n)))
}

/// From now on the clock says at each event which delays are over.
fn counts_from(scheduler: &Scheduler, origin: Instant) -> impl Future + '_ {
    keep_time(scheduler, origin, |_| std::future::pending::<()>())
}

/// Checks that all tasks run, and that no start of a worker failed.
fn all_run(scheduler: &Scheduler, caller: &Caller, origin: Instant) {
    while scheduler.advance(origin.elapsed()).is_some() {
        thread::yield_now();
    }
    let summary = caller.synchronize().wait().unwrap();
    assert_eq!(summary.ok, delays().count() as u64);
    assert_eq!(scheduler.workers().start_failures, 0);
    end(scheduler);
}

#[test]
fn what_is_due_while_it_is_submitted_lacks_no_worker() {
    finishes(|| {
        let (scheduler, caller) = on_pool(1, inline);
        let origin = Instant::now();
        let _ticker = counts_from(&scheduler, origin);
        for place in delays() {
            let task = caller.exec_with(place, || Ok::<_, ()>(()));
            task.expect("the pool serves").detach();
        }
        all_run(&scheduler, &caller, origin);
    });
}

#[test]
fn what_waits_for_its_cap_while_others_are_due_lacks_no_worker() {
    finishes(|| {
        let (scheduler, caller) = on_pool(1, inline);
        let paused = scheduler.caller("paused", capped(0)).unwrap();
        let origin = Instant::now();
        let _ticker = counts_from(&scheduler, origin);
        for place in delays() {
            let due = caller.exec_with(place, || Ok::<_, ()>(())).unwrap();
            let task = paused.exec(|| Ok::<_, ()>(()));
            assert!(task.expect("the pool serves").cancel());
            due.detach();
        }
        all_run(&scheduler, &caller, origin);
    });
}

/// A task that submits, on a pool that runs inline: nested, then flat.
#[test]
fn a_task_submits_on_an_inline_pool() {
    finishes(|| {
        for workers in [1, 4] {
            let (scheduler, caller) = on_pool(workers, inline);
            let caller = Arc::new(caller);
            let inner = Arc::clone(&caller);
            let mut task = caller
                .exec(move || {
                    (0..20).for_each(|n| gives(&inner, n).detach());
                    Ok::<_, ()>(())
                })
                .unwrap();
            task.outcome().wait().unwrap();
            assert_eq!(caller.synchronize().wait().unwrap().ok, 21);
            end(&scheduler);
        }
    });
}

/// A pool that keeps the jobs for later, and drops them when it goes.
#[derive(Clone, Default)]
struct Queue(Arc<Mutex<Vec<Sent>>>);

impl Pool for Queue {
    fn submit(&self, job: Sent) -> Result<(), Refused> {
        self.0.lock().unwrap().push(job);
        Ok(())
    }
}

impl Queue {
    fn take(&self) -> Vec<Sent> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

#[test]
fn a_pool_that_drops_its_queue_later_gives_the_slots_back() {
    finishes(|| {
        let queue = Queue::default();
        let (scheduler, caller) = on_pool(2, queue.clone());
        let mut tasks: Vec<_> = (0..5).map(|n| gives(&caller, n)).collect();
        assert_eq!(scheduler.workers().live, 2, "both are about to start");
        drop(queue.take());
        assert_eq!(scheduler.workers().live, 0);
        assert_eq!(scheduler.workers().start_failures, 2);
        // The next event tries again, and nothing was lost.
        assert!(tasks[4].cancel());
        assert_eq!(scheduler.workers().live, 2);
        queue.take().into_iter().for_each(|job| job());
        assert_eq!(scheduler.workers().live, 0, "a worker on a pool returns");
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.ok, summary.cancelled), (4, 1));
        let last = tasks[3].outcome().wait().unwrap();
        assert!(matches!(last.verdict, Verdict::Ok(3)));
        end(&scheduler);
    });
}

/// A task that is submitted while a worker is starting waits for it, and then for the next.
#[test]
fn a_worker_that_fails_on_its_way_is_asked_for_again() {
    finishes(|| {
        let queue = Queue::default();
        let (scheduler, caller) = on_pool(1, queue.clone());
        let mut tasks: Vec<_> = (0..2).map(|n| gives(&caller, n)).collect();
        drop(queue.take());
        assert_eq!(scheduler.workers().live, 0);
        tasks.push(gives(&caller, 2));
        assert_eq!(scheduler.workers().live, 1);
        queue.take().into_iter().for_each(|job| job());
        for (n, task) in tasks.iter_mut().enumerate() {
            let gave = task.try_outcome().unwrap().unwrap().verdict;
            assert!(matches!(gave, Verdict::Ok(m) if m as usize == n));
        }
        end(&scheduler);
    });
}

/// A worker that starts too late finds no work, and does no harm.
#[test]
fn a_pool_that_runs_its_jobs_after_the_work_is_gone() {
    finishes(|| {
        let queue = Queue::default();
        let (scheduler, caller) = on_pool(3, queue.clone());
        let tasks: Vec<_> = (0..3).map(|n| gives(&caller, n)).collect();
        assert!(tasks.iter().all(|task| task.cancel()));
        scheduler.set_workers(1).unwrap();
        assert_eq!(scheduler.workers().live, 3);
        queue.take().into_iter().for_each(|job| job());
        assert_eq!(scheduler.workers().live, 0);
        assert_eq!(caller.synchronize().wait().unwrap().cancelled, 3);
        let task = gives(&caller, 9);
        assert_eq!(queue.0.lock().unwrap().len(), 1, "the new maximum");
        queue.take().into_iter().for_each(|job| job());
        drop(task);
        assert_eq!(caller.synchronize().wait().unwrap().ok, 1);
        end(&scheduler);
    });
}

/// A shutdown with cancel does not wait until the pool runs the workers that never
/// started, only until it drops them.
#[test]
fn a_shutdown_waits_for_workers_that_are_about_to_start() {
    finishes(|| {
        let queue = Queue::default();
        let (scheduler, caller) = on_pool(2, queue.clone());
        let task = gives(&caller, 1);
        assert!(
            scheduler
                .shutdown(How::Cancel)
                .wait_timeout(Default::default())
                .is_err()
        );
        drop(queue.take());
        scheduler.shutdown(How::Cancel).wait().unwrap();
        assert_eq!(caller.synchronize().wait().unwrap().cancelled, 1);
        drop(task);
    });
}

#[test]
fn a_pool_of_one_thread_under_more_workers() {
    finishes(|| {
        let (jobs, queue) = channel::<Sent>();
        let worker = thread::spawn(move || queue.into_iter().for_each(|job| job()));
        let jobs: Mutex<Sender<Sent>> = Mutex::new(jobs);
        let pool = move |job: Sent| {
            let sent = jobs.lock().unwrap().send(job);
            sent.map_err(|_| "gone".into())
        };
        let (scheduler, caller) = on_pool(4, pool);
        for _ in 0..20 {
            (0..50).for_each(|n| gives(&caller, n).detach());
            assert_eq!(caller.synchronize().wait().unwrap().ok, 50);
        }
        end(&scheduler);
        drop((scheduler, caller));
        worker.join().unwrap();
    });
}

#[test]
fn rayon_is_a_pool() {
    finishes(|| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build();
        let pool = pool.unwrap();
        let (scheduler, caller) = on_pool(3, move |job| {
            pool.spawn(job);
            Ok(())
        });
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let page = Arc::new(Mutex::new(Vec::new()));
        for n in 0..300 {
            let page = Arc::clone(&page);
            let place = Place::new().group(&group).tier(n / 100);
            let body = move || {
                assert!(rayon::current_thread_index().is_some(), "on the pool");
                page.lock().unwrap().push(n);
                Ok::<_, ()>(())
            };
            caller.exec_with(place, body).unwrap().detach();
            gives(&caller, u64::from(n)).detach();
        }
        assert_eq!(caller.synchronize().wait().unwrap().ok, 600);
        assert_eq!(*page.lock().unwrap(), (0..300).collect::<Vec<_>>());
        until(|| scheduler.workers().live == 0);
        end(&scheduler);
    });
}
