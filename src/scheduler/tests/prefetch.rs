//! Prefetched tasks, step by step: when they go back, and what the core knows of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::backlog::GroupKey;
use crate::limit::{Bypass, Limit};
use crate::scheduler::caller::CallerOptions;
use crate::scheduler::cell::{Cell, Function};
use crate::scheduler::core::Core;
use crate::scheduler::local_queue::{LocalQueue, Report, RunResult, next};
use crate::scheduler::outcome::{Ending, TaskId};
use crate::scheduler::stall::Target;
use crate::scheduler::state::State;
use crate::scheduler::status::Why;
use crate::scheduler::task_state::{Ended, Location, Placing, Tag};
use crate::slab::Key;
use crate::wait::WakeBatch;

type Work = Arc<dyn crate::scheduler::cell::Job>;

pub(super) struct World {
    pub(super) state: State,
    pub(super) caller: Key,
    pub(super) wakes: WakeBatch,
    now: Duration,
    /// By number, from 1.
    tasks: Vec<Location>,
    /// The tasks that workers have or had.
    tags: BTreeMap<usize, Tag>,
}

/// A task that does nothing.
fn job() -> Work {
    Arc::new(Cell::new(Function(|| Ok::<(), ()>(())), None))
}

impl World {
    fn new(workers: u32, claims: u32) -> Self {
        let mut core = Core::new(workers, Bypass::default()).unwrap();
        let caller = core.add_caller(Arc::from("main"), &CallerOptions::default());
        Self {
            state: State::new(core, claims),
            caller: caller.unwrap(),
            wakes: WakeBatch::new(),
            now: Duration::ZERO,
            tasks: vec![],
            tags: BTreeMap::new(),
        }
    }

    pub(super) fn with_tasks(workers: u32, claims: u32, tasks: usize) -> Self {
        let mut world = Self::new(workers, claims);
        world.submit(tasks);
        world
    }

    pub(super) fn submit(&mut self, tasks: usize) {
        (0..tasks).for_each(|_| self.submit_of(self.caller));
    }

    /// Submits one task of this caller.
    pub(super) fn submit_of(&mut self, caller: Key) {
        self.submit_to(caller, None);
    }

    pub(super) fn submit_to(&mut self, caller: Key, group: Option<GroupKey>) {
        let (core, job): (_, Work) = (&mut self.state.core, job());
        let placing = Placing {
            group,
            ..Placing::default()
        };
        let task = core.submit(caller, placing, job, self.now);
        self.tasks.push(task);
    }

    pub(super) fn task(&self, n: usize) -> Location {
        self.tasks[n - 1]
    }

    fn number(&mut self, tag: Tag) -> usize {
        let n = tag.id.get() as usize;
        self.tags.insert(n, tag);
        n
    }

    pub(super) fn claim(
        &mut self,
        worker: u32,
        most: u32,
    ) -> Option<(usize, Option<Arc<LocalQueue>>)> {
        self.now += Duration::from_secs(1);
        let first = self.state.claim(worker, most, self.now, &mut self.wakes)?;
        let queue = self.state.queue(worker);
        let more = !queue.lock().waiting.is_empty();
        Some((self.number(first.tag), more.then_some(queue)))
    }

    fn ran(&self, n: usize, ending: Ending) -> Report {
        let result = RunResult::Ended(ending);
        let ran = Report::new(self.tags[&n], self.now);
        Report { result, ..ran }
    }

    pub(super) fn finish(&mut self, worker: u32, n: usize) -> Option<usize> {
        let ran = self.ran(n, Ending::Ok);
        let next = self.state.finish(worker, ran, self.now, &mut self.wakes);
        next.map(|next| self.number(next.tag))
    }

    /// The worker goes on with its local queue. Returns the number of the next task.
    pub(super) fn next(&mut self, queue: &LocalQueue, n: usize) -> Option<usize> {
        self.now += Duration::from_secs(1);
        let mut ran = self.ran(n, Ending::Ok);
        next(queue, &mut ran).map(|_| self.number(ran.tag))
    }

