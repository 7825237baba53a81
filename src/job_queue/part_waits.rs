//! The claims that wait for a job of one tenant or group.
//!
//! Invariants: no wait queue is empty, and `counts` is the sum over all of them. `Jobs` says which
//! of them to look at, and hears of each change.

use std::collections::BTreeMap;

use crate::jobs::{Jobs, Pinned};
use crate::wait::{WaitCounts, Waiters, WakeBatch};

#[derive(Default)]
pub(super) struct PartWaits {
    pub(super) queues: BTreeMap<Pinned, Waiters<()>>,
    counts: WaitCounts,
    /// Whether the queue was over at the last look: then nobody waits in vain.
    is_over: bool,
}

impl PartWaits {
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    pub(super) fn counts(&self) -> WaitCounts {
        self.counts
    }

    /// Changes the wait queue of a part.
    pub(super) fn change<K, J, R>(
        &mut self,
        jobs: &mut Jobs<K, J>,
        of: Pinned,
        change: impl FnOnce(&mut Waiters<()>) -> R,
    ) -> R {
        let waits = self.queues.entry(of).or_default();
        let before = waits.counts();
        let result = change(waits);
        let after = waits.counts();
        if waits.is_empty() {
            self.queues.remove(&of);
        }
        self.counts.change(before, after);
        let is_any = after != WaitCounts::default();
        jobs.waits_changed(of, is_any, (before.notified, after.notified));
        result
    }

    /// Notifies as many as there is room for, in turn, or all if the queue `is_over`; false if the
    /// batch is full and more are due.
    pub(super) fn notify<K, J>(
        &mut self,
        jobs: &mut Jobs<K, J>,
        is_over: bool,
        wakes: &mut WakeBatch,
    ) -> bool {
        if std::mem::replace(&mut self.is_over, is_over) != is_over {
            for &of in self.queues.keys() {
                jobs.waits_changed(of, true, (0, 0));
            }
        }
        while let Some(look) = jobs.next_look(is_over) {
            let (is_done, lacks) = self.change(jobs, look.of, |waits| {
                let wanted = look.wanted.min(waits.len());
                let due = wanted.min(waits.notified().saturating_add(look.room));
                (waits.notify_up_to(due, wakes), waits.notified() < wanted)
            });
            if !is_done {
                return false;
            }
            jobs.looked_at(look, lacks);
        }
        true
    }
}
