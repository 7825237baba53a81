//! A cancel cancels: nothing starts between its batches, even if user code panics.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use conversant::limit::Limit;
use conversant::scheduler::{
    Caller, CallerOptions, How, OnFailure, OutcomeError, Place, Task, Verdict, is_cancelled,
};

use crate::threads::stage::{Held, capped, end, finishes, gives, one_caller, scheduler};

/// Cancelling the last task of an open tier opens the next one.
#[test]
fn a_cancelled_tier_lets_no_higher_one_start() {
    const MANY: u64 = 5_000;
    finishes(|| {
        for shuts_down in [false, true] {
            let (scheduler, caller) = one_caller(4);
            let paused = caller.group(Limit::AtMost(0), 100).unwrap();
            let hold = scheduler.hold();
            let submit = |place: Place<'_>| caller.exec_with(place, || Ok::<_, ()>(())).unwrap();
            for _ in 0..MANY {
                submit(Place::new().tier(1)).detach();
            }
            submit(Place::new().group(&paused)).detach();
            drop(hold);
            let summary = if shuts_down {
                scheduler.shutdown(How::Cancel).wait().unwrap();
                caller.synchronize().wait().unwrap()
            } else {
                caller.release(How::Cancel).wait().unwrap()
            };
            assert_eq!((summary.ok, summary.cancelled), (0, MANY + 1));
            end(&scheduler);
        }
    });
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker's");
    }
}

#[test]
fn a_waker_that_panics_turns_no_cancel_into_a_drain() {
    const MANY: u64 = 200;
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let held = Held::start(&caller);
        let mut first = gives(&caller, 1);
        for _ in 1..MANY {
            gives(&caller, 1).detach();
        }
        let mut last = gives(&caller, 1);
        let waker = Waker::from(Arc::new(Panics));
        let mut cx = Context::from_waker(&waker);
        assert!(pin!(first.outcome()).poll(&mut cx).is_pending());
        {
            let mut outcome = pin!(last.outcome());
            assert!(outcome.as_mut().poll(&mut cx).is_pending());
            let mut shutdown = pin!(scheduler.shutdown(How::Cancel));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(shutdown.as_mut().poll(&mut cx).is_pending());
        }
        held.finish();
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.ok, summary.cancelled), (1, MANY + 1));
        scheduler.shutdown(How::Drain).wait().unwrap();
    });
}

/// As with a second Ctrl-C: the first drains.
#[test]
fn a_cancel_ends_a_drain_that_waits() {
    finishes(|| {
        let (scheduler, released) = one_caller(1);
        let kept = scheduler.caller("kept", capped(0)).unwrap();
        released.set_cap(0).unwrap();
        gives(&released, 1).detach();
        gives(&kept, 1).detach();
        let mut cx = Context::from_waker(Waker::noop());
        let mut release = pin!(released.release(How::Drain));
        assert!(release.as_mut().poll(&mut cx).is_pending());
        let again = released.release(How::Cancel).wait().unwrap();
        assert_eq!(again.cancelled, 1);
        assert_eq!(release.as_mut().poll(&mut cx), Poll::Ready(Ok(again)));
        let mut shutdown = pin!(scheduler.shutdown(How::Drain));
        assert!(shutdown.as_mut().poll(&mut cx).is_pending());
        scheduler.shutdown(How::Cancel).wait().unwrap();
        assert_eq!(shutdown.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
        assert_eq!(kept.synchronize().wait().unwrap().cancelled, 1);
    });
}

/// A synchronize reports only what it covers, so it forgives no other failure.
#[test]
fn a_failure_that_no_synchronize_has_reported_goes_on_skipping() {
    finishes(|| {
        let scheduler = scheduler(2);
        let options = CallerOptions {
            on_failure: OnFailure::SkipHigherTiers,
            ..CallerOptions::default()
        };
        let caller = scheduler.caller("main", options).unwrap();
        let held = Held::start(&caller);
        let mut covered = pin!(caller.synchronize());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(covered.as_mut().poll(&mut cx).is_pending());
        let mut fails = caller.exec(|| Err::<(), _>("failed")).unwrap();
        assert!(matches!(
            fails.outcome().wait().unwrap().verdict,
            Verdict::Failed(_)
        ));
        held.finish();
        while covered.as_mut().poll(&mut cx).is_pending() {
            std::thread::yield_now();
        }
        let above = caller.exec_with(Place::new().tier(1), || Ok::<_, ()>(()));
        let verdict = above.unwrap().outcome().wait().unwrap().verdict;
        assert!(matches!(verdict, Verdict::Skipped));
        assert_eq!(caller.synchronize().wait().unwrap().failed, 1);
        let above = caller.exec_with(Place::new().tier(1), || Ok::<_, ()>(()));
        let verdict = above.unwrap().outcome().wait().unwrap().verdict;
        assert!(matches!(verdict, Verdict::Ok(())));
        end(&scheduler);
    });
}

/// All tasks that were submitted before, in every state; the caller goes on.
#[test]
fn cancel_all_ends_what_has_not_started_and_no_more() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let other = scheduler.caller("other", capped(1)).unwrap();
        let held = Held::start(&caller);
        let paused = caller.group(Limit::AtMost(0), 100).unwrap();
        let later = Duration::from_secs(3600);
        let places = [
            Place::new(),
            Place::new().tier(3),
            Place::new().group(&paused),
            Place::new().after(later),
        ];
        let mut tasks: Vec<_> = (0..2_000)
            .map(|n| caller.exec_with(places[n % 4], || Ok::<_, ()>(())).unwrap())
            .collect();
        let mut others = gives(&other, 1);
        caller.cancel_all();
        for task in &mut tasks {
            let outcome = task.try_outcome().unwrap().expect("it has ended");
            assert!(matches!(outcome.verdict, Verdict::Cancelled));
            assert_eq!(task.try_outcome().unwrap_err(), OutcomeError::Taken);
        }
        let mut after = gives(&caller, 2);
        assert!(after.try_outcome().unwrap().is_none());
        held.finish();
        for (task, n) in [(&mut after, 2), (&mut others, 1)] {
            let verdict = task.outcome().wait().unwrap().verdict;
            assert!(matches!(verdict, Verdict::Ok(given) if given == n));
        }
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.ok, summary.cancelled), (2, 2_000));
        end(&scheduler);
    });
}

