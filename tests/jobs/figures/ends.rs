//! How a claim, a job and a queue end: leases, dead letters, close.

use conversant::error::Closed;
use conversant::job_queue::{Expired, PushReason, Refused, Why};

use super::*;

#[test]
fn a_lease_can_be_extended_and_given_to_one_without() {
    let queue = Queue::new();
    let id = queue.push(1, 1, Place::new()).unwrap();
    let (mut claims, _) = claim(&queue, 1);
    claims[0].extend(at(5)).unwrap();
    claims[0].extend(at(7)).unwrap();
    assert_eq!(queue.advance(at(6)), Some(at(7)));
    assert_eq!(queue.why(id), Some(Why::Claimed(Some(at(7)))));
    assert_eq!(queue.advance(at(7)), None);
    assert_eq!(claims[0].extend(at(9)), Err(Expired));
}

#[test]
fn failing_too_often_is_death_and_a_requeue_life() {
    let queue = JobQueue::builder().attempts(3).build().unwrap();
    let id = queue.push(1, 1, Place::new().group("g")).unwrap();
    for attempt in 1..=3 {
        let mut claims = queue.try_claim(1);
        assert_eq!(claims[0].attempt(), attempt);
        assert_eq!(claims.remove(0).fail(), Ok(attempt == 3));
    }
    assert_eq!((queue.dead(), queue.why(id)), (vec![id], Some(Why::Dead)));
    assert!(queue.try_claim(1).is_empty());
    queue.requeue(id).unwrap();
    assert_eq!(queue.requeue(id), Err(Refused::Alive));
    let mut claims = queue.try_claim(1);
    assert_eq!(claims[0].attempt(), 1);
    assert_eq!(queue.remove(id), Err(Refused::Claimed));
    claims.remove(0).complete().unwrap();
    assert_eq!(queue.remove(id), Err(Refused::Stale));
    assert_eq!(queue.get(id), None);
    is_idle(&queue);
}

#[test]
fn giving_back_never_kills_but_drops_panics_and_leases_do() {
    let queue = JobQueue::builder().attempts(1).build().unwrap();
    let id = queue.push(1, 1, Place::new()).unwrap();
    for _ in 0..9 {
        queue.try_claim(1).remove(0).give_back().unwrap();
    }
    drop(claim(&queue, 1));
    assert_eq!(queue.dead(), [id]);
    queue.requeue(id).unwrap();
    let handler = std::panic::AssertUnwindSafe(|| {
        let _claims = queue.try_claim(1);
        std::panic::resume_unwind(Box::new("the handler"));
    });
    assert!(std::panic::catch_unwind(handler).is_err());
    assert_eq!(queue.dead(), [id]);
    queue.requeue(id).unwrap();
    let _late = crate::until(queue.try_claim(1), at(1));
    queue.advance(at(1));
    assert_eq!(queue.dead(), [id]);
    assert_eq!(queue.remove(id).unwrap().job, 1);
    is_idle(&queue);
}

#[test]
fn close_drains_and_shutdown_gives_all_back() {
    let (queue, ids) = twelve(Limit::SERIAL);
    let (claims, _) = claim(&queue, 2);
    queue.close();
    let refused = queue.push(1, 77, Place::new()).unwrap_err();
    assert_eq!(refused.content, (1, 77));
    let refused = queue.push_all([(1, 1, Place::new()), (2, 3, Place::new())]);
    assert_eq!(refused.unwrap_err().content, [(1, 1), (2, 3)]);
    let rest = queue.shutdown();
    assert_eq!(
        rest.iter().map(|taken| taken.key).collect::<Vec<_>>(),
        (3..=12).collect::<Vec<_>>()
    );
    drop(claims);
    assert_eq!(
        queue.why(ids[0]),
        Some(Why::Ready),
        "what comes back can be claimed"
    );
    let again = queue.claim(9).wait().unwrap();
    assert_eq!(numbers(&again), [1, 2]);
    again
        .into_iter()
        .for_each(|claim| _ = claim.complete().unwrap());
    assert!(matches!(queue.claim(1).wait(), Err(Closed)));
    is_idle(&queue);
}

#[test]
fn claims_outlive_the_queue() {
    let (queue, _) = twelve(Limit::SERIAL);
    let claims = queue.try_claim(3).into_iter();
    let [first, second, third] = claims
        .map(Claim::into_owned)
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    assert_eq!(queue.counts().claimed, 3);
    drop(queue);
    first.complete().unwrap();
    second.give_back().unwrap();
    assert!(third.holds());
}

#[test]
fn the_last_clone_shuts_the_queue_down() {
    let (queue, _) = twelve(Limit::SERIAL);
    let other = queue.clone();
    let shop = queue.tenant("shop");
    drop(queue);
    assert!(!other.is_closed());
    shop.push(13, 13).unwrap();
    drop(other);
    let refused = shop.push(14, 14).unwrap_err();
    assert_eq!(refused.reason, PushReason::Closed);
    assert!(shop.try_claim(9).is_empty(), "what waited is gone");
}

#[test]
fn names_of_another_queue_are_stale() {
    let (queue, _) = twelve(Limit::SERIAL);
    let (_other, ids) = twelve(Limit::SERIAL);
    assert_eq!(queue.rekey(ids[0], 1), Err(Refused::Stale));
    assert_eq!(queue.remove(ids[0]), Err(Refused::Stale));
    assert_eq!((queue.why(ids[0]), queue.get(ids[0])), (None, None));
}
