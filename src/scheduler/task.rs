//! The handle of a task.

use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::error::{Stale, Stalled};
use crate::shown::{error_says, shows};
use crate::sync::Arc;
use crate::trace;
use crate::wait::{ClonedWaker, Op, Wait, drop_quietly, look_twice, sealed};

use super::cell::{HasOutcome, PolledResult};
use super::current::{block, gives_up, is_here, unblock};
use super::outcome::{Outcome, TaskId};
use super::shared::Shared;
use super::stall::Target;
use super::task_state::Location;

/// The handle of a submitted task, which gives its [`Outcome`].
///
/// It is a future: `task.await` takes the outcome, like [`outcome`](Self::outcome). Dropping the
/// handle detaches the task: it still runs, and its worker drops what it returns.
///
/// An outcome is taken once. If several futures need the result of a task, `shared()` of the crate
/// `futures-util` clones it for each:
///
/// ```
/// # use conversant::prelude::*;
/// use futures_util::FutureExt;
///
/// # let scheduler = Scheduler::builder().workers(1).build()?;
/// # let caller = scheduler.caller("build", CallerOptions::default())?;
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let parse = caller.exec(|| "42".parse::<u32>())?;
/// let parsed = parse.map(|outcome| outcome.ok()?.verdict.ok()).shared();
/// assert_eq!((parsed.clone().await, parsed.await), (Some(42), Some(42)));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it detaches the task: say so with `detach`"]
pub struct Task<R, E> {
    pub(super) shared: Arc<Shared>,
    pub(super) id: TaskId,
    pub(super) queued: Duration,
    pub(super) body: Arc<dyn HasOutcome<R, E>>,
}

// The outcome is moved in and out whole.
impl<R, E> UnwindSafe for Task<R, E> {}
impl<R, E> RefUnwindSafe for Task<R, E> {}

impl<R, E> Task<R, E> {
    /// The task's number.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Waits until the task has ended, and takes its outcome.
    ///
    /// Cancel safe: a wait that is dropped has taken nothing.
    ///
    /// # Errors
    ///
    /// [`OutcomeError::Stalled`] if this is an untimed [`wait`](Wait::wait) within a task of the
    /// same scheduler, all its running tasks are blocked in such waits, and none can start. The
    /// awaited task is untouched; you can wait for it again. [`OutcomeError::Taken`] if the
    /// outcome was taken before.
    pub fn outcome(&mut self) -> Wait<impl Op<Output = Result<Outcome<R, E>, OutcomeError>>> {
        Wait::new(First::of(std::slice::from_mut(self), |_, outcome| outcome))
    }

    /// Takes the outcome if the task has ended; `None` if it has not. Does not wait.
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

    /// Cancels the task. True if no worker runs it now: then it never starts or goes on, and this
    /// call drops its function or future. False if it runs or has ended: a future that is being
    /// polled is cancelled at its next await, and a function may ask whether it [is
    /// cancelled](super::is_cancelled).
    pub fn cancel(&self) -> bool {
        self.shared.with_state(|state, wakes, now| {
            let cancelled = state.cancel(self.location(), now, wakes);
            if !cancelled && !self.has_ended() {
                state.core.cancel_running(|_, tag| tag.id == self.id);
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

    /// Where the task is. The caller must have taken the state's lock since it was submitted.
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

    /// Drops the handle; the task still runs.
    pub fn detach(self) {}

    /// Whether the task has ended. Does not wait.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.body.slot().has_ended()
    }
}

/// Like [`outcome`](Task::outcome). If it is polled and then dropped, its waker stays with the
/// task, which wakes it when it ends. A task keeps one waker: a later wait for the outcome replaces
/// it, and takes it away when it is dropped.
impl<R, E> Future for Task<R, E> {
    type Output = Result<Outcome<R, E>, OutcomeError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_outcome(cx)
    }
}

shows!([R, E] Task<R, E>, |task| id: task.id);

/// Why there is no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutcomeError {
    /// The scheduler is stalled: see [`Stalled`].
    Stalled(Stalled),
    /// The outcome was taken before.
    Taken,
    /// There is no task to wait for.
    Nothing,
}

error_says!(OutcomeError {
    Self::Stalled(stalled) => "{stalled}",
    Self::Taken => "the outcome was taken before",
    Self::Nothing => "no task to wait for",
});

/// Waits until one of the tasks has ended, and gives its index and its [`Outcome`]. If several have
/// ended, it takes the one with the lowest index.
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
/// Cost: O(tasks) for each poll; there is one at the beginning, and one when a task ends.
///
/// Cancel safe: a wait that is dropped has taken nothing.
///
/// # Errors
///
/// [`OutcomeError`] as for [`Task::outcome`]. [`Nothing`](OutcomeError::Nothing) if there is no
/// task. [`Taken`](OutcomeError::Taken) if the outcome of one of them was taken before, and none
/// before it in the list has ended: remove that task from the list.
pub fn first<R, E>(tasks: &mut [Task<R, E>]) -> Wait<impl Op<Output = Ended<R, E>>> {
    Wait::new(First::of(tasks, |n, outcome| (n, outcome)))
}

/// The index of the task that has ended, and its outcome.
type Ended<R, E> = Result<(usize, Outcome<R, E>), OutcomeError>;

/// The wait of [`first`] and of [`Task::outcome`].
pub struct First<'a, R, E, T> {
    tasks: &'a mut [Task<R, E>],
    gives: fn(usize, Outcome<R, E>) -> T,
}