    /// Whether the core has recorded the ending of this task.
    fn has_ended(&mut self, n: usize) -> bool {
        let unfinished = self.unfinished();
        !unfinished.contains(&(n as u64))
    }

    /// The tasks that have not ended, as far as the core knows.
    fn unfinished(&self) -> Vec<u64> {
        let status = self.state.core.status(0);
        let waiting = status.waiting.iter().map(|task| task.id.get());
        let running = status.running.iter().map(|task| task.id.get());
        waiting.chain(running).collect()
    }

    /// The numbers of the tasks that run and of those that wait, by the status.
    fn status(&mut self) -> (Vec<u64>, Vec<u64>) {
        let status = self.state.exact(&mut self.wakes).status(0);
        assert!(status.waiting.iter().all(|t| t.why == Why::Worker));
        let waiting = status.waiting.iter().map(|t| t.id.get());
        let running = status.running.iter().map(|t| t.id.get());
        (running.collect(), waiting.collect())
    }

    /// All tasks that the worker takes from its local queue, from task `n` on.
    pub(super) fn rest(&mut self, queue: &LocalQueue, mut n: usize) -> Vec<usize> {
        let mut all = vec![];
        while let Some(next) = self.next(queue, n) {
            all.push(next);
            n = next;
        }
        all
    }
}

#[test]
fn a_worker_claims_its_share_in_order_up_to_the_maximum() {
    for (workers, claims, most, tasks, takes) in [
        (2, 8, 99, 20, 8),
        (2, 8, 5, 20, 5),
        (2, 8, 99, 8, 4),
        (2, 8, 99, 4, 2),
        (2, 8, 99, 3, 1),
        (2, 1, 99, 20, 1),
        (1, 8, 99, 3, 3),
        (1, 8, 1, 3, 1),
        (64, 8, 99, 127, 1),
    ] {
        let mut world = World::with_tasks(workers, claims, tasks);
        let (first, queue) = world.claim(1, most).unwrap();
        assert_eq!((first, queue.is_some()), (1, takes > 1), "{tasks} tasks");
        if let Some(queue) = queue {
            let rest: Vec<usize> = (2..=takes).collect();
            assert_eq!(world.rest(&queue, 1), rest, "{tasks} tasks");
        }
    }
}

/// Enough tasks are left to request every other worker.
#[test]
fn a_claim_leaves_work_for_every_free_worker() {
    for workers in 1..10 {
        for tasks in 1..100 {
            let mut world = World::with_tasks(workers, 1_000, tasks);
            let (_, queue) = world.claim(1, 1_000).unwrap();
            let left = world.state.core.startable(u64::MAX);
            assert!(queue.is_none() || left + 1 >= u64::from(workers));
            assert!(world.state.decide(&mut world.wakes));
            let sent_for = world.state.core.todo.to_start.len() as u64;
            assert_eq!(sent_for, left.min(u64::from(workers) - 1));
        }
    }
}

#[test]
fn tasks_that_have_not_started_go_back_to_their_places() {
    let mut world = World::with_tasks(2, 4, 10);
    let (first, queue) = world.claim(1, 4).unwrap();
    let queue = queue.unwrap();
    assert_eq!(world.next(&queue, first), Some(2));
    // 1 has ended, 2 runs, the worker has 3 and 4; the status shows all that.
    assert_eq!(world.status(), (vec![2], (3..=10).collect()));
    assert!(world.has_ended(1));
    assert_eq!(world.next(&queue, 2), None, "they went back");
    assert_eq!(world.finish(1, 2), None);
    let order: Vec<usize> = (0..8).map(|_| world.claim(1, 1).unwrap().0).collect();
    assert_eq!(order, (3..=10).collect::<Vec<_>>());
}

