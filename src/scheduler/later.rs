//! Tasks that start not before a time, and the worker that keeps the time.
//!
//! Until it is due such a task is absent: it has an empty group, or a pin on the
//! one that it is for, and is in no line. Its caller counts it like any other, so
//! that a synchronize, a release and a shutdown wait for it.
//!
//! Protocol: every event begins with [`advance`](Core::advance), by which what is
//! due arrives like a new submission. So that there is an event when the next one
//! is due, one resting worker is the keeper: it sleeps until then and no longer,
//! and claims. If there is none, one is requested as for work.
//!
//! Invariants:
//! 1. A task is in `timers` exactly if its phase is `Later`.
//! 2. While something is in `timers`, and the workers are the scheduler's own: the
//!    keeper sleeps until that is due at the latest, or a worker is on its way to
//!    become it, or as many as there may be are busy, each of which looks when it
//!    is done, or none could be started.
//! 3. Workers are told to leave for good only when nothing is in `timers`.

use std::time::Duration;

use crate::slab::Key;
use crate::wait::WakeBatch;

use super::core::Core;
use super::outcome::Ending;
use super::task_state::{Later, Membership, Phase};

impl<J> Core<J> {
    /// It is `now`: what is due arrives. The callers whose tasks those are.
    pub(crate) fn advance(&mut self, now: Duration, wakes: &mut WakeBatch) -> Vec<Key> {
        let mut callers = Vec::new();
        self.clock.timers.advance(now);
        while let Some((_, task)) = self.clock.timers.due() {
            let caller = self.task(task).caller;
            self.arrive(task, now, wakes);
            if self.callers.get(caller).is_some() && !callers.contains(&caller) {
                callers.push(caller);
            }
        }
        callers
    }

    /// When the next task is due that is not yet.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.clock.timers.next()
    }

    /// Worker `n` found nothing and goes to rest: until when, if it is the one
    /// that keeps the time.
    pub(super) fn keep_time(&mut self, n: u32) -> Option<Duration> {
        self.clock.keep(n)
    }

    /// Whether worker `n` must not leave, since it keeps the time.
    pub(super) fn keeps_time(&self, n: u32) -> bool {
        self.clock.is_kept_by(n) && !self.clock.is_empty()
    }

    /// A task is due. If its group's last task is in a higher tier it follows it
    /// there, where it would otherwise wait for itself.
    fn arrive(&mut self, key: Key, now: Duration, wakes: &mut WakeBatch) {
        let state = self.task_mut(key);
        let group = match state.membership {
            Membership::Group(group, _) => Some(group),
            _ => None,
        };
        let phase = std::mem::replace(&mut state.phase, Phase::Waiting);
        let Phase::Later(later) = phase else {
            unreachable!("by invariant 1");
        };
        let Later { tier, bump, .. } = *later;
        let caller = state.caller;
        let lane = self.caller(caller).lane;
        let backlog = &mut self.backlog;
        let (place, tier) = Membership::send(backlog, lane, group, tier, bump, key);
        group.into_iter().for_each(|group| backlog.unpin(group));
        let state = self.task_mut(key);
        (state.membership, state.tier) = (place, tier);
        if self.caller(caller).skips(tier) {
            self.withdraw(key, Ending::Skipped, now, wakes);
        }
    }
}
