//! The wait for jobs.

use std::fmt;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::Closed;
use crate::jobs::{Pick, Pinned};
use crate::sync::Arc;
use crate::wait::{Op, Ticket, look_twice, sealed};

use super::JobQueue;
use super::claim::{Claim, Owner};
use super::shared::{Shared, State};

/// The wait of [`JobQueue::claim`].
pub type Claiming<'q, K, J> = ClaimingWith<&'q JobQueue<K, J>>;

/// The wait of [`JobQueue::claim_owned`].
pub type ClaimingOwned<K, J> = ClaimingWith<Arc<JobQueue<K, J>>>;

/// What jobs are claimed from: a queue, borrowed or owned, or a [`Part`](super::Part) of
/// one. Nothing else can be: its methods speak of private types.
pub trait Claims {
    /// What orders the jobs.
    type Key: Ord;
    /// A job.
    type Job;
    /// A claimed one: a [`Claim`], which borrows the queue or owns it.
    type Claim;

    #[doc(hidden)]
    #[allow(private_interfaces, reason = "nobody else implements it")]
    fn source(&self) -> Source<'_, Self::Key, Self::Job>;

    #[doc(hidden)]
    #[allow(private_interfaces, reason = "nobody else implements it")]
    fn claim_now(
        &self,
        state: &mut State<Self::Key, Self::Job>,
        n: usize,
        until: Option<Duration>,
    ) -> Vec<Self::Claim>;
}

/// A queue, and a part of it if it is not the whole.
pub(super) type Source<'a, K, J> = (&'a Arc<Shared<K, J>>, Option<Pinned>);

impl<K, J> sealed::Sealed for JobQueue<K, J> {}

impl<'q, K: Ord, J> Claims for &'q JobQueue<K, J> {
    type Key = K;
    type Job = J;
    type Claim = Claim<'q, K, J>;

    #[allow(private_interfaces, reason = "nobody else implements it")]
    fn source(&self) -> Source<'_, K, J> {
        (&self.shared, None)
    }

    #[allow(private_interfaces, reason = "nobody else implements it")]
    fn claim_now(
        &self,
        state: &mut State<K, J>,
        n: usize,
        until: Option<Duration>,
    ) -> Vec<Claim<'q, K, J>> {
        claim_now(Owner::Borrowed(&self.shared), None, state, n, until)
    }
}

impl<K: Ord + 'static, J: 'static> Claims for Arc<JobQueue<K, J>> {
    type Key = K;
    type Job = J;
    type Claim = Claim<'static, K, J>;

    #[allow(private_interfaces, reason = "nobody else implements it")]
    fn source(&self) -> Source<'_, K, J> {
        (&self.shared, None)
    }

    #[allow(private_interfaces, reason = "nobody else implements it")]
    fn claim_now(
        &self,
        state: &mut State<K, J>,
        n: usize,
        until: Option<Duration>,
    ) -> Vec<Claim<'static, K, J>> {
        claim_now(Owner::Owned(self.shared.clone()), None, state, n, until)
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

impl<Q: Claims + Unpin> Op for ClaimingWith<Q> {
    type Output = Result<Vec<Q::Claim>, Closed>;

    /// Where nothing is found nothing is eligible, so that this change wakes
    /// nobody, compares nothing, and cannot unwind with a new place in line.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            queue,
            n,
            until,
            ticket,
        } = self;
        let (shared, of) = queue.source();
        look_twice(cx, |current, spare| {
            shared.with_state(|state| {
                let claims = queue.claim_now(state, *n, *until);
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

/// Up to `n` claims, made under the lock.
pub(super) fn claim_now<'q, K: Ord, J>(
    owner: Owner<'q, K, J>,
    of: Option<Pinned>,
    state: &mut State<K, J>,
    n: usize,
    until: Option<Duration>,
) -> Vec<Claim<'q, K, J>> {
    let own = |lease| state.jobs.now().saturating_add(lease);
    let lease = until.or_else(|| owner.lease.map(own));
    let picks = state.jobs.claim(of, n, lease);
    let claim = |pick: Pick| {
        let job = state.jobs.get(pick.id).expect("it was just claimed");
        Claim::new(owner.clone(), pick, job.clone())
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
