//! A snapshot: the tasks that run, the tasks that wait, and why they wait.

use std::time::Duration;

use crate::backlog::Blocked;
use crate::limit::Limit;
use crate::shown::says;
use crate::slab::Key;
use crate::sync::Arc;

use super::caller::CallerState;
use super::core::Core;
use super::log::GroupId;
use super::outcome::TaskId;
use super::summary::Summary;
use super::task_state::{Body, Location, Phase, Running};

/// The numbers of tasks of all callers, by state. See
/// [`Scheduler::counts`](super::Scheduler::counts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Counts {
    /// Callers that exist.
    pub callers: usize,
    /// Tasks that are due and wait to start, or, if they are futures, to be polled again; and those
    /// that are being dropped, cancelled or skipped.
    pub waiting: u64,
    /// Tasks that are not due.
    pub delayed: u64,
    /// Futures that have begun, and wait to be woken, or were cancelled and are being dropped.
    pub suspended: u64,
    /// Tasks that run, or that a worker drops unrun.
    pub running: u64,
    /// Running tasks that are blocked in waits for this scheduler without a time-out.
    pub blocked: u64,
    /// Tasks that have ended so far.
    pub ended: Summary,
}

/// The state of a scheduler at one moment. A task whose outcome is there may still count as
/// running, until its worker has reported it. Taking a status costs O(n log n) under the
/// scheduler's lock, where n is the number of unfinished tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Status {
    /// The workers.
    pub workers: WorkersStatus,
    /// The running tasks, by worker.
    pub running: Vec<RunningTask>,
    /// The waiting tasks, by number.
    pub waiting: Vec<WaitingTask>,
    /// The callers that exist.
    pub callers: Vec<CallerStatus>,
    /// How many events the log lost, by a refusal or a panic.
    pub log_lost: u64,
}

/// The workers of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct WorkersStatus {
    /// The maximum.
    pub max: u32,
    /// Workers that exist or are starting.
    pub live: u32,
    /// Workers that run a task, or drop tasks that ended unrun.
    pub busy: u32,
    /// Workers that rest. They have dropped all that they ran or skipped.
    pub idle: u32,
    /// How many starts failed so far.
    pub start_failures: u64,
    /// Why the last of them failed.
    pub start_error: Option<String>,
}

/// A running task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RunningTask {
    /// The task.
    pub id: TaskId,
    /// Its caller's name.
    pub caller: Arc<str>,
    /// Its [label](super::Place::label), if it has one.
    pub label: Option<Arc<str>>,
    /// Its tier.
    pub tier: u32,
    /// Its group, if it is not in one of its own.
    pub group: Option<GroupId>,
    /// The worker that runs it.
    pub worker: u32,
    /// It is blocked in a [`wait()`](crate::wait::Wait::wait) for this scheduler.
    pub blocked: bool,
    /// When it started; of a future, when this poll did. If its worker claimed it together with a
    /// task that nobody times (without a handle, and without a log), this is the time of that
    /// claim.
    pub start: Duration,
}

/// A task that waits to start, or, if it is a future, to be polled again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct WaitingTask {
    /// The task.
    pub id: TaskId,
    /// Its caller's name.
    pub caller: Arc<str>,
    /// Its [label](super::Place::label), if it has one.
    pub label: Option<Arc<str>>,
    /// Its tier.
    pub tier: u32,
    /// Its group, if it is not in one of its own.
    pub group: Option<GroupId>,
    /// When it was submitted; for a task that was submitted
    /// [detached](super::Caller::exec_detached), when a worker last looked before that.
    pub queued: Duration,
    /// What keeps it waiting.
    pub why: Why,
}

/// What keeps a task waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Why {
    /// An earlier task of its group waits too.
    Behind,
    /// Its group's limit is 0.
    Paused,
    /// As many tasks of its group run as the limit allows.
    GroupLimit,
    /// Another tier of its caller is open, or its tier is open and starts nothing new because a
    /// lower tier has work.
    Tier {
        /// The open tier.
        open: Option<u32>,
    },
    /// As many tasks of its caller run as the cap allows.
    Cap,
    /// A [`Hold`](super::Hold) keeps all tasks from starting.
    Hold,
    /// Only a worker is missing.
    Worker,
    /// It is a future that has begun, and waits to be woken.
    Suspended,
    /// It has a delay that is not over.
    NotDue {
        /// When it is due. Counts from when the scheduler was built, like all times here; on a
        /// [pool](super::Builder::pool) by the clock of [`advance`](super::Scheduler::advance).
        due: Duration,
    },
}

