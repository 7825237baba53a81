//! What the core knows of a task. The task carries it along: there is no table of tasks, only one
//! of futures.

use std::time::Duration;

use crate::backlog::{Claim, GroupKey, InFlight, Item, Several, Spot};
use crate::slab::Key;
use crate::sync::Arc;
use crate::timers::Timer;

use super::log::Record;
use super::outcome::{Ending, Run, TaskId};
use super::tokens::CancelToken;

/// A task's body, as the core sees it.
pub(crate) trait Body {
    /// Its task, which has a handle, waits there now. Called under the state's lock.
    fn moved(&self, _to: Location) {}

    /// Whether it may have to be run more than once.
    fn is_future(&self) -> bool {
        false
    }

    /// The label of its task.
    fn label(&self) -> Option<&Arc<str>> {
        None
    }
}

/// Where a task goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Placing {
    pub(crate) tier: Option<u32>,
    /// A group of the caller; `None` is one of the task's own.
    pub(crate) group: Option<GroupKey>,
    pub(crate) bump: Option<u8>,
    /// The delay before it may start.
    pub(crate) after: Duration,
}

impl Placing {
    /// Whether it is of tier 0, and due at once.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.tier.is_none_or(|tier| tier == 0) && self.after.is_zero()
    }

    /// Whether it has neither a group nor a bump.
    #[inline]
    pub(super) fn is_alone(&self) -> bool {
        self.group.is_none() && self.bump.is_none()
    }
}

/// Where a task waits or waited. No other task ever waits there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// In the backlog.
    Backlog(Spot),
    /// With its timer: it is not due.
    Later(Timer),
    /// With its entry: it is a future.
    Future(Key),
}

/// A task that no worker has. The lane in which it waits tells its caller.
#[derive(Debug)]
pub(crate) struct Waiting<J> {
    /// Its number, beside the flags.
    bits: u64,
    /// When it was queued; or the bits of its entry, which has that time.
    queued_or_entry: u64,
    pub(super) job: J,
}

/// It has a handle.
const NAMED: u64 = 1;
/// It may have to be run more than once.
const FUTURE: u64 = 2;
/// It is a future with an entry.
const ENTERED: u64 = 4;
/// It has a label.
const LABEL: u64 = 8;
/// How many bits the flags take.
const FLAGS: u32 = 4;

/// The flags of a task, or of one or more of several.
#[derive(Clone, Copy, Default)]
pub(super) struct Kind(u64);

impl Kind {
    /// `named`: it has a handle.
    #[inline]
    pub(super) fn new(named: bool, is_future: bool, has_label: bool) -> Self {
        let flag = |flag, is_set| if is_set { flag } else { 0 };
        Self(flag(NAMED, named) | flag(FUTURE, is_future) | flag(LABEL, has_label))
    }

    /// Whether it has a handle.
    #[inline]
    pub(super) fn is_named(self) -> bool {
        self.0 & NAMED != 0
    }

    /// Whether it may have to be run more than once.
    #[inline]
    pub(super) fn is_future(self) -> bool {
        self.0 & FUTURE != 0
    }

    /// These, and what this task is.
    #[inline]
    pub(super) fn or<J>(self, task: &Waiting<J>) -> Self {
        Self(self.0 | task.bits & (NAMED | FUTURE))
    }
}

impl<J: Body> Waiting<J> {
    /// `queued`: in [nanoseconds](super::clock::nanos).
    #[inline]
    pub(super) fn new(id: TaskId, Kind(flags): Kind, queued: u64, job: J) -> Self {
        Self {
            bits: id.0 << FLAGS | flags,
            queued_or_entry: queued,
            job,
        }
    }

    /// A future with this entry.
    pub(super) fn entered(id: TaskId, entry: Key, job: J) -> Self {
        Self {
            bits: id.0 << FLAGS | FUTURE | ENTERED,
            queued_or_entry: entry.to_bits(),
            job,
        }
    }

    /// Gets an entry.
    pub(super) fn enter(&mut self, entry: Key) {
        self.moved(Location::Future(entry));
        self.bits |= ENTERED;
        self.queued_or_entry = entry.to_bits();
    }

    #[inline]
    pub(crate) fn id(&self) -> TaskId {
        TaskId(self.bits >> FLAGS)
    }

    #[inline]
    pub(super) fn is_future(&self) -> bool {
        self.bits & FUTURE != 0
    }

    /// Whether it may have a label; unknown for a future with an entry.
    #[inline]
    pub(super) fn has_label(&self) -> bool {
        self.bits & (LABEL | ENTERED) != 0
    }

    /// Whether it is a future without an entry.
    #[inline]
    pub(super) fn is_new_future(&self) -> bool {
        self.bits & (FUTURE | ENTERED) == FUTURE
    }

    /// When it was queued, if it has no entry.
    pub(super) fn queued(&self) -> Duration {
        Duration::from_nanos(self.queued_or_entry)
    }

    /// Its entry, if it is a future that a worker has claimed before.
    #[inline]
    pub(super) fn future(&self) -> Option<Key> {
        match self.bits & ENTERED {
            0 => None,
            _ => Key::from_bits(self.queued_or_entry),
        }
    }

