//! Several tickers of one thing: times count from the earliest of their origins.

use std::cell::RefCell;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use conversant::job_queue::{JobQueue, Place};
use conversant::limit::Limit;
use conversant::queue::Queue;
use conversant::ticker::{Ticker, keep_time};

use crate::count::Count;
use crate::finishes::finishes;

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

/// It begins and ends beside one that sleeps, and that one keeps the time of both.
#[test]
fn an_earlier_origin_counts_for_one_that_runs() {
    finishes(|| {
        let jobs = JobQueue::new();
        let now = Instant::now();
        let _ticker = Ticker::spawn(jobs.clone(), now).unwrap();
        // By its own origin the ticker sleeps for two hours.
        let due = Place::new().due(2 * HOUR + 10 * SOON);
        jobs.push(1, "soon, by the other origin", due).unwrap();
        let earlier = now.checked_sub(2 * HOUR).unwrap();
        drop(Ticker::spawn(jobs.clone(), earlier).unwrap());
        jobs.claim_one().wait().unwrap().complete().unwrap();
    });
}

/// The same for a future: it is woken, though the other one was never polled.
#[test]
fn an_earlier_origin_counts_for_a_future_that_sleeps() {
    let jobs = JobQueue::<u32, &str>::new();
    let (count, waker) = Count::new();
    let mut cx = Context::from_waker(&waker);
    let sleeps = RefCell::new(Vec::new());
    let now = Instant::now();
    let sleep = |length| {
        sleeps.borrow_mut().push(length);
        std::future::pending::<()>()
    };
    let due = Place::new().due(2 * HOUR);
    jobs.push(1, "in two hours", due).unwrap();
    let mut kept = pin!(keep_time(&jobs, now, sleep));
    assert!(kept.as_mut().poll(&mut cx).is_pending());
    let never = |_| std::future::pending::<()>();
    drop(keep_time(&jobs, now - HOUR, never));
    assert_eq!(count.get(), 1);
    assert!(kept.as_mut().poll(&mut cx).is_pending());
    let sleeps = sleeps.borrow();
    assert!(sleeps[0] > HOUR && sleeps[1] <= HOUR, "{sleeps:?}");
}
