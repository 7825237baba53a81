//! SEMANTICS 1D: its figures exactly, and each of its faults removed. One thread, no clock.

use std::time::Duration;

use conversant::error::Closed;
use conversant::job_queue::{
    Claim, Counts, Expired, JobId, JobQueue, Place, Refused, RequeueError, Scope, Why,
};
use conversant::limit::Limit;

type Queue = JobQueue<u32, u32>;
type Claims = Vec<Claim<u32, u32>>;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn numbers(claims: &Claims) -> Vec<u32> {
    claims.iter().map(|claim| **claim).collect()
}

/// Claims `n` and says which they are.
fn claim(queue: &Queue, n: usize) -> (Claims, Vec<u32>) {
    let claims = queue.try_claim(n);
    let numbers = numbers(&claims);
    (claims, numbers)
}

fn complete(claims: &mut Claims, number: u32) {
    let at = claims.iter().position(|claim| **claim == number);
    claims.remove(at.unwrap()).complete().unwrap();
}

/// Jobs 1..12; g1 = {1,5,9}, g3 = {3,7,11}, even jobs ungrouped.
fn twelve(limit: Limit) -> (Queue, Vec<JobId>) {
    let queue = JobQueue::builder().group_limit(limit).build().unwrap();
    let group = |n| match n % 4 {
        1 => Place::new().group("g1"),
        3 => Place::new().group("g3"),
        _ => Place::new(),
    };
    let jobs = (1..=12).map(|n| (n, n, group(n)));
    let ids = queue.push_all(jobs).unwrap();
    (queue, ids)
}

fn is_idle(queue: &Queue) {
    assert_eq!(queue.counts(), Counts::default());
    assert!(queue.snapshot().tenants.is_empty());
}

#[test]
fn d1_without_groups_each_agent_gets_six() {
    let queue = Queue::new();
    queue
        .push_all((1..=12).map(|n| (n, n, Place::new())))
        .unwrap();
    let (_first, numbers) = claim(&queue, 6);
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert_eq!(claim(&queue, 6).1, [7, 8, 9, 10, 11, 12]);
}

#[test]
fn d2_groups_with_limit_one() {
    let (queue, _) = twelve(Limit::SERIAL);
    let (mut first, numbers) = claim(&queue, 6);
    assert_eq!(numbers, [1, 2, 3, 4, 6, 8]);
    let (second, numbers) = claim(&queue, 6);
    assert_eq!(numbers, [10, 12]);
    assert_eq!((queue.counts().ready, queue.counts().eligible), (4, 0));
    complete(&mut first, 1);
    let (five, numbers) = claim(&queue, 6);
    assert_eq!(numbers, [5]);
    complete(&mut first, 3);
    let (seven, numbers) = claim(&queue, 6);
    assert_eq!(numbers, [7]);
    let mut claims: Vec<_> = first
        .into_iter()
        .chain(second)
        .chain(five)
        .chain(seven)
        .collect();
    while !claims.is_empty() {
        claims.drain(..).for_each(|claim| claim.complete().unwrap());
        claims = queue.try_claim(1);
    }
    is_idle(&queue);
}

#[test]
fn d3_groups_with_limit_two() {
    let (queue, _) = twelve(Limit::AtMost(2));
    let (_first, numbers) = claim(&queue, 6);
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert_eq!(claim(&queue, 6).1, [7, 8, 10, 12]);
}

#[test]
fn d4_what_is_given_back_has_its_place() {
    let (queue, _) = twelve(Limit::SERIAL);
    drop(claim(&queue, 6));
    let (again, numbers) = claim(&queue, 6);
    assert_eq!(numbers, [1, 2, 3, 4, 6, 8]);
    assert!(again.iter().all(|claim| claim.attempt() == 2));
    for claim in again {
        claim.give_back().unwrap();
    }
    let (mut claims, _) = claim(&queue, 1);
    complete(&mut claims, 1);
    assert_eq!(claim(&queue, 2).1, [2, 3], "5 has its place behind them");
}

#[test]
fn d4_five_before_nine_also_when_five_comes_back() {
    let (queue, _) = twelve(Limit::SERIAL);
    let (mut claims, _) = claim(&queue, 6);
    complete(&mut claims, 1);
    let (mut five, numbers) = claim(&queue, 1);
    assert_eq!(numbers, [5]);
    five.remove(0).fail().unwrap();
    assert_eq!(claim(&queue, 1).1, [5]);
}

#[test]
fn d4_one_that_comes_back_goes_ahead_of_the_next_that_stands() {
    let (queue, _) = twelve(Limit::AtMost(2));
    let (mut claims, _) = claim(&queue, 6);
    complete(&mut claims, 1);
    // 9 stands for its group now, behind 7.
    let (_seven, numbers) = claim(&queue, 1);
    assert_eq!(numbers, [7]);
    let five = claims.iter().position(|claim| **claim == 5).unwrap();
    claims.remove(five).give_back().unwrap();
    assert_eq!(claim(&queue, 3).1, [5, 8, 9]);
}

