//! PITFALLS "Semaphore": each bug that shipped elsewhere, and what happens here. Tests with many
//! threads or rounds are in `semaphore_threads`.

use crate::semaphore;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use conversant::limit::Bypass;
use conversant::semaphore::{AcquireError, Semaphore};
use conversant::wait::WaiterState;

use semaphore::{PolledWait, assert_idle, line, refusal, semaphore, strict, take};

const BYPASSES: [Bypass; 3] = [Bypass::AtMost(0), Bypass::AtMost(2), Bypass::Unbounded];

#[test]
fn a_cancelled_front_lets_the_next_go_on_at_once() {
    for bypass in BYPASSES {
        let semaphore = semaphore(2, bypass);
        let held = take(&semaphore, 1);
        let large = PolledWait::waiting(&semaphore, 2);
        let first = semaphore.try_acquire(1).ok();
        assert_eq!(first.is_some(), bypass != Bypass::AtMost(0));
        drop(first);
        semaphore.set_limit(2).unwrap();
        let mut small = semaphore.acquire(1);
        let wakes = Arc::new(semaphore::WakeCounter::default());
        let waker = Waker::from(wakes.clone());
        let mut cx = Context::from_waker(&waker);
        let polled = Pin::new(&mut small).poll(&mut cx);
        if bypass == Bypass::AtMost(0) {
            assert!(polled.is_pending());
            drop(large);
            assert_eq!(wakes.count(), 1);
            assert!(Pin::new(&mut small).poll(&mut cx).is_ready());
        } else {
            // It did not even wait: it overtook the large one, as it may.
            assert!(matches!(polled, Poll::Ready(Ok(_))));
            drop((polled, large));
        }
        drop((small, held));
        assert_idle(&semaphore, 2);
    }
}

#[test]
fn a_cancelled_front_keeps_no_part_of_what_came_back() {
    let semaphore = strict(3);
    let (one, two) = (take(&semaphore, 1), take(&semaphore, 2));
    let all = PolledWait::waiting(&semaphore, 3);
    let mut next = PolledWait::waiting(&semaphore, 2);
    drop(two);
    // Two are free, not enough for the front, which keeps them from the next.
    assert_eq!(semaphore.available(), 2);
    assert_eq!(next.wakes.count(), 0);
    drop(all);
    assert_eq!(next.woken().unwrap().count(), 2);
    drop(one);
    assert_idle(&semaphore, 3);
}

#[test]
fn a_grant_that_is_dropped_goes_to_the_next() {
    let semaphore = strict(2);
    let held = take(&semaphore, 2);
    let granted = PolledWait::waiting(&semaphore, 2);
    let mut next = PolledWait::waiting(&semaphore, 1);
    drop(held);
    assert_eq!(line(&semaphore)[0], (2, WaiterState::Granted));
    assert_eq!(semaphore.available(), 0);
    drop(granted);
    assert_eq!(next.woken().unwrap().count(), 1);
    assert_idle(&semaphore, 2);
}

#[test]
fn closed_stays_closed() {
    let semaphore = semaphore(4, Bypass::default());
    let (one, two) = (take(&semaphore, 1), take(&semaphore, 2));
    semaphore.close();
    one.forget();
    semaphore.set_limit(1).unwrap();
    semaphore.set_limit(1_000).unwrap();
    drop(two);
    semaphore.close();
    assert!(semaphore.is_closed());
    for count in [0, 1, 2_000] {
        assert_eq!(refusal(&semaphore, count), AcquireError::Closed);
        let outcome = semaphore.acquire(count).wait();
        assert_eq!(outcome.unwrap_err(), AcquireError::Closed);
    }
    assert_idle(&semaphore, 1_000);
}

#[test]
fn growing_pays_the_debt_first() {
    let semaphore = semaphore(5, Bypass::default());
    let mut held = take(&semaphore, 5);
    semaphore.set_limit(2).unwrap();
    assert_eq!(semaphore.available(), -3);
    semaphore.set_limit(4).unwrap();
    assert_eq!(semaphore.available(), -1);
    assert_eq!(refusal(&semaphore, 1), AcquireError::NoPermits);
    // A permit that is released pays, too.
    drop(held.split(1));
    assert_eq!(semaphore.available(), 0);
    semaphore.set_limit(5).unwrap();
    assert_eq!(take(&semaphore, 1).count(), 1);
    drop(held);
    assert_idle(&semaphore, 5);
}