#[test]
fn prefetched_tasks_have_their_own_times() {
    let mut world = World::with_tasks(1, 4, 4);
    let (first, queue) = world.claim(1, 4).unwrap();
    let queue = queue.unwrap();
    let begun = world.now + Duration::from_secs(1);
    world.next(&queue, first);
    let status = world.state.exact(&mut world.wakes).status(0);
    assert_eq!(
        (status.running[0].id.get(), status.running[0].start),
        (2, begun)
    );
    assert!(world.has_ended(1));
}

#[test]
fn only_tasks_that_have_not_started_can_be_cancelled() {
    let mut world = World::with_tasks(2, 4, 10);
    let (first, queue) = world.claim(1, 4).unwrap();
    let queue = queue.unwrap();
    world.next(&queue, first);
    for (n, cancels) in [(1, false), (2, false), (4, true), (4, false)] {
        let (task, now) = (world.task(n), world.now);
        let exact = world.state.exact(&mut world.wakes);
        assert_eq!(exact.cancel(task, now), cancels, "{n}");
    }
    assert_eq!(world.finish(1, 2), None);
    assert_eq!(world.claim(1, 1).unwrap().0, 3);
    assert_eq!(world.claim(2, 1).unwrap().0, 5);
}

/// Before that, the core takes the first task of the claim for the running one.
#[test]
fn the_exact_state_knows_of_each_task_that_has_run() {
    for n in [1, 2] {
        let mut world = World::with_tasks(1, 4, 4);
        let (first, queue) = world.claim(1, 4).unwrap();
        let queue = queue.unwrap();
        (1..=n).for_each(|n| _ = world.next(&queue, first + n - 1));
        world.state.exact(&mut world.wakes);
        assert!(world.has_ended(n), "{n} of 4");
    }
}

#[test]
fn a_worker_that_finds_nothing_takes_unstarted_tasks_of_another() {
    let mut world = World::with_tasks(1, 4, 4);
    let (_, queue) = world.claim(1, 4).unwrap();
    assert!(queue.is_some() && world.state.core.startable(u64::MAX) == 0);
    world.state.core.workers.set_max(2).unwrap();
    let (second, _) = world.claim(2, 1).unwrap();
    assert_eq!(second, 2);
    assert!(world.state.is_exact());
    assert_eq!(world.next(&queue.unwrap(), 1), None);
    assert_eq!(world.finish(1, 1), None);
    assert_eq!(world.claim(1, 1).unwrap().0, 3);
}

/// One worker's task never ends; the other always finds more tasks.
#[test]
fn tasks_behind_a_long_one_are_overtaken_by_so_many_and_no_more() {
    let mut world = World::with_tasks(2, 4, 100);
    world.claim(1, 4).unwrap();
    let mut overtook = 0;
    loop {
        let (n, queue) = world.claim(2, 4).unwrap();
        if n == 2 {
            break;
        }
        let last = match queue {
            Some(queue) => *world.rest(&queue, n).last().unwrap(),
            None => n,
        };
        overtook += last - n + 1;
        assert_eq!(world.finish(2, last), None);
    }
    assert_eq!(overtook, 16, "twice what two workers may have");
}

#[test]
fn a_task_that_blocks_has_nothing_behind_it() {
    // With one worker nothing can go on: a stall.
    for workers in [1, 2] {
        let mut world = World::with_tasks(workers, 4, 8);
        let (_, queue) = world.claim(1, 4).unwrap();
        assert!(queue.is_some());
        let target = Target::Task(TaskId(2));
        let exact = world.state.exact(&mut world.wakes);
        exact.block(1, vec![target], Waker::noop(), false);
        assert!(world.state.decide(&mut world.wakes));
        assert_eq!(world.state.core.stalls.gives_up(1), workers == 1);
        if workers == 2 {
            assert_eq!(world.claim(2, 4).unwrap().0, 2);
        }
    }
}

