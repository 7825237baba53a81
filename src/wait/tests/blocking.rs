//! `Wait` itself: stages, deadlines, nesting, panics.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::super::gate::Gate;
use super::super::{Op, Wait, sealed, wakeups};
use super::{Log, Scripted, Step, counting, entries};
use crate::error::TimedOut;

fn silent(_: &Waker) {}

fn wakes(waker: &Waker) {
    waker.wake_by_ref();
}

fn poll_once<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Runs `act` when `n` threads wait at the gate.
fn when_waiting(gate: &std::sync::Arc<Gate>, n: usize, act: impl FnOnce()) {
    while gate.waiters() < n {
        thread::yield_now();
    }
    act();
}

#[test]
fn dropped_before_the_first_poll_does_nothing() {
    let (wait, log) = Scripted::wait(vec![Box::new(silent)]);
    drop(wait);
    assert!(entries(&log).is_empty());
    let gate = Gate::new();
    drop(Gate::pass(&gate));
    assert_eq!(gate.waiters(), 0);
}

#[test]
fn dropped_while_pending_cancels_once() {
    let (mut wait, log) = Scripted::wait(vec![Box::new(silent), Box::new(silent)]);
    assert!(poll_once(&mut wait, Waker::noop()).is_pending());
    assert!(poll_once(&mut wait, Waker::noop()).is_pending());
    drop(wait);
    assert_eq!(entries(&log), ["poll", "poll", "cancel"]);
}

#[test]
fn dropped_when_ready_does_not_cancel() {
    let (mut wait, log) = Scripted::wait(vec![Box::new(silent)]);
    assert!(poll_once(&mut wait, Waker::noop()).is_pending());
    assert!(poll_once(&mut wait, Waker::noop()).is_ready());
    drop(wait);
    assert_eq!(entries(&log), ["poll", "poll"]);
}

#[test]
#[should_panic(expected = "polled after it gave its result")]
fn polled_after_ready_panics() {
    let (mut wait, _) = Scripted::wait(vec![]);
    assert!(poll_once(&mut wait, Waker::noop()).is_ready());
    let _ = poll_once(&mut wait, Waker::noop());
}

#[test]
fn a_blocking_wait_that_is_woken_before_it_sleeps_does_not_block() {
    let (wait, log) = Scripted::wait(vec![Box::new(wakes)]);
    assert_eq!(wait.wait(), "done");
    assert_eq!(entries(&log), ["poll", "poll"]);
}

#[test]
fn block_and_unblock_surround_the_sleep() {
    let (ask, asked) = std::sync::mpsc::channel::<Waker>();
    let step = move |waker: &Waker| ask.send(waker.clone()).unwrap();
    let (wait, log) = Scripted::wait(vec![Box::new(step)]);
    let blocker = thread::spawn(move || wait.wait());
    let waker = asked.recv().unwrap();
    while entries(&log) != ["poll", "block"] {
        thread::yield_now();
    }
    waker.wake();
    assert_eq!(blocker.join().unwrap(), "done");
    assert_eq!(entries(&log), ["poll", "block", "poll", "unblock"]);
}

#[test]
fn a_poll_that_panics_in_a_blocked_wait_unblocks_and_cancels() {
    let (ask, asked) = std::sync::mpsc::channel::<Waker>();
    let step = move |waker: &Waker| ask.send(waker.clone()).unwrap();
    let fails = |_: &Waker| panic!("scripted");
    let (wait, log) = Scripted::wait(vec![Box::new(step), Box::new(fails)]);
    let blocker = thread::spawn(move || wait.wait());
    let waker = asked.recv().unwrap();
    while entries(&log) != ["poll", "block"] {
        thread::yield_now();
    }
    waker.wake();
    assert!(blocker.join().is_err());
    assert_eq!(
        entries(&log),
        ["poll", "block", "poll", "unblock", "cancel"]
    );
}

#[test]
fn a_thread_can_wait_again_after_a_wait_that_panicked() {
    let fails = |_: &Waker| panic!("scripted");
    let (wait, _) = Scripted::wait(vec![Box::new(fails)]);
    assert!(catch_unwind(AssertUnwindSafe(|| wait.wait())).is_err());
    let gate = Gate::new();
    thread::scope(|s| {
        s.spawn(|| when_waiting(&gate, 1, || gate.open(1)));
        Gate::pass(&gate).wait();
    });
}