#[test]
fn d5_one_not_yet_due_is_absent() {
    let queue = Queue::new();
    let place = || Place::new().group("g");
    queue.push(1, 1, place().due(at(10))).unwrap();
    let id = queue.push(2, 2, place()).unwrap();
    assert_eq!(queue.advance(at(0)), Some(at(10)));
    let (two, numbers) = claim(&queue, 9);
    assert_eq!(numbers, [2], "it does not block its group");
    drop(two);
    assert_eq!(queue.advance(at(10)), None);
    assert_eq!(queue.why(id), Some(Why::Behind(1)));
    assert_eq!(claim(&queue, 9).1, [1], "due, it has the place of its key");
}

#[test]
fn d5_given_back_until_a_time_it_is_absent_until_then() {
    let (queue, ids) = twelve(Limit::SERIAL);
    let (mut claims, _) = claim(&queue, 1);
    claims.remove(0).give_back_at(at(5)).unwrap();
    assert_eq!(queue.why(ids[0]), Some(Why::Due(at(5))));
    let (five, numbers) = claim(&queue, 4);
    assert_eq!(numbers, [2, 3, 4, 5]);
    drop(five);
    queue.advance(at(5));
    assert_eq!(claim(&queue, 4).1, [1, 2, 3, 4]);
}

#[test]
fn d5_group_names_are_per_tenant() {
    let queue = Queue::new();
    for tenant in ["a", "b"] {
        queue
            .push(1, 1, Place::new().tenant(tenant).group("g"))
            .unwrap();
    }
    assert_eq!(claim(&queue, 9).1, [1, 1]);
}

#[test]
fn d6_never_short_while_one_is_eligible() {
    let queue = Queue::new();
    let blocked = (0..10_000).map(|n| (n, n, Place::new().group("blocked")));
    queue.push_all(blocked).unwrap();
    let (_held, _) = claim(&queue, 1);
    queue
        .push_all((20_000..20_005).map(|n| (n, n, Place::new())))
        .unwrap();
    assert_eq!(claim(&queue, 9).1, [20_000, 20_001, 20_002, 20_003, 20_004]);
}

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

#[test]
fn a_lease_can_be_extended_and_given_to_one_without() {
    let queue = Queue::new();
    let id = queue.push(1, 1, Place::new()).unwrap();
    let (claims, _) = claim(&queue, 1);
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
    assert_eq!(
        queue.requeue(id),
        Err(RequeueError::Refused(Refused::Alive))
    );
    let mut claims = queue.try_claim(1);
    assert_eq!(claims[0].attempt(), 1);
    assert_eq!(queue.remove(id), Err(Refused::Claimed));
    claims.remove(0).complete().unwrap();
    assert_eq!(queue.remove(id), Err(Refused::Stale));
    assert_eq!(queue.get(id), None);
    is_idle(&queue);
}

#[test]
fn giving_back_and_dropping_never_kill_but_panics_and_leases_do() {
    let queue = JobQueue::builder().attempts(1).build().unwrap();
    let id = queue.push(1, 1, Place::new()).unwrap();
    for _ in 0..9 {
        drop(claim(&queue, 1));
        queue.try_claim(1).remove(0).give_back().unwrap();
    }
    let handler = std::panic::AssertUnwindSafe(|| {
        let _claims = queue.try_claim(1);
        std::panic::resume_unwind(Box::new("the handler"));
    });
    assert!(std::panic::catch_unwind(handler).is_err());
    assert_eq!(queue.dead(), [id]);
    queue.requeue(id).unwrap();
    let _late = queue.try_claim_until(1, at(1));
    queue.advance(at(1));
    assert_eq!(queue.dead(), [id]);
    assert_eq!(*queue.remove(id).unwrap().job, 1);
    is_idle(&queue);
}

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

#[test]
fn close_drains_and_shutdown_gives_all_back() {
    let (queue, ids) = twelve(Limit::SERIAL);
    let (claims, _) = claim(&queue, 2);
    queue.close();
    let refused = queue.push(1, 77, Place::new()).unwrap_err();
    assert_eq!((refused.key, refused.job), (1, 77));
    assert_eq!(queue.push_all([(1, 1, Place::new())]), Err(Closed));
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
        .for_each(|claim| claim.complete().unwrap());
    assert!(matches!(queue.claim(1).wait(), Err(Closed)));
    is_idle(&queue);
}

#[test]
fn claims_outlive_the_queue() {
    let (queue, _) = twelve(Limit::SERIAL);
    let mut claims = queue.try_claim(3);
    drop(queue);
    claims.remove(0).complete().unwrap();
    claims.remove(0).give_back().unwrap();
    assert!(claims[0].holds());
}

#[test]
fn names_of_another_queue_are_stale() {
    let (queue, _) = twelve(Limit::SERIAL);
    let (_other, ids) = twelve(Limit::SERIAL);
    assert_eq!(queue.rekey(ids[0], 1), Err(Refused::Stale));
    assert_eq!(queue.remove(ids[0]), Err(Refused::Stale));
    assert_eq!((queue.why(ids[0]), queue.get(ids[0])), (None, None));
}
