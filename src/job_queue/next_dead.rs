//! Waits for dead jobs.

use std::task::{Context, Poll};

use crate::error::Closed;
use crate::shown::shows;
use crate::wait::{ClonedWaker, Op, Ticket, Wait, WakeBatch, look_twice, sealed};

use super::JobQueue;
use super::shared::{Shared, State};
use crate::jobs::JobId;

impl<K, J> JobQueue<K, J> {
    /// Waits for a [dead](Self::dead) job that no wait has returned yet. Each dead job is returned
    /// once, by one wait, even if it died before any wait began. A job that is requeued or removed
    /// before it is returned is skipped.
    ///
    /// Cancel safe: if a dropped wait had been woken, the next one is woken.
    ///
    /// ```
    /// use conversant::job_queue::{JobQueue, Place};
    ///
    /// let queue = JobQueue::builder().attempts(1).build()?;
    /// let mail = queue.push(1, "mail", Place::new())?;
    /// queue.claim_one().wait()?.fail()?;
    /// assert_eq!(queue.next_dead().wait(), Ok(mail));
    /// queue.requeue(mail)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Closed`] if the queue is closed, no job waits, none is claimed, and each dead job has been
    /// returned.
    pub fn next_dead(&self) -> Wait<impl Op<Output = Result<JobId, Closed>>> {
        Wait::new(NextDead {
            shared: self.shared(),
            ticket: None,
        })
    }
}

impl<K, J> State<K, J> {
    /// Notifies the waits that are due; false if the batch is full and more are due.
    #[cold]
    pub(super) fn notify_watchers(&mut self, wakes: &mut WakeBatch) -> bool {
        let all = self.watchers.len();
        let due = match self.finished() {
            true => all,
            false => self.jobs.unreported().take(all).count(),
        };
        self.watchers.notify_up_to(due, wakes)
    }
}

/// The wait of [`JobQueue::next_dead`].
pub struct NextDead<'q, K, J> {
    shared: &'q Shared<K, J>,
    ticket: Option<Ticket>,
}

impl<K, J> sealed::Sealed for NextDead<'_, K, J> {}

impl<K, J> Op for NextDead<'_, K, J> {
    type Output = Result<JobId, Closed>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shared, ticket } = self;
        look_twice(cx, |current, cloned| {
            let mut old = ClonedWaker::default();
            shared.with_state(|state| {
                let found = state.jobs.report_dead().map(|job| shared.name(job));
                if found.is_none() && !state.finished() {
                    let waits = state.watchers.enqueue((), ticket, current, cloned);
                    return waits.then_some(Poll::Pending);
                }
                old = ClonedWaker(state.watchers.withdraw(ticket));
                Some(Poll::Ready(found.ok_or(Closed)))
            })
        })
    }

    fn cancel(&mut self) {
        // If this wait had been notified, the waking rule notifies the next one.
        let ticket = &mut self.ticket;
        let withdraw = |state: &mut State<_, _>| ClonedWaker(state.watchers.withdraw(ticket));
        drop(self.shared.with_state(withdraw));
    }
}

shows!([K, J] NextDead<'_, K, J>, |this| in_line: this.ticket.is_some());
