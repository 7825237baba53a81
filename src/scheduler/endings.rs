//! How the core records that tasks have ended.

use std::time::Duration;

use crate::slab::Key;
use crate::sync::Arc;
use crate::wait::WakeBatch;

use super::core::Core;
use super::outcome::{Ending, TaskId};
use super::stall::Target;
use super::task_state::Membership;

/// Tasks of one caller and tier that ended well one after the other, while nobody waited
/// for just one of them: they are counted together.
#[derive(Default)]
pub(super) struct Series {
    /// Their caller and tier, and whether its synchronize covers them.
    of: Option<(Key, u32, bool)>,
    last: TaskId,
    tasks: u32,
    /// Those of them that were alone.
    alone: u32,
}

impl<J> Core<J> {
    /// A running task ended; its worker looks for the next. If that skips other
    /// tasks of its caller they are skipped here, under the same lock, before a
    /// higher tier can start: O(tasks of all callers), for a failure in a
    /// lower tier than any before.
    pub(crate) fn finish(
        &mut self,
        task: Key,
        ending: Ending,
        now: Duration,
        wakes: &mut WakeBatch,
    ) {
        if let Some(worker) = self.worker_of(task) {
            self.workers.finished(worker);
        }
        self.conclude_run(task, ending, now, wakes);
    }

    /// A running task ended, whatever its worker does now.
    pub(super) fn conclude_run(
        &mut self,
        task: Key,
        ending: Ending,
        now: Duration,
        wakes: &mut WakeBatch,
    ) {
        let state = self.task(task);
        let (caller, tier) = (state.caller, state.tier);
        match state.membership {
            Membership::Group(group, _) => self.backlog.complete(group, tier),
            Membership::Begun(_) => self.end_begun(task),
            _ => self
                .backlog
                .complete_alone(self.caller(caller).lane, tier, 1),
        }
        if ending.is_failure() && self.caller_mut(caller).failed(tier) {
            self.skip(caller, now, wakes);
        }
        self.conclude(task, ending, wakes);
    }

    /// As [`conclude_run`](Self::conclude_run) of a task that ended well: it may be counted
    /// with the others of the `series`, which is to be [counted](Self::count_series) before
    /// anything else. False if it cannot.
    #[inline]
    pub(super) fn end_in_series(
        &mut self,
        task: Key,
        series: &mut Series,
        wakes: &mut WakeBatch,
    ) -> bool {
        let state = self.task(task);
        let (id, caller, tier) = (state.id, state.caller, state.tier);
        let group = match state.membership {
            Membership::Group(group, _) => Some(group),
            Membership::Alone(_) => None,
            Membership::Absent | Membership::Begun(_) => return false,
        };
        if state.waker.is_some() || !self.stalls.is_empty() {
            return false;
        }
        let of = Some((caller, tier, self.caller(caller).is_covered(id)));
        if series.of != of {
            self.count_series(series, wakes);
            series.of = of;
        }
        match group {
            Some(group) => self.backlog.complete(group, tier),
            None => series.alone += 1,
        }
        series.tasks += 1;
        series.last = id;
        self.tasks.remove_with(task, |there| *there = None);
        true
    }

    /// Counts what has ended in the series, which is empty then.
    pub(super) fn count_series(&mut self, series: &mut Series, wakes: &mut WakeBatch) {
        let Series {
            of,
            last,
            tasks,
            alone,
        } = std::mem::take(series);
        let Some((caller, tier, _)) = of else {
            return;
        };
        if alone > 0 {
            let lane = self.caller(caller).lane;
            self.backlog.complete_alone(lane, tier, alone);
        }
        self.count(caller, last, Some(Ending::Ok), tasks, wakes);
    }

    /// A task is forgotten with its ending.
    #[inline]
    pub(super) fn conclude(&mut self, key: Key, ending: Ending, wakes: &mut WakeBatch) {
        let removed = self.tasks.remove_with(key, |there| {
            let gone = there
                .as_mut()
                .map(|task| (task.id, task.caller, task.waker.take()));
            *there = None;
            gone
        });
        let (id, caller, waker) = removed.flatten().expect(HELD);
        self.stalls.ended(Target::Task(key));
        waker.into_iter().for_each(|w| wakes.push(w));
        self.count(caller, id, Some(ending), 1, wakes);
    }

    /// Counts endings in the caller's state, up to this task, and wakes who waits for them.
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
        let c = self.callers.get_mut(caller).expect(HELD);
        if let Some(capacity) = c.capacity.as_ref().filter(|_| how.is_some()) {
            // There before anybody is told; who waits for it is served after the lock.
            if capacity.put(tasks as usize) {
                self.freed.push(Arc::clone(capacity));
            }
        }
        if c.ended(id, how, tasks) {
            self.end_epoch(caller, wakes);
        }
    }

    /// The caller has ended what a synchronize covers, or all that it had.
    #[cold]
    fn end_epoch(&mut self, caller: Key, wakes: &mut WakeBatch) {
        let c = self.callers.get_mut(caller).expect(HELD);
        if !c.is_synchronizing() {
            let waker = c.sync_waker().and_then(Option::take);
            waker.into_iter().for_each(|w| wakes.push(w));
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
