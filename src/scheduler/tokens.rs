//! Tokens, by which a running task and its helpers see whether it was cancelled.
//!
//! A task gets a token when it first asks for one. A cancel sets the token under the lock of the
//! state.
//!
//! Invariant: the tokens here belong to futures that have not ended, and on each worker to the last
//! other task that asked. Such a task may end among others whose numbers are not reported; the
//! next task that asks on its worker replaces it.

use std::collections::BTreeMap;
use std::fmt;

use crate::slab::Key;
use crate::sync::Ordering::{Acquire, Release};
use crate::sync::{Arc, AtomicBool};

use super::outcome::TaskId;
use super::task_state::of_worker;

/// Tells whether a task was cancelled; see [`current`](Self::current). A clone belongs to the same
/// task.
#[derive(Clone)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Whether the task was cancelled after it began and before it ended: by
    /// [`Task::cancel`](super::Task::cancel), or with its caller or scheduler. After the task's
    /// end the answer does not change.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        // Acquire: pairs with the Release of the cancel.
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
    /// The worker that runs it, unless it is a future.
    worker: Option<u32>,
}

/// The tokens of tasks that have not ended, and some more.
#[derive(Default)]
pub(super) struct Tokens {
    known: BTreeMap<TaskId, Known>,
    /// By worker: the last task that asked and is no future.
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

    /// A new token.
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

    /// Sets the token of this task.
    pub(super) fn cancel(&mut self, task: TaskId) {
        if let Some(known) = self.known.get(&task) {
            known.token.0.store(true, Release);
        }
    }

    /// Sets the tokens of all unfinished tasks up to this one, of one caller or of all.
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
