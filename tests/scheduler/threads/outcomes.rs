//! What becomes of a task reaches its handle, the summary and the log.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Wake, Waker};

use conversant::scheduler::{Ending, OutcomeError, Place, Record, Scheduler, TaskResult, Verdict};
use crossbeam_channel::{Receiver, Sender};

use crate::threads::stage::{Held, end, finishes, gives, one_caller, until, until_idle};

#[test]
fn errors_are_not_swallowed() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let mut failed = caller.exec(|| Err::<(), _>("broken")).unwrap();
        let outcome = failed.outcome().wait().unwrap();
        let mut panicked = caller
            .exec(|| -> Result<(), ()> { std::panic::panic_any(String::from("with this")) })
            .unwrap();
        let held = Held::start(&caller);
        assert!(matches!(outcome.verdict, Verdict::Failed("broken")));
        let run = outcome.run.expect("it ran");
        assert!(outcome.queued <= run.start && run.start <= run.end);
        let Verdict::Panicked(payload) = panicked.outcome().wait().unwrap().verdict else {
            panic!("it did not panic");
        };
        assert_eq!(payload.downcast_ref::<String>().unwrap(), "with this");
        held.go();
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.tasks, summary.ok), (3, 1));
        assert_eq!((summary.failed, summary.panicked), (1, 1));
        assert_eq!(summary.first_failure, Some(failed.id()));
        end(&scheduler);
    });
}

#[test]
fn a_task_returns_a_result_or_nothing_or_what_the_user_makes_one_of() {
    struct Exit(i32);
    impl TaskResult for Exit {
        type Ok = ();
        type Error = i32;

        fn into_result(self) -> Result<(), i32> {
            match self.0 {
                0 => Ok(()),
                7 => panic!("no such exit"),
                status => Err(status),
            }
        }
    }

    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let mut nothing = caller.exec(|| ()).unwrap();
        assert!(matches!(
            nothing.outcome().wait().unwrap().verdict,
            Verdict::Ok(())
        ));
        caller.scope(|s| s.exec(|| ()).unwrap().detach());
        caller.exec_detached(Place::new(), || ()).unwrap();
        caller.exec_all_detached(Place::new(), [|| ()]).unwrap();
        caller.spawn(async {}).unwrap().detach();
        let mut exits = caller
            .exec_all(Place::new(), [0, 1, 7].map(|n| move || Exit(n)))
            .unwrap();
        let mut verdict = |n: usize| exits[n].outcome().wait().unwrap().verdict;
        assert!(matches!(verdict(0), Verdict::Ok(())));
        assert!(matches!(verdict(1), Verdict::Failed(1)));
        assert!(matches!(verdict(2), Verdict::Panicked(_)));
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.tasks, summary.ok), (8, 6));
        assert_eq!((summary.failed, summary.panicked), (1, 1));
        end(&scheduler);
    });
}

#[test]
fn a_worker_never_dies_with_a_panicking_task() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        for _ in 0..50 {
            let task = caller.exec(|| -> Result<(), ()> { std::panic::resume_unwind(Box::new(1)) });
            task.unwrap().detach();
        }
        let mut last = gives(&caller, 5);
        let run = last.outcome().wait().unwrap().run.unwrap();
        assert_eq!(run.worker, 1);
        assert_eq!(caller.synchronize().wait().unwrap().panicked, 50);
        assert_eq!(scheduler.workers().live, 1);
        end(&scheduler);
    });
}

#[test]
fn a_task_that_panicked_is_never_run_again() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let runs = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&runs);
        let task = caller.exec(move || -> Result<(), ()> {
            counted.fetch_add(1, SeqCst);
            std::panic::resume_unwind(Box::new(()))
        });
        task.unwrap().detach();
        caller.synchronize().wait().unwrap();
        end(&scheduler);
        assert_eq!(runs.load(SeqCst), 1);
    });
}

#[test]
fn a_cancelled_task_reaches_its_handle_and_the_summary() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        let mut cancelled = gives(&caller, 1);
        assert!(cancelled.cancel());
        assert!(!cancelled.cancel(), "only once");
        assert!(!held.task.cancel(), "it runs");
        let outcome = cancelled.outcome().wait().unwrap();
        assert!(matches!(outcome.verdict, Verdict::Cancelled));
        assert!(outcome.run.is_none());
        held.go();
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.ok, summary.cancelled), (1, 1));
        assert!(!held.task.cancel(), "it has ended");
        end(&scheduler);
    });
}

#[test]
fn an_outcome_is_taken_once() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let mut task = gives(&caller, 4);
        assert!(task.outcome().wait().is_ok());
        let again = task.outcome().wait();
        assert_eq!(again.unwrap_err(), OutcomeError::Taken);
        end(&scheduler);
    });
}

