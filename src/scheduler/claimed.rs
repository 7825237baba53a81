//! Tasks that a worker has prefetched: how they leave the line, go back to it, and start.

use std::time::Duration;

use crate::slab::Key;

use super::core::Core;
use super::outcome::Ending;
use super::task_state::{Claimed, Membership, Phase};

impl<J> Core<J> {
    /// One more task for worker `n`, which runs one already.
    #[inline(always)]
    pub(super) fn prefetch(&mut self, n: u32) -> Option<Claimed<J>> {
        if !self.may_start() {
            return None;
        }
        let from = self.backlog.claim()?;
        let task = from.item;
        let record = self.record(task, Ending::Ok, Duration::ZERO);
        let job = self.take_out(task, Phase::Claimed { worker: n });
        Some(Claimed { from, job, record })
    }

    /// A task that did not start waits again, where it waited before.
    pub(super) fn unclaim(&mut self, claimed: Claimed<J>) {
        let task = claimed.task();
        let Claimed { from, job, .. } = claimed;
        let state = self.task_mut(task);
        (state.phase, state.job) = (Phase::Waiting, Some(job));
        let caller = state.caller;
        let alone = match &state.membership {
            Membership::Alone(alone) => Some((*alone, self.caller(caller).lane)),
            Membership::Begun(begun) => begun.line.map(|line| (line, self.woken_lane(caller))),
            _ => None,
        };
        match alone {
            Some((alone, lane)) => self.backlog.unclaim_alone(lane, alone, from),
            None => self.backlog.unclaim(from),
        }
        self.wait_again(task);
    }

    /// A task that worker `n` had has started.
    pub(super) fn has_started(&mut self, task: Key, worker: u32, start: Duration) {
        self.task_mut(task).phase = Phase::Running { worker, start };
    }

    /// The worker that has the task: to run it, or running it, or having run it.
    pub(super) fn worker_of(&self, task: Key) -> Option<u32> {
        match self.tasks.get(task)?.phase {
            Phase::Claimed { worker } | Phase::Running { worker, .. } => Some(worker),
            _ => None,
        }
    }

    /// Whether the caller has work in a lower tier than the open one.
    pub(super) fn is_undercut(&self, caller: Key) -> bool {
        self.backlog.lane(self.caller(caller).lane).drains()
    }

    /// Whether workers have all that the caller's synchronize covers.
    pub(super) fn is_all_claimed(&self, caller: Key) -> bool {
        self.caller(caller).is_claimed()
    }
}