says!(Why {
    Self::Behind => "behind an earlier task of its group",
    Self::Paused => "its group is paused: the limit is 0",
    Self::GroupLimit => "as many of its group run as the limit allows",
    Self::Tier { open: None } => "no tier is open",
    Self::Tier { open: Some(open) } => "tier {open} is open",
    Self::Cap => "as many of its caller's run as the cap allows",
    Self::Hold => "held",
    Self::Worker => "a worker is missing",
    Self::Suspended => "it waits to be woken",
    Self::NotDue { due } => "not due before {due:?}",
});

/// A caller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CallerStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Tasks submitted and not ended.
    pub unfinished: u64,
    /// Unfinished tasks that have begun: they run, or are futures between two polls.
    pub running: u32,
    /// How many unfinished tasks it may have.
    pub capacity: Limit,
    /// The open tier, if any unfinished task is due. A caller that has used no other tier shows 0
    /// also if all its unfinished tasks are not due.
    pub open_tier: Option<u32>,
    /// After a failure: tasks of tiers above this one are skipped.
    pub skips_above: Option<u32>,
    /// It takes no more tasks.
    pub released: bool,
}

impl<J: Body> Core<J> {
    pub(crate) fn status(&self, log_lost: u64) -> Status {
        let workers = (0..).zip(&self.running);
        let running = workers.filter_map(|(worker, running)| {
            let Running { tag, label, start } = running.as_ref()?;
            let holds = self.holds_of(tag.future, tag.holds);
            Some(RunningTask {
                id: tag.id,
                caller: self.caller(self.caller_of(holds.lane)).name.clone(),
                label: label.clone(),
                tier: holds.tier,
                group: holds.group.map(|group| self.name_of(group)),
                worker,
                blocked: self.stalls.is_blocked(worker),
                start: *start,
            })
        });
        let running = running.collect();
        let mut waiting = Vec::new();
        self.each_waiting(None, |task, holds, at| {
            let caller = self.caller_of(holds.lane);
            waiting.push(WaitingTask {
                id: task.id(),
                caller: self.caller(caller).name.clone(),
                label: task.job.label().cloned(),
                tier: holds.tier,
                group: holds.group.map(|group| self.name_of(group)),
                queued: self.queued_of(task),
                why: self.why(caller, at),
            });
        });
        waiting.sort_by_key(|task| task.id);
        let callers = self.callers.iter();
        let callers = callers.map(|(_, c)| CallerStatus {
            name: c.name.clone(),
            unfinished: c.unfinished(),
            running: self.backlog.lane(c.lane).in_use,
            capacity: c.capacity.limit(),
            open_tier: self.open_tier(c),
            skips_above: c.skip_above,
            released: c.released || self.closed,
        });
        Status {
            workers: self.workers_status(),
            running,
            waiting,
            callers: callers.collect(),
            log_lost,
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let (delayed, suspended) = (self.clock.timers.len() as u64, self.suspended);
        let running = u64::from(self.workers.busy()).min(self.unfinished);
        let mut ended = self.ended_so_far;
        ended.tasks = ended.ok + ended.failed + ended.panicked + ended.cancelled + ended.skipped;
        Counts {
            callers: self.callers.len(),
            waiting: self
                .unfinished
                .saturating_sub(delayed + suspended + running),
            delayed,
            suspended,
            running,
            blocked: self.stalls.len() as u64,
            ended,
        }
    }

    fn why(&self, caller: Key, at: Location) -> Why {
        let spot = match at {
            Location::Backlog(spot) => spot,
            Location::Later(timer) => return Why::NotDue { due: timer.at() },
            Location::Future(future) => match self.future(future).phase {
                Phase::InLine(spot) => spot,
                _ => return Why::Suspended,
            },
        };
        let Some(blocked) = self.backlog.why_at(spot) else {
            return Why::Behind;
        };
        match blocked {
            Blocked::Paused => Why::Paused,
            Blocked::GroupLimit => Why::GroupLimit,
            Blocked::Tier => {
                let open = self.open_tier(self.caller(caller));
                Why::Tier { open }
            }
            Blocked::Cap => Why::Cap,
            Blocked::InLine | Blocked::Empty if self.is_held() => Why::Hold,
            Blocked::InLine | Blocked::Empty => Why::Worker,
        }
    }

    /// The tier of a caller that is open; tier 0 as long as it has used no other.
    fn open_tier(&self, c: &CallerState) -> Option<u32> {
        let lane = self.backlog.lane(c.lane);
        let untiered = !lane.is_tiered() && c.unfinished() > 0;
        lane.open_tier().or(untiered.then_some(0))
    }

    pub(super) fn workers_status(&self) -> WorkersStatus {
        WorkersStatus {
            max: self.workers.max(),
            live: self.workers.live(),
            busy: self.workers.busy(),
            idle: self.workers.idle(),
            start_failures: self.start_failures,
            start_error: self.start_error.clone(),
        }
    }
}