#[test]
fn detached_tasks_run_and_what_they_gave_is_dropped() {
    struct Given(std::sync::mpsc::Sender<()>);
    impl Drop for Given {
        fn drop(&mut self) {
            self.0.send(()).ok();
            std::panic::resume_unwind(Box::new("a drop that panics"));
        }
    }
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (dropped, drops) = channel();
        let held = Held::start(&caller);
        for n in 0..3 {
            let given = dropped.clone();
            let task = caller.exec(move || match n {
                0 => Ok(Given(given)),
                1 => Err(Given(given)),
                _ => std::panic::panic_any(Given(given)),
            });
            task.unwrap().detach();
        }
        held.go();
        (0..3).for_each(|_| drops.recv().unwrap());
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.ok, summary.failed, summary.panicked), (2, 1, 1));
        assert_eq!(scheduler.workers().live, 1, "the worker has survived");
        assert!(matches!(
            gives(&caller, 8).outcome().wait().unwrap().verdict,
            Verdict::Ok(8)
        ));
        end(&scheduler);
    });
}

#[test]
fn the_log_has_a_row_for_each_task_before_a_synchronize_returns() {
    finishes(|| {
        let (log, rows) = crossbeam_channel::bounded::<Record>(1000);
        let scheduler = Scheduler::builder().workers(3).log(log).build().unwrap();
        let caller = scheduler.caller("main", Default::default()).unwrap();
        for round in 0..50 {
            for n in 0..4 {
                caller
                    .exec_with(Place::new().tier(n), || Ok::<_, ()>(()))
                    .unwrap()
                    .detach();
            }
            caller.synchronize().wait().unwrap();
            let rows: Vec<_> = rows.try_iter().collect();
            let mut ids: Vec<u64> = rows.iter().map(|row| row.task.id.get()).collect();
            ids.sort_unstable();
            let expected = round * 4 + 1..=round * 4 + 4;
            assert_eq!(ids, expected.collect::<Vec<_>>());
            for row in rows {
                let run = row.run.expect("it ran");
                assert!(row.task.queued <= run.start && run.start <= run.end);
                assert!((1..=3).contains(&run.worker));
                assert_eq!((row.ending, &*row.task.caller), (Ending::Ok, "main"));
            }
        }
        end(&scheduler);
    });
}

/// When it is woken, says how many rows there are.
struct Looks {
    rows: Receiver<Record>,
    seen: Sender<usize>,
}

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        self.seen.send(self.rows.len()).expect("the test listens");
    }
}

/// Those of skipped tasks, and of tasks that a release cancelled.
#[test]
fn the_rows_of_tasks_that_never_ran_are_there_before_anybody_is_told() {
    use conversant::scheduler::{CallerOptions, OnFailure};
    finishes(|| {
        let (log, rows) = crossbeam_channel::bounded::<Record>(10_000);
        let scheduler = Scheduler::builder().workers(2).log(log).build().unwrap();
        let options = CallerOptions {
            on_failure: OnFailure::SkipHigherTiers,
            ..CallerOptions::default()
        };
        let caller = scheduler.caller("main", options).unwrap();
        let hold = scheduler.hold();
        caller.exec(|| Err::<(), _>(())).unwrap().detach();
        for _ in 0..40 {
            caller
                .exec_with(Place::new().tier(1), || Ok::<_, ()>(()))
                .unwrap()
                .detach();
        }
        let (seen, told) = crossbeam_channel::bounded(1);
        let looks = Waker::from(Arc::new(Looks { rows, seen }));
        let mut cx = Context::from_waker(&looks);
        let mut ends = pin!(caller.synchronize());
        assert!(ends.as_mut().poll(&mut cx).is_pending());
        drop(hold);
        assert_eq!(told.recv(), Ok(41));
        let Poll::Ready(summary) = ends.poll(&mut cx) else {
            panic!("it was told");
        };
        assert_eq!(summary.unwrap().skipped, 40);
        end(&scheduler);
    });
}

#[test]
fn a_full_or_closed_log_loses_rows_and_counts_them() {
    finishes(|| {
        let (log, rows) = crossbeam_channel::bounded::<Record>(2);
        let scheduler = Scheduler::builder().workers(2).log(log).build().unwrap();
        let caller = scheduler.caller("main", Default::default()).unwrap();
        (0..5).for_each(|n| gives(&caller, n).detach());
        caller.synchronize().wait().unwrap();
        assert_eq!(scheduler.status().log_lost, 3);
        assert_eq!(rows.len(), 2);
        drop(rows);
        gives(&caller, 1).detach();
        caller.synchronize().wait().unwrap();
        assert_eq!(scheduler.status().log_lost, 4);
        end(&scheduler);
    });
}

#[test]
fn an_outcome_can_be_waited_for_by_a_time_out_and_again() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let mut held = Held::start(&caller);
        for _ in 0..3 {
            let none = held.task.outcome().wait_timeout(std::time::Duration::ZERO);
            assert!(none.is_err());
        }
        held.finish();
        until_idle(&scheduler);
        end(&scheduler);
    });
}

#[test]
fn ids_are_given_in_order_of_submission() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let other = scheduler.caller("other", Default::default()).unwrap();
        let ids: Vec<u64> = (0..20)
            .map(|n| if n % 3 == 0 { &caller } else { &other })
            .map(|caller| gives(caller, 0).id().get())
            .collect();
        assert_eq!(ids, (1..=20).collect::<Vec<_>>());
        until(|| scheduler.workers().busy == 0);
        end(&scheduler);
    });
}
