//! Delayed tasks, and the worker that keeps the time for them.
//!
//! Until it is due, a delayed task is kept with its timer. It pins its group, and is in no ready
//! queue. Its caller counts it like any other task, so a synchronize, a release and a shutdown wait
//! for it.
//!
//! Protocol: every event begins with [`advance`](Core::advance), by which due tasks arrive like new
//! submissions. So that there is an event at the next date, one resting worker is the *keeper*: it
//! sleeps until then, and claims. If no worker rests, one is requested as for work.
//!
//! On a pool no worker rests. There the user keeps the time by another clock: see
//! [`Clock`](super::clock::Clock). A delayed task is admitted only while something keeps the time.
//!
//! Invariants:
//! 1. While there is a timer, and the workers are threads of the scheduler: the keeper sleeps until
//!    the next date at most; or a worker is coming that will be the keeper; or the maximum of
//!    workers is busy, each of which looks when it is done; or none could be started.
//! 2. Workers leave for good only when there is no timer.
//! 3. A closed scheduler whose time nothing keeps has no timer.

use std::time::Duration;

use crate::slab::Key;

use super::core::Core;
use super::task_state::{Body, Later, Location, Placing, Waiting};

impl<J: Body> Core<J> {
    /// Keeps a new task that is not due.
    pub(super) fn put_off(
        &mut self,
        caller: Key,
        (task, placing): (Waiting<J>, Placing),
        now: Duration,
    ) -> Location {
        let tier = placing.tier.unwrap_or(0);
        let pinned = placing.group.into_iter();
        pinned.for_each(|group| self.backlog.pin(group));
        let due = self.clock.time(now).saturating_add(placing.after);
        let later = Later {
            caller,
            task,
            placing,
        };
        let timer = self.clock.timers.set(due, later);
        let at = Location::Later(timer);
        let later = self.clock.timers.get_mut(timer);
        later.into_iter().for_each(|later| later.task.moved(at));
        self.arrived(caller, tier, at, now);
        // It was admitted before that, and announced to a log.
        self.cancel_abandoned(now);
        at
    }

    /// Cancels delayed tasks if they will never be due.
    pub(super) fn cancel_abandoned(&mut self, now: Duration) {
        if self.closed && !self.clock.is_kept() {
            while let Some(timer) = self.clock.timers.first() {
                self.cancel(Location::Later(timer), now);
            }
        }
    }

    /// It is `now`: due tasks arrive. Returns whether one is below its caller's open tier.
    #[inline(never)]
    pub(crate) fn advance(&mut self, now: Duration) -> bool {
        let mut undercuts = false;
        let time = self.clock.time(now);
        self.clock.timers.advance(time);
        while let Some((_, later)) = self.clock.timers.due() {
            let Later {
                caller,
                task,
                placing,
            } = later;
            // If its group's last task is in a higher tier, it goes there: otherwise it would wait
            // for itself.
            self.arrive(caller, task, placing, now);
            let pinned = placing.group.into_iter();
            pinned.for_each(|group| self.backlog.unpin(group));
            undercuts |= self.is_undercut(caller);
        }
        undercuts
    }

    /// When the next delayed task is due.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.clock.timers.next()
    }
}
