//! Workers that claim several tasks at once, seen from outside: a task that has not
//! started belongs to no worker. Each test holds a worker in a task behind which it
//! may have prefetched others; the tests also pass if it has prefetched none.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use conversant::error::OutOfRange;
use conversant::limit::Limit;
use conversant::scheduler::{Caller, CallerOptions, How, Place, Scheduler, Verdict};

use crate::threads::stage::{Held, Job, end, finishes, gives, until, until_idle};

/// A scheduler whose workers consider no task too long to be claimed with others.
fn scheduler(workers: u32) -> (Scheduler, Caller) {
    let builder = Scheduler::builder().workers(workers).claims(8);
    let builder = builder.claim_time(Duration::from_secs(1));
    let scheduler = builder.build().unwrap();
    let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
    (scheduler, caller)
}

/// Holds the only worker in a task that it claimed together with some of the returned
/// tasks, because it knows its tasks to be short.
fn held_before(scheduler: &Scheduler, caller: &Caller, place: Place<'_>) -> (Held, Vec<Job>) {
    let hold = scheduler.hold();
    let quick = caller.exec_with(place, || Ok::<_, ()>(()));
    quick.unwrap().detach();
    let held = Held::submit(caller, place);
    let behind = (0..20).map(|n| {
        let task = caller.exec_with(place, move || Ok::<_, String>(n));
        task.unwrap()
    });
    let behind = behind.collect();
    drop(hold);
    held.wait_began();
    (held, behind)
}

#[test]
fn they_wait_and_can_be_cancelled() {
    finishes(|| {
        let (scheduler, caller) = scheduler(1);
        let (held, behind) = held_before(&scheduler, &caller, Place::new());
        assert!(behind[1].cancel());
        let status = scheduler.status();
        assert_eq!(status.running.len(), 1);
        assert_eq!(status.running[0].id, held.task.id());
        assert_eq!(status.waiting.len(), 19);
        assert_eq!(status.callers[0].running, 1);
        held.go();
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.ok, summary.cancelled), (21, 1));
        end(&scheduler);
    });
}

#[test]
fn they_are_cancelled_with_their_group() {
    finishes(|| {
        let (scheduler, caller) = scheduler(1);
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let hold = scheduler.hold();
        gives(&caller, 0).detach();
        let held = Held::submit(&caller, Place::new());
        let place = Place::new().group(&group);
        let behind = [(); 3].map(|()| caller.exec_with(place, || Ok::<_, String>(0)).unwrap());
        drop(hold);
        held.wait_began();
        group.cancel_all();
        assert!(behind.iter().all(Job::has_ended));
        held.finish();
        end(&scheduler);
    });
}

#[test]
fn one_behind_another_that_nobody_times_started_after_it() {
    finishes(|| {
        let before = Instant::now();
        let (scheduler, caller) = scheduler(1);
        let made = Instant::now();
        let hold = scheduler.hold();
        let (ended, end_of_it) = channel();
        for spins in [Duration::ZERO, made - before + Duration::from_micros(1)] {
            let ended = ended.clone();
            let spin = move || {
                let start = Instant::now();
                while start.elapsed() < spins {}
                ended.send(Instant::now()).map_err(drop)
            };
            caller.exec(spin).unwrap().detach();
        }
        let mut timed = gives(&caller, 1);
        drop(hold);
        let run = timed.outcome().wait().unwrap().run.unwrap();
        let end_before = end_of_it.iter().nth(1).unwrap();
        assert!(run.start >= end_before - made && run.end >= run.start);
        end(&scheduler);
    });
}

#[test]
fn another_worker_runs_them() {
    finishes(|| {
        let (scheduler, caller) = scheduler(1);
        let (held, mut behind) = held_before(&scheduler, &caller, Place::new());
        scheduler.set_workers(2).unwrap();
        for task in &mut behind {
            assert_eq!(task.outcome().wait().unwrap().run.unwrap().worker, 2);
        }
        held.finish();
        end(&scheduler);
    });
}

/// Both workers are held, one of them with prefetched tasks; the other is let go.
#[test]
fn a_worker_that_is_let_go_runs_what_another_has_taken() {
    finishes(|| {
        for _ in 0..20 {
            let (scheduler, caller) = scheduler(2);
            let other = Held::start(&caller);
            let (held, mut behind) = held_before(&scheduler, &caller, Place::new());
            other.finish();
            for task in &mut behind {
                task.outcome().wait().unwrap();
            }
            held.finish();
            end(&scheduler);
        }
    });
}

