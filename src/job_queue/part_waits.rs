//! The claims that wait for a job of one tenant or group.
//!
//! Invariants: no wait queue is empty, and `counts` is the sum over all of them. `Jobs` says which
//! of them to look at, and hears of each change.

use std::collections::BTreeMap;

use crate::jobs::{Jobs, Pinned, Waits};
use crate::wait::{WaitCounts, Waiters, WakeBatch};

#[derive(Default)]
pub(super) struct PartWaits {
    pub(super) queues: BTreeMap<Pinned, Waiters<()>>,
    counts: WaitCounts,
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
        jobs.waits_changed(of, waits_of(after));
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
        if is_over && jobs.wake_all() {
            for (&of, waits) in &self.queues {
                jobs.waits_changed(of, waits_of(waits.counts()));
            }
        }
        while let Some(look) = jobs.next_look() {
            let is_done = self.change(jobs, look.of, |waits| {
                let due = look.wanted.min(waits.notified().saturating_add(look.room));
                waits.notify_up_to(due, wakes)
            });
            if !is_done {
                return false;
            }
            jobs.looked_at(look);
        }
        true
    }
}

fn waits_of(counts: WaitCounts) -> Waits {
    let count = |n| u32::try_from(n).unwrap_or(u32::MAX);
    Waits {
        asleep: count(counts.waiting),
        notified: count(counts.notified),
    }
}
