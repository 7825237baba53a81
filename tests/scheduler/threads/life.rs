//! The scheduler's own life: what it refuses, how it shuts down, a hold.

use std::cell::RefCell;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use conversant::limit::Limit;
use conversant::queue::LaneError;
use conversant::scheduler::{
    Caller, CallerOptions, Event, How, OnFailure, Place, Reason, Record, Scheduler, ShutdownAtEnd,
    Verdict, Why,
};
use conversant::simulator::Driver;

use crate::threads::doors::{at_the_door, gave};
use crate::threads::pools::{inline, on_pool};
use crate::threads::stage::{Held, Job, end, finishes, gives, one_caller, scheduler, until};

#[test]
fn numbers_out_of_range_are_typed_errors() {
    let build = |workers| Scheduler::builder().workers(workers).build();
    for workers in [0, 1025, u32::MAX] {
        let refused = build(workers).unwrap_err();
        assert_eq!((refused.asked, refused.most), (workers, 1024));
    }
    let scheduler = scheduler(1);
    for workers in [0, 1025] {
        assert_eq!(scheduler.set_workers(workers).unwrap_err().asked, workers);
    }
    for weight in [0, 1_000_001] {
        let options = CallerOptions {
            weight,
            ..CallerOptions::default()
        };
        let refused = scheduler.caller("heavy", options).unwrap_err();
        assert!(matches!(refused, LaneError::OutOfRange(range) if range.asked == weight));
    }
    let above = Limit::AtMost(Limit::MAX + 1);
    let options = CallerOptions {
        cap: above,
        ..CallerOptions::default()
    };
    let refused = scheduler.caller("capped", options).unwrap_err();
    assert!(matches!(refused, LaneError::OutOfRange(_)));
    let caller = scheduler.caller("ok", CallerOptions::default()).unwrap();
    assert!(caller.group(above, 100).is_err());
    assert!(caller.set_cap(above).is_err());
    let group = caller.group(Limit::SERIAL, 100).unwrap();
    assert!(group.set_limit(above).is_err());
    gives(&caller, 1).detach();
    assert_eq!(caller.synchronize().wait().unwrap().ok, 1);
    assert_eq!(scheduler.status().callers.len(), 1, "refused ones are none");
}

#[test]
fn shutdown_refuses_callers_and_tasks_and_drains() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let mut tasks: Vec<_> = (0..20).map(|n| gives(&caller, n)).collect();
        end(&scheduler);
        for (n, task) in (0..).zip(&mut tasks) {
            let outcome = task.outcome().wait().unwrap();
            assert!(matches!(outcome.verdict, Verdict::Ok(given) if given == n));
        }
        let refused = caller.exec(|| Ok::<_, ()>(())).unwrap_err();
        assert_eq!(refused.reason, Reason::Closed);
        let none = scheduler.caller("late", CallerOptions::default());
        assert!(matches!(none, Err(LaneError::Closed)));
        end(&scheduler);
    });
}

/// So many that the test would not end if each shutdown took a step for each caller.
#[test]
fn a_crowd_shuts_down_a_crowd_of_callers() {
    const CROWD: usize = 40_000;
    finishes(|| {
        let (scheduler, _caller) = one_caller(1);
        let caller = |_| scheduler.caller("one", CallerOptions::default()).unwrap();
        let _callers: Vec<_> = (0..CROWD).map(caller).collect();
        for _ in 0..CROWD {
            end(&scheduler);
        }
    });
}

#[test]
fn shutdown_with_cancel_ends_what_waits_of_every_caller() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let other = scheduler.caller("other", CallerOptions::default()).unwrap();
        let held = Held::start(&caller);
        let mut waiting: Vec<_> = (0..70)
            .map(|n| gives(if n % 2 == 0 { &caller } else { &other }, n))
            .collect();
        thread::scope(|scope| {
            let down = scope.spawn(|| scheduler.shutdown(How::Cancel).wait());
            for task in &mut waiting {
                let verdict = task.outcome().wait().unwrap().verdict;
                assert!(matches!(verdict, Verdict::Cancelled));
            }
            held.go();
            down.join().unwrap().unwrap();
        });
        assert_eq!(scheduler.workers().live, 0);
    });
}

