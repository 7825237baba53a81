//! Futures that were woken while they were polled: reported together, and claimed together.

use std::sync::Arc;
use std::task::Waker;

use super::runs::{NOW, Worker, World, awaits};
use crate::limit::Limit;
use crate::scheduler::caller::CallerOptions;
use crate::scheduler::local_queue::RunResult;
use crate::scheduler::outcome::{Ending, TaskId};
use crate::scheduler::stall::Target;
use crate::scheduler::task_state::{Location, Placing};
use crate::slab::Key;

/// The worker's future wakes itself while it is polled. Returns whether the worker has more.
fn polls(worker: &mut Worker) -> bool {
    worker.goes_on(RunResult::Suspended(awaits(None), true))
}

/// A worker polls all that it claims.
fn poll_all(world: &mut World) -> Vec<u64> {
    let mut worker = world.claim(1, 20).unwrap();
    let mut all = vec![worker.id()];
    while polls(&mut worker) {
        all.push(worker.id());
    }
    let last = worker.ran(RunResult::Suspended(awaits(None), true));
    assert!(world.state.finish(1, last, NOW, &mut world.wakes).is_none());
    all
}

/// A worker claims some, and runs them to their end.
fn end_some(world: &mut World) -> Vec<u64> {
    let worker = world.claim(1, 20).unwrap();
    world.rest(worker)
}

#[test]
fn futures_that_were_woken_together_are_claimed_together_in_their_order() {
    let mut world = World::new(1);
    world.post_mixed(&[true; 8]);
    assert_eq!(poll_all(&mut world), (1..=8).collect::<Vec<_>>());
    let counts = |world: &World| {
        let backlog = &world.state.core.backlog;
        (
            backlog.waiting(),
            backlog.in_flight(),
            world.state.core.suspended,
        )
    };
    assert_eq!(counts(&world), (8, 8, 0));
    let worker = world.claim(1, 5).unwrap();
    assert_eq!(counts(&world), (3, 13, 0), "the tasks and their polls");
    assert_eq!(world.rest(worker), (1..=5).collect::<Vec<_>>());
    assert_eq!(counts(&world), (3, 3, 0));
    assert_eq!(end_some(&mut world), [6, 7, 8]);
    assert_eq!(world.summary().ok, 8);
    world.check_empty();
}

/// Woken by another thread while a worker has it with others, before its poll or in it.
#[test]
fn a_future_that_is_woken_while_a_worker_has_it_among_others_is_polled_again() {
    for woken in 1..=6 {
        let mut world = World::new(1);
        world.post_mixed(&[true; 6]);
        poll_all(&mut world);
        let mut worker = world.claim(1, 20).unwrap();
        let (entry, _) = world.state.core.futures.iter().nth(woken - 1).unwrap();
        world.state.core.wake_task(entry);
        while worker.goes_on(RunResult::Suspended(awaits(None), false)) {}
        let last = worker.ran(RunResult::Suspended(awaits(None), false));
        assert!(world.state.finish(1, last, NOW, &mut world.wakes).is_none());
        assert_eq!(world.state.core.suspended, 5);
        assert_eq!(end_some(&mut world), [woken as u64]);
    }
}

/// They are claimed, polled again, given back, bumped and cancelled.
#[test]
fn each_of_several_woken_futures_is_found_where_it_is() {
    let mut world = World::new(1);
    world.post_mixed(&[true; 6]);
    poll_all(&mut world);
    let entries = world.state.core.futures.iter();
    let entries: Vec<_> = entries.map(|(key, _)| key).collect();
    let at = |id: usize| Location::Future(entries[id - 1]);
    let mut worker = world.claim(1, 4).unwrap();
    assert!(polls(&mut worker) && polls(&mut worker));
    world.state.exact(&mut world.wakes);
    let running = world.state.core.running.iter().flatten();
    assert!(running.map(|running| running.tag).eq([worker.tag]));
    assert!(!worker.next() && world.finish(&worker, Ending::Ok).is_none());
    let waiting = world.state.core.find_waiting(None, |_, _| true);
    assert!(waiting.contains(&at(1)) && waiting.contains(&at(4)));
    world.state.core.bump(at(5), 7).unwrap();
    assert!(world.state.core.cancel(at(4), NOW));
    let gone = world.state.core.todo.ended.pop().unwrap();
    world
        .state
        .core
        .dropped(gone.tag, gone.ending, &mut world.wakes);
    assert_eq!(end_some(&mut world), [5, 6, 1, 2]);
    let summary = world.summary();
    assert_eq!((summary.ok, summary.cancelled), (5, 1));
    world.check_empty();
}

