//! Waits for dead jobs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use conversant::error::Closed;
use conversant::job_queue::{JobQueue, Place};

#[derive(Default)]
struct WakeCounter(AtomicUsize);

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl WakeCounter {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn poll<F: Future + Unpin>(self: &Arc<Self>, wait: &mut F) -> Poll<F::Output> {
        let waker = Waker::from(self.clone());
        Pin::new(wait).poll(&mut Context::from_waker(&waker))
    }
}

#[test]
fn each_dead_job_is_reported_once() {
    let queue = JobQueue::builder().attempts(1).build().unwrap();
    let push = |key: u32| queue.push(key, key, Place::new()).unwrap();
    let die = || assert!(queue.try_claim(1).remove(0).fail().unwrap());
    let wakes = Arc::new(WakeCounter::default());
    let mut waits = [(); 3].map(|()| queue.next_dead());
    // One dies before any wait, and one is removed before a wait reports it.
    let [first, gone] = [push(1), push(2)];
    die();
    die();
    queue.remove(gone).unwrap();
    assert_eq!(wakes.poll(&mut waits[0]), Poll::Ready(Ok(first)));
    for wait in &mut waits[1..] {
        assert!(wakes.poll(wait).is_pending());
    }
    let second = push(3);
    die();
    assert_eq!(wakes.count(), 1);
    // A woken wait that gives up passes the report on.
    let [_, woken, mut last] = waits;
    drop(woken);
    assert_eq!(wakes.count(), 2);
    assert_eq!(wakes.poll(&mut last), Poll::Ready(Ok(second)));
    // Dead again, the job is reported again.
    queue.requeue(first).unwrap();
    die();
    assert_eq!(queue.next_dead().wait(), Ok(first));
    assert_eq!(queue.dead(), [second, first]);
    // The end.
    let held = [push(4), push(5)].map(|_| queue.try_claim(1).remove(0));
    queue.close();
    let mut waits = [(); 2].map(|()| queue.next_dead());
    for wait in &mut waits {
        assert!(wakes.poll(wait).is_pending());
    }
    let [lasts, completed] = held;
    completed.complete().unwrap();
    assert_eq!(wakes.count(), 2);
    let dead = lasts.id();
    lasts.fail().unwrap();
    assert_eq!(wakes.count(), 4);
    assert_eq!(wakes.poll(&mut waits[1]), Poll::Ready(Ok(dead)));
    assert_eq!(wakes.poll(&mut waits[0]), Poll::Ready(Err(Closed)));
}

/// Nobody can list it any more: the claim keeps only its own job.
#[test]
fn a_dead_job_goes_with_its_queue() {
    let (queue, job) = (JobQueue::new(), Arc::new(()));
    for key in 0..2 {
        queue.push(key, Arc::clone(&job), Place::new()).unwrap();
    }
    queue.try_claim(1).remove(0).fail_for_good().unwrap();
    let claimed = queue.try_claim(1).remove(0).into_owned();
    drop(queue);
    assert_eq!(Arc::strong_count(&job), 2);
    drop(claimed);
    assert_eq!(Arc::strong_count(&job), 1);
}