/// Posted, behind the limit, not due, and running; those of other groups and later ones go on.
#[test]
fn a_group_cancels_its_tasks_and_no_others() {
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let [group, other] = [1, 1].map(|limit| caller.group(limit, 100).unwrap());
        let of = |group| Place::new().group(group);
        let asks = |place| {
            let ((begun, begins), (go, goes)) = (channel(), channel());
            let task = caller.exec_with(place, move || {
                begun.send(()).unwrap();
                goes.recv().unwrap();
                Ok::<_, ()>(is_cancelled())
            });
            begins.recv().unwrap();
            (task.unwrap(), go)
        };
        let running = [asks(of(&group)), asks(of(&other))];
        let later = Duration::from_secs(3600);
        let places = [
            of(&group),
            of(&group).after(later),
            of(&other),
            Place::new(),
        ];
        let gives = |place| caller.exec_with(place, || Ok::<_, ()>(7)).unwrap();
        let mut tasks: Vec<_> = (0..400).map(|n| gives(places[n % 4])).collect();
        group.cancel_all();
        let mut after = gives(of(&group));
        let told = running.map(|(mut task, go)| {
            go.send(()).unwrap();
            task.outcome().wait().unwrap().verdict.ok()
        });
        assert_eq!(told, [Some(true), Some(false)]);
        for (n, task) in tasks.iter_mut().enumerate() {
            match task.outcome().wait().unwrap().verdict {
                Verdict::Cancelled => assert!(n % 4 < 2, "{n} is not in the group"),
                verdict => assert!(n % 4 > 1, "{n}: {verdict:?}"),
            }
        }
        let verdict = after.outcome().wait().unwrap().verdict;
        assert!(matches!(verdict, Verdict::Ok(7)));
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.ok, summary.cancelled), (203, 200));
        end(&scheduler);
    });
}

#[test]
fn a_group_that_outlives_its_caller_has_nothing_to_cancel() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let group = caller.group(1, 100).unwrap();
        drop(caller);
        group.cancel_all();
        end(&scheduler);
    });
}

