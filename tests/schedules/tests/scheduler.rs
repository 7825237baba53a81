//! A scheduler under random schedules: submit, retire, raise and lower.

mod claims;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use conversant_schedules::limit::Limit;
use conversant_schedules::scheduler::{
    Builder, Caller, CallerOptions, How, Place, Scheduler, Task, Verdict,
};
use shuttle::sync::Mutex;
use shuttle::thread;

use crate::schedules;

/// Which tasks run now, which ran in which tier, and the most at once.
#[derive(Default)]
struct Seen {
    running: Vec<u32>,
    most: usize,
    ended: Vec<u32>,
}

fn task(seen: &Mutex<Seen>, tier: u32) {
    {
        let mut seen = seen.lock().unwrap();
        seen.running.push(tier);
        seen.most = seen.most.max(seen.running.len());
        assert!(seen.running.iter().all(|&other| other == tier));
    }
    thread::yield_now();
    let mut seen = seen.lock().unwrap();
    let at = seen.running.iter().position(|&other| other == tier);
    seen.running.swap_remove(at.expect("it runs"));
    seen.ended.push(tier);
}

const TIERS: [u32; 5] = [1, 1, 1, 2, 2];

fn tiers() {
    let scheduler = Scheduler::builder()
        .workers(2)
        .idle(Duration::ZERO)
        .build()
        .unwrap();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let caller = scheduler.caller("", CallerOptions::default()).unwrap();
    for tier in TIERS {
        let seen = seen.clone();
        let run = move || {
            task(&seen, tier);
            Ok::<(), ()>(())
        };
        let task = caller.exec_with(Place::new().tier(tier), run);
        assert!(task.is_ok());
    }
    let scheduler = Arc::new(scheduler);
    let changing = {
        let scheduler = scheduler.clone();
        thread::spawn(move || {
            for max in [1, 3, 2] {
                scheduler.set_workers(max).unwrap();
            }
        })
    };
    let summary = caller.synchronize().wait().unwrap();
    assert!(summary.all_ok());
    changing.join().unwrap();
    assert_eq!(seen.lock().unwrap().ended, TIERS);
    assert!(seen.lock().unwrap().most <= 3);
    drop(caller);
    assert_eq!(scheduler.shutdown(How::Drain).wait(), Ok(()));
    assert_eq!(scheduler.workers().live, 0);
}

#[test]
fn submit_retire_raise_lower() {
    schedules::explore(tiers);
}

/// Two threads submit while workers come and go: no task is lost.
#[test]
fn submissions_against_retirement() {
    schedules::explore(|| {
        let scheduler = Scheduler::builder()
            .workers(1)
            .idle(Duration::ZERO)
            .build()
            .unwrap();
        let scheduler = Arc::new(scheduler);
        let submitters = ["a", "b"].map(|name| {
            let scheduler = scheduler.clone();
            thread::spawn(move || {
                let caller = scheduler.caller(name, CallerOptions::default()).unwrap();
                for n in 0..2 {
                    let Ok(mut task) = caller.exec(move || Ok::<u32, ()>(n)) else {
                        panic!("the scheduler is open");
                    };
                    let outcome = task.outcome().wait().expect("nothing stalls");
                    assert!(matches!(outcome.verdict, Verdict::Ok(m) if m == n));
                }
            })
        });
        schedules::join(submitters);
        assert_eq!(scheduler.shutdown(How::Drain).wait(), Ok(()));
        assert_eq!(scheduler.workers().live, 0);
    });
}

/// Also one that is submitted while the only worker looks for its next task.
#[test]
fn no_task_starts_before_it_was_submitted() {
    schedules::explore(|| {
        let scheduler = Scheduler::builder().workers(1).idle(Duration::ZERO);
        let scheduler = scheduler.build().unwrap();
        let caller = scheduler.caller("", CallerOptions::default()).unwrap();
        let tasks: Vec<_> = (0..3)
            .filter_map(|n| caller.exec(move || Ok::<u32, ()>(n)).ok())
            .collect();
        for mut task in tasks {
            let outcome = task.outcome().wait().unwrap();
            let run = outcome.run.expect("nobody cancels");
            assert!(outcome.queued <= run.start && run.start <= run.end);
        }
        drop(caller);
        assert_eq!(scheduler.shutdown(How::Drain).wait(), Ok(()));
    });
}

