//! The handle of a task.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::error::Stalled;
use crate::sync::Arc;
use crate::wait::{Op, Wait, drop_quietly, look_twice, sealed};

use super::cell::{Gave, Gift};
use super::current::{block, is_stalled, unblock};
use super::outcome::{Outcome, TaskId};
use super::shared::Shared;
use super::stall::Target;
use super::task_state::Location;

/// A submitted task: what it gives is waiting here.
///
/// It is a future of its [`Outcome`]: `task.await` takes it, as
/// [`outcome`](Self::outcome) does. Dropping the handle detaches the task: it runs all
/// the same, and what it gives is dropped by the worker that ran it.
///
/// An outcome is taken once. Where several wait for what a task makes, keep that beside an
/// [`IntentLock`](crate::intent::IntentLock) that the task holds in X and they take in S,
/// as the example `build_tool` does.
#[must_use = "dropping it detaches the task: say so with `detach`"]
pub struct Task<R, E> {
    pub(super) shared: Arc<Shared>,
    pub(super) id: TaskId,
    pub(super) queued: Duration,
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
    pub fn outcome(&mut self) -> Wait<impl Op<Output = Result<Outcome<R, E>, OutcomeError>>> {
        Wait::new(OutcomeOp::new(self))
    }

    /// Takes what it gave if it has ended; `None` if it has not. Does not wait.
    ///
    /// # Errors
    ///
    /// [`OutcomeError::Taken`] if the outcome was taken before.
    pub fn try_outcome(&mut self) -> Result<Option<Outcome<R, E>>, OutcomeError> {
        OutcomeOp::new(self).look().transpose()
    }

    /// Cancels it if no worker has it: true if so. It will never run, or go on, and
    /// its function or future is dropped by this call. A future that is being polled is
    /// cancelled when it awaits next, if it does, and a function that runs may
    /// [look](super::is_cancelled): for these the call gives false.
    pub fn cancel(&self) -> bool {
        self.shared.with_state(|state, wakes, now| {
            let at = self.location();
            let core = state.exact_for(at, wakes);
            let cancelled = core.cancel(at, now, wakes);
            if !cancelled && !self.has_ended() {
                core.tell_to_end(self.id);
            }
            cancelled
        })
    }

    /// Where it is to be looked for, for who has taken the lock of the state since it was
    /// submitted.
    pub(super) fn location(&self) -> Location {
        let location = self.gift.location();
        location.expect("what was posted was taken in")
    }

    /// Lets go of the handle; the task runs all the same.
    pub fn detach(self) {}

    /// Whether it has ended; does not wait.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.gift.has_ended()
    }
}

/// As [`outcome`](Task::outcome). One that is polled and then dropped leaves its waker
/// to the task, which wakes it when it ends.
impl<R, E> Future for Task<R, E> {
    type Output = Result<Outcome<R, E>, OutcomeError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let task = self.get_mut();
        OutcomeOp::new(task).poll(cx)
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
    /// There is no task to wait for.
    Nothing,
}

impl fmt::Display for OutcomeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stalled(stalled) => stalled.fmt(f),
            Self::Taken => f.write_str("the outcome was taken before"),
            Self::Nothing => f.write_str("no task to wait for"),
        }
    }
}

impl std::error::Error for OutcomeError {}

/// The wait of [`Task::outcome`].
#[derive(Debug)]
pub struct OutcomeOp<'a, R, E> {
    task: &'a mut Task<R, E>,
    /// It is one of those whose threads sleep.
    blocked: bool,
}

impl<R, E> sealed::Sealed for OutcomeOp<'_, R, E> {}

impl<'a, R, E> OutcomeOp<'a, R, E> {
    pub(super) fn new(task: &'a mut Task<R, E>) -> Self {
        let blocked = false;
        Self { task, blocked }
    }

    fn look(&self) -> Option<Result<Outcome<R, E>, OutcomeError>> {
        self.outcome(self.task.gift.take())
    }

    fn outcome(&self, gave: Gave<R, E>) -> Option<Result<Outcome<R, E>, OutcomeError>> {
        let queued = self.task.queued;
        match gave {
            Gave::NotYet => None,
            Gave::Taken => Some(Err(OutcomeError::Taken)),
            Gave::This(verdict, run) => Some(Ok(Outcome {
                verdict,
                queued,
                run,
            })),
        }
    }
}

impl<R, E> Op for OutcomeOp<'_, R, E> {
    type Output = Result<Outcome<R, E>, OutcomeError>;

    fn at_once(&mut self) -> Option<Self::Output> {
        self.look()
    }

    fn attempt(&mut self) -> Option<Self::Output> {
        self.look()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let looked = look_twice(cx, |current, spare| {
            let gave = self.task.gift.take_or_wait(current, spare)?;
            Some(self.outcome(gave).map_or(Poll::Pending, Poll::Ready))
        });
        if looked.is_pending() && self.blocked && is_stalled(&self.task.shared) {
            self.cancel();
            return Poll::Ready(Err(OutcomeError::Stalled(Stalled)));
        }
        looked
    }

    fn cancel(&mut self) {
        self.task
            .gift
            .take_waker()
            .into_iter()
            .for_each(drop_quietly);
    }

    fn block(&mut self, waker: &Waker) {
        let Task {
            shared, id, gift, ..
        } = &*self.task;
        block(shared, vec![Target::Task(*id)], waker, || gift.has_ended());
        self.blocked = true;
    }

    fn unblock(&mut self) {
        unblock(&self.task.shared);
    }
}
