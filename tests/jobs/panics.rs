//! User code in every place where it runs: an `Ord` that panics at every possible comparison, drops
//! that panic or call the queue, wakers that panic, waits that are dropped.

use std::cell::Cell;
use std::cmp::Ordering;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering as Memory};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use conversant::job_queue::{JobQueue, Place, Scope};
use conversant::limit::Limit;

thread_local! {
    /// Comparisons until one panics; 0: none does.
    static FUSE: Cell<u32> = const { Cell::new(0) };
}

#[derive(Debug, PartialEq, Eq)]
struct Fused(u32);

impl PartialOrd for Fused {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fused {
    fn cmp(&self, other: &Self) -> Ordering {
        let left = FUSE.get();
        FUSE.set(left.saturating_sub(1));
        if left == 1 {
            resume_unwind(Box::new("a comparison"));
        }
        self.0.cmp(&other.0)
    }
}

type Fusing = JobQueue<Fused, u32>;

fn place(n: u32) -> Place {
    match n % 3 {
        0 => Place::new(),
        group => Place::new().group(u64::from(group)),
    }
}

fn stage() -> Fusing {
    let queue = JobQueue::builder()
        .group_limit(Limit::AtMost(2))
        .build()
        .unwrap();
    let key = |n: u32| Fused(n * 5 % 16);
    queue
        .push_all((0..16).map(|n| (key(n), n, place(n))))
        .unwrap();
    drop(queue.try_claim(5));
    queue
}

/// Claims and completes all jobs one by one; returns their order.
fn drain(queue: &Fusing) -> Vec<u32> {
    std::iter::from_fn(|| {
        let claim = queue.try_claim(1).pop()?;
        let number = *claim;
        claim.complete().unwrap();
        Some(number)
    })
    .collect()
}

/// For a fuse of every length: `act` panics, and nothing has changed.
fn changes_nothing(act: impl Fn(&Fusing)) {
    let untouched = drain(&stage());
    for fuse in 1.. {
        let queue = stage();
        let before = queue.snapshot();
        FUSE.set(fuse);
        let panicked = catch_unwind(AssertUnwindSafe(|| act(&queue))).is_err();
        FUSE.set(0);
        if !panicked {
            assert!(fuse > 1, "{fuse}");
            return;
        }
        assert_eq!(queue.snapshot(), before);
        assert_eq!(drain(&queue), untouched);
    }
}

#[test]
fn an_ord_that_panics_fails_a_push_alone() {
    changes_nothing(|queue| _ = queue.push(Fused(3), 99, place(1)).unwrap());
}

#[test]
fn an_ord_that_panics_fails_a_whole_batch() {
    let batch = || (0..6).map(|n| (Fused(n * 3), 90 + n, place(n)));
    changes_nothing(|queue| _ = queue.push_all(batch()).unwrap());
}

#[test]
fn an_ord_that_panics_fails_a_claim_alone() {
    changes_nothing(|queue| {
        let claims = queue.try_claim(7);
        FUSE.set(0);
        drop(claims);
    });
}

#[test]
fn an_ord_that_panics_fails_the_claim_of_one_alone() {
    changes_nothing(|queue| {
        let claim = queue.try_claim_one();
        FUSE.set(0);
        drop(claim);
    });
}

#[test]
fn an_ord_that_panics_fails_a_wait_that_can_be_polled_again() {
    changes_nothing(|queue| {
        let claims = queue.claim(7).wait().unwrap();
        FUSE.set(0);
        drop(claims);
    });
}

#[test]
fn ending_and_giving_back_compare_nothing() {
    let queue = stage();
    let mut claims = queue.try_claim(6);
    FUSE.set(1);
    claims.remove(0).complete().unwrap();
    claims.remove(0).give_back().unwrap();
    claims.remove(0).fail().unwrap();
    claims
        .remove(0)
        .give_back_at(Duration::from_secs(1))
        .unwrap();
    drop(claims);
    queue.set_limit(Scope::Queue, Limit::AtMost(9)).unwrap();
    queue.advance(Duration::from_secs(2));
    assert_eq!(queue.shutdown().len(), 15);
    assert_eq!(FUSE.replace(0), 1);
}

/// Calls the queue when it is dropped, and may panic.
struct Dropped {
    queue: std::sync::Weak<JobQueue<u32, Dropped>>,
    panics: bool,
}

impl Drop for Dropped {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.upgrade() {
            let _ = queue.counts();
        }
        if self.panics {
            resume_unwind(Box::new("a drop"));
        }
    }
}

