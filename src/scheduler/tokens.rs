//! What a running task, and whoever it tells, can look at: whether it was cancelled.
//!
//! A task has a token from when it asks for one; it is told there when it is cancelled, under
//! the lock of the state.
//!
//! Invariant: what is known of tokens here is of futures that have not ended, and of the last
//! other task on each worker that has asked. Such a task may end among others, whose numbers
//! are not told; the next that asks on its worker takes its place.

use std::collections::BTreeMap;
use std::fmt;

use crate::slab::Key;
use crate::sync::Ordering::{Acquire, Release};
use crate::sync::{Arc, AtomicBool};

use super::outcome::TaskId;
use super::task_state::of_worker;

/// Tells whether a task was cancelled; see [`current`](Self::current). A clone tells
/// of the same task.
#[derive(Clone)]
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
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancelToken")
            .field(&self.is_cancelled())
            .finish()
    }
}

struct Known {
    token: CancelToken,
    caller: Key,
    /// Who runs it, unless it is a future.
    worker: Option<u32>,
}

/// The tokens of tasks that have not ended, and some more.
#[derive(Default)]
pub(super) struct Tokens {
    known: BTreeMap<TaskId, Known>,
    /// By worker: the last task that is no future.
    last: Vec<Option<TaskId>>,
}

impl Tokens {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The token of a task, if it has one.
    pub(super) fn get(&self, task: TaskId) -> Option<CancelToken> {
        self.known.get(&task).map(|known| known.token.clone())
    }

    /// A new one.
    pub(super) fn add(
        &mut self,
        task: TaskId,
        caller: Key,
        worker: Option<u32>,
        is_cancelled: bool,
    ) -> CancelToken {
        if let Some(n) = worker {
            let before = of_worker(&mut self.last, n).replace(task);
            before.map(|before| self.known.remove(&before));
        }
        let token = CancelToken(Arc::new(AtomicBool::new(is_cancelled)));
        let known = Known {
            token: token.clone(),
            caller,
            worker,
        };
        self.known.insert(task, known);
        token
    }

    /// Tells this task.
    pub(super) fn cancel(&mut self, task: TaskId) {
        if let Some(known) = self.known.get(&task) {
            known.token.0.store(true, Release);
        }
    }

    /// Tells all up to this one that have not ended, of this caller or of all.
    pub(super) fn cancel_all(
        &mut self,
        last: TaskId,
        of: Option<Key>,
        runs: impl Fn(u32, TaskId) -> bool,
    ) {
        for (&task, known) in self.known.range(..=last) {
            let is_right = of.is_none_or(|of| of == known.caller);
            if is_right && known.worker.is_none_or(|n| runs(n, task)) {
                known.token.0.store(true, Release);
            }
        }
    }

    /// A task has ended.
    pub(super) fn end(&mut self, task: TaskId) {
        self.known.remove(&task);
    }
}
