//! What a log is told, and by whom.
//!
//! No event is told under a lock. A task that is submitted is counted and told before it takes
//! its place in line, so that nobody starts it or ends it meanwhile; one that ends without a
//! worker is told before its end counts, but for one that is refused.

use std::fmt;
use std::time::Duration;

use crossbeam_channel::Sender;

use crate::backlog::GroupKey;
use crate::sync::Arc;

use super::outcome::{Ending, Run, TaskId};

/// What a scheduler tells of its tasks; see [`Builder::log`](super::Builder::log).
///
/// Implemented for closures that take an event and return nothing, of which none is lost; for
/// the sender of a channel of events, and for that of a channel of [records](Record), which
/// are sent for the endings alone. The channels are those of the crate `crossbeam-channel`,
/// version 0.5.
pub trait Log: Send + Sync {
    /// Takes the event; false if it is lost, which the [status](super::Status::log_lost)
    /// counts, as it does a panic.
    ///
    /// Called with no lock held, by several threads at once: whoever submits, runs or ends the
    /// task, which waits for it. It may use the scheduler, but not wait for a task of it.
    fn tell(&self, event: Event) -> bool;
}

impl<F: Fn(Event) + Send + Sync> Log for F {
    fn tell(&self, event: Event) -> bool {
        self(event);
        true
    }
}

/// An event that finds the channel full or closed is lost.
impl Log for Sender<Event> {
    fn tell(&self, event: Event) -> bool {
        self.try_send(event).is_ok()
    }
}

/// A record that finds the channel full or closed is lost.
impl Log for Sender<Record> {
    fn tell(&self, event: Event) -> bool {
        match event {
            Event::Ended(record) => self.try_send(record).is_ok(),
            Event::Queued(_) | Event::Started { .. } => true,
        }
    }
}

/// What happened to a task. Of one task they are told in this order, and each once; one that is
/// never run is not started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Event {
    /// It was taken. Its tier is that which was asked for, 0 if none was: in a group it may
    /// come into a higher one.
    Queued(TaskInfo),
    /// A worker has begun it: a future, for the first time.
    Started {
        /// The task.
        task: TaskInfo,
        /// The worker, from 1.
        worker: u32,
        /// When.
        at: Duration,
    },
    /// It ended.
    Ended(Record),
}

impl Event {
    /// The task.
    #[must_use]
    pub fn task(&self) -> &TaskInfo {
        match self {
            Self::Queued(task) | Self::Started { task, .. } => task,
            Self::Ended(record) => &record.task,
        }
    }

    /// When that was, since the scheduler was made.
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
    /// When it was submitted, counted from the scheduler's beginning.
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

/// Names a group: a copyable name that keeps nothing, and that no other group ever has, of this
/// scheduler or another. See [`Scheduler::group`](super::Scheduler::group).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    /// Whose it is.
    pub(super) scheduler: u64,
    pub(super) key: GroupKey,
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupId({self})")
    }
}

/// As it prints.
#[cfg(feature = "serde")]
impl serde::Serialize for GroupId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
