//! The events of a log.
//!
//! The log is called under no lock. A submitted task is counted and logged before it is enqueued,
//! so that nobody starts or ends it meanwhile. A task that ends without a worker is logged before
//! its end counts, unless it is refused.

use std::time::Duration;

use crossbeam_channel::Sender;

use crate::backlog::GroupKey;
use crate::shown::id_says;
use crate::sync::Arc;

use super::outcome::{Ending, Run, TaskId};

/// Receives the events of a scheduler's tasks; see [`Builder::log`](super::Builder::log).
///
/// Implemented for closures that take an event and return nothing, for which no event is lost; and
/// for senders of the crate `crossbeam-channel` (version 0.5): of events, or of [records](Record),
/// which are sent for endings alone.
pub trait Log: Send + Sync {
    /// Takes an event. False if the event is lost; the [status](super::Status::log_lost) counts
    /// lost events and panics.
    ///
    /// Called under no lock, by several threads at once: by the thread that submits, runs or ends
    /// the task, which waits for the call. It may use the scheduler, but must not wait for a task
    /// of it.
    fn log(&self, event: Event) -> bool;
}

impl<F: Fn(Event) + Send + Sync> Log for F {
    fn log(&self, event: Event) -> bool {
        self(event);
        true
    }
}

/// An event that finds the channel full or closed is lost.
impl Log for Sender<Event> {
    fn log(&self, event: Event) -> bool {
        self.try_send(event).is_ok()
    }
}

/// A record that finds the channel full or closed is lost.
impl Log for Sender<Record> {
    fn log(&self, event: Event) -> bool {
        match event {
            Event::Ended(record) => self.try_send(record).is_ok(),
            Event::Queued(_) | Event::Started { .. } => true,
        }
    }
}

/// An event of a task. The events of a task come in this order, each once; a task that never
/// runs has no start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Event {
    /// It was accepted. Its tier is the one that was asked for, or 0; in a group it may come into
    /// a higher one.
    Queued(TaskInfo),
    /// A worker has begun it; for a future, its first poll.
    Started {
        /// The task.
        task: TaskInfo,
        /// The worker, from 1.
        worker: u32,
        /// When it started.
        at: Duration,
    },
    /// It ended.
    Ended(Record),
}

impl Event {
    /// The task of the event.
    #[must_use]
    pub fn task(&self) -> &TaskInfo {
        match self {
            Self::Queued(task) | Self::Started { task, .. } => task,
            Self::Ended(record) => &record.task,
        }
    }

    /// When it happened. Counts from when the scheduler was built.
    #[must_use]
    pub fn at(&self) -> Duration {
        match self {
            Self::Queued(task) => task.queued,
            Self::Started { at, .. } => *at,
            Self::Ended(record) => record.ended,
        }
    }
}

/// A task, as the log knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TaskInfo {
    /// Its number.
    pub id: TaskId,
    /// Its caller's name.
    pub caller: Arc<str>,
    /// Its [label](super::Place::label), if it has one.
    pub label: Option<Arc<str>>,
    /// Its tier.
    pub tier: u32,
    /// Its group, if it is not in one of its own.
    pub group: Option<GroupId>,
    /// When it was submitted. Counts from when the scheduler was built.
    pub queued: Duration,
}

/// One row of the execution log: a task that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Record {
    /// The task.
    pub task: TaskInfo,
    /// Where and when it ran; `None` if it never started.
    pub run: Option<Run>,
    /// When it ended.
    pub ended: Duration,
    /// How it ended.
    pub ending: Ending,
}

/// The id of a group. No other group, of this scheduler or another, ever has the same. It keeps
/// nothing alive. See [`Scheduler::group`](super::Scheduler::group).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    /// The number of its scheduler.
    pub(super) scheduler: u64,
    pub(super) key: GroupKey,
}

id_says!(
    /// The scheduler's number, and a name in it.
    GroupId { Self { scheduler, key } => "{scheduler}.{key}" }
);

/// As it prints.
#[cfg(feature = "serde")]
impl serde::Serialize for GroupId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
