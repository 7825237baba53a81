//! What the books keep of a task.

use std::task::Waker;
use std::time::Duration;

use crate::dispatch::GroupKey;
use crate::slab::Key;

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
    /// No handle is left to tell.
    pub(super) detached: bool,
    pub(super) waker: Option<Waker>,
    /// Neighbours in the caller's list of waiting tasks.
    pub(super) prev: Option<Key>,
    pub(super) next: Option<Key>,
}

#[derive(Debug)]
pub(super) enum Phase<J> {
    Waiting(J),
    Running { reader: u32, start: Duration },
    Ended(Ending, Option<Run>),
}

/// A task that a reader is to run.
pub(crate) struct Started<J> {
    pub(crate) task: Key,
    pub(crate) job: J,
    /// The log's row, but for how and when it ends; if there is a log.
    pub(crate) record: Option<Record>,
}

/// A task that ended without running.
pub(crate) struct Ended<J> {
    pub(crate) job: J,
    pub(crate) record: Option<Record>,
}

impl<J> TaskState<J> {
    /// Its run, were it to end now.
    pub(super) fn run(&self, end: Duration) -> Option<Run> {
        match self.phase {
            Phase::Running { reader, start } => Some(Run { reader, start, end }),
            _ => None,
        }
    }
}
