//! How a task enters the core, and how it is taken back.

use std::time::Duration;

use crate::slab::Key;
use crate::sync::Ordering::Relaxed;
use crate::wait::WakeBatch;

use super::clock::nanos;
use super::core::Core;
use super::local_queue::Work;
use super::outcome::{Ending, TaskId};
use super::posting::Posted;
use super::reject::Reason;
use super::task_state::{Body, Kind, Location, Placing, Waiting};

impl<J: Body> Core<J> {
    /// Whether tasks are accepted for this place: all of a batch, or none.
    pub(crate) fn admits(&self, caller: Key, placing: &Placing) -> Result<(), Reason> {
        let c = self.caller(caller);
        if self.closed || c.released {
            return Err(Reason::Closed);
        }
        if !placing.after.is_zero() && !self.clock.is_kept() {
            return Err(Reason::NoTicker);
        }
        let Some(group) = placing.group else {
            return Ok(());
        };
        if self.backlog.lane_of(group) != Some(c.lane) {
            return Err(Reason::ForeignGroup);
        }
        // The tier of a delayed task is checked when it is due.
        match placing.tier.filter(|_| placing.after.is_zero()) {
            Some(tier) => self
                .backlog
                .admits(group, tier)
                .map_err(Reason::TierGoesDown),
            None => Ok(()),
        }
    }

    /// Submits an [admitted](Self::admits) task, as one event. Returns where it waits. After a
    /// failure in a lower tier it is skipped at once.
    pub(crate) fn submit(
        &mut self,
        caller: Key,
        placing: Placing,
        job: J,
        queued: Duration,
    ) -> Location {
        let id = self.announce(caller, 1);
        let kind = Kind::new(true, job.is_future(), job.label().is_some());
        let task = Waiting::new(id, kind, nanos(queued), job);
        self.place(caller, placing, task, queued)
    }

    /// Counts tasks that must then be [placed](Self::place). Returns the number of the first.
    #[inline]
    pub(super) fn announce(&mut self, caller: Key, tasks: u64) -> TaskId {
        let first = TaskId(self.last.0 + 1);
        self.last.0 += tasks;
        self.unfinished += tasks;
        self.caller_mut(caller).submitted(tasks);
        first
    }

    /// Places an announced task. Returns where it waits.
    #[inline]
    pub(super) fn place(
        &mut self,
        caller: Key,
        placing: Placing,
        task: Waiting<J>,
        queued: Duration,
    ) -> Location {
        match placing.after.is_zero() {
            true => self.arrive(caller, task, placing, queued),
            false => self.put_off(caller, (task, placing), queued),
        }
    }

    /// Enqueues a task that is due.
    #[inline]
    pub(super) fn arrive(
        &mut self,
        caller: Key,
        task: Waiting<J>,
        placing: Placing,
        now: Duration,
    ) -> Location {
        let lane = self.caller(caller).lane;
        let Placing {
            group, tier, bump, ..
        } = placing;
        let (spot, tier) = self.backlog.send_to(lane, group, tier, bump, task);
        let at = Location::Backlog(spot);
        self.arrived(caller, tier, at, now);
        at
    }

    /// Skips a task that came after a failure.
    #[inline]
    pub(super) fn arrived(&mut self, caller: Key, tier: u32, at: Location, now: Duration) {
        let c = self.caller(caller);
        if tier > 0 {
            c.may_post.store(false, Relaxed);
        }
        if c.skips(tier) {
            self.withdraw(at, Ending::Skipped, now);
        }
    }

    /// Takes a waiting task back as if it had never been submitted, except that its group keeps the
    /// tier and the bump; `None` if it does not wait any more.
    pub(crate) fn retract(&mut self, at: Location, wakes: &mut WakeBatch) -> Option<J> {
        let (task, holds) = self.take_out(at)?;
        let caller = self.caller_of(holds.lane);
        self.taken(&task, caller);
        let entry = task.future().into_iter();
        entry.for_each(|future| _ = self.futures.remove(future));
        self.count(caller, task.id(), None, 1, wakes);
        Some(task.job)
    }
}

impl Core<Work> {
    /// [Submits](Self::submit) posted tasks, which are of tier 0, and which no failure skips.
    #[inline]
    pub(super) fn submit_posted(&mut self, posted: Posted) {
        let Posted {
            caller,
            placing: Placing { group, bump, .. },
            one,
            run,
            kinds,
        } = posted;
        let Some(task) = one else {
            self.announce(caller, run.len() as u64);
            let named = kinds.is_named();
            if let Some(group) = group {
                return self.backlog.send_several(group, bump, run, named);
            }
            let lane = self.caller(caller).lane;
            return self.backlog.send_run(lane, run, named, kinds.is_future());
        };
        self.announce(caller, 1);
        let lane = self.caller(caller).lane;
        self.backlog.send_to(lane, group, None, bump, task);
    }
}
