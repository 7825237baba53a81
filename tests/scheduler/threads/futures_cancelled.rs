//! Futures that are cancelled: at every await, while they wait for a worker, and while polled.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::thread;

use conversant::limit::Limit;
use conversant::scheduler::{CallerOptions, How, Place, Scheduler, Verdict, Why};

use crate::threads::doors::{Door, Says, at_the_door, gave, says, through, why};
use crate::threads::stage::{Held, Job, end, finishes, gives, one_caller, until};

fn was_cancelled(task: &mut Job, began: bool) -> bool {
    let outcome = task.outcome().wait().unwrap();
    matches!(outcome.verdict, Verdict::Cancelled) && outcome.run.is_some() == began
}

#[test]
fn at_each_await_it_is_dropped_and_what_it_kept_is_free() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        for awaits in 0..4 {
            let doors: Vec<_> = (0..4).map(|_| Door::default()).collect();
            let (goes, (says, dropped)) = (doors.clone(), says());
            let place = Place::new().group(&group).tier(0);
            let task = caller.spawn_with(place, async move {
                let _says = says;
                for door in goes {
                    door.await;
                }
                Ok::<_, String>(0)
            });
            let mut task: Job = task.unwrap();
            for door in &doors[..awaits] {
                door.open();
            }
            let awaits_at = |n: usize| {
                until(|| doors[n].waiters() == 1);
                until(|| why(&scheduler, &task) == Some(Why::Suspended));
            };
            awaits_at(awaits);
            let mut behind = through(&caller, Place::new().group(&group), &doors[0], 1);
            let above = caller.exec_with(Place::new().tier(1), || Ok(2)).unwrap();
            doors[0].open();
            assert!(awaits == 0 || task.cancel(), "it awaits");
            if awaits > 0 {
                assert!(dropped.try_recv().is_ok(), "by the one who cancels");
                assert!(was_cancelled(&mut task, true));
            } else {
                // It was woken, and goes on to the next door.
                awaits_at(1);
                assert!(task.cancel() && was_cancelled(&mut task, true));
            }
            assert!(!task.cancel());
            assert_eq!((gave(&mut behind), gave(&mut { above })), (1, 2));
            doors.iter().for_each(Door::open);
        }
        end(&scheduler);
    });
}

#[test]
fn in_line_and_before_its_first_poll() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (door, mut woken) = at_the_door(&scheduler, &caller, Place::new(), 1);
        let held = Held::start(&caller);
        door.open();
        let mut fresh = through(&caller, Place::new(), &Door::default(), 2);
        assert!(woken.cancel() && fresh.cancel());
        assert!(was_cancelled(&mut woken, true) && was_cancelled(&mut fresh, false));
        held.finish();
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.ok, summary.cancelled), (1, 2));
        end(&scheduler);
    });
}

#[test]
fn while_it_is_polled_it_goes_on_to_its_next_await() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        for awaits in [true, false] {
            let ((begins, began), (goes, go)) = (channel(), channel());
            let (says, dropped) = says();
            let task = caller.spawn(async move {
                let _says = says;
                begins.send(()).ok();
                go.recv().ok();
                if awaits {
                    std::future::pending::<()>().await;
                }
                Ok::<_, String>(5)
            });
            let mut task: Job = task.unwrap();
            began.recv().unwrap();
            assert!(!task.cancel(), "a worker has it");
            goes.send(()).unwrap();
            if awaits {
                assert!(was_cancelled(&mut task, true));
            } else {
                assert_eq!(gave(&mut task), 5);
            }
            dropped.recv().unwrap();
        }
        end(&scheduler);
    });
}

#[test]
fn by_a_release_and_by_a_shutdown() {
    finishes(|| {
        for shuts_down in [false, true] {
            let scheduler = Scheduler::builder().workers(2).build().unwrap();
            let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
            let other = scheduler.caller("other", CallerOptions::default()).unwrap();
            let (_door, mut task) = at_the_door(&scheduler, &caller, Place::new(), 1);
            let (door, mut others) = at_the_door(&scheduler, &other, Place::new(), 2);
            // One is being polled, and awaits only after the cancel has begun.
            let ((begins, began), (goes, go)) = (channel(), channel::<()>());
            let polled = caller.spawn(async move {
                begins.send(()).ok();
                go.recv().ok();
                std::future::pending::<()>().await;
                Ok::<_, String>(3)
            });
            let mut polled: Job = polled.unwrap();
            began.recv().unwrap();
            let mut ends: Pin<Box<dyn Future<Output = ()>>> = match shuts_down {
                true => Box::pin(async { scheduler.shutdown(How::Cancel).await.unwrap() }),
                false => Box::pin(async { _ = caller.release(How::Cancel).await.unwrap() }),
            };
            let mut ended = || {
                let cx = &mut Context::from_waker(Waker::noop());
                ends.as_mut().poll(cx).is_ready()
            };
            assert!(!ended());
            assert!(was_cancelled(&mut task, true));
            goes.send(()).unwrap();
            assert!(was_cancelled(&mut polled, true));
            until(ended);
            if shuts_down {
                assert!(was_cancelled(&mut others, true));
            } else {
                door.open();
                assert_eq!(gave(&mut others), 2);
                end(&scheduler);
            }
        }
    });
}

