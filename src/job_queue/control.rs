//! What is done to jobs and limits by name, and the time.

use std::time::Duration;

use crate::error::OutOfRange;
use crate::jobs::{Name, Refused, Scope, Taken, Why};
use crate::limit::Limit;
use crate::sync::Arc;

use super::JobQueue;
use super::builder::RequeueError;
use super::claim::JobId;

impl<K, J> JobQueue<K, J> {
    /// Changes a limit: how many jobs of this scope may be claimed at once.
    ///
    /// Lowering it takes nothing back, it leaves a debt; 0 is a pause. What is
    /// set is remembered, also for names without a job, until it is set to the
    /// default again: for groups that of the [`Builder`](super::Builder), for tenants and the
    /// queue no limit.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`]; nothing has changed.
    pub fn set_limit(&self, scope: Scope, limit: impl Into<Limit>) -> Result<(), OutOfRange> {
        let limit = limit.into();
        self.shared
            .with_state(|state| state.jobs.set_limit(scope, limit))
    }

    /// The limit that holds for this scope.
    #[must_use]
    pub fn limit(&self, scope: &Scope) -> Limit {
        self.shared.read(|state| state.jobs.limit(scope))
    }

    /// Changes how many jobs in a row are a tenant's when it is its turn; 1 if
    /// nothing is said. It holds from the tenant's next turn on, and is
    /// remembered as a limit is.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] if it is not in 1..=1,000,000; nothing has changed.
    pub fn set_weight(&self, tenant: impl Into<Name>, weight: u32) -> Result<(), OutOfRange> {
        let tenant = tenant.into();
        self.shared
            .with_state(|state| state.jobs.set_weight(tenant, weight))
    }

    /// Tells the time by the embedder's clock, from an origin of its choice:
    /// jobs that are due may run, and claims whose lease has run out give their
    /// jobs back. An earlier time than the last changes nothing.
    ///
    /// Returns the time at which there will be something to do next.
    pub fn advance(&self, now: Duration) -> Option<Duration> {
        self.shared.with_state(|state| state.jobs.advance(now))
    }

    /// The job of this name: waiting, claimed or dead; `None` if it is gone.
    #[must_use]
    pub fn get(&self, id: JobId) -> Option<Arc<J>> {
        let id = self.shared.key(id).ok()?;
        self.shared.read(|state| state.jobs.get(id).cloned())
    }

    /// Takes out a job that nobody has claimed.
    ///
    /// # Errors
    ///
    /// [`Refused`] if there is no such job any more, or it is claimed.
    pub fn remove(&self, id: JobId) -> Result<Taken<K, Arc<J>>, Refused> {
        let id = self.shared.key(id)?;
        self.shared.with_state(|state| state.jobs.remove(id))
    }

    /// What keeps a job from running, or who has it; `None` if it is gone.
    ///
    /// Cost: O(log n) in the jobs of its group.
    #[must_use]
    pub fn why(&self, id: JobId) -> Option<Why> {
        let id = self.shared.key(id).ok()?;
        self.shared.read(|state| state.jobs.why(id))
    }

    /// The jobs that [failed](super::Claim::fail) too often, those that died first
    /// first. They stay, and hold their tenant's and group's name, until they
    /// are requeued or [removed](Self::remove).
    #[must_use]
    pub fn dead(&self) -> Vec<JobId> {
        let name = |id| self.shared.name(id);
        self.shared
            .read(|state| state.jobs.dead().map(name).collect())
    }

    /// Has a dead job wait again, at the place of its key, with no attempt
    /// counted.
    ///
    /// # Errors
    ///
    /// [`RequeueError`] if there is no such job, it is not dead, or the queue
    /// is closed.
    pub fn requeue(&self, id: JobId) -> Result<(), RequeueError> {
        let id = self.shared.key(id)?;
        self.shared.with_state(|state| {
            state.open()?;
            Ok(state.jobs.requeue(id)?)
        })
    }
}
