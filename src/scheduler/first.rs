//! The wait for whichever of several tasks ends first.

use std::task::{Context, Poll, Waker};

use crate::error::Stalled;
use crate::sync::Arc;
use crate::wait::{Op, Wait, sealed};

use super::current::{block, is_stalled, unblock};
use super::outcome::Outcome;
use super::stall::Target;
use super::task::{OutcomeError, OutcomeOp, Task};

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
    let blocked = false;
    Wait::new(First { tasks, blocked })
}

/// Which has ended, and its outcome.
type Ended<R, E> = Result<(usize, Outcome<R, E>), OutcomeError>;

/// The wait of [`first`].
#[derive(Debug)]
pub struct First<'a, R, E> {
    tasks: &'a mut [Task<R, E>],
    blocked: bool,
}

impl<R, E> sealed::Sealed for First<'_, R, E> {}

impl<R, E> First<'_, R, E> {
    fn ops(&mut self) -> impl Iterator<Item = OutcomeOp<'_, R, E>> {
        self.tasks.iter_mut().map(OutcomeOp::new)
    }
}

impl<R, E> Op for First<'_, R, E> {
    type Output = Ended<R, E>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.tasks.is_empty() {
            return Poll::Ready(Err(OutcomeError::Nothing));
        }
        let mut ended = self
            .ops()
            .enumerate()
            .find_map(|(n, mut op)| match op.poll(cx) {
                Poll::Ready(ended) => Some(ended.map(|outcome| (n, outcome))),
                Poll::Pending => None,
            });
        // Only where all have been looked at: any of them may have ended.
        if ended.is_none() && self.blocked && is_stalled(&self.tasks[0].shared) {
            ended = Some(Err(OutcomeError::Stalled(Stalled)));
        }
        if ended.is_some() {
            self.cancel();
        }
        ended.map_or(Poll::Pending, Poll::Ready)
    }

    fn cancel(&mut self) {
        self.ops().for_each(|mut op| op.cancel());
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
