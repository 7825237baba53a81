//! Wakers of the user that call back into the scheduler, or panic.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};

use conversant::scheduler::{Caller, How, Scheduler, Verdict};

use crate::threads::doors::gave;
use crate::threads::stage::{
    Held, Job, end, finishes, gives, one_caller, shared, until, until_idle,
};

/// Calls back into the scheduler when it is woken.
struct Reenters {
    scheduler: Arc<Scheduler>,
    caller: Arc<Caller>,
    waiting: Job,
    made: Mutex<Option<Job>>,
    woken: AtomicU32,
}

impl Wake for Reenters {
    fn wake(self: Arc<Self>) {
        let _status = self.scheduler.status();
        drop(self.scheduler.hold());
        self.waiting.cancel();
        let _ = self.caller.bump(&self.waiting, 3);
        let made = self.caller.exec(|| Ok(77)).ok();
        *self.made.lock().unwrap() = made;
        self.woken.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_waker_may_re_enter_the_scheduler() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (scheduler, caller) = (Arc::new(scheduler), Arc::new(caller));
        let mut held = Held::start(&caller);
        let reenters = Arc::new(Reenters {
            scheduler: Arc::clone(&scheduler),
            caller: Arc::clone(&caller),
            waiting: gives(&caller, 1),
            made: Mutex::new(None),
            woken: AtomicU32::new(0),
        });
        let waker = Waker::from(Arc::clone(&reenters));
        let Held { task, go, .. } = &mut held;
        let mut outcome = pin!(task.outcome());
        let mut cx = Context::from_waker(&waker);
        assert!(outcome.as_mut().poll(&mut cx).is_pending());
        go.send(()).unwrap();
        until(|| reenters.woken.load(SeqCst) == 1);
        assert!(outcome.as_mut().poll(&mut cx).is_ready());
        let mut made = reenters.made.lock().unwrap().take().unwrap();
        assert!(matches!(
            made.outcome().wait().unwrap().verdict,
            Verdict::Ok(77)
        ));
        end(&scheduler);
    });
}

/// Panics when woken.
#[derive(Default)]
struct Panics(AtomicU32);

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
        resume_unwind(Box::new("a waker that panics"));
    }
}

impl Panics {
    fn new() -> (Arc<Self>, Waker) {
        let panics = Arc::new(Self::default());
        let waker = Waker::from(Arc::clone(&panics));
        (panics, waker)
    }
}

#[test]
fn a_worker_survives_a_waker_that_panics() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (panics, waker) = Panics::new();
        let mut cx = Context::from_waker(&waker);
        for round in 1..=20 {
            let mut held = Held::start(&caller);
            let Held { task, go, .. } = &mut held;
            let mut outcome = pin!(task.outcome());
            let mut synced = pin!(caller.synchronize());
            assert!(outcome.as_mut().poll(&mut cx).is_pending());
            assert!(synced.as_mut().poll(&mut cx).is_pending());
            let mut next = gives(&caller, 5);
            go.send(()).unwrap();
            let given = next.outcome().wait().unwrap().verdict;
            assert!(matches!(given, Verdict::Ok(5)));
            until(|| panics.0.load(SeqCst) == 2 * round);
            assert!(outcome.as_mut().poll(&mut cx).is_ready());
            assert!(synced.as_mut().poll(&mut cx).is_ready());
            assert_eq!(caller.synchronize().wait().unwrap().tasks, 1);
        }
        until_idle(&scheduler);
        assert_eq!(scheduler.workers().live, 1);
        end(&scheduler);
    });
}

struct PanicsOnDrop(Arc<AtomicU32>);

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
        resume_unwind(Box::new("a drop that panics"));
    }
}

/// The waker panics, and so does the drop of the task's result.
#[test]
fn a_worker_survives_a_panicking_waker_and_a_panicking_drop_at_once() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let (panics, waker) = Panics::new();
        let dropped = Arc::new(AtomicU32::new(0));
        let (gate, may_go) = std::sync::mpsc::channel::<()>();
        let given = Arc::clone(&dropped);
        let task = caller.exec(move || {
            may_go.recv().ok();
            Ok::<_, ()>(PanicsOnDrop(given))
        });
        task.unwrap().detach();
        {
            let mut synced = pin!(caller.synchronize());
            let mut cx = Context::from_waker(&waker);
            assert!(synced.as_mut().poll(&mut cx).is_pending());
            gate.send(()).unwrap();
            // The drop comes first: it is part of the task.
            until(|| panics.0.load(SeqCst) == 1);
            assert_eq!(dropped.load(SeqCst), 1);
        }
        assert_eq!(caller.synchronize().wait().unwrap().ok, 1);
        end(&scheduler);
    });
}

/// The last worker to leave wakes the waiter for the shutdown.
#[test]
fn a_shutdown_waker_that_panics_breaks_nothing() {
    finishes(|| {
        for workers in [1, 3] {
            let (scheduler, caller) = one_caller(3);
            let held: Vec<Held> = (0..3).map(|_| Held::start(&caller)).collect();
            scheduler.set_workers(workers).unwrap();
            let (panics, waker) = Panics::new();
            let mut down = pin!(scheduler.shutdown(How::Drain));
            let mut cx = Context::from_waker(&waker);
            assert!(down.as_mut().poll(&mut cx).is_pending());
            held.iter().for_each(Held::go);
            until(|| panics.0.load(SeqCst) == 1);
            assert!(down.as_mut().poll(&mut cx).is_ready());
            end(&scheduler);
        }
    });
}

