//! Reports of several tasks at once.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::limit::Limit;
use crate::queue::Capacity;
use crate::scheduler::caller::{CallerOptions, Synced};

use super::prefetch::World;
use super::runs;

/// One report of tasks of two callers; a synchronize covers some in the middle.
#[test]
fn tasks_that_are_reported_together_count_for_their_own_caller_and_epoch() {
    let mut world = World::with_tasks(1, 8, 3);
    let main = world.caller;
    assert_eq!(world.state.core.synchronize(main), Poll::Pending);
    let capped = CallerOptions {
        cap: Limit::AtMost(4),
        ..CallerOptions::default()
    };
    let other = world.state.core.add_caller(Arc::from("other"), &capped);
    world.caller = other.unwrap();
    world.submit(1);
    world.caller = main;
    world.submit(3);
    for bumped in [world.task(5), world.task(6)] {
        world.state.core.bump(bumped, 0).unwrap();
    }
    let (first, queue) = world.claim(1, 6).unwrap();
    let mut ran = vec![first];
    ran.extend(world.rest(&queue.unwrap(), first));
    assert_eq!(ran, [5, 4, 6, 1, 2, 3]);
    assert_eq!(world.finish(1, 3), None);
    let all = |synced: Synced, tasks| matches!(synced, Poll::Ready(Ok(s)) if (s.ok, s.tasks) == (tasks, tasks));
    assert!(all(world.state.core.caller_mut(main).synced(), 3));
    assert_eq!(world.state.core.synchronize(main), Poll::Pending);
    assert_eq!(world.claim(1, 1).unwrap().0, 7);
    assert_eq!(world.finish(1, 7), None);
    assert!(all(world.state.core.caller_mut(main).synced(), 3));
    assert!(all(world.state.core.synchronize(other.unwrap()), 1));
    let lanes = [main, other.unwrap()].map(|caller| world.state.core.caller(caller).lane);
    let backlog = &world.state.core.backlog;
    assert_eq!(lanes.map(|lane| backlog.lane(lane).in_use), [0, 0]);
    assert_eq!(backlog.in_flight(), 0);
}

#[test]
fn tasks_that_are_reported_together_give_all_their_room_back() {
    let mut world = World::with_tasks(1, 8, 4);
    let capacity = Arc::new(Capacity::new(Limit::AtMost(4)).unwrap());
    capacity.take(4).unwrap().keep();
    world.state.core.caller_mut(world.caller).capacity = Arc::clone(&capacity);
    let (_, queue) = world.claim(1, 8).unwrap();
    assert_eq!(world.rest(&queue.unwrap(), 1), [2, 3, 4]);
    assert_eq!(world.finish(1, 4), None);
    assert_eq!(capacity.available(), Some(4));
}

#[test]
fn a_run_gives_all_its_room_back() {
    let mut world = runs::World::new(1);
    let capacity = Arc::new(Capacity::new(Limit::AtMost(4)).unwrap());
    capacity.take(4).unwrap().keep();
    world.state.core.caller_mut(world.caller).capacity = Arc::clone(&capacity);
    world.post(4);
    let worker = world.claim(1, 4).unwrap();
    assert_eq!(world.rest(worker), [1, 2, 3, 4]);
    assert_eq!(capacity.available(), Some(4));
}

/// The worker claims one task of this caller, behind those of another.
#[test]
fn while_somebody_waits_for_room_each_ending_is_reported_at_once() {
    for (serial, tier) in [(false, 0), (true, 0), (true, 1)] {
        let mut world = runs::World::new(1);
        let roomy = world.caller;
        let capacity = Arc::new(Capacity::new(Limit::AtMost(8)).unwrap());
        capacity.take(8).unwrap().keep();
        world.state.core.caller_mut(roomy).capacity = Arc::clone(&capacity);
        let other = world
            .state
            .core
            .add_caller(Arc::from("other"), &CallerOptions::default());
        world.caller = other.unwrap();
        world.post(1);
        world.caller = roomy;
        if serial {
            for group in [world.serial_group(), world.serial_group()] {
                (0..4).for_each(|_| world.submit(Some(group), tier));
            }
        } else {
            world.post(8);
        }
        let mut wait = Box::pin(capacity.permits().unwrap().acquire(1));
        let cx = &mut Context::from_waker(Waker::noop());
        assert!(wait.as_mut().poll(cx).is_pending());
        let mut takes = || {
            let worker = world.claim(1, 5).unwrap();
            world.rest(worker).len()
        };
        assert_eq!([takes(), takes()], [2, 1]);
        drop(wait);
        assert!(takes() > 1);
    }
}

/// A task that a synchronize covers begins the run of those that were posted after it.
#[test]
fn of_a_run_that_begins_before_a_synchronize_only_those_are_claimed() {
    let mut world = runs::World::new(2);
    let group = world.serial_group();
    (0..2).for_each(|_| world.submit(Some(group), 0));
    let first = world.claim(1, 1).unwrap();
    world.submit(None, 0);
    assert!(world.synchronize().is_pending());
    world.post(3);
    // Two that it covers wait: one in the group, and one before the others of the run.
    let mut claimed = VecDeque::new();
    assert_eq!(world.state.core.prefetch(9, 9, &mut claimed), (1, 1));
    let claimed = claimed.pop_front().expect("the first of the run");
    world.state.core.unclaim(claimed);
    assert_eq!(world.rest(first), [1]);
    assert_eq!(world.synced(), None);
    assert_eq!(world.drain(), [3, 4, 5, 6, 2]);
    assert_eq!(world.synced().unwrap().ok, 3);
    world.check_empty();
}
