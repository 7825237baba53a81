//! Several tickers of one thing: times count from the origin of the first. And what wakes a ticker.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use conversant::job_queue::{JobQueue, Place};
use conversant::limit::Limit;
use conversant::queue::Queue;
use conversant::ticker::{Timed, keep_time};

use crate::count::Count;

const SOON: Duration = Duration::from_millis(2);
const HOUR: Duration = Duration::from_secs(3600);

/// The first ticker began ten seconds ago. For one that counts from now, time would stand still for
/// as long.
#[test]
fn a_later_origin_does_not_stop_the_time() {
    let queue = Queue::builder().back_off(SOON, SOON).build().unwrap();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    lane.conversation().unwrap().send("created").unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let mut sleeps = Duration::ZERO;
    let now = Instant::now();
    let before = now.checked_sub(Duration::from_secs(10)).unwrap();
    for origin in [before, now] {
        let sleep = |length| {
            sleeps = length;
            std::future::pending::<()>()
        };
        let mut kept = pin!(keep_time(&queue, origin, sleep));
        assert!(kept.as_mut().poll(&mut cx).is_pending());
        // The first delivery fails meanwhile.
        if let Ok(mut turn) = queue.try_receive() {
            drop(turn.next());
        }
    }
    assert!(sleeps <= SOON, "it sleeps for {sleeps:?}");
}

/// A lease would end, and a delay be over, by the difference.
#[test]
fn an_earlier_origin_cuts_nothing_short() {
    let jobs = JobQueue::builder().lease(HOUR).build().unwrap();
    let now = Instant::now();
    let earlier = now.checked_sub(2 * HOUR).unwrap();
    let never = |_| std::future::pending::<()>();
    let mut cx = Context::from_waker(Waker::noop());
    let _first = keep_time(jobs.clone(), now, never);
    jobs.push(1, "job", Place::new()).unwrap();
    let claim = jobs.try_claim_one().unwrap();
    let mut second = pin!(keep_time(jobs.clone(), earlier, never));
    assert!(second.as_mut().poll(&mut cx).is_pending());
    assert!(claim.holds() && jobs.now() < HOUR);
    claim.complete().unwrap();
}

/// Each claim sets a date, and each completion takes it away.
#[test]
fn a_ticker_that_knows_the_end_of_a_lease_sleeps_through_later_claims() {
    let jobs = JobQueue::builder().lease(HOUR).build().unwrap();
    let (count, waker) = Count::new();
    let mut cx = Context::from_waker(&waker);
    let work = || {
        jobs.push(1, "job", Place::new()).unwrap();
        jobs.try_claim_one().unwrap().complete().unwrap();
    };
    let mut kept = pin!(keep_time(&jobs, Instant::now(), |_| {
        std::future::pending::<()>()
    }));
    assert!(kept.as_mut().poll(&mut cx).is_pending());
    jobs.push(1, "job", Place::new()).unwrap();
    let claim = jobs.try_claim_one().unwrap();
    assert_eq!(count.get(), 1, "the first date");
    assert!(kept.as_mut().poll(&mut cx).is_pending());
    claim.complete().unwrap();
    for _ in 0..3 {
        work();
    }
    assert_eq!(count.get(), 1);
}

/// A wait for any date has gone, so only earlier ones than an hour count.
#[test]
fn a_wait_that_is_gone_makes_no_date_count() {
    let jobs = JobQueue::new();
    let (count, waker) = Count::new();
    let mut cx = Context::from_waker(&waker);
    for known in [None, Some(HOUR)] {
        let mut earlier = pin!(jobs.next_due(known));
        assert!(earlier.as_mut().poll(&mut cx).is_pending());
        if known.is_some() {
            jobs.push(1, "job", Place::new().due(2 * HOUR)).unwrap();
            assert_eq!(count.get(), 0);
        }
    }
}