#[test]
fn a_drop_may_call_the_queue_and_may_panic() {
    let queue = Arc::new(JobQueue::new());
    let job = |panics| Dropped {
        queue: Arc::downgrade(&queue),
        panics,
    };
    for n in 0..4 {
        queue
            .push(n, job(n % 2 == 0), Place::new().group("g"))
            .unwrap();
    }
    for _ in 0..2 {
        let panics = queue.try_claim(1).remove(0);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(panics.complete()))).is_err());
        // The job is completed all the same, and its group goes on.
        queue.try_claim(1).remove(0).complete().unwrap();
    }
    assert_eq!((queue.counts().ready, queue.counts().claimed), (0, 0));
    queue.push(1, job(false), Place::new()).unwrap();
    assert!(queue.shutdown().pop().is_some());
    let refused = queue.push(1, job(false), Place::new());
    drop(refused);
}

/// Counts how often it is woken, and may panic or call the queue.
struct Woken {
    times: AtomicUsize,
    queue: JobQueue<u32, u32>,
    panics: bool,
}

impl Woken {
    fn new(queue: &JobQueue<u32, u32>, panics: bool) -> Arc<Self> {
        Arc::new(Self {
            times: AtomicUsize::new(0),
            queue: queue.clone(),
            panics,
        })
    }

    fn times(&self) -> usize {
        self.times.load(Memory::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.times.fetch_add(1, Memory::SeqCst);
        let _ = self.queue.snapshot();
        if self.panics {
            resume_unwind(Box::new("a waker"));
        }
    }
}

fn poll<F: Future + Unpin>(wait: &mut F, waker: &Arc<Woken>) -> Poll<F::Output> {
    let waker = Waker::from(waker.clone());
    Pin::new(wait).poll(&mut Context::from_waker(&waker))
}

#[test]
fn one_is_woken_for_each_job_and_a_dropped_wait_passes_it_on() {
    let queue = JobQueue::new();
    let wakers = [(); 3].map(|()| Woken::new(&queue, false));
    let mut waits = [1, 2, 3].map(|n| queue.claim(n));
    for (wait, waker) in waits.iter_mut().zip(&wakers) {
        assert!(poll(wait, waker).is_pending());
    }
    let times = || [0, 1, 2].map(|n| wakers[n].times());
    queue.push(1, 1, Place::new().group("g")).unwrap();
    assert_eq!(times(), [1, 0, 0]);
    queue.push(2, 2, Place::new().group("g")).unwrap();
    assert_eq!(times(), [1, 0, 0], "blocked, it wakes nobody");
    let [first, mut second, third] = waits;
    drop(first);
    assert_eq!(times(), [1, 1, 0]);
    let Poll::Ready(Ok(mut claims)) = poll(&mut second, &wakers[1]) else {
        panic!("there is a job")
    };
    assert_eq!(claims.len(), 1);
    claims.remove(0).complete().unwrap();
    assert_eq!(times(), [1, 1, 1]);
    drop(third);
    let snapshot = queue.snapshot();
    assert_eq!(
        (
            snapshot.counts.claims.waiting,
            snapshot.counts.claims.notified
        ),
        (0, 0)
    );
}

#[test]
fn a_waker_that_panics_keeps_no_other_from_being_woken() {
    let queue = JobQueue::new();
    let (bad, good) = (Woken::new(&queue, true), Woken::new(&queue, false));
    let mut waits = [1, 1].map(|n| queue.claim(n));
    assert!(poll(&mut waits[0], &bad).is_pending());
    assert!(poll(&mut waits[1], &good).is_pending());
    let jobs = [1, 2].map(|n| (n, n, Place::new()));
    assert_eq!(queue.push_all(jobs).unwrap().len(), 2);
    assert_eq!((bad.times(), good.times()), (1, 1));
    assert!(poll(&mut waits[1], &good).is_ready());
    assert_eq!(queue.counts().ready, 2, "its claims were dropped");
}
