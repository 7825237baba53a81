//! Tasks that were posted together, and are claimed together.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::waiting;
use crate::backlog::GroupKey;
use crate::limit::{Bypass, Limit};
use crate::scheduler::caller::{CallerOptions, OnFailure, Synced};
use crate::scheduler::cell::{Cell, DetachedCell, Function, HasOutcome, Job};
use crate::scheduler::core::Core;
use crate::scheduler::local_queue::{LocalQueue, Report, RunResult, Work, next};
use crate::scheduler::outcome::{Ending, TaskId};
use crate::scheduler::spawn::Stage;
use crate::scheduler::stall::Target;
use crate::scheduler::state::State;
use crate::scheduler::summary::Summary;
use crate::scheduler::task_state::{Ended, Location, Placing, Tag, Waiting};
use crate::slab::Key;
use crate::wait::WakeBatch;

type Plain = fn() -> Result<(), ()>;

/// A state without a log.
pub(super) struct World {
    pub(super) state: State,
    pub(super) caller: Key,
    pub(super) wakes: WakeBatch,
    /// By number, from 1.
    cells: Vec<Arc<Cell<Function<Plain>>>>,
}

/// What a worker has: the task that it runs, and where there are more.
pub(super) struct Worker {
    n: u32,
    pub(super) tag: Tag,
    pub(super) queue: Arc<LocalQueue>,
}

pub(super) const NOW: Duration = Duration::ZERO;

impl World {
    pub(super) fn new(workers: u32) -> Self {
        let mut core = Core::new(workers, Bypass::default()).unwrap();
        core.records = false;
        let options = CallerOptions {
            on_failure: OnFailure::SkipHigherTiers,
            ..CallerOptions::default()
        };
        let caller = core.add_caller(Arc::from("main"), &options);
        Self {
            state: State::new(core, 32),
            caller: caller.unwrap(),
            wakes: WakeBatch::new(),
            cells: vec![],
        }
    }

    /// From now on a failure skips nothing.
    pub(super) fn skip_nothing(&mut self) {
        let caller = self.state.core.callers.get_mut(self.caller).unwrap();
        caller.on_failure = OnFailure::Continue;
    }

    pub(super) fn job(&mut self) -> Arc<dyn Job> {
        let cell = Arc::new(Cell::new(Function((|| Ok(())) as Plain), None));
        self.cells.push(Arc::clone(&cell));
        cell
    }

    /// Submits tasks as if they had been posted.
    pub(super) fn post(&mut self, tasks: usize) {
        let first = self.state.core.last.0 + 1;
        let run = (first..).take(tasks);
        let run = run.map(|id| Some(waiting(id, true, self.job())));
        let run = run.collect();
        self.submit_run(run);
    }

    /// The same; those that are futures have no cells.
    pub(super) fn post_mixed(&mut self, futures: &[bool]) {
        let first = self.state.core.last.0 + 1;
        let run = (first..).zip(futures).map(|(id, &future)| {
            let job = if future { awaits(None) } else { self.job() };
            Some(waiting(id, false, job))
        });
        let run = run.collect();
        self.submit_run(run);
    }

    fn submit_run(&mut self, run: Vec<Option<Waiting<Work>>>) {
        let posted = super::posted(self.caller, Placing::default(), run);
        self.state.core.submit_posted(posted);
    }

    pub(super) fn submit(&mut self, group: Option<GroupKey>, tier: u32) {
        let placing = Placing {
            group,
            tier: Some(tier),
            ..Placing::default()
        };
        let job = self.job();
        self.state.core.submit(self.caller, placing, job, NOW);
    }

    pub(super) fn serial_group(&mut self) -> GroupKey {
        let group = self.state.core.add_group(self.caller, Limit::SERIAL, 100);
        group.unwrap()
    }

    pub(super) fn at(&self, n: usize) -> Location {
        let slot = self.cells[n - 1].slot();
        slot.location().expect("it was submitted")
    }

    pub(super) fn claim(&mut self, n: u32, most: u32) -> Option<Worker> {
        let tag = self.state.claim(n, most, NOW, &mut self.wakes)?.tag;
        let queue = self.state.queue(n);
        Some(Worker { n, tag, queue })
    }

    pub(super) fn finish(&mut self, worker: &Worker, ending: Ending) -> Option<Worker> {
        let ran = worker.ran(RunResult::Ended(ending));
        let next = self.state.finish(worker.n, ran, NOW, &mut self.wakes);
        self.drop_ended();
        let (n, tag, queue) = (worker.n, next?.tag, Arc::clone(&worker.queue));
        Some(Worker { n, tag, queue })
    }

    /// The tasks that ended without a worker are dropped, and count.
    pub(super) fn drop_ended(&mut self) {
        for Ended { tag, ending, .. } in std::mem::take(&mut self.state.core.todo.ended) {
            self.state.core.dropped(tag, ending, &mut self.wakes);
        }
    }

