//! What the semaphore's tests share.

#![allow(dead_code, reason = "each test program uses some of it")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use conversant::limit::Bypass;
use conversant::semaphore::{AcquireError, Permit, Semaphore};
use conversant::wait::WaiterState;

pub(crate) type Borrowed<'a> = Permit<&'a Semaphore>;
pub(crate) type Outcome<'a> = Result<Borrowed<'a>, AcquireError>;

/// A waker that counts.
#[derive(Default)]
pub(crate) struct WakeCounter(AtomicUsize);

impl WakeCounter {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A wait that the test polls.
pub(crate) struct PolledWait<'a> {
    wait: Pin<Box<dyn Future<Output = Outcome<'a>> + Send + 'a>>,
    pub(crate) wakes: Arc<WakeCounter>,
}

impl<'a> PolledWait<'a> {
    pub(crate) fn new(semaphore: &'a Semaphore, count: u32) -> Self {
        Self {
            wait: Box::pin(semaphore.acquire(count)),
            wakes: Arc::default(),
        }
    }

    /// A wait that was polled once and is pending.
    pub(crate) fn waiting(semaphore: &'a Semaphore, count: u32) -> Self {
        let mut polled = Self::new(semaphore, count);
        assert!(polled.poll().is_pending());
        polled
    }

    pub(crate) fn poll(&mut self) -> Poll<Outcome<'a>> {
        let waker = Waker::from(self.wakes.clone());
        self.wait.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// Its result, after it was woken.
    pub(crate) fn woken(&mut self) -> Outcome<'a> {
        assert!(self.wakes.count() > 0, "it has been woken");
        match self.poll() {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => panic!("it is ready"),
        }
    }
}

pub(crate) fn semaphore(limit: u32, bypass: Bypass) -> Semaphore {
    Semaphore::new(limit).unwrap().with_bypass(bypass)
}

/// A strictly FIFO semaphore.
pub(crate) fn strict(limit: u32) -> Semaphore {
    semaphore(limit, Bypass::AtMost(0))
}

pub(crate) fn take(semaphore: &Semaphore, count: u32) -> Borrowed<'_> {
    semaphore.try_acquire(count).unwrap()
}

pub(crate) fn refusal(semaphore: &Semaphore, count: u32) -> AcquireError {
    semaphore.try_acquire(count).unwrap_err()
}

/// Count and state of each queued waiter.
pub(crate) fn line(semaphore: &Semaphore) -> Vec<(u32, WaiterState)> {
    let waiters = semaphore.snapshot().waiters;
    waiters.iter().map(|w| (w.count, w.state)).collect()
}

/// All permits are back and no waiter is left.
#[track_caller]
pub(crate) fn assert_idle(semaphore: &Semaphore, limit: u32) {
    let snapshot = semaphore.snapshot();
    assert_eq!(snapshot.limit, limit);
    assert_eq!(snapshot.available, i64::from(limit));
    assert_eq!(semaphore.available(), i64::from(limit));
    assert!(snapshot.waiters.is_empty(), "{snapshot:?}");
    assert_eq!(snapshot.overtakings, 0);
}

/// Runs `act` when `count` waiters are queued.
pub(crate) fn when_waiting(semaphore: &Semaphore, count: usize) {
    while semaphore.snapshot().waiters.len() < count {
        std::thread::yield_now();
    }
}