impl<'a, R, E, T> First<'a, R, E, T> {
    fn of(tasks: &'a mut [Task<R, E>], gives: fn(usize, Outcome<R, E>) -> T) -> Self {
        Self { tasks, gives }
    }

    /// The scheduler of one of the tasks: that whose task the thread runs, if there is one.
    fn here(&self) -> &Arc<Shared> {
        let mut all = self.tasks.iter().map(|task| &task.shared);
        let own = all.find(|shared| is_here(shared));
        own.unwrap_or(&self.tasks[0].shared)
    }

    /// The first outcome that `look` finds.
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

    /// The first outcome. If there is none, leaves a waker with each task. All clones come before
    /// that: if one panics, each task keeps the waker that it had.
    fn find_or_wait(&self, cx: &mut Context<'_>) -> Option<Result<T, OutcomeError>> {
        if let [task] = &*self.tasks {
            return self.find(|_| task.poll_outcome(cx));
        }
        let look = |task: &Task<R, E>, cloned: &mut ClonedWaker| {
            let looked = task.body.slot().take_or_wait(cx.waker(), &mut cloned.0);
            looked.map(|result| task.outcome_of(result))
        };
        let mut clones = Vec::with_capacity(self.tasks.len());
        let ended = self.find(|task| {
            let looked = look(task, &mut ClonedWaker::default());
            clones.push(looked.is_none().then(|| ClonedWaker::of(cx)));
            looked.unwrap_or(Poll::Pending)
        });
        let mut clones = clones.into_iter();
        ended.or_else(|| {
            self.find(|task| {
                let mut cloned = clones.next().flatten().unwrap_or_default();
                look(task, &mut cloned).unwrap_or(Poll::Pending)
            })
        })
    }
}

impl<R, E, T> sealed::Sealed for First<'_, R, E, T> {}

impl<R, E, T> Op for First<'_, R, E, T> {
    type Output = Result<T, OutcomeError>;

    fn at_once(&mut self) -> Option<Self::Output> {
        self.find(|task| task.outcome_of(task.body.slot().take()))
    }

    /// Comes after polls, too. One task that has ended has no waker.
    fn attempt(&mut self) -> Option<Self::Output> {
        let ended = self.at_once();
        if ended.is_some() && self.tasks.len() > 1 {
            self.cancel();
        }
        ended
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.tasks.is_empty() {
            return Poll::Ready(Err(OutcomeError::Nothing));
        }
        let ended = self.find_or_wait(cx);
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

    /// Tasks of another scheduler go on whatever this one does.
    fn block(&mut self, waker: &Waker) {
        let shared = self.here();
        let goes_on = |task: &Task<R, E>| task.has_ended() || !Arc::ptr_eq(&task.shared, shared);
        let targets = self.tasks.iter().map(|task| Target::Task(task.id));
        let one_goes_on = || self.tasks.iter().any(goes_on);
        block(shared, targets.collect(), waker, one_goes_on);
    }

    fn give_up(&mut self) -> Option<Self::Output> {
        gives_up(self.here()).then_some(Err(OutcomeError::Stalled(Stalled)))
    }

    fn unblock(&mut self) {
        unblock(self.here());
    }
}