#[test]
fn waits_nest_on_one_thread() {
    let gate = Gate::new();
    let inner = gate.clone();
    // The inner wait runs inside the first poll of the outer one, after the
    // outer waker was woken: the outer token must survive it.
    let step = move |waker: &Waker| {
        waker.wake_by_ref();
        Gate::pass(&inner).wait();
    };
    let (wait, log) = Scripted::wait(vec![Box::new(step)]);
    thread::scope(|s| {
        s.spawn(|| when_waiting(&gate, 1, || gate.open(1)));
        assert_eq!(wait.wait(), "done");
    });
    assert_eq!(entries(&log), ["poll", "poll"]);
}

#[test]
fn a_past_deadline_still_takes_what_is_there() {
    let past = Instant::now();
    let gate = Gate::new();
    gate.open(1);
    assert_eq!(Gate::pass(&gate).wait_deadline(past), Ok(()));
    assert_eq!(Gate::pass(&gate).wait_deadline(past), Err(TimedOut));
    let zero = Gate::pass(&gate).wait_timeout(Duration::ZERO);
    assert_eq!(zero, Err(TimedOut));
    assert_eq!((gate.permits(), gate.waiters()), (0, 0));
}

#[test]
fn a_timeout_looks_once_more_and_cancels_once() {
    let (wait, log) = Scripted::wait(vec![Box::new(silent)]);
    assert_eq!(wait.wait_deadline(Instant::now()), Ok("done"));
    assert_eq!(entries(&log), ["poll", "poll"]);
    let (wait, log) = Scripted::wait(vec![Box::new(silent), Box::new(silent)]);
    assert_eq!(wait.wait_deadline(Instant::now()), Err(TimedOut));
    assert_eq!(entries(&log), ["poll", "poll", "cancel"]);
}

#[test]
fn wakes_that_lead_nowhere_do_not_outlast_the_deadline() {
    let wakes = || Box::new(wakes) as Step;
    let many = std::iter::repeat_with(wakes).take(10_000).collect();
    let (wait, log) = Scripted::wait(many);
    assert_eq!(wait.wait_deadline(Instant::now()), Err(TimedOut));
    let polls = entries(&log).len() - 1;
    assert!(polls < 10, "polled {polls} times");
}

#[test]
fn a_timeout_beyond_all_dates_waits() {
    for huge in [Duration::MAX, Duration::from_secs(u64::MAX / 4)] {
        let gate = Gate::new();
        thread::scope(|s| {
            s.spawn(|| when_waiting(&gate, 1, || gate.open(1)));
            assert_eq!(Gate::pass(&gate).wait_timeout(huge), Ok(()));
        });
    }
}

#[test]
fn spurious_wakes_lose_nothing() {
    let gate = Gate::new();
    thread::scope(|s| {
        s.spawn(|| Gate::pass(&gate).wait());
        for _ in 0..100 {
            when_waiting(&gate, 1, || gate.disturb());
        }
        gate.open(1);
    });
    assert_eq!((gate.permits(), gate.waiters()), (0, 0));
}

#[test]
fn a_sleep_is_counted_when_it_ends() {
    let before = wakeups();
    let (ask, asked) = std::sync::mpsc::channel::<Waker>();
    let step = move |waker: &Waker| ask.send(waker.clone()).unwrap();
    let (wait, log) = Scripted::wait(vec![Box::new(step)]);
    let blocker = thread::spawn(move || wait.wait());
    let waker = asked.recv().unwrap();
    while !entries(&log).contains(&"block") {
        thread::yield_now();
    }
    // Between `block` and the sleep the thread may find the token without sleeping. A timed wait
    // that gets nothing always sleeps.
    waker.wake();
    blocker.join().unwrap();
    let gate = Gate::new();
    let soon = Instant::now() + Duration::from_millis(1);
    assert_eq!(Gate::pass(&gate).wait_deadline(soon), Err(TimedOut));
    assert!(wakeups() > before);
}

#[test]
fn a_wait_moves_between_wakers() {
    let gate = Gate::new();
    let mut wait = Gate::pass(&gate);
    let (first, second) = (counting(), counting());
    assert!(poll_once(&mut wait, &first.clone().into()).is_pending());
    assert!(poll_once(&mut wait, &second.clone().into()).is_pending());
    gate.open(1);
    assert_eq!((first.count(), second.count()), (0, 1));
    assert!(poll_once(&mut wait, Waker::noop()).is_ready());
}

