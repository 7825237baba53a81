//! Tasks that are submitted while no worker need be woken for them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use conversant::limit::Limit;
use conversant::scheduler::{
    Builder, Caller, CallerOptions, Event, How, Place, Reason, Record, Scheduler, Why,
};

use crate::threads::stage::{Held, draws, end, finishes, one_caller};

/// `close` gives up waiting while the only worker is busy.
fn refused_after(close: impl FnOnce(&Scheduler, &Caller) -> bool + Send + 'static) {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        assert!(close(&scheduler, &caller));
        let refused = caller.exec(|| Ok::<_, ()>(())).unwrap_err();
        assert_eq!(refused.reason, Reason::Closed);
        held.finish();
        end(&scheduler);
    });
}

#[test]
fn a_caller_that_is_released_refuses_them() {
    refused_after(|_, caller| {
        let release = caller.release(How::Drain);
        release.wait_timeout(Duration::ZERO).is_err()
    });
}

#[test]
fn a_scheduler_that_shuts_down_refuses_them() {
    refused_after(|scheduler, _| {
        let shutdown = scheduler.shutdown(How::Drain);
        shutdown.wait_timeout(Duration::ZERO).is_err()
    });
}

/// More tasks than are posted at once: one by one, and in batches.
#[test]
fn they_start_in_order_however_many_they_are() {
    finishes(|| {
        let builder = Scheduler::builder().workers(1).claims(1);
        let scheduler = builder.build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let held = Held::start(&caller);
        let order = Arc::new(Mutex::new(Vec::new()));
        let task = |n: u64| {
            let order = Arc::clone(&order);
            move || order.lock().map(|mut order| order.push(n)).map_err(drop)
        };
        let mut ids = Vec::new();
        for batch in 0..40 {
            let numbers = batch * 100..batch * 100 + 100;
            let (singles, many) = numbers.clone().partition::<Vec<_>, _>(|n| n % 100 < 50);
            ids.extend(
                singles
                    .into_iter()
                    .map(|n| caller.exec(task(n)).unwrap().id().get()),
            );
            let many = caller.exec_all(Place::new(), many.into_iter().map(task));
            ids.extend(many.unwrap().iter().map(|task| task.id().get()));
        }
        assert!(ids.iter().copied().eq(2..4_002), "in order of submission");
        held.finish();
        assert_eq!(caller.synchronize().wait().unwrap().ok, 4_001);
        assert!(order.lock().unwrap().iter().copied().eq(0..4_000));
        end(&scheduler);
    });
}

/// Tasks without a handle run, are counted, and come back if they are refused.
#[test]
fn detached_ones_run_and_are_counted() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let sum = Arc::new(Mutex::new(0));
        let add = |n: u64| {
            let sum = Arc::clone(&sum);
            move || sum.lock().map(|mut sum| *sum += n).map_err(drop)
        };
        let level = Place::new().tier(1).bump(0);
        for n in 1..=200 {
            let place = if n % 10 == 0 { level } else { Place::new() };
            caller.exec_detached(place, add(n)).unwrap();
            let add = add(n);
            caller.spawn_detached(place, async move { add() }).unwrap();
        }
        let fails = caller.exec_detached(Place::new(), || Err::<(), _>(()));
        fails.unwrap();
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.ok, summary.failed, summary.tasks), (400, 1, 401));
        assert_eq!(*sum.lock().unwrap(), 2 * 20_100);
        caller.release(How::Drain).wait().unwrap();
        let refused = caller.exec_detached(Place::new(), || Ok::<_, ()>(7));
        let refused = refused.unwrap_err();
        assert_eq!((refused.reason, (refused.task)()), (Reason::Closed, Ok(7)));
        let refused = caller.spawn_detached(Place::new(), std::future::ready(Ok::<_, ()>(7)));
        let refused = refused.unwrap_err();
        assert_eq!(refused.reason, Reason::Closed);
        assert_eq!(refused.task.into_inner(), Ok(7));
        end(&scheduler);
    });
}

/// The only worker is busy when they are submitted.
#[test]
fn the_log_tells_when_detached_ones_came() {
    finishes(|| {
        let (log, rows) = crossbeam_channel::bounded::<Record>(10);
        let scheduler = Scheduler::builder().workers(1).log(log).build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let held = Held::start(&caller);
        let pause = Duration::from_millis(5);
        std::thread::sleep(pause);
        caller
            .exec_detached(Place::new(), || Ok::<_, ()>(()))
            .unwrap();
        held.finish();
        end(&scheduler);
        let rows: Vec<_> = rows.try_iter().collect();
        let [first, second] = [0, 1].map(|n: usize| rows[n].run.as_ref().unwrap());
        let came = rows[1].task.queued;
        assert!(first.start + pause <= came && came <= first.end);
        assert!(first.end <= second.start && second.start <= second.end);
    });
}

