//! Futures as tasks: what they keep while they await, and who wakes them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use conversant::limit::Limit;
use conversant::scheduler::{
    Caller, CallerOptions, How, OutcomeError, Place, Reason, Record, Scheduler, Verdict, Why,
};

use crate::threads::doors::{Door, Yields, at_the_door, gave, pollster, says, through, why};
use crate::threads::stage::{Held, Job, capped, end, finishes, gives, one_caller, shared, until};

#[test]
fn a_future_ends_as_a_function_does() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        for yields in [0, 1, 3] {
            let fine = caller.spawn(async move {
                Yields(yields).await;
                Ok::<_, String>(1)
            });
            let fails = caller.spawn(async move {
                Yields(yields).await;
                Err::<(), _>("no")
            });
            let panics = caller.spawn(async move {
                Yields(yields).await;
                if true {
                    panic!("oh");
                }
                Ok::<(), ()>(())
            });
            assert_eq!(gave(&mut fine.unwrap()), 1);
            let failed = fails.unwrap().outcome().wait().unwrap();
            assert!(matches!(failed.verdict, Verdict::Failed("no")));
            let panicked = panics.unwrap().outcome().wait().unwrap();
            assert!(matches!(panicked.verdict, Verdict::Panicked(_)));
        }
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.ok, summary.failed, summary.panicked), (3, 3, 3));
        end(&scheduler);
    });
}

#[test]
fn one_that_awaits_keeps_no_worker() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let doors: Vec<_> = (0..10)
            .map(|n| at_the_door(&scheduler, &caller, Place::new(), n))
            .collect();
        assert_eq!(gave(&mut gives(&caller, 7)), 7);
        let status = scheduler.status();
        assert_eq!((status.running.len(), status.waiting.len()), (0, 10));
        assert!(status.waiting.iter().all(|w| w.why == Why::Suspended));
        assert_eq!(status.callers[0].running, 10);
        for (n, (door, mut task)) in doors.into_iter().enumerate().rev() {
            assert!(!task.has_ended());
            door.open();
            assert_eq!(gave(&mut task), n as u64);
        }
        end(&scheduler);
    });
}

#[test]
fn it_keeps_its_unit_of_group_and_cap_and_its_tier() {
    finishes(|| {
        let scheduler = Scheduler::builder().workers(2).build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let (door, mut first) = at_the_door(&scheduler, &caller, Place::new().group(&group), 1);
        let behind = through(&caller, Place::new().group(&group), &Door::default(), 2);
        let above = gives_at(&caller, Place::new().tier(1), 3);
        assert_eq!(why(&scheduler, &behind), Some(Why::GroupLimit));
        let open = Some(0);
        assert_eq!(why(&scheduler, &above), Some(Why::Tier { open }));
        door.open();
        assert_eq!(gave(&mut first), 1);
        until(|| why(&scheduler, &behind) == Some(Why::Suspended));
        assert!(behind.cancel());
        let capped = scheduler.caller("capped", capped(1)).unwrap();
        let (door, mut first) = at_the_door(&scheduler, &capped, Place::new(), 1);
        let mut second = gives(&capped, 2);
        assert_eq!(why(&scheduler, &second), Some(Why::Cap));
        door.open();
        assert_eq!((gave(&mut first), gave(&mut second)), (1, 2));
        end(&scheduler);
    });
}

fn gives_at(caller: &Caller, place: Place<'_>, n: u64) -> Job {
    caller.exec_with(place, move || Ok(n)).unwrap()
}

#[test]
fn one_that_wakes_itself_shares_its_worker() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let polls = Arc::new(AtomicU64::new(0));
        let counts = Arc::clone(&polls);
        let goes = Arc::new(Mutex::new(true));
        let stops = Arc::clone(&goes);
        let mut spins = caller
            .spawn(async move {
                while *goes.lock().unwrap() {
                    counts.fetch_add(1, SeqCst);
                    Yields(1).await;
                }
                Ok::<_, String>(0)
            })
            .unwrap();
        until(|| polls.load(SeqCst) > 100);
        for n in 0..100 {
            assert_eq!(gave(&mut gives(&caller, n)), n);
        }
        *stops.lock().unwrap() = false;
        assert_eq!(gave(&mut spins), 0);
        // `.ci/deep` sets a million.
        let said = std::env::var("CONVERSANT_FUTURES");
        let times = said.map_or(100_000, |n| n.parse().expect("a number"));
        let many = caller.spawn(async move {
            Yields(times).await;
            Ok::<_, String>(1)
        });
        assert_eq!(gave(&mut many.unwrap()), 1);
        end(&scheduler);
    });
}

