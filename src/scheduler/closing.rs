//! How callers and the scheduler end.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::backlog::{GroupKey, Spot};
use crate::limit::Limit;
use crate::queue::Capacity;
use crate::slab::Key;
use crate::sync::Arc;
use crate::wait::Waiters;

use super::caller::{CallerState, Synced};
use super::core::Core;
use super::summary::Summary;
use super::task_state::{Body, Location, Tag, Waiting};

impl<J: Body> Core<J> {
    pub(crate) fn synchronize(&mut self, caller: Key) -> Synced {
        let last = self.last;
        self.caller_mut(caller).close_epoch(last)
    }

    /// This caller, or with `None` the scheduler, takes no more tasks. Gives a summary once all
    /// tasks have ended; for the scheduler an empty one, once all workers have left too.
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

    /// The waits for that.
    pub(super) fn end_waiters(&mut self, of: Option<Key>) -> &mut Waiters<()> {
        let Some(caller) = of else {
            return &mut self.shutdown_waiters;
        };
        let c = self.caller_mut(caller);
        c.released_waiters.get_or_insert_default()
    }

    /// Cancels all waiting tasks of this caller, or of all, and those that are announced and not
    /// placed; running ones may ask. The core must be exact.
    pub(crate) fn cancel_all(&mut self, of: Option<Key>, now: Duration) {
        let last = self.last;
        match of {
            Some(caller) => self.caller_mut(caller).cancelled = last,
            None => self.cancelled = last,
        }
        // Futures that await have their tokens set when they are cancelled.
        self.cancel_running(|core, tag| of.is_none_or(|of| of == core.caller_of(tag.holds.lane)));
        self.cancel_those(of, now, |_, _| true);
    }

    /// Cancels the waiting tasks of a group; running ones may ask. The core must be exact.
    pub(crate) fn cancel_group(&mut self, group: GroupKey, now: Duration) {
        let holds = |core: &Self, tag: Tag| core.holds_of(tag.future, tag.holds);
        self.cancel_running(|core, tag| holds(core, tag).group == Some(group));
        self.cancel_in_line(group, now);
        let others = self.find_out_of_line(group);
        others.iter().for_each(|&at| _ = self.cancel(at, now));
    }

    /// Cancels the tasks that are in line in a group.
    fn cancel_in_line(&mut self, group: GroupKey, now: Duration) {
        while let Some(first) = self.backlog.first_in(group) {
            self.cancel(Location::Backlog(Spot::Group(group, first)), now);
        }
    }

    /// The scheduler itself is gone: forgotten holds end, and calls of `advance` count no more.
    pub(super) fn let_go(&mut self) {
        (self.dropped, self.holds) = (true, 0);
        self.clock.let_go();
    }

    /// Cancels the tasks of all paused groups that nobody can resume.
    pub(super) fn cancel_all_paused(&mut self, now: Duration) {
        let lanes = self.callers.iter().map(|(_, c)| c.lane);
        let groups = lanes.flat_map(|lane| self.backlog.paused_in(lane));
        self.cancel_paused(&groups.collect::<Vec<_>>(), now);
    }

    /// Cancels the waiting tasks of those of these groups that are paused and that nobody can
    /// resume: the scheduler and all handles of the group are gone. O(tasks that are not due), if
    /// some are of these groups.
    pub(super) fn cancel_paused(&mut self, groups: &[GroupKey], now: Duration) {
        // The pins of each, and its tasks that are not due.
        let mut paused = BTreeMap::new();
        for &group in groups.iter().filter(|_| self.dropped) {
            if let Some(pins) = self.backlog.pins_of_paused(group) {
                paused.insert(group, (pins, Vec::new()));
            }
        }
        if paused.values().any(|&(pins, _)| pins > 0) {
            for (timer, task) in self.clock.timers.iter() {
                let group = task.placing.group;
                if let Some((_, later)) = group.and_then(|group| paused.get_mut(&group)) {
                    later.push(timer);
                }
            }
        }
        for (group, (pins, later)) in paused {
            // If it has other pins, a handle is left.
            if later.len() < pins as usize {
                continue;
            }
            self.cancel_in_line(group, now);
            for timer in later {
                self.cancel(Location::Later(timer), now);
            }
        }
    }

    /// All handles of the caller are gone: it takes no more tasks, and goes with its last one. If
    /// its cap is 0, nobody can change that any more.
    pub(crate) fn remove_handles(&mut self, caller: Key, now: Duration) {
        let c = self.caller_mut(caller);
        c.has_handles = false;
        c.release();
        let lane = c.lane;
        if self.backlog.lane(lane).cap == Limit::AtMost(0) {
            self.cancel_those(Some(caller), now, |core, task| !core.has_begun(task));
        }
        self.reap_caller(caller);
    }

    /// Worker `n` could not be started, or was dropped unrun. If the scheduler is gone, there may
    /// be no event at which another is started.
    pub(crate) fn start_failed(&mut self, n: u32, now: Duration) {
        self.workers.failed(n);
        self.start_failures += 1;
        self.start_error = Some(String::from("the worker was dropped unrun"));
        if self.dropped && !self.has_workers() {
            // One that awaits calls for a worker when it is woken.
            self.cancel_those(None, now, |core, task| !core.awaits(task));
        }
    }

    /// Cancels the waiting tasks of this caller, or of all, that `is_meant` selects. Returns whether
    /// there were any.
    pub(super) fn cancel_those(
        &mut self,
        of: Option<Key>,
        now: Duration,
        is_meant: impl Fn(&Self, &Waiting<J>) -> bool,
    ) -> bool {
        let these = self.find_waiting(of, |task, _| is_meant(self, task));
        these.iter().for_each(|&at| _ = self.cancel(at, now));
        !these.is_empty()
    }

    /// The capacities of this caller, or of all.
    pub(super) fn capacities(&self, of: Option<Key>) -> Vec<Arc<Capacity>> {
        let capacity = |c: &CallerState| Arc::clone(&c.capacity);
        match of {
            Some(caller) => vec![capacity(self.caller(caller))],
            None => self.callers.iter().map(|(_, c)| capacity(c)).collect(),
        }
    }
}
