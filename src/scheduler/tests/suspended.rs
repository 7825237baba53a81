//! The counts of futures that await, and their turns among the others, without threads.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::limit::{Bypass, Limit};
use crate::scheduler::caller::CallerOptions;
use crate::scheduler::core::Core;
use crate::scheduler::outcome::{Ending, TaskId};
use crate::scheduler::stall::Target;
use crate::scheduler::task_state::{
    Body, Claimed, Ended, Location, Placing, Started, Tag, Waiting,
};
use crate::slab::Key;
use crate::slab::tests::slots_visited;
use crate::wait::WakeBatch;

const NOW: Duration = Duration::ZERO;

/// A future.
#[derive(Clone, Default)]
struct Awaits;

impl Body for Awaits {
    fn is_future(&self) -> bool {
        true
    }
}

struct World {
    core: Core<Awaits>,
    wakes: WakeBatch,
    /// The task that the worker has.
    started: Option<Started<Awaits>>,
    /// The entries of the futures that the worker has had.
    entries: BTreeMap<TaskId, Key>,
}

impl World {
    fn new() -> Self {
        let core = Core::new(1, Bypass::default()).unwrap();
        let (wakes, started) = (WakeBatch::new(), None);
        Self {
            core,
            wakes,
            started,
            entries: BTreeMap::new(),
        }
    }

    fn caller(&mut self, weight: u32) -> Key {
        let name = Arc::from("main");
        let options = CallerOptions {
            weight,
            ..CallerOptions::default()
        };
        self.core.add_caller(name, &options).unwrap()
    }

    fn submit(&mut self, caller: Key) -> TaskId {
        let placing = Placing::default();
        self.core.submit(caller, placing, Awaits, NOW);
        assert!(self.core.decide(&mut self.wakes));
        self.core.last
    }

    fn wake(&mut self, task: TaskId) {
        self.core.wake_task(self.entries[&task]);
    }

    fn claim(&mut self) -> Option<TaskId> {
        self.started = self.core.claim(1, NOW);
        assert!(self.core.decide(&mut self.wakes));
        let tag = self.started.as_ref()?.tag;
        self.entries.insert(tag.id, tag.future.unwrap());
        Some(tag.id)
    }

    /// Takes this task from the worker.
    fn take(&mut self, task: TaskId) -> (Tag, Awaits) {
        let started = self.started.take().unwrap();
        assert_eq!(started.tag.id, task);
        (started.tag, started.job)
    }

    fn suspend(&mut self, task: TaskId) {
        self.suspend_woken(task, false);
    }

    fn suspend_woken(&mut self, task: TaskId, woken: bool) {
        let taken = self.take(task);
        self.core.workers.finished(1);
        let mut run = None;
        self.core.suspend((taken, woken), 1, (NOW, NOW), &mut run);
        self.core.enqueue_run(run);
        assert!(self.core.decide(&mut self.wakes));
    }

    fn end(&mut self, task: TaskId) {
        let (tag, _) = self.take(task);
        self.core.finish(1, tag, Ending::Ok, NOW, &mut self.wakes);
        assert!(self.core.decide(&mut self.wakes));
    }

    fn cancel(&mut self, task: TaskId) -> bool {
        let at = Location::Future(self.entries[&task]);
        self.core.cancel(at, NOW)
    }

    fn dropped(&mut self, task: TaskId) {
        let at = self
            .core
            .todo
            .ended
            .iter()
            .rposition(|ended| ended.tag.id == task);
        let Ended { tag, ending, .. } = self.core.todo.ended.remove(at.unwrap());
        self.core.dropped(tag, ending, &mut self.wakes);
    }

    fn has_ended(&self, task: TaskId) -> bool {
        !self.core.futures.contains(self.entries[&task])
    }

    fn counts(&self) -> (u64, u64, u64) {
        let Core {
            backlog, suspended, ..
        } = &self.core;
        (backlog.waiting(), backlog.in_flight(), *suspended)
    }
}

#[test]
fn each_poll_begins_and_ends_once() {
    let mut world = World::new();
    let caller = world.caller(1);
    let task = world.submit(caller);
    assert_eq!(world.claim(), Some(task));
    for _ in 0..3 {
        world.suspend(task);
        assert_eq!((world.counts(), world.claim()), ((0, 1, 1), None));
        world.wake(task);
        world.wake(task);
        assert_eq!(world.counts(), (1, 1, 0));
        assert_eq!(world.claim(), Some(task));
        assert_eq!(world.counts(), (0, 2, 0), "the task and its poll");
    }
    world.end(task);
    assert_eq!(world.counts(), (0, 0, 0));
    assert!(world.has_ended(task));
}

