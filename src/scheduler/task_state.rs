//! The state of a task.

use std::task::Waker;
use std::time::Duration;

use crate::backlog::{Alone, Backlog, GroupKey, Prefetched};
use crate::error::TierGoesDown;
use crate::lanes::LaneKey;
use crate::slab::Key;

use super::later::Later;
use super::outcome::{Ending, Record, Run, TaskId};

#[derive(Debug)]
pub(super) struct TaskState<J> {
    pub(super) id: TaskId,
    pub(super) caller: Key,
    pub(super) place: Membership,
    pub(super) tier: u32,
    pub(super) queued: Duration,
    pub(super) phase: Phase<J>,
    pub(super) waker: Option<Waker>,
    /// Neighbours in the caller's list of waiting tasks.
    pub(super) prev: Option<Key>,
    pub(super) next: Option<Key>,
}

/// Where in the backlog it waits, or waited.
#[derive(Clone, Copy, Debug)]
pub(super) enum Membership {
    /// In a group, under this number.
    Group(GroupKey, u64),
    Alone(Alone),
    /// It is not there yet, and will be alone.
    Absent,
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
    ) -> Result<(Membership, u32), TierGoesDown> {
        match group {
            None => {
                let tier = tier.unwrap_or(0);
                let alone = backlog.send_alone(lane, tier, bump, task);
                Ok((Self::Alone(alone), tier))
            }
            Some(group) => match backlog.send(group, tier, bump, task) {
                Ok((seq, tier)) => Ok((Self::Group(group, seq), tier)),
                Err((down, _)) => Err(down),
            },
        }
    }
}

#[derive(Debug)]
pub(super) enum Phase<J> {
    Waiting(J),
    /// It is not due.
    Later(Box<Later<J>>),
    /// This worker has prefetched it, and may be running it by now.
    Claimed {
        worker: u32,
    },
    Running {
        worker: u32,
        start: Duration,
    },
    /// Its job is on the way from one phase to the next.
    Between,
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
    pub(crate) from: Prefetched<Key>,
    pub(crate) job: J,
    pub(crate) record: Option<Box<Record>>,
}

impl<J> Claimed<J> {
    pub(crate) fn task(&self) -> Key {
        self.from.claim.item
    }

    /// Worker `worker` runs it now.
    pub(crate) fn starts(self, worker: u32, start: Duration) -> Started<J> {
        let task = self.task();
        let Self { job, record, .. } = self;
        let run = Run {
            worker,
            start,
            end: start,
        };
        let record = record.map(|mut row| {
            row.run = Some(run);
            row
        });
        Started {
            task,
            job,
            record,
            start,
        }
    }
}

/// A task that ended without running.
pub(crate) struct Ended<J> {
    pub(crate) job: J,
    pub(crate) ending: Ending,
    pub(crate) record: Option<Box<Record>>,
}

impl<J> TaskState<J> {
    /// A new one.
    pub(super) fn new(
        id: TaskId,
        caller: Key,
        (place, tier): (Membership, u32),
        queued: Duration,
        phase: Phase<J>,
    ) -> Self {
        Self {
            id,
            caller,
            place,
            tier,
            queued,
            phase,
            waker: None,
            prev: None,
            next: None,
        }
    }

    /// Whether it has not started, and no worker has it.
    pub(super) fn waits(&self) -> bool {
        matches!(self.phase, Phase::Waiting(_) | Phase::Later(_))
    }

    /// Its run, were it to end now.
    pub(super) fn run(&self, end: Duration) -> Option<Run> {
        match self.phase {
            Phase::Running { worker, start } => Some(Run { worker, start, end }),
            _ => None,
        }
    }
}
