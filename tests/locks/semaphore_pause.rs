//! SEMANTICS section 5: "A limit of 0 is a pause, here as everywhere: who asks
//! waits until it rises. Requests above a limit other than 0 fail at once, also
//! those already waiting when the limit falls below them."

use crate::semaphore;

use std::thread;

use conversant::limit::Bypass;
use conversant::semaphore::{AcquireError, Semaphore};
use conversant::wait::WaiterState;

use semaphore::{PolledWait, assert_idle, line, refusal, semaphore, take, when_waiting};

const ALL: [Bypass; 3] = [Bypass::AtMost(0), Bypass::AtMost(3), Bypass::Unbounded];

/// Waiters keep their places, and their order.
#[test]
fn who_waits_goes_on_waiting() {
    for bypass in ALL {
        let semaphore = semaphore(3, bypass);
        let held = take(&semaphore, 3);
        let mut large = PolledWait::waiting(&semaphore, 3);
        let mut small = PolledWait::waiting(&semaphore, 1);
        semaphore.set_limit(0).unwrap();
        drop(held);
        assert_eq!((large.wakes.count(), small.wakes.count()), (0, 0));
        assert!(large.poll().is_pending() && small.poll().is_pending());
        let waiting = WaiterState::Waiting;
        assert_eq!(line(&semaphore), [(3, waiting), (1, waiting)]);
        semaphore.set_limit(3).unwrap();
        let all = large.woken().unwrap();
        assert!(small.poll().is_pending());
        drop(all);
        drop(small.woken().unwrap());
        assert_idle(&semaphore, 3);
    }
}

/// Also in a semaphore made with limit 0.
#[test]
fn a_request_waits_until_the_limit_rises() {
    for bypass in ALL {
        let semaphore = semaphore(0, bypass);
        assert_eq!(refusal(&semaphore, 1), AcquireError::NoPermits);
        let mut one = PolledWait::waiting(&semaphore, 1);
        let mut two = PolledWait::waiting(&semaphore, 2);
        semaphore.set_limit(3).unwrap();
        drop((one.woken().unwrap(), two.woken().unwrap()));
        assert_idle(&semaphore, 3);
    }
}

/// The limit rises, but not far enough for all: the others fail, and block none.
#[test]
fn a_request_above_the_raised_limit_fails() {
    for bypass in ALL {
        let semaphore = semaphore(0, bypass);
        let mut large = PolledWait::waiting(&semaphore, 4);
        let mut small = PolledWait::waiting(&semaphore, 3);
        semaphore.set_limit(3).unwrap();
        assert_eq!(large.woken().unwrap_err(), AcquireError::AboveLimit);
        drop(small.woken().unwrap());
        assert_idle(&semaphore, 3);
    }
}

/// "`forget` lowers the limit by what is forgotten": in the end to a pause.
#[test]
fn forgotten_down_to_a_pause() {
    let semaphore = semaphore(1, Bypass::default());
    let held = take(&semaphore, 1);
    let mut waiter = PolledWait::waiting(&semaphore, 1);
    held.forget();
    assert!(waiter.poll().is_pending());
    semaphore.set_limit(1).unwrap();
    drop(waiter.woken().unwrap());
    assert_idle(&semaphore, 1);
}

#[test]
fn a_blocked_thread_sleeps_through_it() {
    let semaphore = semaphore(1, Bypass::default());
    let held = take(&semaphore, 1);
    thread::scope(|scope| {
        let thread = scope.spawn(|| semaphore.acquire(1).wait().map(drop));
        when_waiting(&semaphore, 1);
        semaphore.set_limit(0).unwrap();
        drop(held);
        semaphore.set_limit(1).unwrap();
        assert_eq!(thread.join().unwrap(), Ok(()));
    });
    assert_idle(&semaphore, 1);
}

/// A request for 0 permits does not wait; and a close ends a pause.
#[test]
fn none_and_closed() {
    let semaphore = Semaphore::new(0).unwrap();
    assert!(semaphore.try_acquire(0).is_ok());
    let mut waiter = PolledWait::waiting(&semaphore, 1);
    semaphore.close();
    assert_eq!(waiter.woken().unwrap_err(), AcquireError::Closed);
    assert_eq!(refusal(&semaphore, 1), AcquireError::Closed);
}
