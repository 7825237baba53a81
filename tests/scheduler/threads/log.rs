//! What a log is told, by whom, and in which order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use conversant::limit::Limit;
use conversant::scheduler::{
    Caller, CallerOptions, Ending, Event, How, Log, Place, Reason, Record, Scheduler, TaskId,
    Verdict,
};

use crate::threads::stage::{end, finishes, gives};

/// Keeps what it is told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Event>>>);

impl Log for Told {
    fn log(&self, event: Event) -> bool {
        self.0.lock().unwrap().push(event);
        true
    }
}

impl Told {
    /// The events of each task.
    fn take(&self) -> HashMap<TaskId, Vec<Event>> {
        let mut told: HashMap<_, Vec<_>> = HashMap::new();
        for event in std::mem::take(&mut *self.0.lock().unwrap()) {
            told.entry(event.task().id).or_default().push(event);
        }
        told
    }
}

fn logged(workers: u32, log: impl Log + 'static) -> (Scheduler, Caller) {
    let scheduler = Scheduler::builder().workers(workers).log(log).build();
    let scheduler = scheduler.unwrap();
    let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
    (scheduler, caller)
}

#[test]
fn each_task_is_told_queued_started_and_ended() {
    finishes(|| {
        let told = Told::default();
        let (scheduler, caller) = logged(1, told.clone());
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let place = Place::new().tier(3).group(&group).label("fails");
        let mut task = caller.exec_with(place, || Err::<(), _>("no")).unwrap();
        let outcome = task.outcome().wait().unwrap();
        let run = outcome.run.unwrap();
        let told = told.take().remove(&task.id()).unwrap();
        let [
            Event::Queued(info),
            Event::Started { worker, at, .. },
            Event::Ended(record),
        ] = &*told
        else {
            panic!("{told:?}");
        };
        assert_eq!((info.id, info.tier, &*info.caller), (task.id(), 3, "main"));
        assert_eq!(info.label.as_deref(), Some("fails"));
        assert_eq!(
            (info.group, info.queued),
            (Some(group.id()), outcome.queued)
        );
        assert_eq!((*worker, *at), (1, run.start));
        let ended = Record {
            task: info.clone(),
            run: Some(run),
            ended: run.end,
            ending: Ending::Failed,
        };
        assert_eq!(*record, ended);
        assert!(told.iter().all(|event| event.task() == info));
        let at: Vec<_> = told.iter().map(Event::at).collect();
        assert_eq!(at, [outcome.queued, run.start, run.end]);
        end(&scheduler);
    });
}

/// Whichever threads submit, run and cancel: several submit tasks, which others cancel.
#[test]
fn of_each_task_the_events_come_in_order_and_once() {
    finishes(|| {
        let told = Told::default();
        let (scheduler, caller) = logged(3, told.clone());
        for _ in 0..200 {
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        for n in 0..4 {
                            gives(&caller, n).detach();
                            let quick = |n| move || Ok::<_, ()>(n);
                            let place = Place::new().tier(n as u32 % 2);
                            caller.exec_all_detached(place, [1, 2].map(quick)).unwrap();
                            caller
                                .spawn_detached(Place::new(), async { Ok::<_, ()>(()) })
                                .unwrap();
                        }
                    });
                }
                scope.spawn(|| caller.cancel_all());
            });
            let summary = caller.synchronize().wait().unwrap();
            let told = told.take();
            assert_eq!(
                summary.tasks,
                told.len() as u64,
                "before a synchronize ends"
            );
            let mut cancelled = 0;
            for events in told.values() {
                match &**events {
                    [
                        Event::Queued(_),
                        Event::Started { .. },
                        Event::Ended(record),
                    ] => {
                        assert!(record.run.is_some());
                    }
                    [Event::Queued(_), Event::Ended(record)] => {
                        assert_eq!((record.run, record.ending), (None, Ending::Cancelled));
                        cancelled += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(summary.cancelled, cancelled);
        }
        end(&scheduler);
    });
}

#[test]
fn a_future_is_started_once_however_often_it_is_polled() {
    finishes(|| {
        let told = Told::default();
        let (scheduler, caller) = logged(1, told.clone());
        let first = gives(&caller, 1);
        let mut second = caller.spawn(async move {
            first.await.unwrap();
            let mut again = true;
            std::future::poll_fn(|cx| {
                cx.waker().wake_by_ref();
                match std::mem::take(&mut again) {
                    true => std::task::Poll::Pending,
                    false => std::task::Poll::Ready(()),
                }
            })
            .await;
            Ok::<_, ()>(())
        });
        let task = second.as_mut().unwrap();
        task.outcome().wait().unwrap();
        let told = told.take();
        let kinds = told[&task.id()].iter().map(|event| match event {
            Event::Queued(_) => 0,
            Event::Started { .. } => 1,
            Event::Ended(_) => 2,
        });
        assert!(kinds.eq(0..3));
        end(&scheduler);
    });
}

#[test]
fn a_log_that_panics_stops_nobody() {
    finishes(|| {
        let (scheduler, caller) = logged(2, |_: Event| panic!("the log is broken"));
        let mut task = gives(&caller, 7);
        let outcome = task.outcome().wait().unwrap();
        assert_eq!(outcome.verdict.ok(), Some(7));
        let hold = scheduler.hold();
        assert!(gives(&caller, 8).cancel());
        drop(hold);
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.ok, summary.cancelled), (1, 1));
        assert_eq!(scheduler.status().log_lost, 5);
        end(&scheduler);
    });
}

