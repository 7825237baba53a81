//! The scheduler's own workers: they start as work arrives, are never too many, are
//! raised and lowered, and leave after the idle time.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use conversant::scheduler::{How, Scheduler, Verdict, Why};

use crate::count::Count;
use crate::threads::pools::{Refused, Sent, on_pool};
use crate::threads::stage::{Held, end, finishes, gives, one_caller, until, until_idle};

#[test]
fn workers_start_as_work_arrives_and_not_before() {
    finishes(|| {
        let (scheduler, caller) = one_caller(3);
        assert_eq!(scheduler.workers().live, 0);
        let mut held = Vec::new();
        for n in 1..=3 {
            held.push(Held::start(&caller));
            assert_eq!(scheduler.workers().live, n);
        }
        let fourth = Held::submit(&caller, Default::default());
        let workers = scheduler.workers();
        assert_eq!((workers.live, workers.busy), (3, 3), "at most the maximum");
        assert_eq!(scheduler.status().waiting[0].why, Why::Worker);
        held.into_iter().for_each(Held::finish);
        fourth.wait_began();
        fourth.finish();
        end(&scheduler);
    });
}

#[test]
fn one_after_the_other_is_all_done_by_one_worker() {
    finishes(|| {
        let (scheduler, caller) = one_caller(8);
        for n in 0..500 {
            let mut task = gives(&caller, n);
            let run = task.outcome().wait().unwrap().run.unwrap();
            assert_eq!(run.worker, 1);
            until_idle(&scheduler);
        }
        assert_eq!(scheduler.workers().live, 1);
        end(&scheduler);
    });
}

#[test]
fn all_workers_work_at_once() {
    finishes(|| {
        let (scheduler, caller) = one_caller(8);
        let meet = Arc::new(Barrier::new(8));
        let numbers = Arc::new(Mutex::new(BTreeSet::new()));
        for _ in 0..80 {
            let (meet, numbers) = (Arc::clone(&meet), Arc::clone(&numbers));
            let task = caller.exec(move || {
                let name = thread::current().name().map(String::from);
                numbers.lock().unwrap().insert(name);
                meet.wait();
                Ok::<_, ()>(())
            });
            task.unwrap().detach();
        }
        assert_eq!(caller.synchronize().wait().unwrap().ok, 80);
        assert_eq!(numbers.lock().unwrap().len(), 8);
        end(&scheduler);
    });
}

#[test]
fn raising_the_maximum_starts_workers_for_what_waits() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held: Vec<Held> = (0..4)
            .map(|_| Held::submit(&caller, Default::default()))
            .collect();
        held[0].wait_began();
        scheduler.set_workers(3).unwrap();
        held[1].wait_began();
        held[2].wait_began();
        assert_eq!(scheduler.workers().busy, 3);
        held.iter().for_each(Held::go);
        assert_eq!(caller.synchronize().wait().unwrap().ok, 4);
        end(&scheduler);
    });
}

#[test]
fn lowering_the_maximum_starts_nothing_above_it() {
    finishes(|| {
        let (scheduler, caller) = one_caller(4);
        let running: Vec<Held> = (0..4).map(|_| Held::start(&caller)).collect();
        let [a, b, c, d] = <[Held; 4]>::try_from(running).ok().unwrap();
        let waiting = Held::submit(&caller, Default::default());
        let after = Held::submit(&caller, Default::default());
        scheduler.set_workers(1).unwrap();
        for (held, left) in [(a, 3), (b, 2), (c, 1)] {
            held.finish();
            until(|| scheduler.workers().live == left);
            assert!(!waiting.has_begun(), "{left} still run");
        }
        d.finish();
        waiting.wait_began();
        assert!(!after.has_begun());
        waiting.finish();
        after.wait_began();
        after.finish();
        assert_eq!(scheduler.workers().live, 1);
        end(&scheduler);
    });
}

