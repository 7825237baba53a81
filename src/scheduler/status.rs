//! A snapshot of what runs and what waits, and why it waits.

use std::time::Duration;

use crate::backlog::Blocked;
use crate::sync::Arc;

use super::caller::CallerState;
use super::core::Core;
use super::outcome::TaskId;
use super::task_state::{Membership, Phase, TaskState};

/// What a scheduler was doing at one moment. A task whose outcome is there may be
/// among those that run until its worker has said so. Taking it costs O(n log n) under the
/// scheduler's lock, n the tasks that have not ended.
#[derive(Clone, Debug)]
pub struct Status {
    /// The workers.
    pub workers: WorkersStatus,
    /// The tasks that run, by worker.
    pub running: Vec<RunningTask>,
    /// The tasks that wait, by number.
    pub waiting: Vec<WaitingTask>,
    /// The callers that exist.
    pub callers: Vec<CallerStatus>,
    /// Rows of the execution log that found its channel full or closed.
    pub log_lost: u64,
}

/// The workers of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkersStatus {
    /// The most there may be.
    pub max: u32,
    /// Those that exist or are starting.
    pub live: u32,
    /// Those that run a task.
    pub busy: u32,
    /// Those that rest.
    pub idle: u32,
    /// How many could not be started so far.
    pub start_failures: u64,
    /// Why the last of these was not.
    pub start_error: Option<String>,
}

/// A task that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningTask {
    /// The task.
    pub id: TaskId,
    /// Its caller's name.
    pub caller: Arc<str>,
    /// Its [label](super::Place::label), if it has one.
    pub label: Option<Arc<str>>,
    /// Its tier.
    pub tier: u32,
    /// The worker that runs it.
    pub worker: u32,
    /// When it started. Behind a task that nobody times (without a handle, where no log
    /// is kept) that is known no better than when its worker took both.
    pub start: Duration,
}

/// A task that waits: to start, or if it is a future to be polled again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTask {
    /// The task.
    pub id: TaskId,
    /// Its caller's name.
    pub caller: Arc<str>,
    /// Its [label](super::Place::label), if it has one.
    pub label: Option<Arc<str>>,
    /// Its tier.
    pub tier: u32,
    /// When it was submitted; for one that was submitted
    /// [detached](super::Caller::exec_detached), when the scheduler heard of it.
    pub queued: Duration,
    /// What keeps it waiting.
    pub why: Why,
}

/// What keeps a task waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// An earlier task of its group waits too.
    Behind,
    /// Its group's limit is 0.
    Paused,
    /// As many of its group run as the limit allows.
    GroupLimit,
    /// Another tier of its caller is open, or the open one starts nothing new
    /// because a lower one has work.
    Tier {
        /// The open one.
        open: Option<u32>,
    },
    /// As many of its caller's run as the cap allows.
    Cap,
    /// A [`Hold`](super::Hold) keeps all tasks from starting.
    Hold,
    /// Nothing but a worker is missing.
    Worker,
    /// It has begun, and waits to be woken: see [`Caller::spawn`](super::Caller::spawn).
    Suspended,
    /// It is not to start before this time.
    NotDue {
        /// Since the scheduler was made, as all times here.
        due: Duration,
    },
}

/// A caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Tasks submitted and not ended.
    pub unfinished: u64,
    /// Those of them that have begun: that run, or are futures between two polls.
    pub running: u32,
    /// The open tier, if anything is outstanding.
    pub open_tier: Option<u32>,
    /// Tasks of tiers above this one are skipped, after a failure.
    pub skips_above: Option<u32>,
    /// It takes no more tasks.
    pub released: bool,
}

impl<J> Core<J> {
    pub(crate) fn status(&self, log_lost: u64) -> Status {
        let mut running = Vec::new();
        let mut waiting = Vec::new();
        for (_, task) in self.tasks.iter() {
            match task.phase {
                Phase::Running { worker, start } => running.push(RunningTask {
                    id: task.id,
                    caller: self.caller(task.caller).name.clone(),
                    label: task.label.clone(),
                    tier: task.tier,
                    worker,
                    start,
                }),
                Phase::Waiting | Phase::Claimed { .. } => {
                    waiting.push(self.waiting_task(task, self.why(task)));
                }
                Phase::Suspended => waiting.push(self.waiting_task(task, Why::Suspended)),
                Phase::Later(ref later) => {
                    let due = later.timer.at();
                    waiting.push(self.waiting_task(task, Why::NotDue { due }));
                }
                Phase::Withdrawn => {}
            }
        }
        running.sort_by_key(|task| task.worker);
        waiting.sort_by_key(|task| task.id);
        Status {
            workers: self.workers_status(),
            running,
            waiting,
            callers: self.callers_status(),
            log_lost,
        }
    }

    fn waiting_task(&self, task: &TaskState<J>, why: Why) -> WaitingTask {
        WaitingTask {
            id: task.id,
            caller: self.caller(task.caller).name.clone(),
            label: task.label.clone(),
            tier: task.tier,
            queued: task.queued,
            why,
        }
    }

    fn why(&self, task: &TaskState<J>) -> Why {
        let lane = self.caller(task.caller).lane;
        let blocked = match task.membership {
            Membership::Begun(_) => Blocked::InLine,
            Membership::Group(group, seq) if self.backlog.first_in(group) != Some(seq) => {
                return Why::Behind;
            }
            Membership::Group(group, _) => self.backlog.why(group),
            _ => self.backlog.why_alone(lane, task.tier),
        };
        match blocked {
            Blocked::Paused => Why::Paused,
            Blocked::GroupLimit => Why::GroupLimit,
            Blocked::Tier => {
                let open = self.open_tier(self.caller(task.caller));
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

    fn callers_status(&self) -> Vec<CallerStatus> {
        let callers = self.callers.iter();
        let status = callers.map(|(_, c)| CallerStatus {
            name: c.name.clone(),
            unfinished: c.unfinished(),
            running: self.backlog.lane(c.lane).in_use,
            open_tier: self.open_tier(c),
            skips_above: c.skip_above,
            released: c.released,
        });
        status.collect()
    }
}