    /// The worker runs its tasks, and claims no more. Returns their numbers, in order.
    pub(super) fn rest(&mut self, mut worker: Worker) -> Vec<u64> {
        let mut all = vec![worker.id()];
        while worker.next() {
            all.push(worker.id());
        }
        assert!(self.finish(&worker, Ending::Ok).is_none());
        all
    }

    /// Claims and runs all tasks, one after the other.
    pub(super) fn drain(&mut self) -> Vec<u64> {
        let mut all = vec![];
        while let Some(worker) = self.claim(1, 1) {
            all.extend(self.rest(worker));
        }
        all
    }

    pub(super) fn cancel(&mut self, n: usize) -> bool {
        let at = self.at(n);
        let cancelled = self.state.core.cancel(at, NOW);
        self.drop_ended();
        cancelled
    }

    pub(super) fn synchronize(&mut self) -> Synced {
        self.state.core.synchronize(self.caller)
    }

    pub(super) fn synced(&mut self) -> Option<Summary> {
        match self.state.core.caller_mut(self.caller).synced() {
            Poll::Ready(Ok(summary)) => Some(summary),
            _ => None,
        }
    }

    /// The summary of all tasks, which have ended.
    pub(super) fn summary(&mut self) -> Summary {
        match self.synchronize() {
            Poll::Ready(Ok(summary)) => summary,
            synced => panic!("all have ended: {synced:?}"),
        }
    }

    /// Nothing is left of any task.
    pub(super) fn check_empty(&mut self) {
        let core = self.state.exact(&mut self.wakes);
        assert_eq!((core.unfinished, core.suspended), (0, 0));
        assert!(core.stalls.is_empty());
        assert_eq!((core.backlog.waiting(), core.backlog.in_flight()), (0, 0));
        assert_eq!(core.backlog.lane(core.caller(self.caller).lane).in_use, 0);
        assert!(core.running.iter().all(Option::is_none));
    }
}

/// A future that does nothing.
pub(super) fn awaits(label: Option<&str>) -> Arc<dyn Job> {
    let stage = Stage::New(std::future::ready(Ok::<_, ()>(())));
    Arc::new(DetachedCell::new(stage, label.map(Arc::from)))
}

impl Worker {
    pub(super) fn id(&self) -> u64 {
        self.tag.id.0
    }

    pub(super) fn ran(&self, result: RunResult) -> Report {
        let ran = Report::new(self.tag, NOW);
        Report { result, ..ran }
    }

    /// Its task ended as `Ok`. Returns whether there is a next one in its local queue.
    pub(super) fn next(&mut self) -> bool {
        self.goes_on(RunResult::Ended(Ending::Ok))
    }

    pub(super) fn goes_on(&mut self, result: RunResult) -> bool {
        let mut ran = self.ran(result);
        let next = next(&self.queue, &mut ran);
        next.map(|_| self.tag = ran.tag).is_some()
    }
}

/// Two of five are reported; then a synchronize closes its epoch; then the others end.
#[test]
fn a_run_that_is_reported_in_two_parts_is_counted_once() {
    let mut world = World::new(1);
    world.post(5);
    let mut worker = world.claim(1, 9).unwrap();
    assert!(worker.next() && worker.next());
    world.state.exact(&mut world.wakes);
    assert_eq!((world.state.core.unfinished, worker.next()), (3, false));
    assert_eq!(world.synchronize(), Poll::Pending);
    world.post(3);
    assert!(world.finish(&worker, Ending::Ok).is_none());
    assert_eq!(world.synced(), None);
    let worker = world.claim(1, 9).unwrap();
    assert_eq!(world.rest(worker), [4, 5]);
    let ok = |synced: Option<Summary>| synced.map(|summary| (summary.ok, summary.tasks));
    assert_eq!(ok(world.synced()), Some((5, 5)));
    assert_eq!(world.drain(), [6, 7, 8]);
    assert_eq!(world.summary().ok, 3);
    world.check_empty();
}

/// A claim ends with the last task that somebody waits for.
#[test]
fn a_claim_from_a_run_ends_with_the_last_awaited_task() {
    let mut world = World::new(1);
    world.post(6);
    assert!(world.synchronize().is_pending());
    (1..=3).for_each(|n| assert!(world.cancel(n)));
    world.post(9);
    let worker = world.claim(1, 20).unwrap();
    assert_eq!(world.rest(worker), [4, 5, 6]);
    assert_eq!(world.synced().map(|summary| summary.ok), Some(3));
}