#[test]
fn dropping_the_scheduler_lets_its_tasks_end() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        let mut last = gives(&caller, 9);
        drop(scheduler);
        let refused = caller.exec(|| Ok::<_, ()>(())).unwrap_err();
        assert_eq!(refused.reason, Reason::Closed);
        held.finish();
        let outcome = last.outcome().wait().unwrap();
        assert!(matches!(outcome.verdict, Verdict::Ok(9)));
        assert_eq!(caller.synchronize().wait().unwrap().ok, 2);
    });
}

#[test]
fn a_hold_makes_a_batch_one_instant() {
    finishes(|| {
        let (log, rows) = crossbeam_channel::bounded::<Record>(100);
        let scheduler = Scheduler::builder().workers(1).log(log).build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let outer = scheduler.hold();
        let inner = scheduler.hold();
        for (tier, bump) in [(2, 5), (1, 1), (1, 9)] {
            let place = Place::new().tier(tier).bump(bump);
            caller
                .exec_with(place, || Ok::<_, ()>(()))
                .unwrap()
                .detach();
        }
        drop(outer);
        let none = caller.synchronize().wait_timeout(Duration::from_millis(1));
        assert!(none.is_err(), "one hold is left");
        let status = scheduler.status();
        let why: Vec<Why> = status.waiting.iter().map(|task| task.why).collect();
        assert_eq!(why, [Why::Tier { open: Some(1) }, Why::Hold, Why::Hold]);
        assert_eq!(
            scheduler.workers().live,
            0,
            "no worker before there is work"
        );
        drop(inner);
        caller.synchronize().wait().unwrap();
        let order: Vec<u64> = rows.try_iter().map(|row| row.task.id.get()).collect();
        assert_eq!(order, [3, 2, 1]);
        end(&scheduler);
    });
}

/// A structure with such a guard waits when it is dropped, on any thread.
#[test]
fn a_structure_that_has_its_scheduler_ends_it() {
    struct Service {
        _ends: ShutdownAtEnd<Arc<Scheduler>>,
        caller: Caller,
    }
    finishes(|| {
        let scheduler = Arc::new(scheduler(1));
        let service = Service {
            caller: scheduler.caller("main", CallerOptions::default()).unwrap(),
            _ends: Scheduler::shutdown_at_end_owned(Arc::clone(&scheduler), How::Drain),
        };
        let hold = Scheduler::hold_owned(Arc::clone(&scheduler));
        let task = gives(&service.caller, 1);
        let ends = thread::spawn(move || drop(service));
        until(|| scheduler.caller("late", CallerOptions::default()).is_err());
        assert!(!task.has_ended() && !ends.is_finished());
        thread::spawn(move || drop(hold)).join().unwrap();
        ends.join().unwrap();
        assert!(task.has_ended());
        assert_eq!(scheduler.workers().live, 0);
    });
}

/// Otherwise it could wait for what comes after it in the same task.
#[test]
fn such_a_guard_does_not_wait_within_a_task() {
    finishes(|| {
        let scheduler = Arc::new(scheduler(2));
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let (door, mut awaits) = at_the_door(&scheduler, &caller, Place::new(), 1);
        let owner = Arc::clone(&scheduler);
        let ends = caller.exec(move || {
            drop(Scheduler::shutdown_at_end_owned(owner, How::Drain));
            door.open();
            Ok::<_, ()>(())
        });
        ends.unwrap().detach();
        assert_eq!(gave(&mut awaits), 1);
        assert!(caller.exec(|| Ok::<_, ()>(())).is_err());
    });
}

