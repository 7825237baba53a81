//! How the core records endings.

use std::time::Duration;

use crate::backlog::{GroupKey, InFlight};
use crate::slab::Key;
use crate::sync::Arc;
use crate::wait::WakeBatch;

use super::core::Core;
use super::outcome::{Ending, TaskId};
use super::stall::Target;
use super::task_state::{Body, Tag};

impl<J: Body> Core<J> {
    /// A running task ended; its worker looks for the next one. If its failure skips other tasks of
    /// its caller, they are skipped here, before a higher tier can start: as many steps as
    /// [`each_waiting`](Self::each_waiting), for a failure in a lower tier than any before.
    pub(crate) fn finish(
        &mut self,
        n: u32,
        tag: Tag,
        ending: Ending,
        now: Duration,
        wakes: &mut WakeBatch,
    ) {
        self.workers.finished(n);
        self.set_running(n, None);
        self.end(tag, (1, tag.frees().as_slice()), ending, now, wakes);
    }

    /// A running task ended, or several of one claim ended as `Ok`. The groups of `free` are free
    /// after that. Says nothing about the worker.
    #[inline]
    pub(super) fn end(
        &mut self,
        tag: Tag,
        (tasks, free): (u32, &[GroupKey]),
        ending: Ending,
        now: Duration,
        wakes: &mut WakeBatch,
    ) {
        // Nobody is blocked for a task that joined others.
        if tasks == 1 {
            self.stalls.ended(Target::Task(tag.id));
        }
        let mut holds = tag.holds;
        let gone = tag.future.and_then(|future| self.futures.remove(future));
        if let Some(begun) = gone.filter(|gone| gone.begun.is_some()) {
            // Its turn in the lane of woken futures.
            self.backlog.finish(holds);
            holds = begun.holds;
        }
        let InFlight { lane, group, tier } = holds;
        let free = tag.future.map_or(free, |_| group.as_slice());
        // None, if the next task has taken over its unit.
        let units = group.map_or(tasks, |_| free.len() as u32);
        if units > 0 {
            self.backlog.finish_all(lane, tier, units, free);
        }
        let caller = self.caller_of(lane);
        if ending.is_failure() && self.caller_mut(caller).failed(tier) {
            self.skip(caller, now);
        }
        self.count(caller, tag.id, Some(ending), tasks, wakes);
    }

    /// A task that ended without a worker was logged, and its program was dropped.
    pub(crate) fn dropped(&mut self, tag: Tag, ending: Ending, wakes: &mut WakeBatch) {
        self.underway -= 1;
        let future = tag.future.and_then(|future| self.futures.remove(future));
        if future.is_some_and(|future| future.begun.is_some()) {
            self.suspended -= 1;
            self.backlog.finish(tag.holds);
        }
        self.stalls.ended(Target::Task(tag.id));
        let caller = self.caller_of(tag.holds.lane);
        self.count(caller, tag.id, Some(ending), 1, wakes);
    }

    /// Counts endings in the caller's state, of the epoch of this task, and wakes their waiters.
    #[inline]
    pub(super) fn count(
        &mut self,
        caller: Key,
        id: TaskId,
        how: Option<Ending>,
        tasks: u32,
        wakes: &mut WakeBatch,
    ) {
        self.unfinished -= u64::from(tasks);
        if let Some(how) = how {
            self.ended_so_far.count(id, how, tasks);
        }
        let c = self.callers.get_mut(caller).expect(HELD);
        // There is room before anybody knows of the end; waiters for it are served after the lock.
        if how.is_some() && c.capacity.put(tasks as usize) {
            self.todo.freed.push(Arc::clone(&c.capacity));
        }
        if c.ended(id, how, tasks) {
            self.end_epoch(caller, wakes);
        }
    }

    /// All tasks that a synchronize covers have ended, or all of the caller.
    #[cold]
    fn end_epoch(&mut self, caller: Key, wakes: &mut WakeBatch) {
        let c = self.callers.get_mut(caller).expect(HELD);
        if !c.is_synchronizing() {
            let waker = c.sync_waker().and_then(Option::take);
            wakes.extend(waker);
            self.stalls.ended(Target::Synchronize(caller));
        }
        if c.unfinished() == 0 {
            let waiters = c.released_waiters.as_mut();
            waiters
                .into_iter()
                .for_each(|w| while w.notify_next(wakes).is_some() {});
            self.stalls.ended(Target::Release(caller));
            self.reap_caller(caller);
        }
    }
}

const HELD: &str = "a task and its caller exist until it has ended";