#[test]
fn a_cancel_in_the_middle_of_a_run_leaves_the_others() {
    for (n, left) in [(1, [2, 3, 4]), (3, [1, 2, 4]), (4, [1, 2, 3])] {
        let mut world = World::new(1);
        world.post(4);
        assert!(world.cancel(n) && !world.cancel(n));
        let worker = world.claim(1, 9).unwrap();
        assert_eq!(world.rest(worker), left, "without {n}");
        world.check_empty();
    }
}

/// They are in a local queue, which must be cleared first.
#[test]
fn a_claimed_task_can_be_cancelled_when_it_has_gone_back() {
    for group in [false, true] {
        let mut world = World::new(1);
        world.post(3);
        let serial = world.serial_group();
        match group {
            false => world.post(4),
            true => (0..4).for_each(|_| world.submit(Some(serial), 0)),
        }
        world.post(8);
        let worker = world.claim(1, 20).unwrap();
        assert!(!world.cancel(2), "the worker has it");
        world.state.exact(&mut world.wakes);
        assert!(world.cancel(6) && world.cancel(2) && !world.cancel(1));
        assert!(world.finish(&worker, Ending::Ok).is_none());
        let mut order = world.drain();
        order.retain(|&id| id <= 7);
        assert_eq!(order, [3, 4, 5, 7]);
        world.check_empty();
    }
}

#[test]
fn a_bumped_task_in_the_middle_of_a_run_goes_first() {
    let mut world = World::new(1);
    world.post(5);
    let old = world.at(3);
    world.state.core.bump(old, 7).unwrap();
    let (new, fifth) = (world.at(3), world.at(5));
    assert_ne!(new, old);
    let waiting = world.state.core.find_waiting(None, |_, _| true);
    assert!(!waiting.contains(&old) && waiting.contains(&new));
    world.state.core.bump(fifth, 7).unwrap();
    assert!(world.cancel(5));
    let worker = world.claim(1, 9).unwrap();
    assert_eq!(world.rest(worker), [3, 1, 2, 4]);
    world.check_empty();
}

/// The task waits for the third of eight, which the other worker has claimed together.
#[test]
fn a_wait_for_a_task_of_a_run_is_not_stalled_when_it_has_run() {
    let mut world = World::new(2);
    world.post(1);
    let waits = world.claim(1, 1).unwrap();
    world.post(8);
    let target = Target::Task(TaskId(4));
    let core = world.state.exact(&mut world.wakes);
    core.block(1, vec![target], Waker::noop(), false);
    let mut other = world.claim(2, 9).unwrap();
    while other.id() < 6 {
        if !other.next() {
            assert!(world.finish(&other, Ending::Ok).is_none());
            other = world.claim(2, 9).unwrap();
        }
    }
    world.state.exact(&mut world.wakes);
    assert!(world.state.core.stalls.is_empty(), "all has ended");
    assert!(world.finish(&other, Ending::Ok).is_none());
    assert!(world.finish(&waits, Ending::Ok).is_none());
    world.drain();
    world.check_empty();
}

/// One report has the end of a future, or that it awaits, between the ends of other tasks.
#[test]
fn futures_of_a_run_end_one_by_one() {
    for suspends in [false, true] {
        for at in 1..6 {
            let mut world = World::new(1);
            world.post_mixed(&[0, 1, 2, 3, 4, 5, 6].map(|n| n == at));
            let mut worker = world.claim(1, 20).unwrap();
            while worker.tag.future.is_none() {
                assert!(worker.next());
            }
            let future = worker.tag.future.unwrap();
            let result = match suspends {
                false => RunResult::Ended(Ending::Ok),
                true => RunResult::Suspended(awaits(None), false),
            };
            assert!(worker.goes_on(result));
            world.rest(worker);
            assert_eq!(world.state.core.futures.len(), usize::from(suspends));
            if suspends {
                world.state.core.wake_task(future);
                assert_eq!(world.drain(), [at + 1]);
            }
            assert_eq!(world.summary().ok, 7);
            assert!(world.state.core.futures.len() == 0);
            world.check_empty();
        }
    }
}

/// Two tasks of the caller become due in one event; both are skipped, and they are its last.
#[test]
fn a_caller_that_ends_among_due_tasks_is_left_alone() {
    let mut world = World::new(1);
    let group = world.serial_group();
    world.submit(None, 0);
    world.submit(Some(group), 1);
    let later = Placing {
        group: Some(group),
        after: Duration::from_secs(1),
        ..Placing::default()
    };
    for _ in 0..2 {
        let job = world.job();
        world.state.core.submit(world.caller, later, job, NOW);
    }
    let fails = world.claim(1, 1).unwrap();
    assert!(world.finish(&fails, Ending::Failed).is_none());
    assert_eq!(world.state.core.unfinished, 2);
    world.state.core.remove_handles(world.caller, NOW);
    world.state.advance(later.after, &mut world.wakes);
    world.drop_ended();
    assert_eq!(world.state.core.unfinished, 0);
}