    /// Notes in its body where it waits, for its handle.
    #[inline]
    pub(super) fn moved(&self, to: Location) {
        // Unknown of a future with an entry.
        if self.bits & NAMED != 0 {
            self.job.moved(to);
        }
    }
}

impl<J: Body> Item for Waiting<J> {
    #[inline]
    fn waits_at(&self, spot: Spot) {
        // A future is found by its entry.
        if self.bits & ENTERED == 0 {
            self.moved(Location::Backlog(spot));
        }
    }

    #[inline]
    fn is_marked(&self) -> bool {
        self.is_future()
    }
}

/// A task that is not due, and its place.
#[derive(Debug)]
pub(super) struct Later<J> {
    pub(super) caller: Key,
    pub(super) task: Waiting<J>,
    /// Its group is pinned.
    pub(super) placing: Placing,
}

/// A future, from its first claim to its end.
#[derive(Debug)]
pub(super) struct FutureState<J> {
    /// The units with which it was claimed first. It keeps them from its first poll on.
    pub(super) holds: InFlight,
    /// When its first poll was, and which worker polled it last.
    pub(super) begun: Option<(Duration, u32)>,
    pub(super) queued: Duration,
    pub(super) phase: Phase<J>,
    /// The level of its bump, for its next poll.
    pub(super) bump: Option<u8>,
    /// If it has one.
    pub(super) token: Option<CancelToken>,
}

#[derive(Debug)]
pub(super) enum Phase<J> {
    /// It waits for a worker.
    InLine(Spot),
    /// A worker has it; true if it was woken since.
    Claimed(bool),
    /// It waits to be woken.
    Suspended(Waiting<J>),
    /// It is being dropped.
    Withdrawn,
}

/// A task that a worker has, as the core knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) id: TaskId,
    /// The units that it holds while the worker has it.
    pub(super) holds: InFlight,
    /// Its entry, if it is a future.
    pub(crate) future: Option<Key>,
}

/// A task's number, and its entry if it is a future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskKey {
    pub(crate) id: TaskId,
    pub(super) future: Option<Key>,
}

impl Tag {
    #[inline]
    pub(crate) fn key(self) -> TaskKey {
        let Self { id, future, .. } = self;
        TaskKey { id, future }
    }

    #[inline]
    pub(super) fn of<J: Body>(task: &Waiting<J>, holds: InFlight) -> Self {
        Self {
            id: task.id(),
            holds,
            future: task.future(),
        }
    }

    /// The group that is free after its end, unless another task takes over its unit. The entry of
    /// a future tells what that holds.
    #[inline]
    pub(super) fn frees(&self) -> Option<GroupKey> {
        self.holds.group.filter(|_| self.future.is_none())
    }
}

/// A task that a worker runs.
pub(crate) struct Started<J> {
    pub(crate) tag: Tag,
    pub(crate) job: J,
    /// Its record without its ending, if there is a log.
    pub(crate) record: Option<Box<Record>>,
    pub(crate) start: Duration,
}

impl<J: Body> Started<J> {
    /// The running task, for the status.
    pub(super) fn running(&self) -> Running {
        Running {
            tag: self.tag,
            label: self.job.label().cloned(),
            start: self.start,
        }
    }
}

/// Claimed tasks, which may go back while they have not started: one, with its record; or several
/// without a log.
pub(crate) enum Claimed<J> {
    One(Option<Claim<Waiting<J>>>, Option<Box<Record>>),
    Several(Several<Waiting<J>>),
}

impl<J: Body> Claimed<J> {
    /// How many of them have not begun.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(claim, _) => claim.iter().len(),
            Self::Several(several) => several.len(),
        }
    }

    /// Takes the next, for its worker to run; whether it was claimed with the one before it; and
    /// whether it takes over the units of that.
    #[inline(always)]
    pub(super) fn pop(&mut self, start: Duration) -> Option<(Started<J>, bool, bool)> {
        let (task, holds, record, joins, takes_over) = match self {
            Self::One(claim, record) => {
                let Claim { item, holds, .. } = claim.take()?;
                (item, holds, record.take(), false, false)
            }
            Self::Several(several) => {
                let joins = several.has_begun();
                let (task, free) = several.pop_if(|_| true, |task| task)?;
                (task, several.holds(), None, joins, joins && free.is_none())
            }
        };
        let tag = Tag::of(&task, holds);
        let started = Started {
            tag,
            job: task.job,
            record,
            start,
        };
        Some((started, joins, takes_over))
    }
}

/// A task that runs, for the status.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) tag: Tag,
    pub(super) label: Option<Arc<str>>,
    pub(super) start: Duration,
}

/// The value for worker `n`.
#[inline]
pub(super) fn of_worker<T: Default>(all: &mut Vec<T>, n: u32) -> &mut T {
    let index = n as usize;
    if all.len() <= index {
        all.resize_with(index + 1, T::default);
    }
    &mut all[index]
}

/// A task that ended without a worker. It counts once it was logged and dropped.
pub(crate) struct Ended<J> {
    pub(crate) tag: Tag,
    pub(crate) job: J,
    pub(crate) ending: Ending,
    pub(crate) run: Option<Run>,
    pub(crate) record: Option<Box<Record>>,
}