/// The task that has the guard is cancelled: unbegun, while it awaits, or because another failed.
#[test]
fn such_a_guard_does_not_wait_where_its_task_is_dropped() {
    finishes(|| {
        let one = Arc::new(scheduler(1));
        let caller = one.caller("main", CallerOptions::default()).unwrap();
        let guard = || Scheduler::shutdown_at_end_owned(Arc::clone(&one), How::Cancel);
        let (hold, unbegun) = (one.hold(), guard());
        assert!(caller.exec(move || drops(unbegun)).unwrap().cancel());
        drop(hold);
        assert!(caller.exec(|| Ok::<_, ()>(())).is_err());

        let one = Arc::new(scheduler(1));
        let caller = one.caller("main", CallerOptions::default()).unwrap();
        let awaits = Scheduler::shutdown_at_end_owned(Arc::clone(&one), How::Cancel);
        let begun = Arc::new(AtomicBool::new(false));
        let begins = Arc::clone(&begun);
        let task = caller.spawn(async move {
            begins.store(true, SeqCst);
            std::future::pending::<()>().await;
            drops(awaits)
        });
        task.map_err(|rejected| rejected.reason).unwrap().detach();
        until(|| begun.load(SeqCst) && one.workers().busy == 0);
        one.shutdown(How::Cancel).wait().unwrap();

        let one = Arc::new(scheduler(1));
        let options = CallerOptions {
            on_failure: OnFailure::SkipHigherTiers,
            ..CallerOptions::default()
        };
        let caller = one.caller("main", options).unwrap();
        let skipped = Scheduler::shutdown_at_end_owned(Arc::clone(&one), How::Drain);
        let hold = one.hold();
        caller.exec(|| Err::<(), _>(())).unwrap().detach();
        let higher = Place::new().tier(1);
        let mut task = caller.exec_with(higher, move || drops(skipped)).unwrap();
        drop(hold);
        let outcome = task.outcome().wait().unwrap();
        assert!(matches!(outcome.verdict, Verdict::Skipped));
        one.shutdown(How::Drain).wait().unwrap();
    });
}

/// The log is told of a task on the thread that submits it.
#[test]
fn such_a_guard_does_not_wait_in_the_log_of_a_submission() {
    finishes(|| {
        let slot = Arc::new(Mutex::new(None::<ShutdownAtEnd<Arc<Scheduler>>>));
        let told = Arc::clone(&slot);
        let log = move |event: Event| {
            if let Event::Queued(_) = event {
                drop(told.lock().unwrap().take());
            }
        };
        let one = Arc::new(Scheduler::builder().workers(1).log(log).build().unwrap());
        let caller = one.caller("main", CallerOptions::default()).unwrap();
        let guard = Scheduler::shutdown_at_end_owned(Arc::clone(&one), How::Drain);
        *slot.lock().unwrap() = Some(guard);
        let mut task = caller.exec(|| ()).unwrap();
        assert_eq!(task.outcome().wait().unwrap().verdict.ok(), Some(()));
        one.shutdown(How::Drain).wait().unwrap();
    });
}