#[test]
fn a_front_that_became_impossible_fails_and_blocks_nobody() {
    for bypass in BYPASSES {
        let semaphore = semaphore(3, bypass);
        let mut held = take(&semaphore, 3);
        let mut first = PolledWait::waiting(&semaphore, 3);
        let mut small = PolledWait::waiting(&semaphore, 1);
        let mut second = PolledWait::waiting(&semaphore, 2);
        drop(held.split(2));
        assert_eq!(small.wakes.count(), 0);
        semaphore.set_limit(2).unwrap();
        assert_eq!(first.woken().unwrap_err(), AcquireError::AboveLimit);
        let one = small.woken().unwrap();
        semaphore.set_limit(1).unwrap();
        assert_eq!(second.woken().unwrap_err(), AcquireError::AboveLimit);
        drop((one, held));
        assert_idle(&semaphore, 1);
    }
}

#[test]
fn more_than_the_limit_fails_at_once() {
    let semaphore = semaphore(2, Bypass::default());
    let _held = take(&semaphore, 2);
    assert_eq!(refusal(&semaphore, 3), AcquireError::AboveLimit);
    assert_eq!(
        semaphore.acquire(3).wait().unwrap_err(),
        AcquireError::AboveLimit
    );
    assert_eq!(refusal(&semaphore, u32::MAX), AcquireError::AboveLimit);
    semaphore.set_limit(0).unwrap();
    assert_eq!(refusal(&semaphore, 3), AcquireError::NoPermits);
}

/// One thread releases and acquires at once, again and again, while another waits.
#[test]
fn a_loop_of_release_and_acquire_does_not_starve_a_waiter() {
    for most in [0, 1, 7] {
        let semaphore = semaphore(1, Bypass::AtMost(most));
        let mut held = Some(take(&semaphore, 1));
        let mut waiter = PolledWait::waiting(&semaphore, 1);
        let mut overtakings = 0;
        loop {
            drop(held.take());
            held = semaphore.try_acquire(1).ok();
            if held.is_none() {
                break;
            }
            overtakings += 1;
        }
        assert_eq!(overtakings, most);
        assert_eq!(waiter.woken().unwrap().count(), 1);
        assert_idle(&semaphore, 1);
    }
}

/// Small requests keep coming, and one is always granted; the large one waits.
#[test]
fn a_stream_of_small_ones_does_not_starve_a_large_one() {
    for most in [0, 1, 7] {
        let semaphore = semaphore(4, Bypass::AtMost(most));
        let mut small: std::collections::VecDeque<_> =
            (0..4).map(|_| take(&semaphore, 1)).collect();
        let mut large = PolledWait::waiting(&semaphore, 4);
        let mut overtakings = 0;
        while let Some(oldest) = small.pop_front() {
            drop(oldest);
            if let Ok(permit) = semaphore.try_acquire(1) {
                small.push_back(permit);
                overtakings += 1;
            }
        }
        assert_eq!(overtakings, most);
        assert_eq!(large.woken().unwrap().count(), 4);
        assert_idle(&semaphore, 4);
    }
}

/// A waker that does everything to its semaphore when it is woken and dropped, and counts the calls
/// that began and did not return: its panics stay within the semaphore.
struct Reenters(Arc<Semaphore>, Arc<AtomicUsize>);

impl Reenters {
    fn meddle(&self) {
        self.1.fetch_add(1, SeqCst);
        drop(self.0.try_acquire(1));
        drop(PolledWait::new(&self.0, 1).poll());
        drop(self.0.acquire(1).wait_timeout(std::time::Duration::ZERO));
        let limit = self.0.snapshot().limit;
        self.0.set_limit(limit + 1).unwrap();
        self.0.set_limit(limit).unwrap();
        self.1.fetch_sub(1, SeqCst);
    }
}

impl Wake for Reenters {
    fn wake(self: Arc<Self>) {
        self.meddle();
    }
}

impl Drop for Reenters {
    fn drop(&mut self) {
        self.meddle();
    }
}

