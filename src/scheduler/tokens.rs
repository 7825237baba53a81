//! Tokens, by which a running task and its helpers see whether it was cancelled.
//!
//! A task gets a token when it first asks for one, or when it is cancelled while a worker has it. A
//! cancel sets the token under the lock of the state.
//!
//! Invariant: the token of a future is with its entry. Of other tasks, each worker has the last
//! token: such a task may end among others whose numbers are not reported.

use std::fmt;

use crate::sync::Ordering::{Acquire, Release};
use crate::sync::{Arc, AtomicBool};

/// Tells whether a task was cancelled; see [`current`](Self::current). A clone belongs to the same
/// task.
#[derive(Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Whether the task was cancelled after it began and before it ended: by
    /// [`Task::cancel`](super::Task::cancel), or with its group, caller or scheduler. A cancel of
    /// these that comes just after the end may count too, as workers report several ends at once.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        // Acquire: pairs with the Release of the cancel.
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
