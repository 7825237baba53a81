//! How the core records that tasks have ended.

use std::time::Duration;

use crate::backlog::InFlight;
use crate::lanes::LaneKey;
use crate::slab::Key;
use crate::sync::Arc;
use crate::wait::WakeBatch;

use super::core::Core;
use super::outcome::{Ending, TaskId};
use super::stall::Target;
use super::task_state::{Body, Open, Tag};

/// Tasks of one caller and tier that ended so one after the other: they are counted together.
#[derive(Default)]
pub(super) struct Series {
    of: Option<Of>,
    last: TaskId,
    tasks: u32,
    /// Those of them that were alone.
    alone: u32,
    /// Those of them that were futures and had been woken.
    woken: u32,
}

/// Whose tasks they are: those of a lane and tier, from after one task to another.
#[derive(Clone, Copy)]
struct Of {
    caller: Key,
    lane: LaneKey,
    tier: u32,
    ending: Ending,
    /// The last that its synchronize covers; these are covered if they are not later.
    closed: TaskId,
    covered: bool,
}

impl Of {
    #[inline]
    fn has(&self, id: TaskId, InFlight { lane, tier, .. }: InFlight, ending: Ending) -> bool {
        (lane, tier, ending, id <= self.closed) == (self.lane, self.tier, self.ending, self.covered)
    }
}

impl<J: Body> Core<J> {
    /// A running task ended; its worker looks for the next. If that skips other
    /// tasks of its caller they are skipped here, under the same lock, before a
    /// higher tier can start: as many steps as [`each_waiting`](Self::each_waiting), for a
    /// failure in a lower tier than any before.
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
        let mut series = Series::default();
        self.end(tag, (1, true), ending, now, &mut series, wakes);
        self.count_series(&mut series, wakes);
    }

    /// A running task ended, whatever its worker does now, or so many that ended well;
    /// `held`: with what it held. It is counted with the others of the `series`, which is to be
    /// [counted](Self::count_series) before anything else.
    #[inline]
    pub(super) fn end(
        &mut self,
        tag: Tag,
        (tasks, held): (u32, bool),
        ending: Ending,
        now: Duration,
        series: &mut Series,
        wakes: &mut WakeBatch,
    ) {
        // What is known of one by its number was known before it joined others.
        if tasks == 1 {
            self.forget(tag.id);
        }
        let gone = tag.future.and_then(|future| self.futures.remove(future));
        // Since its first poll.
        let begun = gone.filter(|gone| gone.begun.is_some());
        let holds = begun.as_ref().map_or(tag.holds, |begun| begun.tag.holds);
        if !series.of.is_some_and(|of| of.has(tag.id, holds, ending)) {
            self.count_series(series, wakes);
            let InFlight { lane, tier, .. } = holds;
            let caller = self.caller_of(lane);
            let closed = self.caller(caller).closed();
            series.of = Some(Of {
                caller,
                lane,
                tier,
                ending,
                closed,
                covered: tag.id <= closed,
            });
        }
        match holds.group {
            Some(group) if held => self.backlog.complete(group, holds.tier),
            Some(_) => {}
            None => series.alone += tasks,
        }
        series.woken += u32::from(begun.is_some());
        series.tasks += tasks;
        series.last = tag.id;
        if ending.is_failure() {
            self.count_series(series, wakes);
            self.fail(holds, now, wakes);
        }
    }

    /// A task that held this failed: others may be skipped for that.
    #[cold]
    fn fail(&mut self, holds: InFlight, now: Duration, wakes: &mut WakeBatch) {
        let caller = self.caller_of(holds.lane);
        // Gone, if that was its last.
        let c = self.callers.get_mut(caller);
        if c.is_some_and(|c| c.failed(holds.tier)) {
            self.skip(caller, now, wakes);
        }
    }

    /// Counts what has ended in the series, which is empty then.
    pub(super) fn count_series(&mut self, series: &mut Series, wakes: &mut WakeBatch) {
        let Series {
            of,
            last,
            tasks,
            alone,
            woken,
        } = std::mem::take(series);
        let Some(Of {
            caller,
            lane,
            tier,
            ending,
            ..
        }) = of
        else {
            return;
        };
        if alone > 0 {
            self.backlog.complete_alone(lane, tier, alone);
        }
        if let Some(lane) = self.caller(caller).woken_lane.filter(|_| woken > 0) {
            self.backlog.complete_alone(lane, 0, woken);
        }
        self.count(caller, last, Some(ending), tasks, wakes);
    }

    /// A task, whose entry this is if it is a future, has ended: nothing is left of it.
    #[inline]
    pub(super) fn conclude(
        &mut self,
        (id, caller, future): Open,
        ending: Ending,
        wakes: &mut WakeBatch,
    ) {
        if let Some(future) = future {
            self.futures.remove(future);
        }
        self.forget(id);
        self.count(caller, id, Some(ending), 1, wakes);
    }

    /// A task has ended: what was known of it by its number.
    #[inline]
    fn forget(&mut self, id: TaskId) {
        if !self.told_to_end.is_empty() {
            self.told_to_end.remove(&id);
        }
        self.stalls.ended(Target::Task(id));
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
