//! The waits for jobs, and for dead ones.

use std::borrow::Cow;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::Closed;
use crate::jobs::{JobId, Pick, Pinned};
use crate::shown::shows;
use crate::sync::Arc;
use crate::wait::{ClonedWaker, Op, Ticket, Wait, Waiters, look_twice, sealed};

use super::body::{Body, Stored};
use super::claim::Claim;
use super::shared::{Line, Shared, State};

/// A wait for jobs, of a queue or of a [`Part`](super::Part) of it, or for a dead job: for `R`.
pub struct Claiming<'q, K, J, R> {
    shared: &'q Arc<Shared<K, J>>,
    line: Line,
    n: usize,
    ticket: Option<Ticket>,
    /// Takes what there is now.
    claim: Claims<'q, K, J, R>,
}

/// Takes up to so many jobs of a queue or a part; `None` if there is none.
type Claims<'q, K, J, R> =
    fn(&'q Arc<Shared<K, J>>, &mut State<K, J>, Option<Pinned>, usize) -> Option<R>;

impl<'q, K, J, R> Claiming<'q, K, J, R> {
    fn new(
        shared: &'q Arc<Shared<K, J>>,
        line: Line,
        n: usize,
        claim: Claims<'q, K, J, R>,
    ) -> Wait<Self> {
        Wait::new(Self {
            shared,
            line,
            n,
            ticket: None,
            claim,
        })
    }
}

impl<'q, K, J> Claiming<'q, K, J, JobId> {
    /// Waits for a dead job that no wait has returned.
    pub(super) fn dead(shared: &'q Arc<Shared<K, J>>) -> Wait<Self> {
        Self::new(shared, Line::Dead, 1, |shared, state, _, _| {
            let dead = state.jobs.report_dead()?;
            Some(shared.name(dead))
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
        Self::new(shared, Line::of(of), n, |shared, state, of, n| {
            let claims = claim(shared, state, of, n);
            (!claims.is_empty() || n == 0).then_some(claims)
        })
    }
}

impl<'q, K: Ord, J> Claiming<'q, K, J, Claim<'q, K, J>> {
    /// Waits for one job.
    pub(super) fn one(shared: &'q Arc<Shared<K, J>>, of: Option<Pinned>) -> Wait<Self> {
        Self::new(shared, Line::of(of), 1, |shared, state, of, _| {
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

impl<K, J, R> Op for Claiming<'_, K, J, R> {
    type Output = Result<R, Closed>;

    /// If it finds no job, none is eligible. So the change that enqueues the wait wakes nobody and
    /// compares nothing, and cannot unwind with the wait newly enqueued.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (shared, line, ticket) = (self.shared, self.line, &mut self.ticket);
        look_twice(cx, |current, cloned| {
            let mut old = ClonedWaker::default();
            shared.with_state(|state| {
                let claimed = (self.claim)(shared, state, line.part(), self.n);
                if claimed.is_some() || state.finished() {
                    old = state.withdraw(line, ticket);
                    return Some(Poll::Ready(claimed.ok_or(Closed)));
                }
                let enqueue = |waits: &mut Waiters<_>| waits.enqueue((), ticket, current, cloned);
                let waits = state.waits_in(line, enqueue);
                waits.then_some(Poll::Pending)
            })
        })
    }

    fn cancel(&mut self) {
        let Self { line, ticket, .. } = self;
        // If this wait had been notified, the waking rule notifies the next one.
        let old = self
            .shared
            .with_state(|state| state.withdraw(*line, ticket));
        drop(old);
    }
}

shows!([K, J, R] Claiming<'_, K, J, R>, |this| n: this.n, in_line: this.ticket.is_some());