/// Tasks are submitted while the only worker is busy for another caller, and while their caller or
/// their scheduler closes: every accepted task is waited for, and all of them are done.
fn submissions_against(close: fn(&Scheduler, &Caller) -> Option<u64>) {
    let scheduler = Scheduler::builder().workers(1).idle(Duration::ZERO);
    let scheduler = scheduler.build().unwrap();
    let [caller, busy] = [(); 2].map(|()| {
        let caller = scheduler.caller("", CallerOptions::default());
        caller.unwrap()
    });
    let long = busy.exec(|| {
        (0..6).for_each(|_| thread::yield_now());
        Ok::<(), ()>(())
    });
    assert!(long.is_ok());
    let other = caller.clone();
    let submitter = thread::spawn(move || {
        let task = |_| other.exec(|| Ok::<(), ()>(())).ok();
        (0..3).filter_map(task).collect::<Vec<_>>()
    });
    let tasks = close(&scheduler, &caller);
    let taken = submitter.join().unwrap();
    assert!(taken.iter().all(Task::has_ended));
    assert!(tasks.is_none_or(|tasks| tasks == taken.len() as u64));
    assert!(caller.exec(|| Ok::<(), ()>(())).is_err());
    drop((caller, busy));
    assert_eq!(scheduler.shutdown(How::Drain).wait(), Ok(()));
}

/// Nothing happens but submissions and their effects: no task is forgotten.
fn submissions_alone(builder: Builder) {
    let scheduler = builder.workers(1).idle(Duration::ZERO).build().unwrap();
    let caller = scheduler.caller("", CallerOptions::default()).unwrap();
    let (done, ended) = shuttle::sync::mpsc::channel();
    for n in 0..3 {
        let done = done.clone();
        let task = caller.exec(move || done.send(n).map_err(drop));
        task.expect("it is open").detach();
    }
    (0..3).for_each(|n| assert_eq!(ended.recv(), Ok(n)));
    drop(caller);
    assert_eq!(scheduler.shutdown(How::Drain).wait(), Ok(()));
}

#[test]
fn submissions_against_rest() {
    schedules::explore(|| submissions_alone(Scheduler::builder()));
}

#[test]
fn submissions_against_rest_on_a_pool() {
    let pool = |job: Box<dyn FnOnce() + Send>| {
        thread::spawn(job);
        Ok(())
    };
    schedules::explore(move || submissions_alone(Scheduler::builder().pool(pool)));
}

#[test]
fn submissions_against_a_release() {
    schedules::explore(|| {
        submissions_against(|_, caller| Some(caller.release(How::Drain).wait().unwrap().tasks));
    });
}

#[test]
fn submissions_against_a_shutdown() {
    schedules::explore(|| {
        submissions_against(|scheduler, _| {
            assert_eq!(scheduler.shutdown(How::Drain).wait(), Ok(()));
            None
        });
    });
}

/// Tasks with a delay that is over at once, but only at a later event, on workers that leave as
/// soon as they may: each task is done, and the workers leave when all are.
fn later() {
    let builder = Scheduler::builder().workers(2).idle(Duration::ZERO);
    let scheduler = Arc::new(builder.build().unwrap());
    let caller = scheduler.caller("", CallerOptions::default()).unwrap();
    let soon = Place::new().after(Duration::from_nanos(1));
    let place = Place::new();
    let changing = {
        let scheduler = scheduler.clone();
        thread::spawn(move || scheduler.set_workers(1).unwrap())
    };
    let tasks = [soon, place, soon].map(|place| caller.exec_with(place, || Ok::<u32, ()>(1)));
    for task in tasks {
        let outcome = task.unwrap().outcome().wait().unwrap();
        assert!(matches!(outcome.verdict, Verdict::Ok(1)));
    }
    changing.join().unwrap();
    assert_eq!(caller.synchronize().wait().unwrap().tasks, 3);
    assert_eq!(scheduler.shutdown(How::Drain).wait(), Ok(()));
    assert_eq!(scheduler.workers().live, 0);
}

#[test]
fn tasks_with_a_delay() {
    schedules::explore(later);
}

/// Ready when it was told twice; each call that tells it wakes it.
struct Told(Arc<Mutex<(u32, Option<Waker>)>>);

impl Future for Told {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut told = self.0.lock().unwrap();
        told.1 = Some(cx.waker().clone());
        match told.0 {
            2 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }
}