#[test]
fn a_future_that_is_cancelled_in_line_or_awaiting_leaves_nothing() {
    for in_line in [true, false] {
        let mut world = World::new();
        let caller = world.caller(1);
        let task = world.submit(caller);
        assert_eq!(world.claim(), Some(task));
        world.suspend(task);
        if in_line {
            world.wake(task);
        }
        assert!(world.cancel(task));
        world.wake(task);
        assert_eq!((world.counts(), world.claim()), ((0, 1, 1), None));
        let ended = world.core.todo.ended.last().unwrap();
        assert_eq!(
            (ended.tag.future, ended.ending),
            (Some(world.entries[&task]), Ending::Cancelled)
        );
        assert!(!world.has_ended(task), "before its future is gone");
        world.dropped(task);
        assert!(world.has_ended(task));
        assert_eq!(world.counts(), (0, 0, 0));
    }
}

#[test]
fn woken_futures_take_turns_by_the_weight_of_their_callers() {
    let mut world = World::new();
    let (heavy, light) = (world.caller(3), world.caller(1));
    let mut begin = |caller| {
        let task = world.submit(caller);
        assert_eq!(world.claim(), Some(task));
        world.suspend(task);
        task
    };
    let heavy: Vec<_> = (0..6).map(|_| begin(heavy)).collect();
    let light: Vec<_> = (0..2).map(|_| begin(light)).collect();
    for &task in heavy.iter().chain(&light) {
        world.wake(task);
    }
    let order = std::iter::from_fn(|| {
        let task = world.claim()?;
        world.end(task);
        Some(heavy.contains(&task))
    });
    let expected = [true, true, true, false, true, true, true, false];
    assert_eq!(order.collect::<Vec<_>>(), expected);
}

#[test]
fn a_future_that_is_woken_while_it_is_polled_is_polled_again() {
    for by_itself in [false, true] {
        let mut world = World::new();
        let caller = world.caller(1);
        let task = world.submit(caller);
        assert_eq!(world.claim(), Some(task));
        if !by_itself {
            world.wake(task);
        }
        world.suspend_woken(task, by_itself);
        assert_eq!(world.claim(), Some(task));
        // Only once.
        world.suspend(task);
        assert_eq!(world.claim(), None);
    }
}

#[test]
fn a_future_that_goes_back_is_where_it_was_in_line() {
    let mut world = World::new();
    let caller = world.caller(1);
    let woken: Vec<_> = (0..3)
        .map(|_| {
            let task = world.submit(caller);
            assert_eq!(world.claim(), Some(task));
            world.suspend(task);
            task
        })
        .collect();
    for &task in &woken {
        world.wake(task);
    }
    assert_eq!(world.claim(), Some(woken[0]));
    let mut prefetched = VecDeque::new();
    assert_eq!(world.core.prefetch(1, 1, &mut prefetched), (1, 1));
    let prefetched = prefetched.pop_front().unwrap();
    let Claimed::One(Some(claim), _) = &prefetched else {
        panic!("it is in no run");
    };
    assert_eq!(claim.item.id(), woken[1]);
    world.core.unclaim(prefetched);
    assert_eq!(world.counts(), (2, 4, 0), "three tasks and a poll");
    assert_eq!(world.core.status(0).callers[0].running, 3);
    world.end(woken[0]);
    for &task in &woken[1..] {
        assert_eq!(world.claim(), Some(task));
        world.end(task);
    }
    assert_eq!((world.counts(), world.claim()), ((0, 0, 0), None));
}

#[test]
fn a_wait_stalls_beside_a_future_that_awaits_but_not_beside_one_that_is_dropped() {
    for dropping in [true, false] {
        let mut world = World::new();
        let caller = world.caller(1);
        let awaits = world.submit(caller);
        assert_eq!(world.claim(), Some(awaits));
        world.suspend(awaits);
        let waits = world.submit(caller);
        assert_eq!(world.claim(), Some(waits));
        if dropping {
            assert!(world.cancel(awaits));
        }
        let target = Target::Task(TaskId(1));
        world.core.block(1, vec![target], Waker::noop(), false);
        assert!(world.core.decide(&mut world.wakes));
        assert_eq!(world.core.stalls.gives_up(1), !dropping);
        if dropping {
            world.dropped(awaits);
            assert!(world.core.decide(&mut world.wakes));
            assert!(!world.core.stalls.gives_up(1) && world.has_ended(awaits));
        }
    }
}

