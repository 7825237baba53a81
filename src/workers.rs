//! When to start, wake and retire a worker.
//!
//! A worker is a thread, or a job on a pool, that runs tasks. Each has a number from 1; the lowest
//! free number is used first.
//!
//! ```text
//!            start           look              claimed
//!   Absent --------> Starting ------> Looking <--------> Busy
//!     ^                 |              |   ^   finished
//!     | failed          |         rest |   | (looks again)
//!     +-----------------+              v   |
//!     +<------------------------------ Idle -----> Woken -> Looking
//!               retired                      wake   look
//! ```
//!
//! Invariants:
//! 1. A worker that is starting, woken or looking is *coming*: it will claim, rest or leave without
//!    further help. `next_action` starts no more workers than there is eligible work, and wakes no
//!    more to leave than are surplus. It wakes a resting worker for work only if no worker is
//!    coming; a coming worker wakes the next one if there is more work, so that short tasks need
//!    few wake-ups.
//! 2. The live workers (all but the absent) are never more than the larger of the old and the new
//!    maximum, and a worker may claim only while fewer than the maximum are busy.

use std::collections::BTreeSet;

use crate::error::OutOfRange;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// The most workers that there can be.
pub const MAX_WORKERS: u32 = 1024;

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// There is no such worker.
    Absent,
    /// It was requested and has not looked yet.
    Starting,
    /// It looks for work.
    Looking,
    /// It rests.
    Idle,
    /// It rested and was woken.
    Woken,
    /// It runs a task.
    Busy,
}

/// What the owner must do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start this worker; call [`Workers::failed`] if that fails.
    Start(u32),
    /// Wake this worker to look for work, or to leave.
    Wake(u32),
}

/// The workers of one scheduler.
#[derive(Debug)]
pub struct Workers {
    max: u32,
    closing: bool,
    activity: Vec<Activity>,
    absent: BTreeSet<u32>,
    idle: BTreeSet<u32>,
    coming: u32,
    /// The coming workers that have not looked yet.
    on_their_way: u32,
    busy: u32,
    /// A start failed in this event, in which no other is tried.
    start_failed: bool,
}

impl Workers {
    /// No worker yet, at most `max` of them.
    pub fn new(max: u32) -> Result<Self, OutOfRange> {
        let mut workers = Self {
            max: 0,
            closing: false,
            activity: Vec::new(),
            absent: BTreeSet::new(),
            idle: BTreeSet::new(),
            coming: 0,
            on_their_way: 0,
            busy: 0,
            start_failed: false,
        };
        workers.set_max(max)?;
        Ok(workers)
    }

    /// Changes the maximum. A lower one takes effect as tasks end.
    pub fn set_max(&mut self, max: u32) -> Result<(), OutOfRange> {
        OutOfRange::check("workers", max, 1, MAX_WORKERS)?;
        self.max = max;
        let known = self.activity.len() as u32;
        if max > known {
            self.activity.resize(max as usize, Activity::Absent);
            self.absent.extend(known + 1..=max);
        }
        Ok(())
    }

    /// No more work comes: a worker that finds none leaves instead of resting.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// The maximum.
    pub fn max(&self) -> u32 {
        self.max
    }

    /// Workers that exist.
    pub fn live(&self) -> u32 {
        self.activity.len() as u32 - self.absent.len() as u32
    }

    /// Workers that run a task.
    pub fn busy(&self) -> u32 {
        self.busy
    }

    /// Workers that rest.
    pub fn idle(&self) -> u32 {
        self.idle.len() as u32
    }

    /// Workers that are coming.
    pub fn coming(&self) -> u32 {
        self.coming
    }

    /// What worker `n` is doing.
    pub fn activity(&self, n: u32) -> Activity {
        let index = n as usize - 1;
        self.activity
            .get(index)
            .copied()
            .unwrap_or(Activity::Absent)
    }

    /// Whether there may be an action: a worker rests, or another one may be started.
    #[inline]
    pub fn may_act(&self) -> bool {
        !self.idle.is_empty() || self.live() < self.max
    }

