//! The handle of a task.

use std::fmt;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::error::{Stale, Stalled};
use crate::shown::error_says;
use crate::sync::Arc;
use crate::trace;
use crate::wait::{Op, Wait, drop_quietly, look_twice, sealed};

use super::cell::{HasOutcome, PolledResult};
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
/// An outcome is taken once. Where several futures await what a task makes, `shared()` of the
/// crate `futures-util` lets each clone it. Or keep it beside an
/// [`IntentLock`](crate::intent::IntentLock) that the task holds in X and they take in S, as
/// the example `build_tool` does.
#[must_use = "dropping it detaches the task: say so with `detach`"]
pub struct Task<R, E> {
    pub(super) shared: Arc<Shared>,
    pub(super) id: TaskId,
    pub(super) queued: Duration,
    pub(super) body: Arc<dyn HasOutcome<R, E>>,
}

// What it gave is moved in and out whole.
impl<R, E> UnwindSafe for Task<R, E> {}
impl<R, E> RefUnwindSafe for Task<R, E> {}

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
        Wait::new(First::of(std::slice::from_mut(self), |_, outcome| outcome))
    }

    /// Takes what it gave if it has ended; `None` if it has not. Does not wait.
    ///
    /// # Errors
    ///
    /// [`OutcomeError::Taken`] if the outcome was taken before.
    pub fn try_outcome(&mut self) -> Result<Option<Outcome<R, E>>, OutcomeError> {
        match self.outcome_of(self.body.slot().take()) {
            Poll::Ready(outcome) => outcome.map(Some),
            Poll::Pending => Ok(None),
        }
    }

    /// Cancels it if no worker has it: true if so. It will never run, or go on, and
    /// its function or future is dropped by this call. A future that is being polled is
    /// cancelled when it awaits next, if it does, and a function that runs may
    /// [look](super::is_cancelled): for these the call gives false.
    pub fn cancel(&self) -> bool {
        self.shared.with_state(|state, wakes, now| {
            let cancelled = state.cancel(self.location(), now, wakes);
            if !cancelled && !self.has_ended() {
                state.core.tell_to_end(self.id);
            }
            cancelled
        })
    }

    /// See [`Caller::bump`](super::Caller::bump).
    pub(crate) fn bump(&self, level: u8) -> Result<(), Stale> {
        self.shared.with_state(|state, wakes, _| {
            if self.has_ended() {
                return Err(Stale);
            }
            state.bump(self.location(), level, wakes)
        })?;
        trace::task_bumped(self.id.get(), level);
        Ok(())
    }

    /// Where it is to be looked for, for who has taken the lock of the state since it was
    /// submitted.
    pub(super) fn location(&self) -> Location {
        let location = self.body.slot().location();
        location.expect("what was posted was taken in")
    }

    fn outcome_of(&self, result: PolledResult<R, E>) -> Poll<Result<Outcome<R, E>, OutcomeError>> {
        let queued = self.queued;
        result.map(|result| {
            let (verdict, run) = result.ok_or(OutcomeError::Taken)?;
            Ok(Outcome {
                verdict,
                queued,
                run,
            })
        })
    }

    fn poll_outcome(&self, cx: &mut Context<'_>) -> Poll<Result<Outcome<R, E>, OutcomeError>> {
        look_twice(cx, |current, cloned| {
            let result = self.body.slot().take_or_wait(current, cloned)?;
            Some(self.outcome_of(result))
        })
    }

    /// Lets go of the handle; the task runs all the same.
    pub fn detach(self) {}

    /// Whether it has ended; does not wait.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.body.slot().has_ended()
    }
}

