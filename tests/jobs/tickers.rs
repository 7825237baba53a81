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

/// One wait knows an hour and one no date, which is there or has gone.
#[test]
fn a_date_wakes_those_that_know_a_later_one() {
    for gone in [false, true] {
        let jobs = JobQueue::new();
        let counts = [Count::new(), Count::new()];
        let mut waits = [Some(HOUR), None].map(|known| Some(Box::pin(jobs.next_due(known))));
        for (wait, (_, waker)) in waits.iter_mut().zip(&counts) {
            let mut cx = Context::from_waker(waker);
            assert!(wait.as_mut().unwrap().as_mut().poll(&mut cx).is_pending());
        }
        waits[1] = waits[1].take().filter(|_| !gone);
        let woken = || counts.each_ref().map(|(count, _)| count.get());
        jobs.push(1, "job", Place::new().due(2 * HOUR)).unwrap();
        assert_eq!(woken(), [0, u32::from(!gone)]);
        jobs.push(1, "job", Place::new().due(SOON)).unwrap();
        assert_eq!(woken(), [1, u32::from(!gone)]);
    }
}