#[test]
fn a_wake_up_that_is_early_late_or_for_nothing_is_harmless() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (door, mut task) = at_the_door(&scheduler, &caller, Place::new(), 1);
        for _ in 0..3 {
            door.knock();
            until(|| why(&scheduler, &task) == Some(Why::Suspended));
        }
        let held = Held::start(&caller);
        door.knock();
        door.knock();
        assert_eq!(why(&scheduler, &task), Some(Why::Worker));
        held.finish();
        let stray = door.waker();
        door.open();
        assert_eq!(gave(&mut task), 1);
        stray.wake_by_ref();
        // Another task may have its slot by now.
        let (other_door, mut other) = at_the_door(&scheduler, &caller, Place::new(), 2);
        stray.wake();
        assert_eq!(why(&scheduler, &other), Some(Why::Suspended));
        other_door.open();
        assert_eq!(gave(&mut other), 2);
        end(&scheduler);
    });
}

#[test]
fn a_task_is_awaited_by_another_of_its_only_worker() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (mine, caller) = shared(caller);
        let mut task = caller
            .spawn(async move {
                let mut sum = 0;
                for n in 0..20 {
                    let outcome = gives(&mine, n).await.map_err(|e| e.to_string())?;
                    let Verdict::Ok(given) = outcome.verdict else {
                        return Err("no number".to_string());
                    };
                    sum += given;
                }
                Ok(sum)
            })
            .unwrap();
        assert_eq!(gave(&mut task), 190);
        let again = pollster(&mut task);
        assert_eq!(again.unwrap_err(), OutcomeError::Taken);
        end(&scheduler);
    });
}

#[test]
fn woken_ones_are_polled_in_order_of_waking_bumped_ones_first() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (order, told) = channel();
        let doors: Vec<_> = (0..4)
            .map(|n| {
                let (door, order) = (Door::default(), order.clone());
                let waits = door.clone();
                let task = caller.spawn(async move {
                    waits.await;
                    order.send(n).ok();
                    Ok::<_, String>(n)
                });
                let task = task.unwrap();
                until(|| why(&scheduler, &task) == Some(Why::Suspended));
                (door, task)
            })
            .collect();
        let held = Held::start(&caller);
        // A future that awaits is bumped for its next poll.
        caller.bump(&doors[0].1, 4).unwrap();
        for n in [2, 0, 3, 1] {
            doors[n].0.open();
        }
        caller.bump(&doors[1].1, 5).unwrap();
        held.finish();
        let order: Vec<u64> = (0..4).map(|_| told.recv().unwrap()).collect();
        assert_eq!(order, [1, 0, 2, 3]);
        end(&scheduler);
    });
}

#[test]
fn a_hold_keeps_woken_ones_and_a_pause_does_not() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let (door, mut task) = at_the_door(&scheduler, &caller, Place::new(), 1);
        let hold = scheduler.hold();
        door.open();
        assert_eq!(why(&scheduler, &task), Some(Why::Hold));
        drop(hold);
        assert_eq!(gave(&mut task), 1);
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let (door, mut task) = at_the_door(&scheduler, &caller, Place::new().group(&group), 2);
        group.set_limit(Limit::AtMost(0)).unwrap();
        caller.set_cap(Limit::AtMost(0)).unwrap();
        door.open();
        assert_eq!(gave(&mut task), 2);
        end(&scheduler);
    });
}

#[test]
fn who_waits_for_a_suspended_one_is_stalled_only_when_no_worker_can_poll_it() {
    finishes(|| {
        for workers in [1, 2] {
            let (scheduler, caller) = one_caller(workers);
            let (door, mut task) = at_the_door(&scheduler, &caller, Place::new(), 1);
            let (opened, seen) = shared(AtomicBool::new(false));
            let waits = caller.exec(move || {
                let told = task.outcome().wait();
                assert!(workers == 1 || seen.load(SeqCst), "it may be woken");
                told.map(drop)
            });
            let mut waits = waits.unwrap();
            // Long enough for the task to block, most of the time.
            for _ in 0..1_000 {
                if waits.has_ended() {
                    break;
                }
                thread::yield_now();
            }
            opened.store(true, SeqCst);
            door.open();
            let verdict = waits.outcome().wait().unwrap().verdict;
            let stalled = matches!(verdict, Verdict::Failed(OutcomeError::Stalled(_)));
            assert_eq!(
                (stalled, matches!(verdict, Verdict::Ok(()))),
                (workers == 1, workers == 2)
            );
            end(&scheduler);
        }
    });
}