/// As [`outcome`](Task::outcome). One that is polled and then dropped leaves its waker
/// to the task, which wakes it when it ends.
impl<R, E> Future for Task<R, E> {
    type Output = Result<Outcome<R, E>, OutcomeError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_outcome(cx)
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

error_says!(OutcomeError {
    Self::Stalled(stalled) => "{stalled}",
    Self::Taken => "the outcome was taken before",
    Self::Nothing => "no task to wait for",
});

/// Waits until one of the tasks has ended, and takes what it gave: its index, and its
/// [`Outcome`]. Of several that have ended it takes the one with the lowest index.
///
/// ```
/// use conversant::scheduler::{CallerOptions, Scheduler, first};
///
/// let scheduler = Scheduler::builder().workers(2).build()?;
/// let caller = scheduler.caller("main", CallerOptions::default())?;
/// let squares = (0..4_u64).map(|n| caller.exec(move || Ok::<_, String>(n * n)));
/// let mut tasks = squares.collect::<Result<Vec<_>, _>>()?;
/// let mut sum = 0;
/// while !tasks.is_empty() {
///     let (n, outcome) = first(&mut tasks).wait()?;
///     tasks.swap_remove(n);
///     sum += outcome.verdict.ok().unwrap_or(0);
/// }
/// assert_eq!(sum, 14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Cost: O(tasks) each time it is polled, which is when it begins and when one ends.
///
/// Cancel safe: a wait that is dropped has taken nothing.
///
/// # Errors
///
/// [`OutcomeError`] as for [`Task::outcome`]; [`Nothing`](OutcomeError::Nothing) if there
/// is no task at all. If it is [`Taken`](OutcomeError::Taken), the outcome of one of them
/// was taken before: remove that task from the list.
pub fn first<R, E>(tasks: &mut [Task<R, E>]) -> Wait<impl Op<Output = Ended<R, E>>> {
    Wait::new(First::of(tasks, |n, outcome| (n, outcome)))
}

/// Which has ended, and its outcome.
type Ended<R, E> = Result<(usize, Outcome<R, E>), OutcomeError>;

/// The wait of [`first`] and of [`Task::outcome`].
pub struct First<'a, R, E, T> {
    tasks: &'a mut [Task<R, E>],
    gives: fn(usize, Outcome<R, E>) -> T,
    /// It is one of those whose threads sleep.
    blocked: bool,
}

impl<'a, R, E, T> First<'a, R, E, T> {
    fn of(tasks: &'a mut [Task<R, E>], gives: fn(usize, Outcome<R, E>) -> T) -> Self {
        let blocked = false;
        Self {
            tasks,
            gives,
            blocked,
        }
    }

    /// The first of which `look` gives an outcome.
    fn find(
        &self,
        mut look: impl FnMut(&Task<R, E>) -> Poll<Result<Outcome<R, E>, OutcomeError>>,
    ) -> Option<Result<T, OutcomeError>> {
        let mut tasks = self.tasks.iter().enumerate();
        let (n, ended) = tasks.find_map(|(n, task)| match look(task) {
            Poll::Ready(ended) => Some((n, ended)),
            Poll::Pending => None,
        })?;
        Some(ended.map(|outcome| (self.gives)(n, outcome)))
    }
}

impl<R, E, T> sealed::Sealed for First<'_, R, E, T> {}

impl<R, E, T> Op for First<'_, R, E, T> {
    type Output = Result<T, OutcomeError>;

    fn at_once(&mut self) -> Option<Self::Output> {
        self.find(|task| task.outcome_of(task.body.slot().take()))
    }

    fn attempt(&mut self) -> Option<Self::Output> {
        self.at_once()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(Task { shared, .. }) = self.tasks.first() else {
            return Poll::Ready(Err(OutcomeError::Nothing));
        };
        let mut ended = self.find(|task| task.poll_outcome(cx));
        // Only where all have been looked at: any of them may have ended.
        if ended.is_none() && self.blocked && is_stalled(shared) {
            ended = Some(Err(OutcomeError::Stalled(Stalled)));
        }
        if ended.is_some() {
            self.cancel();
        }
        ended.map_or(Poll::Pending, Poll::Ready)
    }

    fn cancel(&mut self) {
        let wakers = self
            .tasks
            .iter()
            .filter_map(|task| task.body.slot().take_waker());
        wakers.for_each(drop_quietly);
    }

    // What another scheduler runs goes on, whatever this one does.
    fn block(&mut self, waker: &Waker) {
        let (tasks, shared) = (&*self.tasks, &self.tasks[0].shared);
        self.blocked = tasks.iter().all(|task| Arc::ptr_eq(&task.shared, shared));
        if self.blocked {
            let targets = tasks.iter().map(|task| Target::Task(task.id));
            let one_has_ended = || tasks.iter().any(Task::has_ended);
            block(shared, targets.collect(), waker, one_has_ended);
        }
    }

    fn unblock(&mut self) {
        unblock(&self.tasks[0].shared);
    }
}
