//! The settings of a new queue.

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

    /// Sets after how many attempts, 1 or more, a job that fails is dead; 5 by default. See
    /// [`Claim::fail`](super::Claim::fail). A job may have its [own
    /// number](super::Place::attempts).
    pub fn attempts(mut self, attempts: impl Into<Limit>) -> Self {
        self.retry.attempts = attempts.into();
        self
    }

    /// Sets the delay after a failure: `first` after the first attempt, doubled by each further
    /// attempt, and at most `most`; no delay by default. **Something must keep the time, or no delay
    /// ends**: a [`Ticker`](crate::ticker::Ticker), or your calls of [`advance`](JobQueue::advance).
    /// Other jobs of the group do not wait.
    /// It works as a queue's [`back_off`](crate::queue::Builder::back_off), but for each job alone.
    /// When a lease runs out, the delay begins at the end of the lease, even if your `advance` comes
    /// later.
    pub fn back_off(mut self, first: Duration, most: Duration) -> Self {
        (self.retry.first, self.retry.most) = (first, most);
        self
    }

    /// How long a claim holds unless it is extended; for ever by default. With a
    /// [`Ticker`](crate::ticker::Ticker) the lease counts from the claim, otherwise from the latest
    /// time that was passed to [`advance`](JobQueue::advance). **If nothing keeps the time, no lease
    /// runs out.**
    pub fn lease(mut self, lease: Duration) -> Self
    where
        J: Clone,
    {
        self.lease = Some((lease, J::clone));
        self
    }

    /// How many jobs the queue holds at most, in any state; by default there is no limit. With 0 it
    /// holds none. A full queue refuses an immediate [push](JobQueue::push);
    /// [`push_wait`](JobQueue::push_wait) waits for room. A job that is completed or taken out
    /// makes room.
    pub fn capacity(mut self, capacity: impl Into<Limit>) -> Self {
        self.capacity = capacity.into();
        self
    }

    /// Calls this when a claim is dropped outside of a panic, neither completed nor given back.
    /// Most often a `complete` was forgotten: log it, or panic in a test. The job has failed by
    /// then, and no lock is held. A claim whose lease ran out before is not reported.
    /// [`Counts::dropped`](super::Counts::dropped) counts such drops in any case.
    pub fn on_dropped(mut self, callback: impl Fn(JobId) + Send + Sync + 'static) -> Self {
        self.on_dropped = Some(Box::new(callback));
        self
    }

    /// Builds the queue.
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
