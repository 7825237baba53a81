//! Several tickers of one thing: times count from the origin of the first.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use conversant::job_queue::{JobQueue, Place};
use conversant::limit::Limit;
use conversant::queue::Queue;
use conversant::ticker::keep_time;

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
