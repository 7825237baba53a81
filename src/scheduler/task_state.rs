//! The state of a task.

use std::task::Waker;
use std::time::Duration;

use crate::backlog::{GroupKey, Prefetched};
use crate::slab::Key;

use super::later::Later;
use super::outcome::{Ending, Record, Run, TaskId};

#[derive(Debug)]
pub(super) struct TaskState<J> {
    pub(super) id: TaskId,
    pub(super) caller: Key,
    pub(super) group: GroupKey,
    pub(super) seq: u64,
    pub(super) tier: u32,
    pub(super) queued: Duration,
    pub(super) phase: Phase<J>,
    pub(super) waker: Option<Waker>,
    /// Neighbours in the caller's list of waiting tasks.
    pub(super) prev: Option<Key>,
    pub(super) next: Option<Key>,
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
    /// A new one: its group, and its number and tier in that.
    pub(super) fn new(
        id: TaskId,
        caller: Key,
        (group, seq, tier): (GroupKey, u64, u32),
        queued: Duration,
        phase: Phase<J>,
    ) -> Self {
        Self {
            id,
            caller,
            group,
            seq,
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