#[test]
fn no_task_starts_while_a_hold_lives_or_a_cap_is_nothing() {
    finishes(|| {
        // Many rounds: reading the status also gives the prefetched tasks back.
        for round in 0..60 {
            let capped = round % 2 == 0;
            let (scheduler, caller) = scheduler(1);
            let (held, behind) = held_before(&scheduler, &caller, Place::new());
            let hold = match capped {
                true => caller.set_cap(Limit::AtMost(0)).map(|()| None).unwrap(),
                false => Some(scheduler.hold()),
            };
            // The outcome is not asked for: that alone would give the prefetched tasks back.
            held.go();
            until_idle(&scheduler);
            assert!(behind.iter().all(|task| !task.has_ended()));
            drop(hold);
            caller.set_cap(Limit::Unlimited).unwrap();
            assert!(caller.synchronize().wait().unwrap().all_ok());
            end(&scheduler);
        }
    });
}

#[test]
fn a_lower_tier_goes_first() {
    finishes(|| {
        // Many rounds: a worker that was slow once prefetches none of the others.
        for n in 0..40 {
            let (scheduler, caller) = scheduler(1);
            let (held, behind) = held_before(&scheduler, &caller, Place::new().tier(2));
            let lower = Held::submit(&caller, Place::new().tier(n % 2));
            held.go();
            lower.wait_began();
            assert!(behind.iter().all(|task| !task.has_ended()));
            lower.finish();
            assert!(caller.synchronize().wait().unwrap().all_ok());
            end(&scheduler);
        }
    });
}

/// With one worker this would be a stall; with two, the other one runs the task.
#[test]
fn a_task_may_wait_for_one_that_its_worker_has_taken() {
    finishes(|| {
        for _ in 0..50 {
            let (scheduler, caller) = scheduler(2);
            let hold = scheduler.hold();
            (0..2).for_each(|n| gives(&caller, n).detach());
            let (hands_over, handed) = channel::<Job>();
            let waits = caller.exec(move || {
                let mut other = handed.recv().unwrap();
                let outcome = other.outcome().wait().map_err(|_| ())?;
                Ok::<_, ()>(matches!(outcome.verdict, Verdict::Ok(7)))
            });
            hands_over.send(gives(&caller, 7)).unwrap();
            (0..9).for_each(|n| gives(&caller, n).detach());
            drop(hold);
            let verdict = waits.unwrap().outcome().wait().unwrap().verdict;
            assert!(matches!(verdict, Verdict::Ok(true)), "{verdict:?}");
            end(&scheduler);
        }
    });
}

#[test]
fn an_outcome_does_not_wait_for_the_task_behind() {
    finishes(|| {
        for looks in [true, false].repeat(10) {
            let (scheduler, caller) = scheduler(1);
            let hold = scheduler.hold();
            gives(&caller, 0).detach();
            let mut first = gives(&caller, 1);
            let held = Held::submit(&caller, Place::new());
            gives(&caller, 2).detach();
            drop(hold);
            held.wait_began();
            assert!(!looks || first.has_ended());
            assert!(first.outcome().wait().unwrap().run.is_some());
            held.finish();
            end(&scheduler);
        }
    });
}

/// A waiter for a running task is woken when the task ends, even if its worker has
/// prefetched others.
#[test]
fn who_waits_is_woken_before_the_task_behind_has_ended() {
    struct Tells(Sender<()>);
    impl Wake for Tells {
        fn wake(self: Arc<Self>) {
            self.0.send(()).ok();
        }
    }
    finishes(|| {
        let (scheduler, caller) = scheduler(1);
        let hold = scheduler.hold();
        gives(&caller, 0).detach();
        let mut first = Held::submit(&caller, Place::new());
        let second = Held::submit(&caller, Place::new());
        gives(&caller, 1).detach();
        drop(hold);
        first.wait_began();
        let (tells, told) = channel();
        let waker = Waker::from(Arc::new(Tells(tells)));
        let mut outcome = first.task.outcome();
        let polled = Pin::new(&mut outcome).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        first.go.send(()).unwrap();
        told.recv().expect("it is woken");
        assert!(outcome.wait().unwrap().run.is_some());
        second.finish();
        end(&scheduler);
    });
}

#[test]
fn a_release_that_cancels_takes_them_back() {
    finishes(|| {
        let (scheduler, caller) = scheduler(1);
        let (held, behind) = held_before(&scheduler, &caller, Place::new());
        held.go();
        let summary = caller.release(How::Cancel).wait().unwrap();
        assert_eq!(summary.ok + summary.cancelled, 22);
        drop(behind);
        end(&scheduler);
    });
}

