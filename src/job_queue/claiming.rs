//! The wait for jobs.

use std::borrow::Cow;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::Closed;
use crate::jobs::{Pick, Pinned};
use crate::shown::shows;
use crate::sync::Arc;
use crate::wait::{ClonedWaker, Op, Ticket, Wait, Waiters, look_twice, sealed};

use super::body::{Body, Stored};
use super::claim::Claim;
use super::shared::{Shared, State};

/// A wait for jobs, of a queue or of a [`Part`](super::Part) of it: for `R`.
pub struct Claiming<'q, K, J, R> {
    shared: &'q Arc<Shared<K, J>>,
    of: Option<Pinned>,
    n: usize,
    ticket: Option<Ticket>,
    /// Claims what may run now.
    claim: Claims<'q, K, J, R>,
}

/// Claims up to so many jobs of a queue or a part; `None` if none may run.
type Claims<'q, K, J, R> =
    fn(&'q Arc<Shared<K, J>>, &mut State<K, J>, Option<Pinned>, usize) -> Option<R>;

impl<'q, K: Ord, J, R> Claiming<'q, K, J, R> {
    fn new(
        shared: &'q Arc<Shared<K, J>>,
        of: Option<Pinned>,
        n: usize,
        claim: Claims<'q, K, J, R>,
    ) -> Wait<Self> {
        Wait::new(Self {
            shared,
            of,
            n,
            ticket: None,
            claim,
        })
    }
}

impl<'q, K: Ord, J> Claiming<'q, K, J, Vec<Claim<'q, K, J>>> {
    /// Waits for at least one job, unless `n` is 0.
    pub(super) fn several(
        shared: &'q Arc<Shared<K, J>>,
        of: Option<Pinned>,
        n: usize,
    ) -> Wait<Self> {
        Self::new(shared, of, n, |shared, state, of, n| {
            let claims = claim(shared, state, of, n);
            (!claims.is_empty() || n == 0).then_some(claims)
        })
    }
}

impl<'q, K: Ord, J> Claiming<'q, K, J, Claim<'q, K, J>> {
    /// Waits for one job.
    pub(super) fn one(shared: &'q Arc<Shared<K, J>>, of: Option<Pinned>) -> Wait<Self> {
        Self::new(shared, of, 1, |shared, state, of, _| {
            claim_one(shared, state, of)
        })
    }
}

/// Claims up to `n` jobs that may run now.
pub(super) fn claim<'q, K: Ord, J>(
    shared: &'q Arc<Shared<K, J>>,
    state: &mut State<K, J>,
    of: Option<Pinned>,
    n: usize,
) -> Vec<Claim<'q, K, J>> {
    let of = (of, n, until(shared, state));
    state.jobs.claim(of, make(shared), Claim::unpick)
}

/// Claims a job that may run now.
#[inline(never)]
pub(super) fn claim_one<'q, K: Ord, J>(
    shared: &'q Arc<Shared<K, J>>,
    state: &mut State<K, J>,
    of: Option<Pinned>,
) -> Option<Claim<'q, K, J>> {
    let until = until(shared, state);
    state.jobs.claim_one(of, until, make(shared))
}

/// Until when a claim of now holds, if it has a lease.
fn until<K, J>(shared: &Shared<K, J>, state: &State<K, J>) -> Option<Duration> {
    let until = |(lease, _)| state.jobs.now().saturating_add(lease);
    shared.lease.map(until)
}

/// Makes the claim of a job.
fn make<'q, K, J>(
    shared: &'q Arc<Shared<K, J>>,
) -> impl FnMut(Pick, &mut Stored<J>) -> Claim<'q, K, J> {
    let clone = shared.lease.map(|(_, clone)| clone);
    move |pick, stored| {
        let body = Body::lend(stored, clone);
        Claim::new(Cow::Borrowed(shared), pick, body)
    }
}

impl<K, J, R> sealed::Sealed for Claiming<'_, K, J, R> {}

impl<K: Ord, J, R> Op for Claiming<'_, K, J, R> {
    type Output = Result<R, Closed>;

    /// If it finds no job, none is eligible. So the change that enqueues the wait wakes nobody and
    /// compares nothing, and cannot unwind with the wait newly enqueued.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (shared, of, ticket) = (self.shared, self.of, &mut self.ticket);
        look_twice(cx, |current, cloned| {
            let mut old = ClonedWaker::default();
            shared.with_state(|state| {
                let claimed = (self.claim)(shared, state, of, self.n);
                if claimed.is_some() || state.finished() {
                    old = state.withdraw(of, ticket);
                    return Some(Poll::Ready(claimed.ok_or(Closed)));
                }
                let enqueue = |claims: &mut Waiters<_>| claims.enqueue((), ticket, current, cloned);
                let waits = state.claims_of(of, enqueue);
                waits.then_some(Poll::Pending)
            })
        })
    }

    fn cancel(&mut self) {
        let Self { of, ticket, .. } = self;
        // If this wait had been notified, the waking rule notifies the next one.
        let old = self.shared.with_state(|state| state.withdraw(*of, ticket));
        drop(old);
    }
}

shows!([K, J, R] Claiming<'_, K, J, R>, |this| n: this.n, in_line: this.ticket.is_some());
