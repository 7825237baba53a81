//! `Session` and `WakeBatch`: no user code runs under the lock, and a panic keeps no waiter asleep.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Wake, Waker};

use super::super::gate::Gate;
use super::super::{ClonedWaker, Guarded, WakeBatch};
use super::{Calls, counting};

/// Runs a closure when dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn message(result: std::thread::Result<()>) -> &'static str {
    let payload = result.expect_err("it panics");
    payload.downcast_ref::<&str>().expect("a literal")
}

/// Calls a closure when it is dropped.
impl<F: FnMut() + Send + Sync + 'static> Wake for OnDrop<F> {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn wakers_are_woken_and_dropped_unlocked() {
    let state = Arc::new(Guarded::new(0));
    let waking = state.clone();
    let waker = Calls::new(move || *waking.try_lock().expect("unlocked") += 1);
    {
        let mut session = state.lock();
        session.parts().1.push(Waker::from(waker.clone()));
        let dropping = state.clone();
        let dropped = OnDrop(move || *dropping.try_lock().expect("unlocked") += 10);
        session.discard_waker(Some(Waker::from(Arc::new(dropped))));
        *session += 100;
        assert_eq!(waker.count(), 0);
    }
    assert_eq!(*state.lock(), 111);
}

#[test]
fn a_waker_may_re_enter_the_structure() {
    let gate = Gate::new();
    let again = gate.clone();
    let waker = Calls::new(move || {
        again.open(1);
        drop(Gate::pass(&again));
        assert_eq!(Gate::pass(&again).wait_timeout(Default::default()), Ok(()));
    });
    let mut wait = Gate::pass(&gate);
    let waker = Waker::from(waker);
    let mut cx = std::task::Context::from_waker(&waker);
    assert!(std::future::Future::poll(std::pin::Pin::new(&mut wait), &mut cx).is_pending());
    gate.open(1);
    assert_eq!(gate.permits(), 1);
    wait.wait();
}

#[test]
fn flush_runs_what_gathered_and_locks_again() {
    let state = Arc::new(Guarded::new(0));
    let waking = state.clone();
    let waker = Calls::new(move || *waking.try_lock().expect("unlocked") += 1);
    let mut session = state.lock();
    let mut rounds = 0;
    session.repeat(|woken, wakes| {
        assert!(wakes.is_empty() && *woken == rounds * WakeBatch::BOUND);
        rounds += 1;
        if rounds < 3 {
            while !wakes.is_full() {
                wakes.push(Waker::from(waker.clone()));
            }
        }
        !wakes.is_full()
    });
    assert_eq!(*session, 2 * WakeBatch::BOUND);
    assert!(state.try_lock().is_none());
    assert!(session.parts().1.is_empty());
}

#[test]
fn flush_holds_the_lock_again_though_a_waker_panics() {
    let state = Guarded::new(0);
    let mut session = state.lock();
    let bad = Calls::new(|| panic!("bad waker"));
    session.parts().1.push(Waker::from(bad.clone()));
    session.flush();
    assert_eq!(bad.count(), 1);
    assert!(state.try_lock().is_none());
    *session += 1;
    drop(session);
    assert_eq!(*state.lock(), 1);
}

#[test]
fn all_are_woken_and_no_panic_goes_on() {
    let good = counting();
    let mut wakes = WakeBatch::new();
    wakes.push(Waker::from(Calls::new(|| panic!("first"))));
    wakes.push(Waker::from(good.clone()));
    wakes.push(Waker::from(Calls::new(|| panic!("second"))));
    wakes.push(Waker::from(good.clone()));
    assert_eq!(wakes.len(), 4);
    wakes.fire();
    assert_eq!(good.count(), 2);
    assert!(wakes.is_empty());
}

/// The payload of a waker's panic may panic, too, when it is dropped.
#[test]
fn a_payload_that_panics_stops_nobody() {
    let good = counting();
    let bad = || std::panic::panic_any(OnDrop(|| panic!("payload")));
    let mut wakes = WakeBatch::new();
    wakes.push(Waker::from(Calls::new(bad)));
    wakes.push(Waker::from(good.clone()));
    wakes.fire();
    assert_eq!(good.count(), 1);
}

/// Panics when it is dropped, and has been counted.
struct BadDrop(Arc<AtomicUsize>);

impl Wake for BadDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for BadDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
        panic!("bad drop");
    }
}

#[test]
fn wakers_that_panic_when_dropped_stop_nobody() {
    let drops = Arc::new(AtomicUsize::new(0));
    let waker = || Waker::from(Arc::new(BadDrop(drops.clone())));
    let state = Guarded::new(());
    let mut session = state.lock();
    for _ in 0..3 {
        session.discard_waker(Some(waker()));
    }
    session.parts().1.push(waker());
    drop(session);
    drop(ClonedWaker::from(waker()));
    assert_eq!(drops.load(Relaxed), 5);
}

#[test]
fn dropping_a_batch_fires_it_also_while_unwinding() {
    let good = counting();
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut wakes = WakeBatch::new();
        wakes.push(Waker::from(Calls::new(|| panic!("waker"))));
        wakes.push(Waker::from(good.clone()));
        panic!("body");
    }));
    assert_eq!(message(result), "body");
    assert_eq!(good.count(), 1);
}

#[test]
fn a_panicking_waker_leaves_the_structure_whole() {
    let gate = Gate::new();
    let bad = Waker::from(Calls::new(|| panic!("bad waker")));
    let mut wait = Gate::pass(&gate);
    let mut cx = std::task::Context::from_waker(&bad);
    assert!(std::future::Future::poll(std::pin::Pin::new(&mut wait), &mut cx).is_pending());
    gate.open(1);
    assert_eq!(gate.permits(), 1);
    wait.wait();
    assert_eq!((gate.permits(), gate.waiters()), (0, 0));
}

#[test]
fn a_replaced_waker_is_dropped_unlocked() {
    struct Owner(Arc<Gate>, Arc<AtomicUsize>);
    impl Wake for Owner {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Owner {
        fn drop(&mut self) {
            // Deadlocks if the gate is locked.
            self.0.permits();
            self.1.fetch_add(1, Relaxed);
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let gate = Gate::new();
    let mut wait = Gate::pass(&gate);
    for _ in 0..3 {
        let waker = Waker::from(Arc::new(Owner(gate.clone(), drops.clone())));
        let mut cx = std::task::Context::from_waker(&waker);
        assert!(std::future::Future::poll(std::pin::Pin::new(&mut wait), &mut cx).is_pending());
    }
    drop(wait);
    assert_eq!(drops.load(Relaxed), 3);
}