#[test]
fn resting_workers_above_a_lowered_maximum_leave_at_once() {
    finishes(|| {
        let (scheduler, caller) = one_caller(6);
        let held: Vec<Held> = (0..6).map(|_| Held::start(&caller)).collect();
        held.into_iter().for_each(Held::finish);
        until_idle(&scheduler);
        assert_eq!(scheduler.workers().live, 6);
        scheduler.set_workers(2).unwrap();
        until(|| scheduler.workers().live == 2);
        until_idle(&scheduler);
        scheduler.set_workers(6).unwrap();
        assert_eq!(scheduler.workers().live, 2, "no worker without work");
        end(&scheduler);
    });
}

/// resize while old workers finish -> live <= max
#[test]
fn the_live_are_never_more_than_the_larger_maximum_nor_the_busy() {
    finishes(|| {
        let (scheduler, caller) = one_caller(5);
        let (busy, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut old = 5;
                for max in [5, 2, 4, 1, 3, 5].into_iter().cycle() {
                    scheduler.set_workers(max).unwrap();
                    for _ in 0..50 {
                        let live = scheduler.workers().live;
                        assert!(live <= old.max(max).max(5), "{live}");
                    }
                    until(|| scheduler.workers().live <= max);
                    old = max;
                    if done.load(SeqCst) {
                        break;
                    }
                }
            });
            for _ in 0..5000 {
                let (busy, most) = (Arc::clone(&busy), Arc::clone(&most));
                let task = caller.exec(move || {
                    most.fetch_max(busy.fetch_add(1, SeqCst) + 1, SeqCst);
                    busy.fetch_sub(1, SeqCst);
                    Ok::<_, ()>(())
                });
                task.unwrap().detach();
            }
            assert_eq!(caller.synchronize().wait().unwrap().ok, 5000);
            done.store(true, SeqCst);
        });
        assert!(most.load(SeqCst) <= 5);
        end(&scheduler);
    });
}

/// Once the live count is within a lowered maximum, no more tasks run at once than
/// the maximum allows.
#[test]
fn after_a_lowering_has_taken_effect_it_holds() {
    finishes(|| {
        let (scheduler, caller) = one_caller(4);
        for round in 0..100 {
            let max = round % 3 + 1;
            scheduler.set_workers(max).unwrap();
            until(|| scheduler.workers().live <= max);
            let (busy, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
            for _ in 0..20 {
                let (busy, most) = (Arc::clone(&busy), Arc::clone(&most));
                let task = caller.exec(move || {
                    most.fetch_max(busy.fetch_add(1, SeqCst) + 1, SeqCst);
                    thread::yield_now();
                    busy.fetch_sub(1, SeqCst);
                    Ok::<_, ()>(())
                });
                task.unwrap().detach();
            }
            caller.synchronize().wait().unwrap();
            assert!(most.load(SeqCst) <= max);
        }
        end(&scheduler);
    });
}

/// "Every release retires a worker" of the original.
#[test]
fn a_release_retires_no_worker() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let held: Vec<Held> = (0..2).map(|_| Held::start(&caller)).collect();
        held.into_iter().for_each(Held::finish);
        for _ in 0..20 {
            let other = scheduler.caller("other", Default::default()).unwrap();
            gives(&other, 1).detach();
            other.release(Default::default()).wait().unwrap();
        }
        assert_eq!(scheduler.workers().live, 2);
        end(&scheduler);
    });
}

#[test]
fn workers_leave_after_the_idle_time_and_come_back() {
    finishes(|| {
        let idle = Duration::from_millis(1);
        let scheduler = Scheduler::builder().workers(3).idle(idle).build().unwrap();
        let caller = scheduler.caller("main", Default::default()).unwrap();
        for round in 0..20 {
            let held: Vec<Held> = (0..3).map(|_| Held::start(&caller)).collect();
            held.into_iter().for_each(Held::finish);
            until(|| scheduler.workers().live == 0);
            assert_eq!(scheduler.workers().start_failures, 0, "round {round}");
        }
        end(&scheduler);
    });
}

