//! What a running task, and whoever it tells, can look at: whether it was cancelled.
//!
//! A task has a token from when it asks for one, or is to end though a worker has it; it is told
//! there when it is cancelled, under the lock of the state.
//!
//! Invariant: a future's token is with its entry. Of other tasks those are known that had one
//! last on each worker: such a task may end among others, whose numbers are not told.

use std::fmt;

use crate::sync::Ordering::{Acquire, Release};
use crate::sync::{Arc, AtomicBool};

/// Tells whether a task was cancelled; see [`current`](Self::current). A clone tells
/// of the same task.
#[derive(Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Whether the task was cancelled since it began and before it ended: by
    /// [`Task::cancel`](super::Task::cancel), or with its caller or scheduler. When the task has
    /// ended that does not change any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        // What was done before the cancel is seen by who sees that.
        self.0.load(Acquire)
    }

    pub(super) fn cancel(&self) {
        self.0.store(true, Release);
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancelToken")
            .field(&self.is_cancelled())
            .finish()
    }
}
