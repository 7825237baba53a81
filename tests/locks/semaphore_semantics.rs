//! SEMANTICS section 5, sentence by sentence.

use crate::semaphore;

use std::task::Poll;
use std::time::{Duration, Instant};

use conversant::error::{OutOfRange, TimedOut};
use conversant::limit::{Bypass, Limit};
use conversant::semaphore::{AcquireError, Semaphore};
use conversant::wait::WaiterState;

use semaphore::{PolledWait, assert_idle, line, refusal, semaphore, strict, take, when_waiting};

const ALL: [Bypass; 3] = [Bypass::AtMost(0), Bypass::AtMost(3), Bypass::Unbounded];

/// "Waiters are served FIFO": also where a later one would fit and an earlier one does not, in
/// whatever order they look.
#[test]
fn first_come_first_served() {
    for bypass in ALL {
        let semaphore = semaphore(3, bypass);
        let mut held = take(&semaphore, 3);
        let mut waiters = [2, 1, 1].map(|count| PolledWait::waiting(&semaphore, count));
        drop(held.split(1));
        for waiter in &mut waiters {
            assert_eq!(waiter.wakes.count(), 0);
            assert!(waiter.poll().is_pending());
        }
        drop(held.split(1));
        let [first, second, third] = &mut waiters;
        assert!(second.poll().is_pending());
        let two = first.woken().unwrap();
        drop(held);
        assert!(third.poll().is_pending());
        let one = second.woken().unwrap();
        drop(two);
        drop(third.woken().unwrap());
        drop(one);
        assert_idle(&semaphore, 3);
    }
}

/// One that is polled again keeps its place.
#[test]
fn a_place_is_kept() {
    let semaphore = semaphore(1, Bypass::AtMost(5));
    let held = take(&semaphore, 1);
    let mut first = PolledWait::waiting(&semaphore, 1);
    let mut second = PolledWait::waiting(&semaphore, 1);
    drop(held);
    let held = take(&semaphore, 1);
    // Notified, overtaken, and polled without success.
    assert!(first.poll().is_pending());
    assert!(second.poll().is_pending());
    drop(held);
    assert_eq!(
        line(&semaphore),
        [(1, WaiterState::Notified), (1, WaiterState::Waiting)]
    );
    assert!(second.poll().is_pending());
    drop(first.woken().unwrap());
    drop(second.woken().unwrap());
    assert_idle(&semaphore, 1);
}

/// "a request for n is granted whole"
#[test]
fn all_or_nothing() {
    for bypass in ALL {
        let semaphore = semaphore(4, bypass);
        let mut held = take(&semaphore, 4);
        let mut all = PolledWait::waiting(&semaphore, 4);
        for _ in 0..4 {
            assert!(all.poll().is_pending());
            assert_eq!(all.wakes.count(), 0);
            drop(held.split(1));
        }
        assert_eq!(all.woken().unwrap().count(), 4);
        assert_idle(&semaphore, 4);
    }
}

/// "a running thread may take free permits ahead of sleeping waiters, but at most
/// B times in a row", "`try_` obeys the same rule": the count begins again after each grant.
#[test]
fn overtaken_at_most_b_times_for_each_grant_ahead() {
    for most in [1u32, 2, 5] {
        let semaphore = semaphore(1, Bypass::AtMost(most));
        let mut held = Some(take(&semaphore, 1));
        let mut waiters = [(); 3].map(|()| PolledWait::waiting(&semaphore, 1));
        for (i, waiter) in waiters.iter_mut().enumerate() {
            for n in 0..most {
                drop(held.take());
                assert_eq!(semaphore.snapshot().overtakings, n);
                // One way by `try_acquire`, one by `acquire`.
                held = match n % 2 {
                    0 => Some(take(&semaphore, 1)),
                    _ => match PolledWait::new(&semaphore, 1).poll() {
                        Poll::Ready(permit) => Some(permit.unwrap()),
                        Poll::Pending => panic!("it may overtake"),
                    },
                };
                // Notified, polled without success.
                assert!(waiter.poll().is_pending());
            }
            drop(held.take());
            assert_eq!(line(&semaphore)[0], (1, WaiterState::Granted), "waiter {i}");
            assert_eq!(refusal(&semaphore, 1), AcquireError::NoPermits);
            assert!(PolledWait::new(&semaphore, 1).poll().is_pending());
            held = Some(waiter.woken().unwrap());
        }
        drop(held);
        assert_idle(&semaphore, 1);
    }
}