/// On a pool, too: the panic does not reach the pool's thread.
#[test]
fn a_shutdown_waker_that_panics_does_not_unwind_into_the_pool() {
    finishes(|| {
        let (unwound, saw) = shared(AtomicBool::new(false));
        let pool = move |job: Box<dyn FnOnce() + Send>| {
            let saw = Arc::clone(&saw);
            std::thread::spawn(move || {
                let ran = catch_unwind(AssertUnwindSafe(job));
                saw.fetch_or(ran.is_err(), SeqCst);
            });
            Ok(())
        };
        let scheduler = Scheduler::builder().workers(2).pool(pool).build().unwrap();
        let caller = scheduler.caller("main", Default::default()).unwrap();
        let held = Held::start(&caller);
        let (panics, waker) = Panics::new();
        let mut down = pin!(scheduler.shutdown(How::Drain));
        let mut cx = Context::from_waker(&waker);
        assert!(down.as_mut().poll(&mut cx).is_pending());
        held.go();
        until(|| panics.0.load(SeqCst) == 1);
        end(&scheduler);
        assert!(!unwound.load(SeqCst));
    });
}

/// More wakers than a batch holds, and each of them panics: all are called, and the
/// release ends.
#[test]
fn one_panicking_waker_among_many_keeps_nobody_from_being_told() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let other = scheduler.caller("other", Default::default()).unwrap();
        let held = Held::start(&other);
        let (panics, waker) = Panics::new();
        let mut tasks: Vec<Job> = (0..100).map(|n| gives(&caller, n)).collect();
        let mut outcomes: Vec<_> = tasks.iter_mut().map(|task| task.outcome()).collect();
        let mut cx = Context::from_waker(&waker);
        for outcome in &mut outcomes {
            assert!(std::pin::Pin::new(outcome).poll(&mut cx).is_pending());
        }
        caller.release(How::Cancel).wait().unwrap();
        assert_eq!(panics.0.load(SeqCst), 100);
        for outcome in &mut outcomes {
            assert!(std::pin::Pin::new(outcome).poll(&mut cx).is_ready());
        }
        held.finish();
        end(&scheduler);
    });
}

/// A waker whose clone panics.
fn clone_panics() -> Waker {
    const VTABLE: RawWakerVTable = RawWakerVTable::new(
        |_| resume_unwind(Box::new("a clone that panics")),
        |_| (),
        |_| (),
        |_| (),
    );
    // SAFETY: no function of the table looks at the pointer.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &VTABLE)) }
}

#[test]
fn a_first_poll_that_panics_leaves_nothing_behind() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let mut held = Held::start(&caller);
        let waker = clone_panics();
        let mut cx = Context::from_waker(&waker);
        let mut rude = |future: &mut dyn FnMut(&mut Context<'_>)| {
            assert!(catch_unwind(AssertUnwindSafe(|| future(&mut cx))).is_err());
        };
        rude(&mut |cx| _ = pin!(held.task.outcome()).poll(cx));
        rude(&mut |cx| _ = pin!(caller.synchronize()).poll(cx));
        held.go();
        let summary = caller.synchronize().wait().unwrap();
        assert_eq!(summary.ok, 1, "not busy: nobody synchronizes");
        rude(&mut |cx| {
            let held = Held::start(&caller);
            let mut released = pin!(caller.release(How::Drain));
            let polled = catch_unwind(AssertUnwindSafe(|| _ = released.as_mut().poll(cx)));
            held.finish();
            polled.unwrap_or_else(|panic| resume_unwind(panic));
        });
        assert_eq!(caller.release(How::Drain).wait().unwrap().ok, 1);
        end(&scheduler);
    });
}

#[test]
fn a_future_that_ends_while_it_wakes_itself_wakes_no_other() {
    finishes(|| {
        let (scheduler, caller) = one_caller(1);
        let ends = caller.spawn(poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::Ready(Ok::<_, String>(1))
        }));
        assert_eq!(gave(&mut ends.unwrap()), 1);
        let polls = Arc::new(AtomicU64::new(0));
        let (counts, (sends, waker)) = (Arc::clone(&polls), channel());
        let waits = caller.spawn(poll_fn(move |cx| {
            if counts.fetch_add(1, SeqCst) > 0 {
                return Poll::Ready(Ok::<_, String>(2));
            }
            sends.send(cx.waker().clone()).unwrap();
            Poll::Pending
        }));
        let waker: Waker = waker.recv().unwrap();
        for n in [3, 4] {
            assert_eq!(gave(&mut gives(&caller, n)), n);
        }
        assert_eq!(polls.load(SeqCst), 1);
        waker.wake();
        assert_eq!(gave(&mut waits.unwrap()), 2);
        end(&scheduler);
    });
}
