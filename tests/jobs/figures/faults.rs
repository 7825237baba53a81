//! Each fault of SEMANTICS 1D, removed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::{Context, Wake, Waker};

use conversant::job_queue::{Expired, Why};

use super::*;

#[test]
fn fault_a_second_agent_is_never_blocked_and_its_window_is_never_full_of_blocked_jobs() {
    // 12 items of one key, claim(12), limit 1: exactly 1, and then none.
    let queue = Queue::new();
    queue
        .push_all((0..12).map(|n| (n, n, Place::new().group("one"))))
        .unwrap();
    let (_held, numbers) = claim(&queue, 12);
    assert_eq!(numbers, [0]);
    assert_eq!(claim(&queue, 12).1, []);
    queue.push(99, 99, Place::new()).unwrap();
    assert_eq!(claim(&queue, 12).1, [99]);
}

#[test]
fn fault_five_of_a_then_five_of_b_give_one_each() {
    let queue = Queue::new();
    let group = |n| if n < 5 { "a" } else { "b" };
    queue
        .push_all((0..10).map(|n| (n, n, Place::new().group(group(n)))))
        .unwrap();
    assert_eq!(claim(&queue, 2).1, [0, 5]);
}

#[test]
fn fault_no_inversion_when_a_member_completes_between_two_claims() {
    let (queue, _) = twelve(Limit::SERIAL);
    let (mut claims, _) = claim(&queue, 3);
    complete(&mut claims, 1);
    // 5 is free now, and its key places it behind 4 and before 6.
    assert_eq!(claim(&queue, 3).1, [4, 5, 6]);
}

#[test]
fn fault_a_crashed_agent_does_not_block_its_group_for_ever() {
    let queue = JobQueue::builder().lease(at(30)).build().unwrap();
    queue
        .push_all((1..=2).map(|n| (n, n, Place::new().group("g"))))
        .unwrap();
    let (crashed, _) = claim(&queue, 1);
    std::mem::forget(crashed);
    assert_eq!(queue.advance(at(29)), Some(at(30)));
    assert_eq!(claim(&queue, 1).1, []);
    assert_eq!(queue.advance(at(30)), None);
    let (again, numbers) = claim(&queue, 1);
    assert_eq!((numbers, again[0].attempt()), (vec![1], 2));
}

#[test]
fn fault_a_late_finish_is_an_error_that_changes_nothing() {
    let queue = Queue::new();
    let id = queue.push(1, 1, Place::new()).unwrap();
    let mut late: Claims = (0..4)
        .flat_map(|n| {
            let claims = crate::until(queue.try_claim(1), at(n + 1));
            queue.advance(at(n + 1));
            claims
        })
        .collect();
    assert_eq!(late.len(), 4);
    let (now, _) = claim(&queue, 1);
    assert_eq!(late.remove(0).complete(), Err(Expired));
    assert_eq!(late.remove(0).give_back(), Err(Expired));
    assert_eq!(late.remove(0).fail(), Err(Expired));
    assert_eq!(late[0].extend(at(99)), Err(Expired));
    assert!(!late[0].holds() && *late[0] == 1);
    drop(late);
    assert_eq!(queue.why(id), Some(Why::Claimed(None)));
    assert!(now[0].holds());
    now.into_iter()
        .for_each(|claim| _ = claim.complete().unwrap());
    is_idle(&queue);
}

#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// As the docs say: until more jobs may run than claims have been woken, or the claim is dropped.
#[test]
fn a_woken_claim_that_is_not_polled_keeps_one_job() {
    let queue = Queue::new();
    let woken: [Arc<Woken>; 3] = Default::default();
    let mut waits = [(); 3].map(|()| queue.claim(1));
    for (wait, woken) in waits.iter_mut().zip(&woken) {
        let waker = Waker::from(woken.clone());
        let polled = Pin::new(wait).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    let [unpolled, second, third] = waits;
    let told = || woken.each_ref().map(|woken| woken.0.load(SeqCst));
    queue.push(1, 1, Place::new().group("one")).unwrap();
    assert_eq!(told(), [1, 0, 0]);
    for n in 2..100 {
        // Its group has no room for it while the first is claimed.
        queue.push(n, n, Place::new().group("one")).unwrap();
        queue.advance(at(u64::from(n)));
        let held = queue.try_claim_one().unwrap();
        assert_eq!(*held, 1);
        held.give_back().unwrap();
    }
    assert_eq!(told(), [1, 0, 0]);
    queue.push(100, 100, Place::new()).unwrap();
    assert_eq!(told(), [1, 1, 0]);
    drop(unpolled);
    assert_eq!(told(), [1, 1, 1]);
    drop((second, third));
}
