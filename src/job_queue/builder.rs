//! What a queue is to be.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use crate::error::OutOfRange;
use crate::jobs::{JobId, Jobs};
use crate::limit::Limit;
use crate::queue::Capacity;
use crate::retry::Retry;

use super::JobQueue;
use super::body::Clones;
use super::shared::{OnDropped, Shared};

/// Settings of a new job queue.
#[must_use]
pub struct Builder<K, J> {
    group_limit: Limit,
    retry: Retry,
    lease: Option<(Duration, Clones<J>)>,
    capacity: Limit,
    on_dropped: Option<OnDropped>,
    of: PhantomData<fn() -> (K, J)>,
}

impl<K: Ord, J> Builder<K, J> {
    pub(super) fn new() -> Self {
        Self {
            group_limit: Limit::SERIAL,
            retry: Retry::default(),
            lease: None,
            capacity: Limit::Unlimited,
            on_dropped: None,
            of: PhantomData,
        }
    }

    /// The limit of every group for which none is set; 1 by default.
    pub fn group_limit(mut self, limit: impl Into<Limit>) -> Self {
        self.group_limit = limit.into();
        self
    }

    /// After so many attempts a job that failed is dead, 1 or more; 5 if
    /// nothing is said. See [`Claim::fail`](super::Claim::fail). A job may have
    /// its [own number](super::Place::attempts).
    pub fn attempts(mut self, attempts: impl Into<Limit>) -> Self {
        self.retry.attempts = attempts.into();
        self
    }

    /// A job that failed is due `first` later, after its next failure twice that,
    /// and so on, `most` later at the longest; at once by default. A
    /// [`Ticker`](crate::ticker::Ticker) keeps the time, or you by
    /// [`advance`](JobQueue::advance). Other jobs of its group do not wait. As a queue's
    /// [`back_off`](crate::queue::Builder::back_off), job by job.
    pub fn back_off(mut self, first: Duration, most: Duration) -> Self {
        (self.retry.first, self.retry.most) = (first, most);
        self
    }

    /// How long a claim holds, if it is not extended; for ever by default.
    /// With a [`Ticker`](crate::ticker::Ticker) counted from the claim, else from the
    /// latest time that [`advance`](JobQueue::advance) was told. Where nobody keeps the time,
    /// no lease runs out.
    pub fn lease(mut self, lease: Duration) -> Self
    where
        J: Clone,
    {
        self.lease = Some((lease, J::clone));
        self
    }

    /// How many jobs the queue holds at most, in whatever state; no limit if nothing
    /// is said, none if it is 0. A full queue refuses what is [pushed](JobQueue::push) at once;
    /// [`push_wait`](JobQueue::push_wait) waits for room. Room comes when a job is
    /// completed or taken out.
    pub fn capacity(mut self, capacity: impl Into<Limit>) -> Self {
        self.capacity = capacity.into();
        self
    }

    /// Calls this when a claim is dropped outside of a panic and was neither completed nor
    /// explicitly given back, most often because a `complete` was forgotten: to log it, or
    /// to panic in a test. The job has gone back, and no lock is held;
    /// [`Counts::dropped`](super::Counts::dropped) counts such drops in any case.
    pub fn on_dropped(mut self, told: impl Fn(JobId) + Send + Sync + 'static) -> Self {
        self.on_dropped = Some(Box::new(told));
        self
    }

    /// The queue.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] if the limit or the capacity is above [`Limit::MAX`], or the
    /// attempts are 0.
    pub fn build(self) -> Result<JobQueue<K, J>, OutOfRange> {
        let limit = self.group_limit.checked("limit")?;
        let jobs = Jobs::new(limit, self.retry.checked()?);
        let capacity = Capacity::under_a_lock(self.capacity)?;
        let shared = Shared::new(jobs, self.lease, self.on_dropped, capacity);
        Ok(JobQueue::of(shared))
    }
}

impl<K, J> fmt::Debug for Builder<K, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("group_limit", &self.group_limit)
            .field("retry", &self.retry)
            .field("lease", &self.lease.map(|(lease, _)| lease))
            .field("capacity", &self.capacity)
            .finish()
    }
}
