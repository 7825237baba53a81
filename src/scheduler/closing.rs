//! How callers and the scheduler end.

use crate::limit::Limit;
use crate::queue::Capacity;
use crate::slab::Key;
use crate::sync::Arc;
use crate::wait::Waiters;

use super::caller::{CallerState, Synced};
use super::core::Core;
use super::outcome::TaskId;
use super::summary::Summary;
use super::task_state::Body;

impl<J: Body> Core<J> {
    pub(crate) fn synchronize(&mut self, caller: Key) -> Synced {
        let last = self.last;
        self.caller_mut(caller).close_epoch(last)
    }

    /// This caller takes no more tasks, or with `None` the whole scheduler does not. Gives
    /// a summary once all tasks have ended; of the scheduler an empty one, once all workers
    /// have left too.
    pub(crate) fn close(&mut self, of: Option<Key>) -> Option<Summary> {
        let Some(caller) = of else {
            self.closed = true;
            self.close_workers();
            let over = self.unfinished == 0 && self.workers.live() == 0;
            return over.then(Summary::default);
        };
        let c = self.caller_mut(caller);
        c.release();
        (c.unfinished() == 0).then(|| c.summary())
    }

    /// Who waits for that.
    pub(super) fn end_waiters(&mut self, of: Option<Key>) -> &mut Waiters<()> {
        let Some(caller) = of else {
            return &mut self.shutdown_waiters;
        };
        let c = self.caller_mut(caller);
        c.released_waiters.get_or_insert_default()
    }

    /// What this caller has submitted, or what all have, and has not started is to be
    /// cancelled. Says up to which task; and whether it made a hold, so that no task starts
    /// until that is done. For a released caller there is none: none of its tasks starts
    /// any more.
    pub(crate) fn begin_cancel(&mut self, of: Option<Key>) -> (TaskId, bool) {
        let last = self.last;
        let cancelled = match of {
            Some(caller) => &mut self.caller_mut(caller).cancelled,
            None => &mut self.cancelled,
        };
        *cancelled = last;
        let released = of.filter(|&caller| self.caller(caller).released);
        match released {
            Some(caller) => {
                let paused = self.set_cap(caller, Limit::AtMost(0));
                debug_assert!(paused.is_ok());
            }
            None => self.hold(),
        }
        (last, released.is_none())
    }

    /// What no worker has, for the end of the scheduler.
    pub(crate) fn waiting_jobs(&self) -> Vec<J>
    where
        J: Clone,
    {
        let mut jobs = Vec::new();
        self.each_waiting(None, |task, _, _, _| jobs.push(task.job.clone()));
        jobs
    }

    /// A caller has this capacity from now on.
    pub(crate) fn set_capacity(&mut self, caller: Key, capacity: &Arc<Capacity>) {
        let limited = capacity.permits().map(|_| Arc::clone(capacity));
        self.caller_mut(caller).capacity = limited;
    }

    /// Its capacity, if it has one.
    pub(crate) fn capacity(&self, caller: Key) -> Option<Arc<Capacity>> {
        self.caller(caller).capacity.clone()
    }

    /// The capacities of this caller, or of all.
    pub(super) fn capacities(&self, of: Option<Key>) -> Vec<Arc<Capacity>> {
        let capacity = |c: &CallerState| c.capacity.clone();
        match of {
            Some(caller) => self.capacity(caller).into_iter().collect(),
            None => self
                .callers
                .iter()
                .filter_map(|(_, c)| capacity(c))
                .collect(),
        }
    }
}