/// Callers with five tasks each: a future that awaits, a woken one, a task of a group, one without
/// a group, and a delayed one; and one more caller, whose tasks are all in line.
fn of_each_kind(world: &mut World, callers: u32) -> (Vec<(Key, BTreeSet<TaskId>)>, Key) {
    let mut all: Vec<_> = (0..=callers)
        .map(|_| (world.caller(1), BTreeSet::new()))
        .collect();
    for (caller, tasks) in &mut all {
        for _ in 0..2 {
            let task = world.submit(*caller);
            assert_eq!(world.claim(), Some(task));
            world.suspend(task);
            tasks.insert(task);
        }
    }
    for (caller, tasks) in &mut all {
        let group = world.core.add_group(*caller, Limit::SERIAL, 100).unwrap();
        let (group, after) = (Some(group), Duration::from_secs(1));
        let alone = Placing::default();
        for placing in [
            alone,
            Placing { group, ..alone },
            Placing { after, ..alone },
        ] {
            world.core.submit(*caller, placing, Awaits, NOW);
            tasks.insert(world.core.last);
        }
        world.wake(*tasks.first().unwrap());
    }
    let (more, tasks) = all.pop().unwrap();
    world.wake(*tasks.iter().nth(1).unwrap());
    let due = world.core.find_waiting(Some(more), |_, _| true).pop();
    assert!(world.core.cancel(due.unwrap(), NOW));
    (all, more)
}

#[test]
fn waiting_tasks_of_one_caller_are_found_wherever_they_are() {
    let mut world = World::new();
    let (all, more) = of_each_kind(&mut world, 3);
    for (caller, tasks) in all {
        let mut found = BTreeSet::new();
        let each = |task: &Waiting<_>, _, _| _ = found.insert(task.id());
        world.core.each_waiting(Some(caller), each);
        assert_eq!(found, tasks);
    }
    let found = |of| world.core.find_waiting(of, |_, _| true).len();
    assert_eq!((found(Some(more)), found(None)), (4, 3 * 5 + 4));
}

#[test]
fn if_all_tasks_of_a_caller_are_in_line_only_it_is_searched() {
    let mut world = World::new();
    let (_, more) = of_each_kind(&mut world, 3);
    let before = slots_visited();
    let found = world.core.find_waiting(Some(more), |_, _| true);
    assert_eq!((found.len(), slots_visited()), (4, before));
}

#[test]
fn a_group_is_cancelled_wherever_its_tasks_are() {
    let mut world = World::new();
    let caller = world.caller(1);
    let mut group = || world.core.add_group(caller, Limit::Unlimited, 100).unwrap();
    let group = [group(), group()];
    let places = [Some(group[0]), Some(group[1]), None].map(|group| Placing {
        group,
        ..Placing::default()
    });
    let submit = |world: &mut World, placing| {
        world.core.submit(caller, placing, Awaits, NOW);
        world.core.last
    };
    let polled = places.map(|placing| {
        [(); 2].map(|()| {
            let task = submit(&mut world, placing);
            assert_eq!(world.claim(), Some(task));
            world.suspend(task);
            task
        })
    });
    let after = Duration::from_secs(1);
    let delayed = places.map(|placing| submit(&mut world, Placing { after, ..placing }));
    let in_line = places.map(|placing| submit(&mut world, placing));
    polled.iter().for_each(|&[woken, _]| world.wake(woken));
    world.core.cancel_group(group[0], NOW);
    let ended = world.core.todo.ended.iter().map(|ended| ended.tag.id);
    let [woken, awaits] = polled[0];
    assert!(ended.eq([in_line[0], woken, awaits, delayed[0]]));
}

#[test]
fn if_no_future_awaits_a_cancelled_group_looks_at_none() {
    let mut world = World::new();
    let caller = world.caller(1);
    let group = world.core.add_group(caller, Limit::SERIAL, 100).unwrap();
    let task = world.submit(caller);
    assert_eq!(world.claim(), Some(task));
    let before = slots_visited();
    world.core.cancel_group(group, NOW);
    assert_eq!(slots_visited(), before);
}
