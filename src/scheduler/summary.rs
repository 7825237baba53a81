//! How many tasks ended how.

use std::fmt;
use std::ops::AddAssign;

use super::outcome::{Ending, TaskId};

/// How the tasks ended that a synchronize or a release covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Summary {
    /// How many tasks there were.
    pub tasks: u64,
    /// Tasks that returned a result.
    pub ok: u64,
    /// Tasks that returned an error.
    pub failed: u64,
    /// Tasks that panicked.
    pub panicked: u64,
    /// Tasks that were cancelled before they started, and futures that were cancelled.
    pub cancelled: u64,
    /// Tasks that were skipped after a failure.
    pub skipped: u64,
    /// The first task that failed or panicked.
    pub first_failure: Option<TaskId>,
}

/// As in "4 tasks: 3 ok, 1 failed; the first failure is of task 2".
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tasks: {} ok", self.tasks, self.ok)?;
        let others = [
            (self.failed, "failed"),
            (self.panicked, "panicked"),
            (self.cancelled, "cancelled"),
            (self.skipped, "skipped"),
        ];
        for (count, ending) in others.into_iter().filter(|&(count, _)| count > 0) {
            write!(f, ", {count} {ending}")?;
        }
        match self.first_failure {
            Some(task) => write!(f, "; the first failure is of task {task}"),
            None => Ok(()),
        }
    }
}

impl Summary {
    /// Whether all tasks returned a result.
    #[must_use]
    pub fn all_ok(&self) -> bool {
        self.ok == self.tasks
    }

    /// Counts the endings of `tasks` tasks. Only those that end as `Ok` end several at once.
    #[inline]
    pub(super) fn count(&mut self, id: TaskId, how: Ending, tasks: u32) {
        let counter = match how {
            Ending::Ok => &mut self.ok,
            Ending::Failed => &mut self.failed,
            Ending::Panicked => &mut self.panicked,
            Ending::Cancelled => &mut self.cancelled,
            Ending::Skipped => &mut self.skipped,
        };
        *counter += u64::from(tasks);
        if how.is_failure() {
            self.first_failure.get_or_insert(id);
        }
    }
}

/// Adds the summary of later tasks: the first failure stays.
impl AddAssign for Summary {
    fn add_assign(&mut self, later: Self) {
        self.tasks += later.tasks;
        self.ok += later.ok;
        self.failed += later.failed;
        self.panicked += later.panicked;
        self.cancelled += later.cancelled;
        self.skipped += later.skipped;
        self.first_failure = self.first_failure.or(later.first_failure);
    }
}