/// The drop of the first cancelled task ends the lower tier: its own tier could open.
#[test]
fn cancel_all_lets_none_of_them_start() {
    struct LetsGo(Sender<()>, Arc<AtomicU32>);
    impl Drop for LetsGo {
        fn drop(&mut self) {
            self.0.send(()).ok();
            for _ in 0..1_000 {
                if self.1.load(SeqCst) > 0 {
                    break;
                }
                thread::yield_now();
            }
        }
    }
    finishes(|| {
        let (scheduler, caller) = one_caller(2);
        let held = Held::start(&caller);
        let ran = Arc::new(AtomicU32::new(0));
        for n in 0..500 {
            let runs = Arc::clone(&ran);
            let lets_go = (n == 0 || n == 499).then(|| LetsGo(held.go.clone(), Arc::clone(&ran)));
            let task = caller.exec_with(Place::new().tier(1), move || {
                let _unused = lets_go;
                runs.fetch_add(1, SeqCst);
                Ok::<_, ()>(())
            });
            task.unwrap().detach();
        }
        caller.cancel_all();
        held.finish();
        assert_eq!(ran.load(SeqCst), 0);
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!((summary.ok, summary.cancelled), (1, 500));
        assert!(
            gives(&caller, 1).outcome().wait().is_ok(),
            "no hold is left"
        );
        end(&scheduler);
    });
}

#[test]
fn cancel_all_ends_a_future_that_is_polled_at_its_next_await() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let ((begins, began), (goes, go)) = (channel(), channel());
        let task = caller.spawn(async move {
            begins.send(()).ok();
            go.recv().ok();
            std::future::pending::<Result<(), ()>>().await
        });
        let mut task = task.unwrap();
        began.recv().unwrap();
        caller.cancel_all();
        assert!(!task.has_ended());
        goes.send(()).unwrap();
        let verdict = task.outcome().wait().unwrap().verdict;
        assert!(matches!(verdict, Verdict::Cancelled));
        let later = caller.spawn(async {
            let mut awaited = false;
            std::future::poll_fn(|cx| {
                cx.waker().wake_by_ref();
                match std::mem::replace(&mut awaited, true) {
                    true => std::task::Poll::Ready(()),
                    false => std::task::Poll::Pending,
                }
            })
            .await;
            Ok::<_, ()>(7)
        });
        let verdict = later.unwrap().outcome().wait().unwrap().verdict;
        assert!(matches!(verdict, Verdict::Ok(7)));
        end(&scheduler);
    });
}

/// A task that runs until it is cancelled, and tells when it has begun.
fn until_cancelled(caller: &Caller) -> (Task<(), ()>, Receiver<()>) {
    let (begun, begins) = channel();
    let task = caller.exec(move || {
        begun.send(()).unwrap();
        while !is_cancelled() {
            thread::yield_now();
        }
        Ok(())
    });
    (task.unwrap(), begins)
}

#[test]
fn a_task_that_runs_is_told() {
    finishes(|| {
        assert!(!is_cancelled(), "no task");
        for how in 0..4 {
            let (scheduler, caller) = one_caller(2);
            let other = scheduler.caller("other", CallerOptions::default()).unwrap();
            let (mut spared, spares) = until_cancelled(&other);
            spares.recv().unwrap();
            let (mut task, begins) = until_cancelled(&caller);
            begins.recv().unwrap();
            match how {
                0 => assert!(!task.cancel(), "it runs"),
                1 => caller.cancel_all(),
                2 => _ = caller.release(How::Cancel).wait().unwrap(),
                _ => scheduler.shutdown(How::Cancel).wait().unwrap(),
            }
            let ended = task.outcome().wait().unwrap();
            assert!(matches!(ended.verdict, Verdict::Ok(())));
            if how < 3 {
                assert!(!spared.has_ended(), "what is another's goes on");
                spared.cancel();
            }
            spared.outcome().wait().unwrap();
            if how < 2 {
                let later = caller
                    .exec(|| Err::<(), _>(is_cancelled()))
                    .unwrap()
                    .outcome()
                    .wait();
                assert!(matches!(later.unwrap().verdict, Verdict::Failed(false)));
            }
            end(&scheduler);
        }
    });
}

/// Asks when its thread ends, after the scheduler's locals of the thread were dropped.
struct AsksAtTheEnd;

impl Drop for AsksAtTheEnd {
    fn drop(&mut self) {
        assert!(!is_cancelled());
    }
}

#[test]
fn a_thread_that_ends_runs_no_task() {
    thread_local! {
        static LAST: Cell<Option<AsksAtTheEnd>> = const { Cell::new(None) };
    }
    let asks = || {
        // The thread's local that is used first is dropped last.
        LAST.set(Some(AsksAtTheEnd));
        assert!(!is_cancelled());
    };
    thread::spawn(asks).join().unwrap();
}
