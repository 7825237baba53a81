//! The state of a task.

use std::task::Waker;
use std::time::Duration;

use crate::backlog::{Backlog, Claim, GroupKey, Place};
use crate::lanes::LaneKey;
use crate::slab::Key;
use crate::sync::Arc;
use crate::timers::Timer;

use super::outcome::{Ending, Record, Run, TaskId};

/// A task that is not due, and where it goes then.
#[derive(Debug)]
pub(super) struct Later {
    pub(super) timer: Timer,
    pub(super) tier: Option<u32>,
    pub(super) bump: Option<u8>,
}

#[derive(Debug)]
pub(super) struct TaskState<J> {
    pub(super) id: TaskId,
    pub(super) caller: Key,
    pub(super) membership: Membership,
    pub(super) tier: u32,
    pub(super) queued: Duration,
    pub(super) label: Option<Arc<str>>,
    pub(super) phase: Phase,
    /// What is to be run, if no worker has it.
    pub(super) job: Option<J>,
    pub(super) waker: Option<Waker>,
    /// It was woken since a worker took it.
    pub(super) woken: bool,
    /// It is to be cancelled as soon as no worker has it.
    pub(super) cancelled: bool,
}

/// Where in the backlog it waits, or waited.
#[derive(Debug)]
pub(super) enum Membership {
    /// In a group, under this number.
    Group(GroupKey, u64),
    Alone(Place),
    /// It is not there yet, and will be alone.
    Absent,
    /// It is a future that was not ready when it was polled first.
    Begun(Box<Begun>),
}

impl Membership {
    /// Sends a task to the backlog: where it waits, and in which tier.
    #[inline]
    pub(super) fn send(
        backlog: &mut Backlog<Key>,
        lane: LaneKey,
        group: Option<GroupKey>,
        tier: Option<u32>,
        bump: Option<u8>,
        task: Key,
    ) -> (Membership, u32) {
        match group {
            None => {
                let tier = tier.unwrap_or(0);
                let alone = backlog.send_alone(lane, tier, bump, task);
                (Self::Alone(alone), tier)
            }
            Some(group) => {
                let (seq, tier) = backlog.send(group, tier, bump, task);
                (Self::Group(group, seq), tier)
            }
        }
    }
}

/// A future between its first poll and its end.
#[derive(Debug)]
pub(super) struct Begun {
    /// When it was polled first.
    pub(super) start: Duration,
    /// Who polled it last.
    pub(super) worker: u32,
    /// Its group; `None` if it is alone.
    pub(super) group: Option<GroupKey>,
    /// Where it waits to be polled, or waited, since it was woken.
    pub(super) line: Option<Place>,
}

#[derive(Debug)]
pub(super) enum Phase {
    Waiting,
    /// It has begun, and is to be woken.
    Suspended,
    /// It is not due.
    Later(Box<Later>),
    /// This worker has prefetched it, and may be running it by now.
    Claimed {
        worker: u32,
    },
    Running {
        worker: u32,
        start: Duration,
    },
    /// It ends without a worker.
    Withdrawn,
}

/// A task that a worker is to run.
pub(crate) struct Started<J> {
    pub(crate) task: Key,
    pub(crate) job: J,
    /// The log's row, but for how and when it ends; if there is a log.
    pub(crate) record: Option<Box<Record>>,
    pub(crate) start: Duration,
}

/// A task that a worker has prefetched, and that may be unclaimed.
pub(crate) struct Claimed<J> {
    pub(crate) from: Claim<Key>,
    pub(crate) job: J,
    pub(crate) record: Option<Box<Record>>,
}

impl<J> Claimed<J> {
    pub(crate) fn task(&self) -> Key {
        self.from.item
    }

    /// Its worker runs it now.
    pub(crate) fn starts(self, start: Duration) -> Started<J> {
        let task = self.task();
        let Self { job, record, .. } = self;
        Started {
            task,
            job,
            record,
            start,
        }
    }
}

/// A task that ended without a worker.
pub(crate) struct Ended<J> {
    pub(crate) job: J,
    pub(crate) ending: Ending,
    pub(crate) run: Option<Run>,
    pub(crate) record: Option<Box<Record>>,
    /// It is a future that had begun: the task ends when that is dropped.
    pub(super) begun: Option<Key>,
}

impl<J> TaskState<J> {
    /// A new one.
    #[inline]
    pub(super) fn new(
        id: TaskId,
        caller: Key,
        job: J,
        (phase, membership, tier): (Phase, Membership, u32),
        queued: Duration,
        label: Option<&Arc<str>>,
    ) -> Self {
        Self {
            id,
            caller,
            membership,
            tier,
            queued,
            label: label.cloned(),
            phase,
            job: Some(job),
            waker: None,
            woken: false,
            cancelled: false,
        }
    }

    /// What is known of a future that has begun.
    pub(super) fn begun(&self) -> Option<&Begun> {
        match &self.membership {
            Membership::Begun(begun) => Some(begun),
            _ => None,
        }
    }

    /// The same.
    pub(super) fn begun_mut(&mut self) -> Option<&mut Begun> {
        match &mut self.membership {
            Membership::Begun(begun) => Some(begun),
            _ => None,
        }
    }

    /// Whether it has not ended, and no worker has it.
    pub(super) fn waits(&self) -> bool {
        self.job.is_some()
    }

    /// Its run, were it to end now.
    pub(super) fn run(&self, end: Duration) -> Option<Run> {
        let begun = self.begun();
        match self.phase {
            Phase::Running { worker, start } => {
                let start = begun.map_or(start, |begun| begun.start);
                Some(Run { worker, start, end })
            }
            _ => begun.map(|&Begun { start, worker, .. }| Run { worker, start, end }),
        }
    }
}