#[test]
fn one_that_panics_when_it_is_dropped_stops_nobody() {
    finishes(|| {
        struct Panics;
        impl Drop for Panics {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        let (scheduler, caller) = one_caller(1);
        let task = caller.spawn(async {
            let _panics = Panics;
            std::future::pending::<Result<u64, String>>().await
        });
        let mut task = task.unwrap();
        until(|| task.cancel());
        assert!(matches!(
            task.outcome().wait().unwrap().verdict,
            Verdict::Cancelled
        ));
        assert_eq!(gave(&mut gives(&caller, 1)), 1);
        end(&scheduler);
    });
}

/// Many futures, in groups with limits, await, are woken by others and are cancelled
/// at random: no group exceeds its limit, and each future ends once.
#[test]
fn many_at_random() {
    finishes(|| {
        let (scheduler, caller) = one_caller(3);
        let (alarm, alarms) = channel::<Waker>();
        let wakes = thread::spawn(move || {
            let mut late: Option<Waker> = None;
            for (n, waker) in alarms.iter().enumerate() {
                match n % 3 {
                    0 => waker.wake(),
                    1 => late.replace(waker).into_iter().for_each(Waker::wake),
                    _ => {
                        waker.wake_by_ref();
                        waker.wake();
                    }
                }
                late.take_if(|_| n % 5 == 0)
                    .into_iter()
                    .for_each(Waker::wake);
            }
        });
        // That thread holds at most one waker back, which is dropped unused at the end.
        let groups: Vec<_> = (1..=4_u32)
            .map(|limit| {
                let group = caller.group(Limit::AtMost(limit), 100).unwrap();
                (group, limit, Arc::new(AtomicU32::new(0)))
            })
            .collect();
        let kept = Arc::new(Mutex::new(alarm));
        let mut tasks = Vec::new();
        for n in 0..2_000_u64 {
            let (group, limit, inside) = &groups[(n % 4) as usize];
            let (limit, inside) = (*limit, Arc::clone(inside));
            let alarm = kept.lock().unwrap().clone();
            let place = Place::new().group(group);
            let task = caller.spawn_with(place, async move {
                let inside = Inside::enter(&inside);
                for turn in 0..n % 7 {
                    let mut asked = false;
                    std::future::poll_fn(|cx| {
                        assert!(inside.0.load(SeqCst) <= limit, "above its limit");
                        if std::mem::replace(&mut asked, true) {
                            return std::task::Poll::Ready(());
                        }
                        match turn % 2 {
                            0 => cx.waker().wake_by_ref(),
                            // Several, so that at least one of them is not held back.
                            _ => (0..6).for_each(|_| alarm.send(cx.waker().clone()).unwrap()),
                        }
                        std::task::Poll::Pending
                    })
                    .await;
                }
                Ok::<_, String>(n)
            });
            let task = task.unwrap();
            if n % 11 == 0 {
                task.cancel();
            }
            tasks.push(task);
        }
        drop(kept);
        let mut cancelled = 0;
        for (n, task) in (0..).zip(&mut tasks) {
            match task.outcome().wait().unwrap().verdict {
                Verdict::Ok(given) => assert_eq!(given, n),
                Verdict::Cancelled => cancelled += 1,
                verdict => panic!("{verdict:?}"),
            }
        }
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!(
            (summary.ok, summary.cancelled),
            (2_000 - cancelled, cancelled)
        );
        assert!(groups.iter().all(|(_, _, inside)| inside.load(SeqCst) == 0));
        wakes.join().unwrap();
        end(&scheduler);
    });
}

/// Counts the futures that are between their first poll and their end.
struct Inside<'a>(&'a AtomicU32);

impl<'a> Inside<'a> {
    fn enter(inside: &'a AtomicU32) -> Self {
        inside.fetch_add(1, SeqCst);
        Self(inside)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[test]
fn its_group_is_free_only_when_it_has_been_dropped() {
    finishes(|| {
        struct Leaves(std::sync::mpsc::Receiver<()>, std::sync::mpsc::Sender<()>);
        impl Drop for Leaves {
            fn drop(&mut self) {
                self.1.send(()).ok();
                self.0.recv().ok();
            }
        }
        let (scheduler, caller) = one_caller(1);
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let ((goes, go), (leaves, leaving)) = (channel(), channel());
        let door = Door::default();
        let (waits, guard) = (door.clone(), Leaves(go, leaves));
        let task = caller.spawn_with(Place::new().group(&group), async move {
            let _guard = guard;
            waits.await;
            Ok::<_, String>(0)
        });
        let mut task: Job = task.unwrap();
        until(|| why(&scheduler, &task) == Some(Why::Suspended));
        let behind = through(&caller, Place::new().group(&group), &door, 1);
        thread::scope(|s| {
            s.spawn(|| assert!(task.cancel()));
            leaving.recv().unwrap();
            // The worker runs another task, and finds nothing else to do.
            assert_eq!(gave(&mut gives(&caller, 2)), 2);
            until(|| scheduler.status().running.is_empty());
            assert_eq!(why(&scheduler, &behind), Some(Why::GroupLimit));
            assert!(!task.has_ended());
            goes.send(()).unwrap();
        });
        assert!(was_cancelled(&mut task, true));
        door.open();
        assert_eq!(gave(&mut { behind }), 1);
        end(&scheduler);
    });
}

#[test]
fn those_that_panic_when_they_go_with_the_last_handle_stop_nobody() {
    finishes(|| {
        struct Panics(#[allow(dead_code, reason = "it is dropped")] Says);
        impl Drop for Panics {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        let (scheduler, caller) = one_caller(1);
        let dropped: Vec<_> = (0..3)
            .map(|_| {
                let (says, dropped) = says();
                let panics = Panics(says);
                let task = caller.spawn(async move {
                    let _panics = panics;
                    std::future::pending::<Result<u64, String>>().await
                });
                let task = task.unwrap();
                until(|| why(&scheduler, &task) == Some(Why::Suspended));
                dropped
            })
            .collect();
        drop((scheduler, caller));
        dropped.iter().for_each(|dropped| dropped.recv().unwrap());
    });
}