#[test]
fn a_pool_s_worker_leaves_and_comes_back_for_it() {
    finishes(|| {
        let thread_each = |job: Box<dyn FnOnce() + Send>| {
            thread::spawn(job);
            Ok(())
        };
        let builder = Scheduler::builder().workers(2).pool(thread_each);
        let scheduler = builder.build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let (door, mut task) = at_the_door(&scheduler, &caller, Place::new(), 1);
        until(|| scheduler.workers().live == 0);
        door.open();
        assert_eq!(gave(&mut task), 1);
        end(&scheduler);
    });
}

#[test]
fn the_log_has_one_row_from_the_first_poll_to_the_end() {
    finishes(|| {
        let (log, rows) = crossbeam_channel::unbounded::<Record>();
        let builder = Scheduler::builder().workers(1).log(log);
        let scheduler = builder.build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let (door, mut task) = at_the_door(&scheduler, &caller, Place::new(), 1);
        let between = gives(&caller, 2).outcome().wait().unwrap().run.unwrap();
        door.open();
        let run = task.outcome().wait().unwrap().run.unwrap();
        assert!(run.start <= between.start && between.end <= run.end);
        end(&scheduler);
        let rows: Vec<_> = rows
            .try_iter()
            .map(|row| (row.task.id.get(), row.run))
            .collect();
        assert_eq!(rows, [(2, Some(between)), (1, Some(run))]);
    });
}

#[test]
fn a_refused_future_comes_back_unpolled() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (says, dropped) = says();
        end(&scheduler);
        let future = async move {
            let _says = says;
            Ok::<_, String>(1)
        };
        let back = caller.spawn(future).unwrap_err();
        assert_eq!(back.reason, Reason::Closed);
        assert!(dropped.try_recv().is_err());
        drop(back);
        assert!(dropped.try_recv().is_ok());
    });
}

#[test]
fn a_scheduler_that_is_dropped_drains_its_futures() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let (door, mut task) = at_the_door(&scheduler, &caller, Place::new(), 1);
        drop((scheduler, caller));
        door.open();
        assert_eq!(gave(&mut task), 1);
        // A future that nothing can wake is dropped with the last handle.
        let (scheduler, caller) = one_caller(2);
        let (says, dropped) = says();
        let never = caller.spawn(async move {
            let _says = says;
            std::future::pending::<Result<(), ()>>().await
        });
        until(|| {
            scheduler
                .status()
                .waiting
                .iter()
                .any(|w| w.why == Why::Suspended)
        });
        let shutdown = scheduler.shutdown(How::Drain);
        let timed_out = shutdown.wait_timeout(std::time::Duration::ZERO);
        assert!(timed_out.is_err(), "one awaits");
        drop((never, scheduler, caller));
        dropped.recv().unwrap();
    });
}

#[test]
fn one_that_is_polled_wakes_another() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (door, mut first) = at_the_door(&scheduler, &caller, Place::new(), 1);
        let opens = caller.spawn(async move {
            door.open();
            Yields(1).await;
            Ok::<_, String>(2)
        });
        assert_eq!((gave(&mut opens.unwrap()), gave(&mut first)), (2, 1));
        end(&scheduler);
    });
}

#[test]
fn who_waits_is_stalled_though_another_awaits() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        // This future cannot be polled before a worker is free.
        let (_door, mut awaits) = at_the_door(&scheduler, &caller, Place::new(), 1);
        let (mine, caller) = shared(caller);
        let waits = caller.exec(move || {
            let stalled = gives(&mine, 1).outcome().wait().is_err();
            let too = awaits.outcome().wait().is_err();
            Ok::<_, String>((stalled, too, awaits.cancel()))
        });
        let verdict = waits.unwrap().outcome().wait().unwrap().verdict;
        assert!(matches!(verdict, Verdict::Ok((true, true, true))));
        end(&scheduler);
    });
}
