//! What a queue, or a single job of it, was like at one moment.

use crate::jobs::{JobStatus, Scope, TenantStatus};
use crate::limit::Limit;
use crate::wait::WaitCounts;

use super::JobQueue;
use super::shared::{Shared, State};
use crate::jobs::JobId;

impl<K, J> JobQueue<K, J> {
    /// What is known of a job, claimed or not; `None` if it is gone.
    ///
    /// Cost: a copy of its names, under the lock.
    #[must_use]
    pub fn status(&self, id: JobId) -> Option<JobStatus> {
        let key = self.shared().key(id).ok()?;
        self.shared().read(|state| state.jobs.status_of(key))
    }

    /// The jobs of this scope as in [`list`](Self::list), each with its status. All of it was true
    /// at one moment. Choose jobs by their status, and take them out with
    /// [`remove_all`](Self::remove_all).
    ///
    /// ```
    /// use conversant::job_queue::{JobQueue, JobState, Place, Scope};
    ///
    /// let queue = JobQueue::new();
    /// for (key, to) in ["ann", "bob", "ann"].into_iter().enumerate() {
    ///     queue.push(key, "a mail", Place::new().group(to))?;
    /// }
    /// queue.claim_one().wait()?.fail_for_good()?;
    /// let all = queue.statuses(&Scope::Queue).into_iter();
    /// let dead = all.filter(|(_, job)| job.state == JobState::Dead);
    /// let removed = queue.remove_all(dead.map(|(id, _)| id));
    /// assert_eq!(removed[0].key, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Cost: as [`list`](Self::list), with a copy of the names of each.
    #[must_use]
    pub fn statuses(&self, scope: &Scope) -> Vec<(JobId, JobStatus)> {
        let shared = self.shared();
        let listed = shared.read(|state| {
            let listed = state.jobs.list(scope).into_iter();
            let status = |id| Some((id, state.jobs.status_of(id)?));
            listed.filter_map(status).collect::<Vec<_>>()
        });
        let named = |(id, status)| (shared.name(id), status);
        listed.into_iter().map(named).collect()
    }

    /// A job's key, claimed or not; `None` if it is gone.
    #[must_use]
    pub fn key(&self, id: JobId) -> Option<K>
    where
        K: Copy,
    {
        let id = self.shared().key(id).ok()?;
        self.shared().read(|state| state.jobs.key(id).copied())
    }
}

/// What a queue held at one moment: everything in it was true at once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// Nothing more can be pushed.
    pub closed: bool,
    /// How many jobs may be claimed at once.
    pub limit: Limit,
    /// How many jobs are in each state.
    pub counts: Counts,
    /// The tenants with their groups, by name.
    pub tenants: Vec<TenantStatus>,
}

/// How many jobs are in each state, and how many agents wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Counts {
    /// Jobs that wait and are due.
    pub ready: usize,
    /// Jobs that wait and are not due yet.
    pub later: usize,
    /// Jobs that could be claimed now.
    pub eligible: u64,
    /// Jobs that are claimed.
    pub claimed: u32,
    /// Jobs that failed too often.
    pub dead: usize,
    /// Jobs that were pushed so far.
    pub pushed: u64,
    /// Jobs that were completed so far.
    pub completed: u64,
    /// Jobs that were taken out, or replaced by another push, and were not claimed.
    pub removed: u64,
    /// Claims so far that gave their job back, for any reason: a job counts each time.
    pub returned: u64,
    /// Claims so far that were dropped, neither completed nor given back explicitly. Not counted
    /// are drops in a panic, and of claims whose lease had run out. Most often a `complete` was
    /// forgotten.
    pub dropped: u64,
    /// Claims that wait for any job, or for a job of one tenant or group.
    pub claims: WaitCounts,
}

pub(super) fn counts<K, J>(shared: &Shared<K, J>, state: &State<K, J>) -> Counts {
    let jobs = &state.jobs;
    let totals = jobs.totals();
    Counts {
        ready: jobs.waiting() - jobs.later(),
        later: jobs.later(),
        eligible: jobs.eligible(),
        claimed: jobs.running(),
        dead: jobs.dead().len(),
        pushed: jobs.total() as u64 + totals.completed + totals.removed,
        completed: totals.completed,
        removed: totals.removed,
        returned: totals.returned,
        dropped: shared.dropped.get(),
        claims: state.claims(),
    }
}

pub(super) fn take<K, J>(shared: &Shared<K, J>, state: &State<K, J>) -> Snapshot {
    Snapshot {
        closed: state.closed,
        limit: state.jobs.limit(&crate::jobs::Scope::Queue),
        counts: counts(shared, state),
        tenants: state.jobs.tenants().collect(),
    }
}
