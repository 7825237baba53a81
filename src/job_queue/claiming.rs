//! The wait for jobs.

use std::borrow::Cow;
use std::fmt;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::Closed;
use crate::jobs::Pinned;
use crate::sync::Arc;
use crate::wait::{Op, Spare, Ticket, Wait, Waiters, look_twice, sealed};

use super::body::{Body, Clones};
use super::claim::Claim;
use super::shared::{Shared, State};

/// What is claimed: jobs of the whole queue, or of a part of it.
pub(super) struct Asked<'q, K, J> {
    pub(super) shared: &'q Arc<Shared<K, J>>,
    pub(super) of: Option<Pinned>,
    pub(super) n: usize,
    /// The lease, if not the queue's.
    pub(super) until: Option<(Duration, Clones<J>)>,
}

impl<'q, K: Ord, J> Asked<'q, K, J> {
    /// What is there now.
    pub(super) fn now(self) -> Vec<Claim<'q, K, J>> {
        self.shared.with_state(|state| self.claim(state))
    }

    /// Waits for one at least, if any is asked for.
    pub(super) fn wait(self) -> Wait<Claiming<'q, K, J>> {
        let (asked, ticket) = (self, None);
        Wait::new(Claiming { asked, ticket })
    }

    fn claim(&self, state: &mut State<K, J>) -> Vec<Claim<'q, K, J>> {
        let own = |(lease, clone)| (state.jobs.now().saturating_add(lease), clone);
        let lease = self.until.or_else(|| self.shared.lease.map(own));
        let (until, clone) = lease.unzip();
        let take = |pick, stored: &mut _| {
            let body = Body::lend(stored, clone);
            Claim::new(Cow::Borrowed(self.shared), pick, body)
        };
        state
            .jobs
            .claim((self.of, self.n, until), take, Claim::unpick)
    }
}

/// A wait for jobs, of a queue or of a [`Part`](super::Part) of it.
pub struct Claiming<'q, K, J> {
    asked: Asked<'q, K, J>,
    ticket: Option<Ticket>,
}

impl<K, J> sealed::Sealed for Claiming<'_, K, J> {}

impl<'q, K: Ord, J> Op for Claiming<'q, K, J> {
    type Output = Result<Vec<Claim<'q, K, J>>, Closed>;

    /// Where nothing is found nothing is eligible, so that this change wakes
    /// nobody, compares nothing, and cannot unwind with a new place in line.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { asked, ticket } = self;
        let of = asked.of;
        look_twice(cx, |current, spare| {
            let mut old = Spare::default();
            asked.shared.with_state(|state| {
                let claims = asked.claim(state);
                let found = !claims.is_empty() || asked.n == 0;
                if found || state.finished() {
                    old = state.withdraw(of, ticket);
                    let claims = found.then_some(claims);
                    return Some(Poll::Ready(claims.ok_or(Closed)));
                }
                let enqueue = |claims: &mut Waiters<_>| claims.enqueue((), ticket, current, spare);
                let waits = state.claims_of(of, enqueue);
                waits.then_some(Poll::Pending)
            })
        })
    }

    fn cancel(&mut self) {
        let Self { asked, ticket } = self;
        // If it had been notified, the waking rule passes that on.
        let old = asked
            .shared
            .with_state(|state| state.withdraw(asked.of, ticket));
        drop(old);
    }
}

impl<K, J> fmt::Debug for Claiming<'_, K, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claiming")
            .field("n", &self.asked.n)
            .field("in_line", &self.ticket.is_some())
            .finish_non_exhaustive()
    }
}
