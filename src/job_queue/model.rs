//! Loom models of a job queue: a lost wake-up shows as a deadlock, which loom
//! reports. Each prints its bound and its count of interleavings.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use super::{JobQueue, Place, PushReason};
use crate::error::Closed;
use crate::jobs::Expired;
use crate::sync::{Arc, explore, spawn};

/// Jobs 1..=n of one group with limit 1.
fn serial(n: u8) -> JobQueue<u8, u8> {
    let queue = JobQueue::new();
    queue
        .push_all((1..=n).map(|n| (n, n, Place::new().group("g"))))
        .unwrap();
    queue
}

fn claim_one(queue: &JobQueue<u8, u8>) -> Result<u8, Closed> {
    let mut claims = queue.claim(2).wait()?;
    assert_eq!(claims.len(), 1, "the limit is 1");
    let claim = claims.remove(0);
    let number = *claim;
    claim.complete().unwrap();
    Ok(number)
}

/// The first wait races the first push.
#[test]
fn a_push_wakes_a_claim() {
    explore("a_push_wakes_a_claim", None, || {
        let queue = serial(0);
        let other = queue.clone();
        let pusher = spawn(move || other.push(1, 1, Place::new()).map(drop).unwrap());
        assert_eq!(claim_one(&queue), Ok(1));
        pusher.join().unwrap();
    });
}

/// Two agents, two jobs, limit 1: the second job is eligible only when the first is done; then the
/// agent that waits is woken.
#[test]
fn a_completion_wakes_the_next_claim() {
    explore("a_completion_wakes_the_next_claim", None, || {
        let queue = serial(2);
        let other = queue.clone();
        let agent = spawn(move || claim_one(&other).unwrap());
        let mine = claim_one(&queue).unwrap();
        assert_eq!(mine + agent.join().unwrap(), 3);
    });
}

/// The last completion and the close, in either order, end a blocked claim.
#[test]
fn the_end_wakes_a_claim() {
    explore("the_end_wakes_a_claim", None, || {
        let queue = serial(1);
        let last = queue.try_claim(1).remove(0).into_owned();
        let agent = spawn(move || last.complete().unwrap());
        let other = queue.clone();
        let closer = spawn(move || other.close());
        assert_eq!(claim_one(&queue), Err(Closed));
        agent.join().unwrap();
        closer.join().unwrap();
    });
}

/// A claim that was notified, or is being notified, is dropped: the other one is woken.
#[test]
fn a_cancelled_claim_passes_its_wake_on() {
    explore("a_cancelled_claim_passes_its_wake_on", Some(3), || {
        let queue = serial(0);
        let claimer = queue.clone();
        let mut first = Box::pin(async move { claimer.claim(1).await.map(drop) });
        let mut cx = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut cx).is_pending());
        let canceller = spawn(move || drop(first));
        let other = queue.clone();
        let pusher = spawn(move || other.push(1, 1, Place::new()).map(drop).unwrap());
        assert_eq!(claim_one(&queue), Ok(1));
        canceller.join().unwrap();
        pusher.join().unwrap();
        let snapshot = queue.snapshot();
        assert_eq!(
            (
                snapshot.counts.claims.waiting,
                snapshot.counts.claims.notified
            ),
            (0, 0)
        );
    });
}

/// A completion races the end of its lease: either the job is done, or the completion was late and
/// the other agent has the job; never both. Without a bound it has 220,841 interleavings and
/// passes, in 100 seconds.
#[test]
fn a_late_completion_is_never_also_a_return() {
    explore("a_late_completion_is_never_also_a_return", Some(3), || {
        let queue = serial(1);
        let mut claim = queue.try_claim(1).remove(0).into_owned();
        claim.extend(Duration::from_secs(1)).unwrap();
        let agent = spawn(move || claim.complete());
        let other = queue.clone();
        let clock = spawn(move || {
            other.advance(Duration::from_secs(1));
            other.close();
        });
        let again = claim_one(&queue);
        match agent.join().unwrap() {
            Ok(_) => assert_eq!(again, Err(Closed)),
            Err(Expired) => assert_eq!(again, Ok(1)),
        }
        clock.join().unwrap();
    });
}

/// A drop, after which the job waits again, wakes a waiting claim.
#[test]
fn a_drop_wakes_a_claim() {
    explore("a_drop_wakes_a_claim", None, || {
        let queue = serial(1);
        let claim = queue.try_claim(1).remove(0).into_owned();
        let agent = spawn(move || drop(claim));
        assert_eq!(claim_one(&queue), Ok(1));
        agent.join().unwrap();
    });
}

/// A capacity of 2, one unit taken: a push that is refused for its name takes none at any moment.
#[test]
fn a_refused_push_takes_no_room() {
    explore("a_refused_push_takes_no_room", Some(3), || {
        let queue = JobQueue::builder().capacity(2).build().unwrap();
        let once = || Place::new().unique(1);
        let id = queue.push(1, 1, once()).unwrap();
        let queue: JobQueue<u8, u8> = queue;
        let other = queue.clone();
        let refused = spawn(move || other.push(2, 2, once()).unwrap_err().reason);
        queue.push(3, 3, Place::new()).unwrap();
        assert_eq!(refused.join().unwrap(), PushReason::Duplicate(id));
    });
}

/// A completion and the wait for the room that it makes, in either order.
#[test]
fn a_completion_wakes_a_push() {
    explore("a_completion_wakes_a_push", Some(3), || {
        let queue = JobQueue::builder().capacity(1).build().unwrap();
        queue.push(1, 1, Place::new()).unwrap();
        let queue: JobQueue<u8, u8> = queue;
        let claim = queue.try_claim(1).remove(0).into_owned();
        let agent = spawn(move || claim.complete().map(drop).unwrap());
        queue.push_wait(2, 2, Place::new()).wait().unwrap();
        assert_eq!(claim_one(&queue), Ok(2));
        agent.join().unwrap();
        assert_eq!(queue.room(), Some(1));
    });
}

/// A batch that is refused for its names takes no room that another push is refused for.
#[test]
fn a_refused_batch_takes_no_room() {
    explore("a_refused_batch_takes_no_room", None, || {
        let queue: JobQueue<u8, u8> = JobQueue::builder().capacity(2).build().unwrap();
        let other = queue.clone();
        let refused = spawn(move || {
            let twice = [1, 2].map(|n| (n, n, Place::new().unique("twice")));
            other.push_all(twice).map(drop).unwrap_err().reason
        });
        assert!(queue.push(3, 3, Place::new()).is_ok());
        let reason = refused.join().unwrap();
        assert!([PushReason::DuplicateInBatch, PushReason::Full].contains(&reason));
    });
}