/// At each event, also of tasks that never run.
#[test]
fn a_log_may_use_the_scheduler() {
    finishes(|| {
        let there: Arc<OnceLock<(Scheduler, Caller)>> = Arc::default();
        let known = Arc::downgrade(&there);
        let (scheduler, caller) = logged(1, move |event: Event| {
            let there = known.upgrade().expect("it is used");
            let (scheduler, other) = there.get().expect("it was made");
            assert_eq!(scheduler.status().log_lost, 0);
            if &*event.task().caller == "main" {
                gives(other, 1).detach();
            }
        });
        let other = scheduler.caller("other", CallerOptions::default()).unwrap();
        let (scheduler, other) = there.get_or_init(|| (scheduler, other));
        gives(&caller, 1).detach();
        let hold = scheduler.hold();
        let never = gives(&caller, 2);
        assert!(never.cancel());
        drop(hold);
        assert_eq!(caller.synchronize().wait().unwrap().tasks, 2);
        assert_eq!(other.synchronize().wait().unwrap().ok, 5);
        end(scheduler);
    });
}

/// The log shuts the scheduler down when it is told: only this task is a reason to have a worker.
#[test]
fn a_task_with_a_delay_has_a_worker_though_it_is_told_of_a_shutdown() {
    finishes(|| {
        let there: Arc<OnceLock<(Scheduler, Caller)>> = Arc::default();
        let (known, started) = (Arc::downgrade(&there), Arc::new(AtomicUsize::new(0)));
        let threads = started.clone();
        let scheduler = Scheduler::builder()
            .workers(1)
            .on_thread_start(move |_| _ = threads.fetch_add(1, Ordering::Relaxed))
            .log(move |event: Event| {
                if let Event::Queued(_) = event {
                    let there = known.upgrade().expect("it is used");
                    let (scheduler, _) = there.get().expect("it was made");
                    let ended = scheduler.shutdown(How::Drain).wait_timeout(Duration::ZERO);
                    assert!(ended.is_err(), "it waits for the task");
                }
            })
            .build()
            .unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let (scheduler, caller) = there.get_or_init(|| (scheduler, caller));
        let later = Place::new().after(Duration::from_millis(50));
        let mut task = caller.exec_with(later, || Ok::<_, ()>(7)).unwrap();
        assert!(matches!(
            task.outcome().wait().unwrap().verdict,
            Verdict::Ok(7)
        ));
        end(scheduler);
        // Otherwise one worker after the other would start and leave until the task is due.
        let started = started.load(Ordering::Relaxed);
        assert!(started <= 2, "{started}");
    });
}

/// The log itself cancels the task, after the event and before the task is enqueued.
#[test]
fn what_is_cancelled_while_it_is_told_never_runs() {
    finishes(|| {
        let there: Arc<OnceLock<Caller>> = Arc::default();
        let (known, told) = (Arc::downgrade(&there), Told::default());
        let also = told.clone();
        let (scheduler, caller) = logged(1, move |event: Event| {
            let cancels = matches!(event, Event::Queued(_));
            also.log(event);
            if cancels {
                known.upgrade().unwrap().get().unwrap().cancel_all();
            }
        });
        let caller = there.get_or_init(|| caller);
        let mut task = caller
            .exec(|| -> Result<(), ()> { panic!("it was cancelled") })
            .unwrap();
        let outcome = task.outcome().wait().unwrap();
        assert_eq!(outcome.verdict.ending(), Ending::Cancelled);
        let told = told.take();
        assert!(matches!(
            &*told[&task.id()],
            [Event::Queued(_), Event::Ended(_)]
        ));
        end(&scheduler);
    });
}

#[test]
fn what_is_refused_since_no_worker_starts_is_told_as_cancelled() {
    finishes(|| {
        let told = Told::default();
        let builder = Scheduler::builder().workers(1).log(told.clone());
        let builder = builder.pool(|_: Box<dyn FnOnce() + Send>| Err("none".into()));
        let scheduler = builder.build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let quick = || Ok::<_, ()>(());
        let refused = caller.exec_all(Place::new(), [quick, quick]).unwrap_err();
        assert_eq!(refused.reason, Reason::NoWorker);
        let told = told.take();
        assert_eq!(told.len(), 2);
        for events in told.values() {
            let [Event::Queued(task), Event::Ended(record)] = &**events else {
                panic!("{events:?}");
            };
            assert_eq!((task, record.ending), (&record.task, Ending::Cancelled));
        }
        assert!(caller.release(How::Drain).wait().unwrap().tasks == 0);
        end(&scheduler);
    });
}

/// It is dropped with the last handle of its scheduler, after the log's last event.
#[test]
fn the_end_of_a_future_that_nobody_can_wake_is_not_told() {
    finishes(|| {
        let told = Told::default();
        let (scheduler, caller) = logged(1, told.clone());
        let (alive, dropped) = channel::<()>();
        let never = async move {
            let _alive = alive;
            std::future::pending::<Result<(), ()>>().await
        };
        caller.spawn_detached(Place::new(), never).unwrap();
        drop((caller, scheduler));
        assert!(dropped.recv().is_err());
        let told = told.take();
        let [events] = &*told.values().collect::<Vec<_>>() else {
            panic!("{told:?}");
        };
        assert!(matches!(
            &***events,
            [Event::Queued(_), Event::Started { .. }]
        ));
    });
}