#[test]
fn a_waker_may_re_enter() {
    for bypass in BYPASSES {
        let semaphore = Arc::new(semaphore(2, bypass));
        let stuck = Arc::new(AtomicUsize::new(0));
        let poll = |wait: &mut (dyn Future<Output = _> + Unpin)| {
            let waker = Waker::from(Arc::new(Reenters(semaphore.clone(), stuck.clone())));
            let polled = Pin::new(wait).poll(&mut Context::from_waker(&waker));
            polled.is_ready()
        };
        let held = take(&semaphore, 2);
        let mut waits = [1, 2, 1].map(|count| Semaphore::acquire_owned(semaphore.clone(), count));
        for wait in &mut waits {
            assert!(!poll(wait));
            // Replaces the waker, and drops the old one.
            assert!(!poll(wait));
        }
        drop(held);
        let [first, second, third] = waits;
        drop(first);
        semaphore.set_limit(1).unwrap();
        drop(second);
        semaphore.close();
        drop(third);
        assert_eq!(stuck.load(SeqCst), 0);
        assert_idle(&semaphore, 1);
    }
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("waker");
    }
}

/// A waker that panics stops no other: the caller that woke it goes on, and all others are woken,
/// however many there are.
#[test]
fn a_waker_may_panic() {
    type Act = fn(&Semaphore, semaphore::Borrowed<'_>);
    let acts: [(Act, u32); 4] = [
        (|_, held| drop(held), 601),
        (|semaphore, _held| semaphore.close(), 601),
        (|semaphore, _held| semaphore.set_limit(1).unwrap(), 1),
        (|_, held| held.forget(), 1),
    ];
    for (act, limit) in acts {
        for bypass in BYPASSES {
            let semaphore = semaphore(601, bypass);
            let held = take(&semaphore, 600);
            let mut bad = semaphore.acquire(2);
            let waker = Waker::from(Arc::new(Panics));
            let mut cx = Context::from_waker(&waker);
            assert!(Pin::new(&mut bad).poll(&mut cx).is_pending());
            let mut good: Vec<_> = (0..199)
                .map(|_| PolledWait::waiting(&semaphore, 2))
                .collect();
            act(&semaphore, held);
            for polled in &mut good {
                assert_eq!(polled.wakes.count(), 1);
                assert!(polled.poll().is_ready());
            }
            drop((bad, good));
            assert_idle(&semaphore, limit);
        }
    }
}

/// Two futures of one task, of which only the later is polled: it waits forever behind the first.
/// The snapshot names the first, and where that one comes from.
#[test]
fn a_waiter_that_is_never_polled_is_named() {
    let semaphore = strict(1);
    let held = take(&semaphore, 1);
    let forgotten = PolledWait::waiting(&semaphore, 1);
    let mut polled = PolledWait::waiting(&semaphore, 1);
    drop(held);
    assert!(polled.poll().is_pending());
    let snapshot = semaphore.snapshot();
    assert_eq!(snapshot.waiters[0].state, WaiterState::Granted);
    assert_eq!(snapshot.waiters[0].count, 1);
    assert!(snapshot.waiters[0].made_at.file().ends_with("mod.rs"));
    // Made outside of the helper, its location is this line.
    let (mut direct, here) = (semaphore.acquire(1), line!());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut direct).poll(&mut cx).is_pending());
    let made_at = semaphore.snapshot().waiters[2].made_at;
    assert_eq!((made_at.file(), made_at.line()), (file!(), here));
    drop(forgotten);
    assert!(polled.woken().is_ok());
}

/// It keeps what it asked for from others, and nothing else.
#[test]
fn a_waiter_that_is_never_polled_keeps_only_its_own() {
    for bypass in BYPASSES {
        let semaphore = semaphore(3, bypass);
        let mut held = take(&semaphore, 3);
        let forgotten = PolledWait::waiting(&semaphore, 1);
        let mut next = PolledWait::waiting(&semaphore, 1);
        let mut last = PolledWait::waiting(&semaphore, 1);
        drop(held.split(1));
        assert_eq!((next.wakes.count(), last.wakes.count()), (0, 0));
        drop(held.split(1));
        let permit = next.woken().unwrap();
        drop(held);
        assert!(last.woken().is_ok());
        drop((permit, forgotten));
        assert_idle(&semaphore, 3);
    }
}

#[test]
fn a_wait_dropped_before_its_first_poll_has_done_nothing() {
    let semaphore = strict(1);
    drop(semaphore.acquire(1));
    drop(semaphore.acquire(7));
    assert_idle(&semaphore, 1);
    let held = take(&semaphore, 1);
    let lazy = semaphore.acquire(1);
    assert!(line(&semaphore).is_empty());
    let mut waiter = PolledWait::waiting(&semaphore, 1);
    drop((lazy, held));
    assert!(waiter.woken().is_ok());
    assert_idle(&semaphore, 1);
}
