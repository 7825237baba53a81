//! 100,000 wait for one semaphore: if each of them cost a step for each other waiter, the 10^10
//! steps would not end.

use std::future::Future;
use std::task::{Context, Poll, Waker};

use conversant::semaphore::Semaphore;

const CROWD: u32 = 100_000;

/// All are notified at once, and polled from the last on.
#[test]
fn told_and_polled_from_the_last_on() {
    let semaphore = Semaphore::new(CROWD).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let held = semaphore.acquire(CROWD).wait().unwrap();
    let mut waits: Vec<_> = (0..CROWD).map(|_| Box::pin(semaphore.acquire(1))).collect();
    for wait in &mut waits {
        assert!(wait.as_mut().poll(&mut cx).is_pending());
    }
    drop(held);
    let polls = waits.iter_mut().rev();
    let permits: Vec<_> = polls.map(|wait| wait.as_mut().poll(&mut cx)).collect();
    assert!(
        permits
            .iter()
            .all(|polled| matches!(polled, Poll::Ready(Ok(_))))
    );
    assert_eq!(semaphore.available(), 0);
}
