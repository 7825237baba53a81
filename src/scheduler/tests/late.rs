//! How late a task may begin if workers claim several at once.

use std::sync::Arc;

use crate::limit::Limit;
use crate::scheduler::caller::CallerOptions;
use crate::scheduler::local_queue::LocalQueue;

use super::prefetch::World;

/// Random numbers below the argument.
pub(super) fn draws(mut drawn: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        drawn = drawn
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (drawn >> 33) as usize % below
    }
}

/// How many later tasks may overtake a task: see `Builder::claims`.
fn bound(workers: usize, claims: usize) -> usize {
    match claims {
        1 => 0,
        _ => (2 * workers + 1) * claims - 1,
    }
}

/// What a worker runs, and its local queue.
type Busy = (usize, Option<Arc<LocalQueue>>);

/// The most later tasks of its caller that overtook a task, while workers meet a long task now and
/// then. If `gives_back`, claimed tasks go back now and then. If `grouped`, half of each caller's
/// tasks are in one group without a limit, and only these count.
fn overtaken(
    (workers, claims): (usize, usize),
    seed: u64,
    callers: usize,
    gives_back: bool,
    grouped: bool,
) -> usize {
    const TASKS: usize = 150;
    let mut draw = draws(seed);
    let mut world = World::with_tasks(workers as u32, claims as u32, 0);
    let mut all = vec![world.caller];
    while all.len() < callers {
        let options = CallerOptions {
            weight: 1 + draw(3 * claims) as u32,
            ..CallerOptions::default()
        };
        let caller = world.state.core.add_caller(Arc::from("other"), &options);
        all.push(caller.unwrap());
    }
    let core = &mut world.state.core;
    let group = |&of| core.add_group(of, Limit::Unlimited, 100).unwrap();
    let groups: Vec<_> = all.iter().map(group).collect();
    let one = |draw: &mut dyn FnMut(usize) -> usize| if callers > 1 { draw(callers) } else { 0 };
    let of: Vec<usize> = (0..=TASKS).map(|_| one(&mut draw)).collect();
    let wide: Vec<_> = (0..=TASKS).map(|_| grouped && draw(2) == 0).collect();
    for (&n, &wide) in of.iter().zip(&wide).skip(1) {
        world.submit_to(all[n], wide.then_some(groups[n]));
    }
    world.state.core.records = draw(2) == 0;
    let mut busy: Vec<Option<Busy>> = vec![None; workers];
    let mut stuck = vec![0; workers];
    let mut started = [false; TASKS + 1];
    started[0] = true;
    let mut late = vec![0; TASKS + 1];
    while started.iter().any(|&started| !started) {
        let n = draw(workers);
        if stuck[n] > 0 {
            stuck[n] -= 1;
            continue;
        }
        let worker = n as u32 + 1;
        let next = busy[n].take().and_then(|(runs, queue)| {
            let next = queue.as_ref().and_then(|queue| world.next(queue, runs));
            let more = next.or_else(|| world.finish(worker, runs));
            more.map(|next| (next, queue))
        });
        let most = 1 + draw(claims) as u32;
        let most = if draw(4) == 0 { most } else { claims as u32 };
        busy[n] = next.or_else(|| world.claim(worker, most));
        let Some((runs, _)) = busy[n] else { continue };
        started[runs] = true;
        (1..runs)
            .filter(|&older| !started[older] && of[older] == of[runs])
            .filter(|&older| !grouped || wide[older] && wide[runs])
            .for_each(|older| late[older] += 1);
        if draw(12) == 0 {
            stuck[n] = draw(100);
        }
        if gives_back && draw(16) == 0 {
            world.state.exact(&mut world.wakes);
        }
    }
    late.into_iter().max().unwrap_or(0)
}

#[test]
fn a_task_is_overtaken_by_as_many_as_the_docs_say_and_no_more() {
    for (workers, claims) in [(2, 1), (4, 1), (2, 2), (2, 4), (3, 3), (4, 2), (5, 8)] {
        let overtaken = |seed| overtaken((workers, claims), seed, 1, false, false);
        let most = (0..100).map(overtaken).max();
        let bound = bound(workers, claims);
        assert_eq!(most, Some(bound), "{workers} workers, claims {claims}");
    }
}

/// By later tasks of its group.
#[test]
fn a_task_of_a_group_that_is_not_serial_may_be_overtaken() {
    for (workers, claims) in [(5, 1), (5, 8)] {
        let overtaken = |seed| overtaken((workers, claims), seed, 1, false, true);
        let most = (0..50).map(overtaken).max().unwrap_or(0);
        assert_eq!(most > 0, claims > 1);
        assert!(most <= bound(workers, claims), "{most}");
    }
}

#[test]
fn by_twice_as_many_if_others_have_work_or_claims_go_back() {
    for (workers, claims) in [(2, 1), (2, 2), (2, 4), (3, 3), (4, 2), (5, 8)] {
        let bound = 2 * bound(workers, claims);
        for (callers, gives_back) in [(1, true), (2, false), (3, false), (3, true)] {
            let overtaken = |seed| overtaken((workers, claims), seed, callers, gives_back, false);
            let most = (0..100).map(overtaken).max().unwrap_or(0);
            // Tasks that go back may be overtaken as often once more.
            let more = (workers, callers, gives_back) == (3, 1, true);
            assert!(!more || most > bound / 2);
            assert!(most <= bound, "{workers} workers, claims {claims}: {most}");
        }
    }
}