#[test]
fn a_synchronize_does_not_wait_for_a_later_task() {
    let mut world = World::with_tasks(1, 8, 4);
    assert_eq!(world.state.core.synchronize(world.caller), Poll::Pending);
    world.submit(10);
    let (_, queue) = world.claim(1, 8).unwrap();
    assert_eq!(world.rest(&queue.unwrap(), 1), [2, 3, 4]);
    world.finish(1, 4);
    let synced = world.state.core.caller_mut(world.caller).synced();
    assert!(matches!(synced, Poll::Ready(Ok(summary)) if summary.ok == 4));
}

/// Worker 1 has run 1 and runs 2, which is not covered. A claim or cancel of the last covered task
/// clears its local queue.
#[test]
fn the_last_covered_task_brings_in_the_endings_of_other_workers() {
    for cancels in [false, true] {
        let mut world = World::with_tasks(2, 8, 1);
        world.state.core.records = false;
        let options = CallerOptions::default();
        let other = world.state.core.add_caller(Arc::from("other"), &options);
        let main = std::mem::replace(&mut world.caller, other.unwrap());
        world.submit(1);
        world.caller = main;
        world.submit(1);
        assert!(world.state.core.synchronize(main).is_pending());
        world.submit(9);
        let (first, queue) = world.claim(1, 2).unwrap();
        assert_eq!(world.next(&queue.unwrap(), first), Some(2));
        assert!(!world.has_ended(1));
        if cancels {
            let (task, now) = (world.task(3), world.now);
            world.state.core.cancel(task, now);
            assert!(world.state.decide(&mut world.wakes));
            let Ended { tag, ending, .. } = world.state.core.todo.ended.remove(0);
            world.state.core.dropped(tag, ending, &mut world.wakes);
            let synced = world.state.core.caller_mut(main).synced();
            assert!(matches!(synced, Poll::Ready(Ok(s)) if (s.ok, s.cancelled) == (1, 1)));
        } else {
            assert_eq!(world.claim(2, 1).unwrap().0, 3);
        }
        assert!(world.has_ended(1));
    }
}

#[test]
fn a_failure_is_reported_at_once_and_the_worker_goes_on_with_its_local_queue() {
    let mut world = World::with_tasks(1, 4, 4);
    let (_, queue) = world.claim(1, 4).unwrap();
    let queue = queue.unwrap();
    for ending in [Ending::Failed, Ending::Panicked] {
        let mut ran = world.ran(1, ending);
        assert!(next(&queue, &mut ran).is_none());
        assert!(matches!(ran.result, RunResult::Ended(told) if told == ending));
    }
    let ran = world.ran(1, Ending::Failed);
    let next = world.state.finish(1, ran, world.now, &mut world.wakes);
    assert_eq!(world.number(next.unwrap().tag), 2);
    assert!(world.has_ended(1) && world.state.core.workers.busy() == 1);
    assert_eq!(world.rest(&queue, 2), [3, 4]);
}

#[test]
fn the_unstarted_tasks_of_a_lost_worker_go_back() {
    let mut world = World::with_tasks(1, 4, 4);
    let (first, queue) = world.claim(1, 4).unwrap();
    world.next(&queue.unwrap(), first);
    world.state.leave(1, &mut world.wakes);
    assert!(world.has_ended(1));
    assert_eq!(world.state.core.workers.live(), 0);
    assert_eq!(world.claim(1, 1).unwrap().0, 3);
}

#[test]
fn claimed_tasks_count_in_the_cap() {
    let mut world = World::with_tasks(2, 8, 20);
    world
        .state
        .core
        .set_cap(world.caller, Limit::AtMost(4))
        .unwrap();
    let (_, queue) = world.claim(1, 8).unwrap();
    assert_eq!(
        world.state.core.startable(u64::MAX),
        2,
        "a share of what the cap allows"
    );
    assert_eq!(world.rest(&queue.unwrap(), 1), [2]);
}