    /// Whether more work needs no action: the maximum of workers is busy, or a started or woken one
    /// has not looked yet and no other would be started. Then [`next_action`](Self::next_action)
    /// gives none, whatever is eligible.
    #[inline]
    pub fn needs_nobody(&self) -> bool {
        let live = self.live();
        let nobody_starts = live == self.max || live < self.max && !self.idle.is_empty();
        self.busy >= self.max || self.on_their_way > 0 && nobody_starts && !self.closing
    }

    /// The next action, given how many turns could begin now; `None` if enough workers are coming.
    /// Call it until it gives `None`.
    pub fn next_action(&mut self, eligible: u64) -> Option<Action> {
        // So many of the coming workers will leave.
        let surplus = self.live().saturating_sub(self.max);
        if let Some(&last) = self.idle.last()
            && (self.closing || surplus > self.coming)
        {
            self.set(last, Activity::Woken);
            return Some(Action::Wake(last));
        }
        let wanted = eligible.min(u64::from(self.max.saturating_sub(self.busy)));
        let useful = u64::from(self.coming.saturating_sub(surplus));
        if useful >= wanted {
            return None;
        }
        if let Some(&first) = self.idle.first() {
            // A coming worker asks again after its claim, and wakes the next.
            if useful > 0 {
                return None;
            }
            self.set(first, Activity::Woken);
            return Some(Action::Wake(first));
        }
        let &first = self.absent.first()?;
        if self.live() >= self.max || self.start_failed {
            return None;
        }
        self.set(first, Activity::Starting);
        Some(Action::Start(first))
    }

    /// A worker could not be started. No other is started before the [end](Self::end_event) of the
    /// event.
    pub fn failed(&mut self, n: u32) {
        debug_assert_eq!(self.activity(n), Activity::Starting);
        self.set(n, Activity::Absent);
        // Else nobody asks for actions in this event, or ends it.
        self.start_failed = self.may_act();
    }

    /// All actions of an event were taken, if there [may be](Self::may_act) any.
    #[inline]
    pub fn end_event(&mut self) {
        self.start_failed = false;
    }

    /// Worker `n` looks for work. Returns whether it may take a task: not if there are more workers
    /// than the maximum.
    pub fn look(&mut self, n: u32) -> bool {
        self.set(n, Activity::Looking);
        self.busy < self.max && self.live() <= self.max
    }

    /// Whether a worker that found nothing must leave instead of resting.
    pub fn must_leave(&self) -> bool {
        self.closing || self.live() > self.max
    }

    /// Worker `n` took a task.
    pub fn claimed(&mut self, n: u32) {
        self.set(n, Activity::Busy);
    }

    /// Worker `n` is done with its task and looks for the next.
    pub fn finished(&mut self, n: u32) {
        debug_assert_eq!(self.activity(n), Activity::Busy);
        self.set(n, Activity::Looking);
    }

    /// Worker `n` found nothing and rests.
    pub fn rest(&mut self, n: u32) {
        self.set(n, Activity::Idle);
    }

    /// Worker `n` is gone.
    pub fn retired(&mut self, n: u32) {
        self.set(n, Activity::Absent);
    }

    fn set(&mut self, n: u32, to: Activity) {
        use Activity::{Absent, Busy, Idle, Looking, Starting, Woken};
        let from = std::mem::replace(&mut self.activity[n as usize - 1], to);
        match from {
            Absent => _ = self.absent.remove(&n),
            Idle => _ = self.idle.remove(&n),
            Starting | Looking | Woken => self.coming -= 1,
            Busy => self.busy -= 1,
        }
        match to {
            Absent => _ = self.absent.insert(n),
            Idle => _ = self.idle.insert(n),
            Starting | Looking | Woken => self.coming += 1,
            Busy => self.busy += 1,
        }
        self.on_their_way -= u32::from(matches!(from, Starting | Woken));
        self.on_their_way += u32::from(matches!(to, Starting | Woken));
        self.forget_surplus();
    }

    /// Numbers above the maximum are forgotten once their workers are gone.
    fn forget_surplus(&mut self) {
        while self.activity.len() > self.max as usize
            && self.activity.last() == Some(&Activity::Absent)
        {
            self.absent.remove(&(self.activity.len() as u32));
            self.activity.pop();
        }
    }
}
