//! The wait for jobs.

use std::fmt;
use std::ops::Deref;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::Closed;
use crate::sync::Arc;
use crate::wait::{Op, Ticket, look_twice, sealed};

use super::JobQueue;
use super::claim::Claim;
use super::shared::{Shared, State};

/// The wait of [`JobQueue::claim`].
pub type Claiming<'a, K, J> = ClaimingWith<&'a JobQueue<K, J>>;

/// The wait of [`JobQueue::claim_owned`].
pub type ClaimingOwned<K, J> = ClaimingWith<Arc<JobQueue<K, J>>>;

/// A wait for jobs of the queue that `Q` leads to: [`Claiming`] or
/// [`ClaimingOwned`].
pub struct ClaimingWith<Q> {
    queue: Q,
    n: usize,
    until: Option<Duration>,
    ticket: Option<Ticket>,
}

impl<Q> ClaimingWith<Q> {
    pub(super) fn new(queue: Q, n: usize, until: Option<Duration>) -> Self {
        Self {
            queue,
            n: n.max(1),
            until,
            ticket: None,
        }
    }
}

impl<Q> sealed::Sealed for ClaimingWith<Q> {}

impl<K: Ord, J, Q: Deref<Target = JobQueue<K, J>> + Unpin> Op for ClaimingWith<Q> {
    type Output = Result<Vec<Claim<K, J>>, Closed>;

    /// Where nothing is found nothing is eligible, so that this change wakes
    /// nobody, compares nothing, and cannot unwind with a new place in line.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            queue,
            n,
            until,
            ticket,
        } = self;
        let shared = &queue.shared;
        look_twice(cx, |current, spare| {
            shared.with_state(|state| {
                let claims = claim_now(shared, state, *n, *until);
                if !claims.is_empty() || state.finished() {
                    let waker = state.claims.withdraw(ticket);
                    state.discard_waker(waker);
                    let found = if claims.is_empty() {
                        Err(Closed)
                    } else {
                        Ok(claims)
                    };
                    return Some(Poll::Ready(found));
                }
                let waits = state.claims.enqueue((), ticket, current, spare);
                waits.then_some(Poll::Pending)
            })
        })
    }

    fn cancel(&mut self) {
        let ticket = &mut self.ticket;
        self.queue.shared.with_state(|state| {
            // If it had been notified, the waking rule passes that on.
            let waker = state.claims.withdraw(ticket);
            state.discard_waker(waker);
        });
    }
}

/// Up to `n` claims, made under the lock.
pub(super) fn claim_now<K: Ord, J>(
    shared: &Arc<Shared<K, J>>,
    state: &mut State<K, J>,
    n: usize,
    until: Option<Duration>,
) -> Vec<Claim<K, J>> {
    let own = |lease| state.jobs.now().saturating_add(lease);
    let lease = until.or_else(|| shared.lease.map(own));
    let picks = state.jobs.claim(n, lease);
    let claim = |pick: crate::jobs::Pick| {
        let job = state.jobs.get(pick.id).expect("it was just claimed");
        Claim::new(shared, pick, job.clone())
    };
    picks.into_iter().map(claim).collect()
}

impl<Q> fmt::Debug for ClaimingWith<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claiming")
            .field("n", &self.n)
            .field("in_line", &self.ticket.is_some())
            .finish_non_exhaustive()
    }
}
