//! Futures as tasks, and what wakes them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::cell::{Program, Runner};
use super::handles::{Caller, Place};
use super::reject::Rejected;
use super::task::Task;

impl Caller {
    /// Submits a future as a task in tier 0 and a group of its own.
    ///
    /// # Errors
    ///
    /// As [`spawn_with`](Self::spawn_with).
    pub fn spawn<F, R, E>(&self, future: F) -> Result<Task<R, E>, Rejected<F>>
    where
        F: Future<Output = Result<R, E>> + Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        self.spawn_with(Place::new(), future)
    }

    /// Submits a future as a task: the workers poll it. Never waits.
    ///
    /// It starts as any other task does, and from its first poll to its end it keeps
    /// what it took then, also while it awaits: its unit of its group's limit and of its
    /// caller's cap, and its tier. While it awaits no worker is kept. Woken, it is polled
    /// after those of its caller that were woken before; these polls take turns with
    /// other callers by the caller's weight, beside the turns in which its tasks start;
    /// while no other caller has work these two take turns in runs, each of at most what a
    /// worker [takes at once](super::Builder::claims).
    /// A [`Hold`](super::Hold) keeps it from being polled, a cap or limit of 0 does not.
    ///
    /// [`Task::cancel`], and a release or shutdown with [`How::Cancel`](super::How::Cancel),
    /// also cancel a future that awaits: it is dropped where it stands. One that nobody
    /// ever wakes keeps its caller's synchronize, and a shutdown that drains, waiting.
    /// One that awaits a task which needs the unit that it keeps, as one of its own serial
    /// group or of its own capped caller, waits for itself, and nobody detects it: await
    /// first, in a future without that group or cap.
    ///
    /// ```
    /// use conversant::scheduler::{CallerOptions, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().workers(1).build()?;
    /// let caller = scheduler.caller("main", CallerOptions::default())?;
    /// let sum = caller.exec(|| Ok::<_, String>(1 + 1))?;
    /// // One worker is enough: a future that awaits keeps none.
    /// let mut twice = caller.spawn(async move {
    ///     let sum = sum.await.map_err(|e| e.to_string())?.verdict;
    ///     sum.ok().map(|sum| 2 * sum).ok_or("no sum".to_string())
    /// })?;
    /// assert_eq!(twice.outcome().wait()?.verdict.ok(), Some(4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Cost
    ///
    /// As a function, and two blocks of memory more; each wake-up by others is one hold of
    /// the scheduler's lock. What wakes itself while it is polled is told of with the
    /// worker's next report.
    ///
    /// # Errors
    ///
    /// The future comes back, not polled, with the [`Reason`](super::Reason).
    pub fn spawn_with<F, R, E>(
        &self,
        place: Place<'_>,
        future: F,
    ) -> Result<Task<R, E>, Rejected<F>>
    where
        F: Future<Output = Result<R, E>> + Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        self.submit_one(place, Stage::New(future), None)
    }

    /// As [`exec_detached`](Self::exec_detached), of a future.
    ///
    /// # Errors
    ///
    /// As [`spawn_with`](Self::spawn_with).
    pub fn spawn_detached<F, R, E>(&self, place: Place<'_>, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = Result<R, E>> + Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        self.submit_detached(place, Stage::New(future))
    }
}

/// A future as it is run.
pub enum Stage<F> {
    New(F),
    /// Since then.
    Begun(Pin<Box<F>>, Duration),
}

impl<F, R, E> Program for Stage<F>
where
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    type Given = F;
    type Ok = R;
    type Error = E;

    const IS_FUTURE: bool = true;

    fn new(future: F) -> Self {
        Self::New(future)
    }

    fn go(self, runner: &mut dyn Runner) -> Result<Result<R, E>, Self> {
        let mut future = match self {
            Self::New(future) => Box::pin(future),
            Self::Begun(future, start) => {
                *runner.start() = start;
                future
            }
        };
        // Kept by those alone who may wake it: a future that nobody can wake goes with the
        // last handle of its scheduler.
        let waker = runner.waker();
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(gave) => Ok(gave),
            Poll::Pending => Err(Self::Begun(future, *runner.start())),
        }
    }

    fn back(self) -> F {
        match self {
            Self::New(future) => future,
            Self::Begun(..) => unreachable!("a refused task was never run"),
        }
    }
}