/// Without a log, a task counts as queued when the scheduler hears of it.
#[test]
fn a_status_has_detached_ones_come_when_it_asks() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        caller
            .exec_detached(Place::new(), || Ok::<_, ()>(()))
            .unwrap();
        let status = scheduler.status();
        assert!(status.waiting[0].queued >= status.running[0].start);
        held.finish();
        end(&scheduler);
    });
}

/// The worker has not started, so no thread has looked at the posted task.
#[test]
fn what_is_posted_first_came_no_earlier_than_the_event_before() {
    finishes(|| {
        let (sender, jobs) = std::sync::mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let pool = move |job| sender.send(job).map_err(|_| "nobody".into());
        let builder = Scheduler::builder().workers(1).pool(pool);
        let scheduler = builder.build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let quick = || Ok::<_, ()>(());
        caller.exec(quick).unwrap().detach();
        caller.exec_detached(Place::new(), quick).unwrap();
        let waiting = scheduler.status().waiting;
        assert!(waiting[1].queued >= waiting[0].queued);
        jobs.recv().unwrap()();
        end(&scheduler);
    });
}

struct Panics;

impl Drop for Panics {
    fn drop(&mut self) {
        panic!("what a detached task gave");
    }
}

/// The task has ended well all the same, and the tasks behind it run.
#[test]
fn what_a_detached_task_gave_may_panic_when_it_is_dropped() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        for n in 0..20 {
            let gives = move || if n % 2 == 0 { Ok(Panics) } else { Err(Panics) };
            caller.exec_detached(Place::new(), gives).unwrap();
        }
        caller
            .exec_detached(Place::new(), || Ok::<_, ()>(()))
            .unwrap();
        held.finish();
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.ok, summary.failed, summary.panicked), (12, 10, 0));
        end(&scheduler);
    });
}

/// The order in which tasks start that were submitted while the only worker was busy, to
/// groups or alone, some of them bumped. With a log, none of them is posted.
fn order(seed: u64, builder: Builder) -> Vec<u64> {
    let scheduler = builder.workers(1).claims(1).build().unwrap();
    let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
    let limits = [Limit::SERIAL, Limit::AtMost(2), Limit::Unlimited];
    let groups = limits.map(|limit| caller.group(limit, 100).unwrap());
    let held = Held::start(&caller);
    let ran = Arc::new(Mutex::new(Vec::new()));
    let mut draw = draws(seed);
    for n in 0..40 {
        let mut place = Place::new();
        if let Some(group) = groups.get(draw(4) as usize) {
            place = place.group(group);
        }
        if draw(5) == 0 {
            place = place.bump(draw(3) as u8);
        }
        let ran = Arc::clone(&ran);
        let runs = move || {
            ran.lock().unwrap().push(n);
            Ok::<_, ()>(())
        };
        caller.exec_detached(place, runs).unwrap();
    }
    held.finish();
    end(&scheduler);
    std::mem::take(&mut *ran.lock().unwrap())
}

#[test]
fn posted_ones_start_in_the_order_of_those_that_are_not() {
    finishes(|| {
        for seed in 1..100 {
            let posted = order(seed, Scheduler::builder());
            let told = order(seed, Scheduler::builder().log(|_: Event| ()));
            assert_eq!(posted, told, "{seed}");
        }
    });
}

/// The first task was taken in meanwhile: another group's task is in its place now.
#[test]
fn one_posted_later_does_not_join_the_group_that_has_its_place_now() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let [one, two] = [(); 2].map(|()| caller.group(Limit::SERIAL, 100).unwrap());
        let held = Held::start(&caller);
        let post = |group| {
            let task = caller.exec_with(Place::new().group(group), || Ok::<_, ()>(()));
            task.unwrap()
        };
        // A cancel takes in all posted tasks.
        assert!(post(&one).cancel());
        post(&two).detach();
        let third = post(&one);
        let waiting = scheduler.status().waiting;
        let why = waiting.iter().find(|task| task.id == third.id());
        assert_eq!(why.map(|task| task.why), Some(Why::Worker));
        third.detach();
        held.finish();
        end(&scheduler);
    });
}

/// Alone or in one group, as the first of those that are posted together or behind it.
#[test]
fn one_with_a_handle_is_found_among_those_without() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        for place in [Place::new(), Place::new().group(&group)] {
            for named in 0..3 {
                let held = Held::start(&caller);
                let mut handle = None;
                for n in 0..3 {
                    let task = || Ok::<_, ()>(());
                    match n == named {
                        true => handle = caller.exec_with(place, task).ok(),
                        false => caller.exec_detached(place, task).unwrap(),
                    }
                }
                assert!(handle.unwrap().cancel(), "{place:?}, {named}");
                held.finish();
            }
        }
        end(&scheduler);
    });
}
