//! The wait for jobs.

use std::borrow::Cow;
use std::task::{Context, Poll};

use crate::error::Closed;
use crate::jobs::Pinned;
use crate::shown::shows;
use crate::sync::Arc;
use crate::wait::{ClonedWaker, Op, Ticket, Wait, Waiters, look_twice, sealed};

use super::body::Body;
use super::claim::Claim;
use super::shared::{Shared, State};

/// A wait for jobs, of a queue or of a [`Part`](super::Part) of it.
pub struct Claiming<'q, K, J> {
    pub(super) shared: &'q Arc<Shared<K, J>>,
    pub(super) of: Option<Pinned>,
    pub(super) n: usize,
    ticket: Option<Ticket>,
}

impl<'q, K: Ord, J> Claiming<'q, K, J> {
    /// Waits for at least one job, unless `n` is 0.
    pub(super) fn wait(shared: &'q Arc<Shared<K, J>>, of: Option<Pinned>, n: usize) -> Wait<Self> {
        let ticket = None;
        Wait::new(Self {
            shared,
            of,
            n,
            ticket,
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
    let until = |(lease, clone)| (state.jobs.now().saturating_add(lease), clone);
    let (until, clone) = shared.lease.map(until).unzip();
    let take = |pick, stored: &mut _| {
        let body = Body::lend(stored, clone);
        Claim::new(Cow::Borrowed(shared), pick, body)
    };
    state.jobs.claim((of, n, until), take, Claim::unpick)
}

impl<K, J> sealed::Sealed for Claiming<'_, K, J> {}

impl<'q, K: Ord, J> Op for Claiming<'q, K, J> {
    type Output = Result<Vec<Claim<'q, K, J>>, Closed>;

    /// If it finds no job, none is eligible. So the change that enqueues the wait wakes nobody and
    /// compares nothing, and cannot unwind with the wait newly enqueued.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let &mut Self { shared, of, n, .. } = self;
        let ticket = &mut self.ticket;
        look_twice(cx, |current, cloned| {
            let mut old = ClonedWaker::default();
            shared.with_state(|state| {
                let claims = claim(shared, state, of, n);
                let found = !claims.is_empty() || n == 0;
                if found || state.finished() {
                    old = state.withdraw(of, ticket);
                    let claims = found.then_some(claims);
                    return Some(Poll::Ready(claims.ok_or(Closed)));
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

shows!([K, J] Claiming<'_, K, J>, |this| n: this.n, in_line: this.ticket.is_some());