/// "then takers queue and releases hand over directly": a try at the bound still takes permits to
/// which no queued waiter has a right.
#[test]
fn at_the_bound_the_rest_is_free() {
    let semaphore = strict(5);
    let mut held = take(&semaphore, 4);
    let mut two = PolledWait::waiting(&semaphore, 2);
    assert_eq!(refusal(&semaphore, 1), AcquireError::NoPermits);
    drop(held.split(1));
    assert_eq!(line(&semaphore), [(2, WaiterState::Granted)]);
    drop(held.split(1));
    assert_eq!(take(&semaphore, 1).count(), 1);
    drop((two.woken(), held));
    assert_idle(&semaphore, 5);
}

/// "At most 0 is strict FIFO."
#[test]
fn at_most_zero_is_strict() {
    let semaphore = strict(2);
    let held = take(&semaphore, 1);
    let mut large = PolledWait::waiting(&semaphore, 2);
    assert_eq!(refusal(&semaphore, 1), AcquireError::NoPermits);
    let mut small = PolledWait::waiting(&semaphore, 1);
    drop(held);
    assert_eq!(semaphore.available(), 0, "handed over");
    drop(large.woken().unwrap());
    drop(small.woken().unwrap());
    assert_idle(&semaphore, 2);
}

/// "Order counts from registration": not from the call, but from the first poll.
#[test]
fn order_counts_from_the_first_poll() {
    let semaphore = strict(1);
    let held = take(&semaphore, 1);
    let mut called_first = PolledWait::new(&semaphore, 1);
    let mut polled_first = PolledWait::waiting(&semaphore, 1);
    assert!(called_first.poll().is_pending());
    drop(held);
    drop(polled_first.woken().unwrap());
    drop(called_first.woken().unwrap());
}

#[test]
fn the_default_bound_is_documented() {
    assert_eq!(Semaphore::DEFAULT_BYPASS, Bypass::AtMost(64));
    let semaphore = Semaphore::new(1).unwrap();
    let mut held = Some(take(&semaphore, 1));
    let waiter = PolledWait::waiting(&semaphore, 1);
    let mut overtakings = 0;
    loop {
        drop(held.take());
        held = semaphore.try_acquire(1).ok();
        if held.is_none() {
            break;
        }
        overtakings += 1;
    }
    assert_eq!(overtakings, 64);
    drop(waiter);
}

#[test]
fn unbounded_never_hands_over() {
    let semaphore = semaphore(1, Bypass::Unbounded);
    let mut held = Some(take(&semaphore, 1));
    let mut waiter = PolledWait::waiting(&semaphore, 1);
    for _ in 0..1_000 {
        drop(held.take());
        held = Some(take(&semaphore, 1));
    }
    drop(held);
    assert_eq!(semaphore.available(), 1);
    assert!(waiter.woken().is_ok());
}

/// "`set_limit` is exact in both directions"
#[test]
fn the_limit_is_exact() {
    let semaphore = semaphore(3, Bypass::default());
    let mut held = take(&semaphore, 3);
    let mut waiter = PolledWait::waiting(&semaphore, 1);
    // No thread holds two: the debt is two.
    semaphore.set_limit(1).unwrap();
    assert_eq!(semaphore.available(), -2);
    drop(held.split(2));
    assert_eq!((semaphore.available(), waiter.wakes.count()), (0, 0));
    semaphore.set_limit(3).unwrap();
    let one = waiter.woken().unwrap();
    assert_eq!(semaphore.available(), 1);
    semaphore.set_limit(Limit::MAX).unwrap();
    assert_eq!(semaphore.available(), i64::from(Limit::MAX) - 2);
    let most = take(&semaphore, Limit::MAX - 2);
    semaphore.set_limit(0).unwrap();
    assert_eq!(semaphore.available(), -i64::from(Limit::MAX));
    drop((most, held, one));
    assert_idle(&semaphore, 0);
}

#[test]
fn limits_beyond_the_range_are_refused() {
    let beyond = Limit::MAX + 1;
    let error = OutOfRange {
        what: "limit",
        asked: beyond,
        least: 0,
        most: Limit::MAX,
    };
    assert_eq!(Semaphore::new(beyond).unwrap_err(), error);
    let semaphore = strict(2);
    assert_eq!(semaphore.set_limit(beyond), Err(error));
    assert_idle(&semaphore, 2);
}

