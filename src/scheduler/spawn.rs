//! Futures as tasks, and what wakes them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::cell::{Program, Runner};
use super::handles::{Caller, Place};
use super::outcome::TaskResult;
use super::reject::Rejected;
use super::task::Task;

impl Caller {
    /// Submits a future as a task in tier 0 and a group of its own.
    ///
    /// # Errors
    ///
    /// Like [`spawn_with`](Self::spawn_with).
    pub fn spawn<F, T>(&self, future: F) -> Result<Task<T::Ok, T::Error>, Rejected<F>>
    where
        F: Future<Output = T> + Send + 'static,
        T: TaskResult,
    {
        self.spawn_with(Place::new(), future)
    }

    /// Submits a future as a task: the workers poll it. Never waits.
    ///
    /// It starts like any other task. From its first poll to its end it keeps its unit of its
    /// group's limit and of its caller's cap, and its tier, also while it awaits; but while it
    /// awaits, it occupies no worker.
    ///
    /// A woken future is polled after those of its caller that were woken before. These polls take
    /// turns with other callers by the caller's weight, in addition to the turns in which its tasks
    /// start. While no other caller has work, new tasks and woken futures take turns in runs of at
    /// most the weight, or as many as a worker [claims](super::Builder::claims) if that is more. A
    /// [`Hold`](super::Hold) stops polls; a cap or limit of 0 does not.
    ///
    /// [`Task::cancel`], [`Caller::cancel_all`], [`Group::cancel_all`](super::Group::cancel_all),
    /// and a release or shutdown with [`How::Cancel`](super::How::Cancel), drop a future that
    /// awaits. A future that nobody ever wakes blocks its caller's synchronize, and a draining
    /// shutdown.
    ///
    /// A future that awaits a task of its own serial group, of its own capped caller, or of another
    /// tier of its own caller, may keep what this task needs. Then it waits for itself, and nothing
    /// detects that: await such tasks in a future without that group or cap, and in the same tier or
    /// of another caller.
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
    /// Like a function, and two blocks of memory. Each wake-up from outside takes the scheduler's
    /// lock once. A future that wakes itself while it is polled is reported with the worker's next
    /// report.
    ///
    /// # Errors
    ///
    /// [`Rejected`], with the future, which was not polled.
    pub fn spawn_with<F, T>(
        &self,
        place: Place<'_>,
        future: F,
    ) -> Result<Task<T::Ok, T::Error>, Rejected<F>>
    where
        F: Future<Output = T> + Send + 'static,
        T: TaskResult,
    {
        self.submit_one(place, Stage::New(future), None)
    }

    /// Like [`exec_detached`](Self::exec_detached), for a future.
    ///
    /// # Errors
    ///
    /// Like [`spawn_with`](Self::spawn_with).
    pub fn spawn_detached<F, T>(&self, place: Place<'_>, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = T> + Send + 'static,
        T: TaskResult,
    {
        self.submit_detached(place, Stage::New(future))
    }
}

/// A future, before and after its first poll.
pub enum Stage<F> {
    New(F),
    /// And when it was first polled.
    Begun(Pin<Box<F>>, Duration),
}

impl<F, T> Program for Stage<F>
where
    F: Future<Output = T> + Send + 'static,
    T: TaskResult,
{
    type Given = F;
    type Ok = T::Ok;
    type Error = T::Error;

    const IS_FUTURE: bool = true;

    fn new(future: F) -> Self {
        Self::New(future)
    }

    fn go(self, runner: &mut dyn Runner) -> Result<Result<T::Ok, T::Error>, Self> {
        let mut future = match self {
            Self::New(future) => Box::pin(future),
            Self::Begun(future, start) => {
                *runner.start() = start;
                future
            }
        };
        // Only those who may wake the future keep it: one that nobody can wake is dropped with
        // the last handle of its scheduler.
        let waker = runner.waker();
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(gave) => {
                let result = gave.into_result();
                // Before the return: if its drop panics, what is returned then would leak.
                drop(future);
                Ok(result)
            }
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
