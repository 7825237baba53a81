//! Each fault of SEMANTICS 1D, removed.

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
    // 5 is free now, and stands where its key says: behind 4, before 6.
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
            let claims = queue.try_claim_until(1, at(n + 1));
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
    now.into_iter().for_each(|claim| claim.complete().unwrap());
    is_idle(&queue);
}
