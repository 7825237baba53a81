//! What may be done to a simulation while it runs.

use std::task::Poll;

use crate::error::{OutOfRange, Stale, Stalled};
use crate::limit::Limit;
use crate::scheduler::{Counts, Location, Summary, SyncError};

use super::{CallerId, GroupId, SimTask, Simulation};

impl Simulation {
    /// How many tasks there are of what, at this instant.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.core.counts()
    }

    /// Bumps the group of a task; a future that has begun, itself: its next poll.
    ///
    /// # Errors
    ///
    /// [`Stale`] if the task has ended.
    pub fn bump(&mut self, task: &SimTask, level: u8) -> Result<(), Stale> {
        let at = self.find(task).ok_or(Stale)?;
        self.core.bump(at, level)
    }

    /// Cancels a task if it has not started, or is a future that awaits: true if so. One that
    /// is polled is cancelled when it awaits next.
    pub fn cancel(&mut self, task: &SimTask) -> bool {
        let at = self.find(task);
        let cancelled = at.is_some_and(|at| self.core.cancel(at, self.now));
        if at.is_some() && !cancelled {
            self.core.tell_to_end(task.id);
        }
        self.collect_unrun();
        cancelled
    }

    /// Wakes a task that is a future and awaits, as whatever it awaits would: false if it does
    /// not await. One that is polled just now does not await next.
    pub fn wake(&mut self, task: &SimTask) -> bool {
        let Some(Location::Future(future)) = self.find(task) else {
            return false;
        };
        let awaits = self.core.wake_task(future);
        let pause = task.job.set_pause(None);
        pause
            .into_iter()
            .for_each(|pause| _ = self.pauses.cancel(pause));
        awaits
    }

    /// Where a task of this simulation is to be looked for, if it has not ended.
    fn find(&self, task: &SimTask) -> Option<Location> {
        let task = Some(task).filter(|task| task.number == self.number);
        task?.job.location()
    }

    /// Cancels all of a caller's tasks that have not started, and its futures that await; one
    /// that is polled is cancelled when it awaits next. What is submitted later runs.
    pub fn cancel_all(&mut self, caller: CallerId) {
        let caller = self.key(caller);
        let (last, holds) = self.core.begin_cancel(Some(caller));
        for (.., at) in self.core.waiting_up_to(last, Some(caller)) {
            self.core.cancel(at, self.now);
        }
        if holds {
            self.core.unhold();
        }
        self.collect_unrun();
    }

    /// As [`synchronize`](Self::synchronize), of what has ended by now: time does not move.
    pub(super) fn synchronize_now(&mut self, caller: CallerId) -> Result<Summary, SyncError> {
        let caller = self.key(caller);
        match self.core.synchronize(caller) {
            Poll::Ready(gives) => gives,
            Poll::Pending => {
                let _none = self.core.caller_mut(caller).reopen_epoch();
                Err(SyncError::Stalled(Stalled))
            }
        }
    }

    /// No task starts until the matching [`unhold`](Self::unhold).
    pub fn hold(&mut self) {
        self.core.hold();
    }

    /// Ends one [`hold`](Self::hold), if there is any.
    pub fn unhold(&mut self) {
        self.core.unhold();
    }

    /// Changes a caller's cap.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for a limit above [`Limit::MAX`].
    pub fn set_cap(&mut self, caller: CallerId, cap: impl Into<Limit>) -> Result<(), OutOfRange> {
        self.core.set_cap(self.key(caller), cap.into())
    }

    /// Changes a group's limit; 0 is a pause.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for a limit above [`Limit::MAX`].
    pub fn set_limit(&mut self, group: GroupId, limit: impl Into<Limit>) -> Result<(), OutOfRange> {
        let limit = limit.into();
        let group = self.group_key(group);
        // A simulation's groups stay.
        self.core.backlog.set_limit(group, limit).unwrap_or(Ok(()))
    }

    /// Changes a group's standing level.
    pub fn set_level(&mut self, group: GroupId, level: u8) {
        let group = self.group_key(group);
        self.core.backlog.set_level(group, level);
    }

    /// Changes the most workers.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] outside 1 to 1024.
    pub fn set_workers(&mut self, max: u32) -> Result<(), OutOfRange> {
        self.core.workers.set_max(max)
    }
}
