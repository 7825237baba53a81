//! The wait for whichever of several tasks ends first.

use std::task::{Context, Poll, Waker};

use crate::wait::{Op, Wait, sealed};

use super::outcome::Outcome;
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
/// is no task at all. The outcome of one was [taken](OutcomeError::Taken) before: take it
/// out of the list.
pub fn first<R, E>(tasks: &mut [Task<R, E>]) -> Wait<First<'_, R, E>> {
    let blocked = false;
    Wait::new(First { tasks, blocked })
}

/// The wait of [`first`].
#[derive(Debug)]
pub struct First<'a, R, E> {
    tasks: &'a mut [Task<R, E>],
    blocked: bool,
}

impl<R, E> sealed::Sealed for First<'_, R, E> {}

impl<R, E> First<'_, R, E> {
    fn ops(&mut self) -> impl Iterator<Item = OutcomeOp<'_, R, E>> {
        let blocked = self.blocked;
        let tasks = self.tasks.iter_mut();
        tasks.map(move |task| OutcomeOp { task, blocked })
    }
}

impl<R, E> Op for First<'_, R, E> {
    type Output = Result<(usize, Outcome<R, E>), OutcomeError>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.tasks.is_empty() {
            return Poll::Ready(Err(OutcomeError::Nothing));
        }
        let ended = self
            .ops()
            .enumerate()
            .find_map(|(n, mut op)| match op.poll(cx) {
                Poll::Ready(ended) => Some(ended.map(|outcome| (n, outcome))),
                Poll::Pending => None,
            });
        if ended.is_some() {
            self.cancel();
        }
        ended.map_or(Poll::Pending, Poll::Ready)
    }

    fn cancel(&mut self) {
        self.ops().for_each(|mut op| op.cancel());
    }

    // Where none can go on, the first can not.
    fn block(&mut self, waker: &Waker) {
        self.ops().take(1).for_each(|mut op| op.block(waker));
        self.blocked = true;
    }

    fn unblock(&mut self) {
        self.ops().take(1).for_each(|mut op| op.unblock());
    }
}