#[test]
fn a_dropped_wait_passes_its_notification_on() {
    let gate = Gate::new();
    let (mut first, mut second) = (Gate::pass(&gate), Gate::pass(&gate));
    let (a, b) = (counting(), counting());
    assert!(poll_once(&mut first, &a.clone().into()).is_pending());
    assert!(poll_once(&mut second, &b.clone().into()).is_pending());
    gate.open(1);
    assert_eq!((a.count(), b.count()), (1, 0));
    drop(first);
    assert_eq!(b.count(), 1);
    assert!(poll_once(&mut second, Waker::noop()).is_ready());
    assert_eq!((gate.permits(), gate.waiters()), (0, 0));
}

#[test]
fn debug_says_the_stage() {
    let (wait, _) = Scripted::wait(vec![]);
    assert_eq!(format!("{wait:?}"), "Wait { stage: New, .. }");
}

#[test]
fn many_threads_conserve_permits() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 2_000;
    let gate = Gate::new();
    gate.open(2);
    thread::scope(|s| {
        for i in 0..THREADS {
            let gate = &gate;
            s.spawn(move || {
                for round in 0..ROUNDS {
                    let short = Duration::from_micros(((round * 7 + i) % 50) as u64);
                    let passed = match round % 3 {
                        0 => Gate::pass(gate).wait_timeout(short).is_ok(),
                        _ => {
                            Gate::pass(gate).wait();
                            true
                        }
                    };
                    if passed {
                        gate.open(1);
                    }
                }
            });
        }
    });
    assert_eq!((gate.permits(), gate.waiters()), (2, 0));
}

/// An operation whose last attempt gives a result; earlier attempts and all polls do not.
struct Attempted {
    log: super::Log,
    attempts: usize,
}

impl crate::wait::sealed::Sealed for Attempted {}

impl crate::wait::Op for Attempted {
    type Output = &'static str;

    fn attempt(&mut self) -> Option<&'static str> {
        self.log.lock().push("attempt");
        self.attempts = self.attempts.checked_sub(1)?;
        (self.attempts == 0).then_some("attempted")
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<&'static str> {
        self.log.lock().push("poll");
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn cancel(&mut self) {
        self.log.lock().push("cancel");
    }
}

/// There is an attempt before the first poll and after each wake-up. An attempt that gives a result
/// ends the wait, with nothing to cancel.
#[test]
fn a_blocking_wait_attempts_before_it_polls() {
    for (attempts, expected) in [
        (1, &["attempt"][..]),
        (2, &["attempt", "poll", "attempt"]),
        (3, &["attempt", "poll", "attempt", "poll", "attempt"]),
    ] {
        let log = super::Log::default();
        let op = Attempted {
            log: log.clone(),
            attempts,
        };
        assert_eq!(crate::wait::Wait::new(op).wait(), "attempted");
        assert_eq!(entries(&log), expected);
    }
}

/// Tasks and timed waits do not attempt.
#[test]
fn a_timed_wait_only_polls() {
    let log = super::Log::default();
    let op = Attempted {
        log: log.clone(),
        attempts: 1,
    };
    let outcome = crate::wait::Wait::new(op).wait_timeout(Duration::ZERO);
    assert_eq!(outcome, Err(TimedOut));
    assert!(!entries(&log).contains(&"attempt"));
    assert_eq!(entries(&log).last(), Some(&"cancel"));
}

/// An operation that cannot block.
struct Unblockable(Log);

impl sealed::Sealed for Unblockable {}

impl Op for Unblockable {
    type Output = ();

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    fn cancel(&mut self) {
        self.0.lock().push("cancel");
    }

    fn block(&mut self, _: &Waker) {
        self.0.lock().push("block");
        panic!("scripted");
    }

    fn unblock(&mut self) {
        self.0.lock().push("unblock");
    }
}

#[test]
fn a_block_that_panics_is_unblocked_once() {
    let log = Log::default();
    let wait = Wait::new(Unblockable(log.clone()));
    assert!(catch_unwind(AssertUnwindSafe(|| wait.wait())).is_err());
    assert_eq!(entries(&log), ["block", "unblock", "cancel"]);
}