/// A task's result is dropped before the next task begins.
#[test]
fn what_a_detached_task_gave_does_not_wait_for_the_task_behind() {
    struct Says(std::sync::mpsc::Sender<()>);
    impl Drop for Says {
        fn drop(&mut self) {
            self.0.send(()).ok();
        }
    }
    finishes(|| {
        let (scheduler, caller) = scheduler(1);
        let hold = scheduler.hold();
        gives(&caller, 0).detach();
        let (says, said) = channel();
        caller
            .exec(move || Ok::<_, ()>(Says(says)))
            .unwrap()
            .detach();
        let held = Held::submit(&caller, Place::new());
        gives(&caller, 2).detach();
        drop(hold);
        held.wait_began();
        said.try_recv().expect("dropped before the next began");
        held.finish();
        end(&scheduler);
    });
}

#[test]
fn one_at_a_time_is_in_exact_order() {
    finishes(|| {
        let builder = Scheduler::builder().workers(1).claims(1);
        let scheduler = builder.build().unwrap();
        let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
        let (held, behind) = held_before(&scheduler, &caller, Place::new());
        caller.bump(&behind[9], 1).unwrap();
        let (says, said) = channel();
        let last = Arc::new(says);
        let urgent = caller.exec_with(Place::new().bump(200), move || {
            last.send(()).ok();
            Ok::<_, ()>(())
        });
        held.finish();
        let start = |mut task: Job| task.outcome().wait().unwrap().run.unwrap().start;
        let mut urgent = urgent.unwrap();
        let first = urgent.outcome().wait().unwrap().run.unwrap().start;
        said.recv().unwrap();
        let mut starts: Vec<_> = behind.into_iter().map(start).collect();
        let second = starts.remove(9);
        assert!(first <= second && second <= starts[0] && starts.is_sorted());
        end(&scheduler);
    });
}

#[test]
fn the_number_of_claims_has_its_range() {
    for (claims, allowed) in [(0, false), (1, true), (1024, true), (1025, false)] {
        let built = Scheduler::builder().workers(1).claims(claims).build();
        let told = built.map(drop).map_err(|OutOfRange { what, .. }| what);
        let expected = if allowed { Ok(()) } else { Err("claims") };
        assert_eq!(told, expected);
    }
}

/// Many threads at once, with few and many claims: the sums agree.
#[test]
fn nothing_is_lost_or_run_twice() {
    finishes(|| {
        for claims in [2, 16, 1024] {
            let builder = Scheduler::builder().workers(3).claims(claims);
            let scheduler = builder.build().unwrap();
            std::thread::scope(|scope| {
                for thread in 0..3_u64 {
                    let scheduler = &scheduler;
                    scope.spawn(move || {
                        let caller = scheduler.caller("c", CallerOptions::default()).unwrap();
                        let mut cancelled = 0;
                        for n in 0..3_000 {
                            let mut task = gives(&caller, n);
                            match (n + thread) % 40 {
                                0 => _ = task.outcome().wait().unwrap(),
                                1..4 => cancelled += u64::from(task.cancel()),
                                4 => _ = caller.bump(&task, 1),
                                5 => assert!(scheduler.status().running.len() <= 3),
                                6 => drop(scheduler.hold()),
                                7 => scheduler.set_workers(2 + n as u32 % 2).unwrap(),
                                _ => {}
                            }
                        }
                        let summary = caller.synchronize().wait().unwrap();
                        assert_eq!((summary.tasks, summary.cancelled), (3_000, cancelled));
                        assert_eq!(summary.ok, 3_000 - cancelled);
                    });
                }
            });
            until(|| scheduler.status().running.is_empty());
            end(&scheduler);
        }
    });
}

/// Its group's last task has ended; the worker that ran it goes on with what it claimed with it.
#[test]
fn an_ended_task_of_a_higher_tier_refuses_nothing() {
    finishes(|| {
        let (scheduler, caller) = scheduler(1);
        let group = caller.group(Limit::SERIAL, 100).unwrap();
        let high = Place::new().tier(1);
        let hold = scheduler.hold();
        let exec = |place: Place<'_>| caller.exec_with(place, || Ok::<_, String>(0)).unwrap();
        let _quick = exec(high);
        let last = exec(high.group(&group));
        let held = Held::submit(&caller, high);
        let _behind: Vec<_> = (0..20).map(|_| exec(high)).collect();
        drop(hold);
        held.wait_began();
        assert!(last.has_ended());
        let lower = exec(high.group(&group).tier(0));
        held.go();
        assert!(caller.synchronize().wait().unwrap().all_ok());
        drop(lower);
        end(&scheduler);
    });
}