/// In its hook, its log, and the waker of an outcome while another task is still to be dropped.
#[test]
fn such_a_guard_does_not_wait_in_what_the_scheduler_calls() {
    type Slot = Mutex<Option<ShutdownAtEnd<Arc<Scheduler>>>>;
    struct Dropper(Slot);
    impl Wake for Dropper {
        fn wake(self: Arc<Self>) {
            self.0.lock().unwrap().take();
        }
    }
    finishes(|| {
        let guard = |of: &Arc<Scheduler>, how| Scheduler::shutdown_at_end_owned(of.clone(), how);
        let slots: [Arc<Dropper>; 3] = [(); 3].map(|()| Arc::new(Dropper(Slot::default())));
        let [starts, ends, wakes] = slots.each_ref().map(Arc::clone);
        let builder = Scheduler::builder().workers(1);
        let hook = move |_| starts.wake_by_ref();
        let hooked = Arc::new(builder.on_thread_start(hook).build().unwrap());
        let caller = hooked.caller("main", CallerOptions::default()).unwrap();
        *slots[0].0.lock().unwrap() = Some(guard(&hooked, How::Drain));
        assert_eq!(gave(&mut gives(&caller, 1)), 1);

        let log = move |event: Event| {
            if let Event::Ended(_) = event {
                ends.wake_by_ref();
            }
        };
        let logged = Scheduler::builder().workers(1).log(log).build().unwrap();
        let logged = Arc::new(logged);
        let caller = logged.caller("main", CallerOptions::default()).unwrap();
        let (hold, task) = (logged.hold(), gives(&caller, 1));
        *slots[1].0.lock().unwrap() = Some(guard(&logged, How::Cancel));
        assert!(task.cancel());
        drop(hold);

        let woken = Arc::new(scheduler(1));
        let caller = woken.caller("main", CallerOptions::default()).unwrap();
        let (hold, mut tasks) = (woken.hold(), [1, 2].map(|n| gives(&caller, n)));
        *wakes.0.lock().unwrap() = Some(guard(&woken, How::Cancel));
        let waker = Waker::from(wakes);
        let mut outcome = pin!(tasks[0].outcome());
        let polled = outcome.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        caller.cancel_all();
        assert!(caller.exec(|| Ok::<_, ()>(())).is_err());
        drop(hold);
    });
}

/// Its own thread-locals may be gone by then.
#[test]
fn a_thread_that_ends_may_cancel_tasks() {
    thread_local! {
        static KEPT: RefCell<Option<CancelsAtEnd>> = const { RefCell::new(None) };
    }
    struct CancelsAtEnd(Job, Arc<Scheduler>);
    impl Drop for CancelsAtEnd {
        fn drop(&mut self) {
            let mut driver = &*self.1;
            driver.at_once(|_| assert!(self.0.cancel()));
        }
    }
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let scheduler = Arc::new(scheduler);
        let (hold, owner) = (scheduler.hold(), Arc::clone(&scheduler));
        let ends = thread::spawn(move || {
            let task = gives(&caller, 1);
            KEPT.set(Some(CancelsAtEnd(task, Arc::clone(&owner))));
            // From here on its lists are there, and go before what is kept.
            (&mut &*owner).at_once(|_| assert!(gives(&caller, 2).cancel()));
        });
        ends.join().unwrap();
        drop(hold);
        assert_eq!(scheduler.counts().waiting, 0);
        end(&scheduler);
    });
}

/// The inner scheduler's worker runs within the outer one's task.
#[test]
fn such_a_guard_does_not_wait_within_a_task_of_a_task() {
    finishes(|| {
        let (inner, within) = on_pool(1, inline);
        let (outer, caller) = one_caller(1);
        let outer = Arc::new(outer);
        let guard = Scheduler::shutdown_at_end_owned(Arc::clone(&outer), How::Drain);
        let task = caller.exec(move || {
            gives_up(&within, guard);
            Ok::<_, ()>(())
        });
        assert!(matches!(
            task.unwrap().outcome().wait().unwrap().verdict,
            Verdict::Ok(())
        ));
        end(&inner);
    });
}

/// A task that drops this.
fn drops<T>(this: T) -> Result<(), ()> {
    drop(this);
    Ok(())
}

fn gives_up(caller: &Caller, guard: ShutdownAtEnd<Arc<Scheduler>>) {
    let mut task = caller.exec(move || drops(guard)).unwrap();
    assert!(matches!(
        task.outcome().wait().unwrap().verdict,
        Verdict::Ok(())
    ));
}

/// The hold is the only owner of the scheduler.
#[test]
fn the_last_hold_ends_its_scheduler_and_loses_nothing() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let hold = Scheduler::hold_owned(Arc::new(scheduler));
        let mut task = gives(&caller, 1);
        drop(hold);
        assert!(caller.exec(|| Ok::<_, ()>(())).is_err());
        let outcome = task.outcome().wait().unwrap();
        assert!(matches!(outcome.verdict, Verdict::Ok(1)));
    });
}
