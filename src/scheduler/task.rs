//! The handle of a task.

use std::fmt;
use std::task::{Context, Poll};

use crate::error::Stalled;
use crate::slab::Key;
use crate::sync::Arc;
use crate::wait::{Op, Wait, sealed};

use super::cell::Gift;
use super::outcome::{Ending, Outcome, TaskId, Verdict};
use super::shared::{Shared, keep_waker};
use super::stall::Target;
use super::worker::{block, current, unblock};

/// A submitted task: what it gives is waiting here.
///
/// Dropping the handle detaches the task: it runs all the same, and what it
/// gives is dropped by the worker that ran it.
#[must_use = "dropping it detaches the task: say so with `detach`"]
pub struct Task<R, E> {
    pub(super) shared: Arc<Shared>,
    pub(super) key: Key,
    pub(super) id: TaskId,
    pub(super) gift: Arc<dyn Gift<R, E>>,
}

impl<R, E> Task<R, E> {
    /// Its number.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Waits until it has ended, and takes what it gave.
    ///
    /// Cancel safe: a wait that is dropped has taken nothing.
    ///
    /// # Errors
    ///
    /// [`OutcomeError::Stalled`] if this is an untimed [`wait`](Wait::wait) on
    /// the thread that runs a task of the same scheduler, all running tasks are
    /// blocked so and none can start: the task is untouched and can be waited
    /// for again. [`OutcomeError::Taken`] if the outcome was taken before.
    pub fn outcome(&mut self) -> Wait<OutcomeOp<'_, R, E>> {
        Wait::new(OutcomeOp { task: self })
    }

    /// Cancels it if it has not started: true if so. It will never run, and its
    /// function is dropped by this call.
    pub fn cancel(&self) -> bool {
        let key = self.key;
        self.shared
            .with_state(|state, wakes, now| state.exact_for(key, wakes).cancel(key, now, wakes))
    }

    /// Lets go of the handle; the task runs all the same.
    pub fn detach(self) {}

    /// Whether it has ended; does not wait.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let key = self.key;
        self.shared
            .read_exact(|state| state.ending(key).1.is_some())
    }
}

impl<R, E> Drop for Task<R, E> {
    fn drop(&mut self) {
        self.shared.state.lock().detach(self.key);
    }
}

impl<R, E> fmt::Debug for Task<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Why there is no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeError {
    /// Nothing could go on: see [`Stalled`].
    Stalled(Stalled),
    /// It was taken before.
    Taken,
}

impl fmt::Display for OutcomeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stalled(stalled) => stalled.fmt(f),
            Self::Taken => f.write_str("the outcome was taken before"),
        }
    }
}

impl std::error::Error for OutcomeError {}

/// The wait of [`Task::outcome`].
#[derive(Debug)]
pub struct OutcomeOp<'a, R, E> {
    task: &'a mut Task<R, E>,
}

impl<R, E> sealed::Sealed for OutcomeOp<'_, R, E> {}

impl<R, E> Op for OutcomeOp<'_, R, E> {
    type Output = Result<Outcome<R, E>, OutcomeError>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let task = &*self.task;
        let worker = current(&task.shared);
        let looked = task.shared.poll(cx, |state, wakes, spare| {
            if let (queued, Some(ended)) = state.exact_for(task.key, wakes).ending(task.key) {
                return Some(Ok((queued, ended)));
            }
            if worker.is_some_and(|n| state.is_stalled(n)) {
                return Some(Err(OutcomeError::Stalled(Stalled)));
            }
            keep_waker(state.task_waker(task.key), spare);
            None
        });
        looked.map(|looked| {
            let (queued, (ending, run)) = looked?;
            let verdict = match ending {
                Ending::Cancelled => Verdict::Cancelled,
                Ending::Skipped => Verdict::Skipped,
                _ => task.gift.take().ok_or(OutcomeError::Taken)?,
            };
            Ok(Outcome {
                verdict,
                queued,
                run,
            })
        })
    }

    fn cancel(&mut self) {
        let mut session = self.task.shared.state.lock();
        let gone = session.task_waker(self.task.key).take();
        session.discard_waker(gone);
    }

    fn block(&mut self) {
        block(&self.task.shared, Target::Task(self.task.key));
    }

    fn unblock(&mut self) {
        unblock(&self.task.shared);
    }
}
