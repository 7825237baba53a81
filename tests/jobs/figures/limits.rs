//! What blocks a job and which job goes first: keys, limits, tenants.

use conversant::job_queue::{Refused, Scope, Why};

use super::*;

#[test]
fn rekeyed_it_stands_where_its_key_says() {
    let (queue, ids) = twelve(Limit::SERIAL);
    assert_eq!(queue.rekey(ids[11], 0), Ok(12));
    assert_eq!(queue.rekey(ids[4], 0), Ok(5));
    let (mut claims, numbers) = claim(&queue, 3);
    assert_eq!(numbers, [5, 12, 2]);
    assert_eq!(queue.rekey(ids[4], 100), Ok(0), "claimed, it stays so");
    complete(&mut claims, 5);
    assert_eq!(queue.rekey(ids[4], 1), Err(Refused::Stale));
    assert_eq!(claim(&queue, 2).1, [1, 3]);
}

#[test]
fn why_names_what_keeps_a_job() {
    let (queue, ids) = twelve(Limit::SERIAL);
    let why = |n: usize| queue.why(ids[n - 1]).unwrap();
    let set = |scope, limit| queue.set_limit(scope, limit).unwrap();
    let tenant = || Scope::tenant(0);
    assert_eq!(
        (why(1), why(9), why(2)),
        (Why::Ready, Why::Behind(2), Why::Ready)
    );
    let (_one, _) = claim(&queue, 1);
    assert_eq!((why(1), why(5)), (Why::Claimed(None), Why::GroupLimit));
    set(Scope::group("g3"), Limit::AtMost(0));
    assert_eq!(why(3), Why::GroupPaused);
    set(Scope::Queue, Limit::AtMost(1));
    assert_eq!(why(2), Why::QueueLimit);
    set(Scope::Queue, Limit::AtMost(0));
    assert_eq!(why(2), Why::QueuePaused);
    set(tenant(), Limit::AtMost(1));
    assert_eq!(why(2), Why::TenantLimit);
    set(tenant(), Limit::AtMost(0));
    assert_eq!((why(2), why(5)), (Why::TenantPaused, Why::GroupLimit));
}

#[test]
fn the_limits_are_taken_together_or_not_at_all() {
    let (queue, _) = twelve(Limit::SERIAL);
    queue.set_limit(Scope::tenant(0), Limit::AtMost(3)).unwrap();
    queue.set_limit(Scope::Queue, Limit::AtMost(2)).unwrap();
    let (claims, numbers) = claim(&queue, 9);
    assert_eq!(numbers, [1, 2]);
    queue.set_limit(Scope::Queue, Limit::Unlimited).unwrap();
    assert_eq!(claim(&queue, 9).1, [3]);
    drop(claims);
    let status = &queue.snapshot().tenants[0];
    assert_eq!((status.claimed, status.eligible), (0, 3));
    assert!(
        status
            .groups
            .iter()
            .all(|group| group.claimed == 0 && group.eligible == 1)
    );
}

#[test]
fn tenants_take_turns_by_weight_and_each_keeps_its_order() {
    let queue = JobQueue::new();
    queue.set_weight("b", 2).unwrap();
    for n in (1..=6).rev() {
        queue
            .push(n, format!("a{n}"), Place::new().tenant("a"))
            .unwrap();
        queue
            .push(n, format!("b{n}"), Place::new().tenant("b"))
            .unwrap();
    }
    let claims = queue.try_claim(7);
    let names: Vec<&str> = claims.iter().map(|claim| claim.as_str()).collect();
    assert_eq!(names, ["a1", "b1", "b2", "a2", "b3", "b4", "a3"]);
}

/// A tenant that waits for its turn, or is in it, takes that turn with the old weight.
#[test]
fn a_new_weight_counts_after_the_turn_in_line() {
    let queue = JobQueue::new();
    for n in 1..=9 {
        for tenant in ["a", "b"] {
            queue.push(n, tenant, Place::new().tenant(tenant)).unwrap();
        }
    }
    let claimed = |n| {
        let done = queue.try_claim(n).into_iter();
        done.map(|claim| claim.complete().unwrap().job)
            .collect::<String>()
    };
    queue.set_weight("b", 3).unwrap();
    assert_eq!(claimed(7), "ababbba");
    assert_eq!(claimed(1), "b");
    queue.set_weight("b", 1).unwrap();
    assert_eq!(claimed(5), "bbaba");
}