/// A worker leaves while work arrives: an idle time of zero makes this race as
/// likely as possible.
#[test]
fn work_that_races_a_leaving_worker_is_never_stranded() {
    finishes(|| {
        let builder = Scheduler::builder().workers(2).idle(Duration::ZERO);
        let scheduler = builder.build().unwrap();
        let caller = scheduler.caller("main", Default::default()).unwrap();
        for n in 0..2000 {
            let mut task = gives(&caller, n);
            if n % 5 != 0 {
                task.outcome().wait().unwrap();
            }
        }
        assert_eq!(caller.synchronize().wait().unwrap().ok, 2000);
        until(|| scheduler.workers().live == 0);
        end(&scheduler);
    });
}

#[test]
fn many_threads_submit_wait_cancel_and_resize_at_once() {
    finishes(|| {
        let (scheduler, _) = one_caller(4);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for seed in 0..4u64 {
                let (scheduler, done) = (&scheduler, &done);
                scope.spawn(move || {
                    let caller = scheduler.caller("c", Default::default()).unwrap();
                    let mut cancelled = 0;
                    for n in 0..1000 {
                        let mut task = gives(&caller, n);
                        match (n + seed) % 4 {
                            0 => _ = task.outcome().wait().unwrap(),
                            1 => cancelled += u64::from(task.cancel()),
                            2 => _ = caller.bump(&task, n as u8),
                            _ => {}
                        }
                    }
                    let summary = caller.synchronize().wait().unwrap();
                    assert_eq!((summary.tasks, summary.cancelled), (1000, cancelled));
                    assert_eq!(summary.ok, 1000 - cancelled);
                    done.store(true, SeqCst);
                });
            }
            scope.spawn(|| {
                for max in (1..=4).cycle() {
                    scheduler.set_workers(max).unwrap();
                    drop(scheduler.hold());
                    _ = scheduler.status();
                    if done.load(SeqCst) {
                        break;
                    }
                }
            });
        });
        end(&scheduler);
    });
}

#[test]
fn threads_have_the_name_that_was_asked_for_and_run_their_hooks() {
    finishes(|| {
        let (tells, told) = std::sync::mpsc::channel();
        let exits = tells.clone();
        let scheduler = Scheduler::builder()
            .workers(1)
            .thread_name("night")
            .on_thread_start(move |n| {
                let name = std::thread::current().name().map(String::from);
                tells.send((n, name)).unwrap();
                panic!("ends nothing");
            })
            .on_thread_exit(move |n| exits.send((n, None)).unwrap())
            .build()
            .unwrap();
        let caller = scheduler.caller("main", Default::default()).unwrap();
        let name = caller.exec(|| Ok::<_, ()>(std::thread::current().name().map(String::from)));
        let named = name.unwrap().outcome().wait().unwrap().verdict;
        let expected = Some(String::from("night-1"));
        assert!(matches!(named, Verdict::Ok(name) if name == expected));
        end(&scheduler);
        assert_eq!(told.recv().unwrap(), (1, expected));
        assert_eq!(told.recv().unwrap(), (1, None));
    });
}

/// The jobs of the pool run here, one after the other.
#[test]
fn a_shutdown_ends_when_the_last_worker_has_left() {
    finishes(|| {
        let (sender, workers) = channel::<Sent>();
        let pool = move |worker| sender.send(worker).map_err(|_| Refused::from("gone"));
        let (scheduler, caller) = on_pool(2, pool);
        let tasks = [1, 2].map(|n| gives(&caller, n));
        let mut down = pin!(scheduler.shutdown(How::Drain));
        let (woken, waker) = Count::new();
        let mut cx = Context::from_waker(&waker);
        assert!(down.as_mut().poll(&mut cx).is_pending());
        workers.try_recv().unwrap()();
        assert!(tasks.iter().all(|task| task.has_ended()));
        assert_eq!(woken.get(), 0);
        workers.try_recv().unwrap()();
        assert_eq!(woken.get(), 1);
        assert_eq!(down.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
    });
}
