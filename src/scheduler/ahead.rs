//! Tasks that a reader has beside the one it runs: how they leave the line, go
//! back to it, and are found to have started.

use std::time::Duration;

use crate::slab::Key;

use super::core::Core;
use super::outcome::Ending;
use super::state::{Claimed, Phase};

impl<J> Core<J> {
    /// One more task for reader `n`, which runs one already.
    pub(super) fn claim_ahead(&mut self, n: u32) -> Option<Claimed<J>> {
        if self.startable(1) == 0 {
            return None;
        }
        let ahead = self.backlog.claim_ahead()?;
        let task = ahead.claim.item;
        let record = self.record(task, Ending::Ok, Duration::ZERO);
        self.take_out(task);
        let phase = &mut self.task_mut(task).phase;
        let Phase::Waiting(job) = std::mem::replace(phase, Phase::Claimed { reader: n }) else {
            unreachable!("what is in the backlog waits");
        };
        Some(Claimed { ahead, job, record })
    }

    /// A task that did not start waits again, where it waited before.
    pub(super) fn put_back(&mut self, claimed: Claimed<J>) {
        let task = claimed.task();
        let Claimed { ahead, job, .. } = claimed;
        let state = self.task_mut(task);
        state.phase = Phase::Waiting(job);
        let (id, caller) = (state.id, state.caller);
        self.backlog.undo(ahead);
        self.link(task);
        self.caller_mut(caller).returned(id);
    }

    /// A task that reader `n` had has started.
    pub(super) fn has_started(&mut self, task: Key, reader: u32, start: Duration) {
        self.task_mut(task).phase = Phase::Running { reader, start };
    }

    /// The reader that has the task: to run it, or running it, or having run it.
    pub(super) fn reader_of(&self, task: Key) -> Option<u32> {
        match self.tasks.get(task)?.phase {
            Phase::Claimed { reader } | Phase::Running { reader, .. } => Some(reader),
            _ => None,
        }
    }

    /// Whether somebody may be waiting for just this task: its ending must not
    /// wait until another task has run.
    pub(super) fn is_awaited(&self, task: Key) -> bool {
        let state = self.task(task);
        state.waker.is_some() || self.caller(state.caller).is_pressing(state.id)
    }

    /// Whether the caller has work in a lower tier than the open one.
    pub(super) fn is_undercut(&self, caller: Key) -> bool {
        self.backlog.drains(self.caller(caller).lane)
    }

    /// Whether readers have all that the caller's synchronize covers.
    pub(super) fn is_all_claimed(&self, caller: Key) -> bool {
        self.caller(caller).is_claimed()
    }
}