fn other_caller(world: &mut World) -> Key {
    let options = CallerOptions::default();
    let other = world.state.core.add_caller(Arc::from("other"), &options);
    other.unwrap()
}

/// Futures of two callers, one by one in turns.
#[test]
fn a_woken_future_is_in_the_line_of_its_caller() {
    let mut world = World::new(1);
    let other = other_caller(&mut world);
    let main = world.caller;
    for caller in [main, other, main, other] {
        world.caller = caller;
        world.post_mixed(&[true]);
    }
    assert_eq!(poll_all(&mut world), [1, 2, 3, 4]);
    let lane = |caller| world.state.core.caller(caller).woken_lane.unwrap();
    let standing =
        [main, other].map(|caller| world.state.core.backlog.lane(lane(caller)).ready_len());
    assert_eq!(standing, [2, 2]);
    assert_eq!(end_some(&mut world), [1, 2, 3, 4]);
    for caller in [main, other] {
        world.caller = caller;
        assert_eq!(world.summary().ok, 2);
    }
    world.check_empty();
}

/// New futures and woken ones are claimed in runs, in turns.
#[test]
fn a_caller_alone_goes_on_with_its_woken_futures() {
    for alone in [true, false] {
        let mut world = World::new(1);
        world.post_mixed(&[true; 6]);
        poll_all(&mut world);
        world.post_mixed(&[true; 6]);
        let main = world.caller;
        if !alone {
            world.caller = other_caller(&mut world);
            world.post_mixed(&[true; 6]);
            world.caller = main;
        }
        let order = end_some(&mut world);
        match alone {
            true => assert_eq!(order, (1..=12).collect::<Vec<_>>()),
            false => assert_eq!(order[..6], [1, 7, 13, 2, 8, 14]),
        }
    }
}

#[test]
fn tasks_before_a_future_of_a_run_are_counted_while_it_runs() {
    let mut world = World::new(1);
    world.post_mixed(&[1, 2, 3, 4, 5, 6, 7, 8].map(|n| n == 5));
    let mut worker = world.claim(1, 20).unwrap();
    assert!((0..4).all(|_| worker.next()));
    world.state.exact(&mut world.wakes);
    assert_eq!(
        (world.state.core.unfinished, world.state.core.futures.len()),
        (4, 1)
    );
    assert!(world.finish(&worker, Ending::Ok).is_none());
    assert_eq!(world.drain(), [6, 7, 8]);
    assert_eq!(world.summary().ok, 8);
    world.check_empty();
}

#[test]
fn two_callers_take_turns_one_by_one() {
    for futures in [false, true] {
        let mut world = World::new(1);
        world.post_mixed(&[futures; 4]);
        world.caller = other_caller(&mut world);
        world.post_mixed(&[futures; 4]);
        assert_eq!(end_some(&mut world), [1, 5, 2, 6, 3, 7, 4, 8]);
    }
}

/// A future ends among other tasks: of a group or not, with or without a wait for it.
#[test]
fn futures_that_end_together_give_back_what_each_of_them_held() {
    for blocked in [false, true] {
        let mut world = World::new(2);
        let group = world
            .state
            .core
            .add_group(world.caller, Limit::AtMost(9), 100);
        let group = group.unwrap();
        for n in 0..6 {
            let placing = Placing {
                group: (n % 3 == 0).then_some(group),
                ..Placing::default()
            };
            world
                .state
                .core
                .submit(world.caller, placing, awaits(None), NOW);
        }
        while world.state.core.backlog.in_flight() < 6 {
            poll_all(&mut world);
        }
        world.post(1);
        if blocked {
            let waits = world.claim(2, 1).unwrap();
            let target = Target::Task(TaskId(6));
            let core = world.state.exact(&mut world.wakes);
            core.block(2, vec![target], Waker::noop(), false);
            let mut left = 6;
            while left > 0 {
                left -= end_some(&mut world).len();
            }
            assert!(world.state.core.stalls.is_empty());
            assert!(world.finish(&waits, Ending::Ok).is_none());
        }
        world.drain();
        assert_eq!(world.summary().ok, 7);
        world.check_empty();
    }
}