/// Two threads wake a future in a serial group while it is polled, reported or suspended, and a
/// second one like it is cancelled meanwhile: no wake-up is lost, and the group goes on.
fn futures() {
    let builder = Scheduler::builder().workers(2).idle(Duration::ZERO);
    let scheduler = builder.build().unwrap();
    let caller = scheduler.caller("", CallerOptions::default()).unwrap();
    let group = caller.group(Limit::SERIAL, 100).unwrap();
    let doors: Vec<_> = (0..2).map(|_| Arc::new(Mutex::new((0, None)))).collect();
    let tasks: Vec<_> = doors
        .iter()
        .map(|door| {
            let told = Told(door.clone());
            let place = Place::new().group(&group);
            let task = caller.spawn_with(place, async move {
                told.await;
                Ok::<u32, ()>(1)
            });
            task.unwrap()
        })
        .collect();
    let tells: Vec<_> = (0..2)
        .map(|_| {
            let doors = doors.clone();
            thread::spawn(move || {
                for door in doors {
                    let waker: Option<Waker> = {
                        let mut door = door.lock().unwrap();
                        door.0 += 1;
                        door.1.take()
                    };
                    waker.into_iter().for_each(Waker::wake);
                }
            })
        })
        .collect();
    _ = tasks[0].cancel();
    for mut task in tasks {
        let verdict = task.outcome().wait().unwrap().verdict;
        assert!(matches!(verdict, Verdict::Ok(1) | Verdict::Cancelled));
    }
    tells.into_iter().for_each(|tells| tells.join().unwrap());
    assert_eq!(caller.synchronize().wait().unwrap().tasks, 2);
    drop((group, caller));
    assert_eq!(scheduler.shutdown(How::Drain).wait(), Ok(()));
    assert_eq!(scheduler.workers().live, 0);
}

#[test]
fn futures_woken_and_cancelled() {
    schedules::explore(futures);
}

/// Counts its live values.
struct Counted<'a>(&'a Mutex<u32>);

impl<'a> Counted<'a> {
    fn new(count: &'a Mutex<u32>) -> Self {
        *count.lock().unwrap() += 1;
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        thread::yield_now();
        *self.0.lock().unwrap() -= 1;
    }
}

/// Tasks of a scope submit more to it, and all may be cancelled: at its end none holds anything.
fn scope() {
    let builder = Scheduler::builder().workers(2).idle(Duration::ZERO);
    let scheduler = builder.build().unwrap();
    let caller = scheduler.caller("", CallerOptions::default()).unwrap();
    let cancels = {
        let caller = caller.clone();
        thread::spawn(move || caller.cancel_all())
    };
    let count = Mutex::new(0);
    caller.scope(|s| {
        for _ in 0..2 {
            let own = Counted::new(&count);
            let task = s.exec(|| {
                let more = Counted::new(own.0);
                drop(own);
                let submitted = s.exec_detached(Place::new(), || {
                    drop(more);
                    Ok::<(), ()>(())
                });
                submitted.map_err(drop)
            });
            task.unwrap().detach();
        }
    });
    assert_eq!(*count.lock().unwrap(), 0);
    cancels.join().unwrap();
    drop(caller);
    assert_eq!(scheduler.shutdown(How::Drain).wait(), Ok(()));
}

#[test]
fn scopes_end_with_nothing_lent() {
    schedules::explore(scope);
}

/// A task of a scope panics, or not, while its handle is dropped or gives the outcome: the scope
/// passes on exactly the panic that nobody was told of.
fn scope_panics(panics: bool, takes: bool) {
    let builder = Scheduler::builder().workers(2).idle(Duration::ZERO);
    let scheduler = builder.build().unwrap();
    let caller = scheduler.caller("", CallerOptions::default()).unwrap();
    let told = catch_unwind(AssertUnwindSafe(|| {
        caller.scope(|s| {
            let task = s.exec(move || {
                thread::yield_now();
                if panics {
                    resume_unwind(Box::new("of the task"));
                }
            });
            let mut task = task.unwrap();
            let last = s.exec_detached(Place::new(), move || {
                if takes {
                    let verdict = task.outcome().wait().unwrap().verdict;
                    assert_eq!(matches!(verdict, Verdict::Panicked(_)), panics);
                }
                drop(task);
            });
            last.unwrap();
        });
    }));
    assert_eq!(told.is_err(), panics && !takes);
    drop(caller);
    assert_eq!(scheduler.shutdown(How::Drain).wait(), Ok(()));
}

#[test]
fn a_panic_against_the_drop_of_its_handle() {
    schedules::explore(|| scope_panics(true, false));
}

#[test]
fn a_panic_against_its_outcome() {
    schedules::explore(|| scope_panics(true, true));
    schedules::explore(|| scope_panics(false, false));
}
