//! How callers and the scheduler end, and the waits for what is outstanding.

use std::task::Waker;

use crate::limit::Limit;
use crate::queue::Capacity;
use crate::slab::Key;
use crate::sync::Arc;
use crate::wait::Waiters;

use super::caller::{Summary, Synced};
use super::core::Core;
use super::outcome::TaskId;
use super::task_state::Body;

impl<J: Body> Core<J> {
    pub(crate) fn synchronize(&mut self, caller: Key) -> Synced {
        let last = self.last;
        self.caller_mut(caller).close_epoch(last)
    }

    /// Goes on with a synchronize that closed an epoch.
    pub(crate) fn synchronized(&mut self, caller: Key) -> Synced {
        self.caller_mut(caller).synced()
    }

    /// Where a synchronize that is under way keeps its waker.
    pub(crate) fn sync_waker(&mut self, caller: Key) -> Option<&mut Option<Waker>> {
        self.caller_mut(caller).sync_waker()
    }

    #[must_use]
    pub(crate) fn abandon_synchronize(&mut self, caller: Key) -> Option<Waker> {
        self.caller_mut(caller).reopen_epoch()
    }

    /// The caller takes no more tasks. The summary, once all have ended.
    pub(crate) fn release(&mut self, caller: Key) -> Option<Summary> {
        let c = self.caller_mut(caller);
        c.release();
        (c.unfinished() == 0).then(|| c.summary())
    }

    pub(crate) fn release_waiters(&mut self, caller: Key) -> &mut Waiters<()> {
        let c = self.caller_mut(caller);
        c.released_waiters.get_or_insert_default()
    }

    /// Nothing more is taken. Whether all tasks have ended and all workers left.
    pub(crate) fn close(&mut self) -> bool {
        self.closed = true;
        self.close_workers();
        self.unfinished == 0 && self.workers.live() == 0
    }

    pub(crate) fn shutdown_waiters(&mut self) -> &mut Waiters<()> {
        &mut self.shutdown_waiters
    }

    /// No task starts any more: what waits will be cancelled.
    pub(crate) fn cancel_all(&mut self) {
        self.cancelling = true;
    }

    /// No task of a released caller starts any more: what no worker has will be
    /// cancelled.
    pub(crate) fn cancel_caller(&mut self, caller: Key) {
        let paused = self.set_cap(caller, Limit::AtMost(0));
        debug_assert!(paused.is_ok());
        self.caller_mut(caller).cancelled = TaskId::LAST;
    }

    /// All that the caller has submitted is to be cancelled, but what has started: up
    /// to which task.
    pub(crate) fn cancel_so_far(&mut self, caller: Key) -> TaskId {
        let last = self.last;
        let c = self.caller_mut(caller);
        c.cancelled = c.cancelled.max(last);
        last
    }

    /// What no worker has, for the end of the scheduler.
    pub(crate) fn waiting_jobs(&self) -> Vec<J>
    where
        J: Clone,
    {
        let mut jobs = Vec::new();
        self.each_waiting(|task, _, _, _| jobs.push(task.job.clone()));
        jobs
    }

    /// The capacity of a caller.
    pub(super) fn capacity(&self, caller: Key) -> Option<Arc<Capacity>> {
        self.caller(caller).capacity.clone()
    }

    /// The capacities of all callers.
    pub(super) fn capacities(&self) -> Vec<Arc<Capacity>> {
        let callers = self.callers.iter();
        callers.filter_map(|(_, c)| c.capacity.clone()).collect()
    }
}
