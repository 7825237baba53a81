//! The wait for jobs.

use std::fmt;
use std::ops::Deref;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::Closed;
use crate::jobs::Pinned;
use crate::sync::Arc;
use crate::wait::{Op, Ticket, look_twice, sealed};

use super::JobQueue;
use super::claim::Claim;
use super::shared::{Shared, State};

/// The wait of [`JobQueue::claim`].
pub type Claiming<'a, K, J> = ClaimingWith<&'a JobQueue<K, J>>;

/// The wait of [`JobQueue::claim_owned`].
pub type ClaimingOwned<K, J> = ClaimingWith<Arc<JobQueue<K, J>>>;

/// What jobs are claimed from: a queue, or a [`Part`](super::Part) of one.
pub trait Claims: sealed::Sealed {
    /// What orders the jobs.
    type Key: Ord;
    /// A job.
    type Job;

    #[doc(hidden)]
    #[allow(private_interfaces, reason = "in a sealed trait")]
    fn source(&self) -> Source<'_, Self::Key, Self::Job>;
}

/// A queue, and a part of it if it is not the whole.
pub(super) type Source<'a, K, J> = (&'a Arc<Shared<K, J>>, Option<Pinned>);

impl<K, J> sealed::Sealed for JobQueue<K, J> {}

impl<K: Ord, J> Claims for JobQueue<K, J> {
    type Key = K;
    type Job = J;

    #[allow(private_interfaces, reason = "in a sealed trait")]
    fn source(&self) -> Source<'_, K, J> {
        (&self.shared, None)
    }
}

/// A wait for jobs of what `Q` leads to: [`Claiming`], [`ClaimingOwned`] or
/// [`ClaimingPart`](super::ClaimingPart).
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

impl<Q: Deref<Target: Claims> + Unpin> Op for ClaimingWith<Q> {
    type Output = Result<Claimed<Q::Target>, Closed>;

    /// Where nothing is found nothing is eligible, so that this change wakes
    /// nobody, compares nothing, and cannot unwind with a new place in line.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            queue,
            n,
            until,
            ticket,
        } = self;
        let source @ (shared, of) = queue.source();
        look_twice(cx, |current, spare| {
            shared.with_state(|state| {
                let claims = claim_now(source, state, *n, *until);
                if !claims.is_empty() || state.finished() {
                    let waker = state.withdraw(of, ticket);
                    state.discard_waker(waker);
                    let found = if claims.is_empty() {
                        Err(Closed)
                    } else {
                        Ok(claims)
                    };
                    return Some(Poll::Ready(found));
                }
                let waits = state.enqueue(of, ticket, current, spare);
                waits.then_some(Poll::Pending)
            })
        })
    }

    fn cancel(&mut self) {
        let ticket = &mut self.ticket;
        let (shared, of) = self.queue.source();
        shared.with_state(|state| {
            // If it had been notified, the waking rule passes that on.
            let waker = state.withdraw(of, ticket);
            state.discard_waker(waker);
        });
    }
}

type Claimed<S> = Vec<Claim<<S as Claims>::Key, <S as Claims>::Job>>;

/// Up to `n` claims, made under the lock.
pub(super) fn claim_now<K: Ord, J>(
    (shared, of): Source<'_, K, J>,
    state: &mut State<K, J>,
    n: usize,
    until: Option<Duration>,
) -> Vec<Claim<K, J>> {
    let own = |lease| state.jobs.now().saturating_add(lease);
    let lease = until.or_else(|| shared.lease.map(own));
    let picks = state.jobs.claim_of(of, n, lease);
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