/// "Requests above the limit fail at once, also those already waiting when the
/// limit falls below them": a blocked thread, too.
#[test]
fn a_blocked_thread_fails_when_the_limit_falls() {
    let semaphore = strict(2);
    let held = take(&semaphore, 1);
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| semaphore.acquire(2).wait().map(drop));
        when_waiting(&semaphore, 1);
        semaphore.set_limit(1).unwrap();
        assert_eq!(blocked.join().unwrap(), Err(AcquireError::AboveLimit));
    });
    drop(held);
    assert_idle(&semaphore, 1);
}

/// "Close is sticky, waiters get a typed error, held permits stay valid": also permits that were
/// handed over and not collected.
#[test]
fn close() {
    let semaphore = strict(2);
    let mut held = take(&semaphore, 2);
    let mut granted = PolledWait::waiting(&semaphore, 1);
    let mut waiting = PolledWait::waiting(&semaphore, 2);
    drop(held.split(1));
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| semaphore.acquire(1).wait().map(drop));
        when_waiting(&semaphore, 3);
        semaphore.close();
        assert_eq!(blocked.join().unwrap(), Err(AcquireError::Closed));
    });
    assert_eq!(waiting.woken().unwrap_err(), AcquireError::Closed);
    let late = granted.woken().unwrap();
    assert_eq!(held.split(1).unwrap().count(), 1);
    drop((late, held));
    assert_idle(&semaphore, 2);
    assert!(semaphore.snapshot().closed);
}

/// "A waiter that is dropped or times out leaves no trace"
#[test]
fn a_time_out_leaves_no_trace() {
    let semaphore = strict(1);
    let held = take(&semaphore, 1);
    let begun = Instant::now();
    let outcome = semaphore.acquire(1).wait_timeout(Duration::from_millis(20));
    assert_eq!(outcome.map(drop), Err(TimedOut));
    assert!(begun.elapsed() >= Duration::from_millis(20));
    let past = Instant::now();
    assert!(semaphore.acquire(1).wait_deadline(past).is_err());
    assert!(line(&semaphore).is_empty());
    drop(held);
    assert!(semaphore.acquire(1).wait_deadline(past).is_ok());
    assert_idle(&semaphore, 1);
}

/// "whoever is now eligible is served at once"
#[test]
fn a_time_out_of_the_front_serves_the_next() {
    let semaphore = strict(2);
    let held = take(&semaphore, 1);
    std::thread::scope(|scope| {
        let large = semaphore.acquire(2);
        let large = scope.spawn(|| large.wait_timeout(Duration::from_millis(50)).map(drop));
        when_waiting(&semaphore, 1);
        // Only the time-out lets it go on.
        drop(semaphore.acquire(1).wait().unwrap());
        assert_eq!(large.join().unwrap(), Err(TimedOut));
    });
    drop(held);
    assert_idle(&semaphore, 2);
}

/// 0 permits are granted at once, whatever waits and whatever the debt.
#[test]
fn none_are_always_free() {
    let semaphore = strict(1);
    let held = take(&semaphore, 1);
    let mut waiter = PolledWait::waiting(&semaphore, 1);
    semaphore.set_limit(2).unwrap();
    semaphore.set_limit(1).unwrap();
    assert_eq!(take(&semaphore, 0).count(), 0);
    let none = semaphore.acquire(0).wait().unwrap();
    assert_eq!(semaphore.snapshot().overtakings, 0);
    drop(none);
    drop(held);
    drop(waiter.woken());
    semaphore.set_limit(0).unwrap();
    assert!(semaphore.try_acquire(0).is_ok());
}

/// A limit changes by steps as it changes to a number: waiters are served or refused, and a step
/// too far changes nothing.
#[test]
fn a_limit_in_steps() {
    let semaphore = strict(1);
    let held = take(&semaphore, 1);
    let mut waiter = PolledWait::waiting(&semaphore, 1);
    semaphore.raise(1).unwrap();
    let second = waiter.woken().unwrap();
    semaphore.lower(5);
    assert_eq!((semaphore.limit(), semaphore.available()), (0, -2));
    drop((held, second));
    let refused = semaphore.raise(u32::MAX).unwrap_err();
    let expected = OutOfRange {
        what: "limit",
        asked: u32::MAX,
        least: 0,
        most: Limit::MAX,
    };
    assert_eq!(refused, expected);
    semaphore.raise(Limit::MAX).unwrap();
    assert!(semaphore.raise(1).is_err());
    assert_idle(&semaphore, Limit::MAX);
}
