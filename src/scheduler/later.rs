//! Tasks that do not start before a given time, and who keeps the time.
//!
//! Until it is due such a task is absent: it stands with its timer, has a pin on the
//! group that it is for, and is in no line. Its caller counts it like any other, so
//! that a synchronize, a release and a shutdown wait for it.
//!
//! Protocol: every event begins with [`advance`](Core::advance), by which what is
//! due arrives like a new submission. So that there is an event when the next one
//! is due, one resting worker is the keeper: it sleeps until then and no longer,
//! and claims. If there is none, one is requested as for work.
//!
//! On a pool no worker rests. There the embedder keeps the time, by a clock of its own,
//! which says what is due: see [`Clock`](super::clock::Clock). A task with a delay is
//! admitted only while somebody keeps it.
//!
//! Invariants:
//! 1. While something is in `timers`, and the workers are the scheduler's own: the
//!    keeper sleeps until that is due at the latest, or a worker is on its way to
//!    become the keeper, or as many workers as there may be are busy, each of which
//!    looks when it is done, or none could be started.
//! 2. Workers are told to leave for good only when nothing is in `timers`.
//! 3. Nothing stays in `timers` of a scheduler that is closed and whose time nobody keeps.

use std::time::Duration;

use crate::slab::Key;
use crate::wait::WakeBatch;

use super::core::Core;
use super::task_state::{Body, Later, Location, Placing, Waiting};

impl<J: Body> Core<J> {
    /// A new task is not due.
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
        // It was admitted before, and announced to a log.
        if self.is_abandoned() {
            self.cancel(at, now);
        }
        at
    }

    /// Whether what is not due will never be.
    pub(super) fn is_abandoned(&self) -> bool {
        self.closed && !self.clock.is_empty() && !self.clock.is_kept()
    }

    /// Cancels what will never be due, up to a full batch. Whether there is more.
    pub(super) fn cancel_abandoned(&mut self, now: Duration) -> bool {
        for _ in 0..WakeBatch::BOUND {
            let first = self.clock.timers.first().filter(|_| self.is_abandoned());
            let Some(timer) = first else {
                return false;
            };
            self.cancel(Location::Later(timer), now);
        }
        true
    }

    /// It is `now`: what is due arrives. Whether some of it undercuts its caller's open tier.
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
            // If its group's last task is in a higher tier it follows it there, where it would
            // otherwise wait for itself.
            self.arrive(caller, task, placing, now);
            let pinned = placing.group.into_iter();
            pinned.for_each(|group| self.backlog.unpin(group));
            undercuts |= self.is_undercut(caller);
        }
        undercuts
    }

    /// When the next task is due that is not yet.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.clock.timers.next()
    }
}
