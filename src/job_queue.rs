//! An ordered job queue: agents claim the first N jobs that may run, by key.
//!
//! What people do with `SELECT .. FOR UPDATE SKIP LOCKED` in a database, in
//! memory, exact and without a scan. A job is pushed with a key and a
//! [`Place`]: its tenant, its group, and when it is due. Agents, which may be
//! threads, tasks or a simulator, [`claim`](JobQueue::claim) jobs and complete
//! them, give them back, or fail them.
//!
//! ```
//! use conversant::job_queue::{JobQueue, Place, Scope, Why};
//! use conversant::limit::Limit;
//!
//! let queue = JobQueue::new();
//! for key in 1..=4 {
//!     let group = if key % 2 == 1 { "odd" } else { "even" };
//!     queue.push(key, format!("job {key}"), Place::new().group(group))?;
//! }
//! queue.set_limit(Scope::group("even"), Limit::AtMost(2))?;
//!
//! // One of "odd", which has the limit 1, and two of "even".
//! let mut claims = queue.try_claim(10);
//! let names: Vec<&str> = claims.iter().map(|claim| claim.as_str()).collect();
//! assert_eq!(names, ["job 1", "job 2", "job 4"]);
//!
//! // What is not completed goes back to its place.
//! drop(claims.pop());
//! claims.remove(0).complete()?;
//! let again = queue.claim(10).wait()?;
//! assert_eq!((again[0].as_str(), again[1].as_str()), ("job 3", "job 4"));
//! assert_eq!(again[1].attempt(), 2);
//! assert_eq!(queue.why(again[0].id()), Some(Why::Claimed(None)));
//! drop(again);
//!
//! // In a task, of any runtime:
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! for claim in queue.claim(10).await? {
//!     claim.complete()?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is in line
//!
//! A job is in its tenant's line if and only if it is due and its group has
//! room for it; a tenant takes its turn if and only if such a job is there
//! and the tenant's limit has room. What is blocked is in no line: a claim
//! costs the same with a million blocked jobs in front. [`JobQueue::why`] says
//! what keeps a job.
//!
//! # Guarantees
//!
//! - A claim of `n` gives min(n, jobs that may run) jobs: never fewer, and it
//!   never waits for another agent's claim.
//! - Of a group, of a tenant and of the queue no more jobs are claimed at once
//!   than its limit says. The limits are taken together or not at all.
//! - Within a tenant jobs are claimed in exact order of their keys, equal keys
//!   in the order in which they were pushed, skipping what may not run. There is
//!   no bypass: endless smaller keys starve larger ones.
//! - Between tenants: weighted round robin over jobs. Let W be the sum of the
//!   weights of the tenants that have jobs to run; one of them with weight w has
//!   w of every W jobs claimed.
//! - Each job is completed exactly once, or taken out, or stays. A claim that is
//!   not completed gives its job back, to the place of its key.
//! - A lease that runs out gives the job back, and what its claim does then is
//!   the error [`Expired`], which changes nothing.
//! - Claims [of one tenant or group](Part::claim) obey the same limits and the same
//!   order, and count as no turn of the tenant.
//! - Of a queue with a capacity no more jobs are held at once than it says, and
//!   [pushes that wait](JobQueue::push_wait) for room are overtaken by none.
//! - Waiting claims are woken one for each job that may run. One that was woken
//!   and is not polled keeps one job from the others that wait: until it is polled
//!   or dropped, or more jobs may run than claims have been woken; nothing else that
//!   happens frees the job. Whoever does not wait can [have](JobQueue::try_claim)
//!   it.
//!
//! # The user's code
//!
//! Of the user's only `Ord` of the key runs under the queue's lock: in
//! [`push`](JobQueue::push), [`why`](JobQueue::why), and the claims. It must
//! not call the queue. If it panics the panic goes on, that one operation has
//! done nothing, and the queue goes on; completing, giving back, limits, leases and
//! other keys compare nothing. A key that can never be compared, as a float that is none,
//! has each claim panic until its job is [removed](JobQueue::remove): check keys before
//! they are pushed. Keys, jobs and wakers are dropped, jobs cloned, and wakers
//! woken without the lock; they may call the queue. A job is cloned by [`JobQueue::get`], and
//! where it is to be had by value while a claim whose lease ran out shows it still. A waker
//! that panics stops nobody: all others are woken, and the call that woke it goes on.
//!
//! # Memory ordering
//!
//! What was done before a push is seen by whoever claims the job. What was done
//! before a claim is completed or given back is seen by whoever claims a job
//! that needed its room, and by the job's next claim.
//!
//! # Cost
//!
//! One mutex, and for a [capacity](Builder::capacity) an exchange of a word for each
//! push and each job that is gone. O(log n) a job in every operation but snapshots,
//! lists and shutdown; of the jobs that are blocked only those of the same group count.
//! A key that is not smaller than those before it costs least. Any other is searched for in
//! a binary tree, where each step may miss the cache: with random keys a push takes some 4
//! times as long among 1,000 jobs, and 20 times among a million.
//! What has become due is put in order by the next claim, all of it.
//! Nothing of a tenant or group is left when its last job is gone, unless something was
//! set for it.

mod body;
mod builder;
mod claim;
mod claiming;
mod control;
#[cfg(all(test, loom))]
mod model;
mod next_dead;
mod parts;
mod push;
mod push_wait;
mod refuse;
mod room;
mod shared;
mod snapshot;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::fmt;

use crate::error::Closed;
use crate::jobs;
use crate::limit::Limit;
use crate::sync::Arc;
use crate::wait::{Op, Wait};

use claiming::Claiming;
use shared::Shared;

pub use builder::Builder;
pub use claim::Claim;
pub use jobs::{
    Expired, GroupStatus, JobId, JobState, JobStatus, Name, Place, PushReason, Refused, Scope,
    Taken, TenantStatus, Why,
};
pub use parts::Part;
pub use refuse::PushError;
pub use snapshot::{Counts, Snapshot};

/// An ordered job queue. See the [module](self).
///
/// A cheap clone; the drop of the last one shuts the queue down, and drops what waits.
/// [Owned](Claim::into_owned) claims stay valid: they can be completed, and what is given
/// back then is dropped. A job that has a handle of its own queue keeps the queue.
pub struct JobQueue<K, J> {
    owner: Arc<Owner<K, J>>,
}

/// Ends the queue with its last handle.
struct Owner<K, J> {
    shared: Arc<Shared<K, J>>,
}

impl<K: Ord, J> JobQueue<K, J> {
    /// A queue with the defaults of its [`Builder`].
    #[must_use]
    pub fn new() -> Self {
        let built = Builder::new().build();
        built.expect("the defaults are in range")
    }

    /// A queue to order.
    pub fn builder() -> Builder<K, J> {
        Builder::new()
    }

    /// Claims up to `n` jobs that may run now; none if none may.
    ///
    /// It may go ahead of waiting claims that have been woken and have not
    /// looked yet. The claims have the queue's [lease](Builder::lease);
    /// [`extend`](Claim::extend) gives one another.
    ///
    /// # Panics
    ///
    /// If an `Ord` does; nothing is claimed.
    #[must_use = "dropping the claims gives the jobs back"]
    pub fn try_claim(&self, n: usize) -> Vec<Claim<'_, K, J>> {
        let shared = self.shared();
        shared.with_state(|state| claiming::claim(shared, state, None, n))
    }

    /// Waits for at least one job, and claims up to `n` that may run then. An
    /// `n` of 0 gives none at once.
    ///
    /// Who waits longest is woken first; one that comes just then may be
    /// faster, and the woken one keeps its place in line.
    ///
    /// Cancel safe: a wait that is dropped has claimed nothing, and if it had
    /// been woken, the next is. One that is woken and kept without being polled
    /// keeps a job from the others that wait: drop it, or poll it.
    ///
    /// # Errors
    ///
    /// [`Closed`] if the queue is closed, nothing waits and nothing is
    /// claimed. While something is paused or not due it waits, until that changes or the
    /// queue is [shut down](Self::shutdown).
    ///
    /// # Panics
    ///
    /// If an `Ord` does, in a poll; nothing is claimed, and the wait can be
    /// polled again.
    pub fn claim(&self, n: usize) -> Wait<impl Op<Output = Result<Vec<Claim<'_, K, J>>, Closed>>> {
        Claiming::wait(self.shared(), None, n)
    }
}

impl<K, J> JobQueue<K, J> {
    fn of(shared: Shared<K, J>) -> Self {
        let shared = Arc::new(shared);
        let owner = Arc::new(Owner { shared });
        Self { owner }
    }

    #[inline]
    fn shared(&self) -> &Arc<Shared<K, J>> {
        &self.owner.shared
    }

    /// How many jobs there are of what, and how many agents wait: O(1), and a step for
    /// each tenant or group that is waited for.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let shared = self.shared();
        shared.read(|state| snapshot::counts(shared, state))
    }

    /// How many jobs it holds at most. See [`Builder::capacity`].
    #[must_use]
    pub fn capacity(&self) -> Limit {
        self.shared().capacity.limit()
    }

    /// How many more jobs it has room for now, if it has a capacity. Out of date
    /// when it is returned.
    #[must_use]
    pub fn available_permits(&self) -> Option<i64> {
        self.shared().capacity.available()
    }

    /// What the queue holds, tenant by tenant and group by group: everything in
    /// it was true at once.
    ///
    /// Cost: O(tenants and groups) under the lock; [`counts`](Self::counts) is O(1).
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let shared = self.shared();
        shared.read(|state| snapshot::take(shared, state))
    }

    /// Refuses all that is pushed or requeued from now on. What waits, and what
    /// is claimed and comes back, can still be claimed; when nothing is left,
    /// claims give [`Closed`]. A second close does nothing.
    pub fn close(&self) {
        self.shared().close(|_| ());
    }

    /// Whether nothing more can be pushed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared().read(|state| state.closed)
    }

    /// Closes the queue and takes out all that waits, in the order in which it
    /// was pushed. What is claimed stays so, and what of it is given back waits
    /// again; the dead stay.
    ///
    /// Cost: O(n log n) under the lock.
    ///
    /// # Panics
    ///
    /// As [`remove_all`](Self::remove_all).
    pub fn shutdown(&self) -> Vec<Taken<K, J>> {
        let waited = self.shared().shut(false);
        waited.into_iter().map(body::taken).collect()
    }
}

impl<K: Ord, J> Default for JobQueue<K, J> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, J> Clone for JobQueue<K, J> {
    fn clone(&self) -> Self {
        let owner = Arc::clone(&self.owner);
        Self { owner }
    }
}

impl<K, J> Drop for Owner<K, J> {
    fn drop(&mut self) {
        drop(self.shared.shut(true));
    }
}

impl<K, J> fmt::Debug for JobQueue<K, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("JobQueue");
        match self
            .shared()
            .try_read(|state| (state.closed, snapshot::counts(self.shared(), state)))
        {
            Some((closed, counts)) => out.field("closed", &closed).field("counts", &counts),
            None => out.field("locked", &true),
        };
        out.finish_non_exhaustive()
    }
}

/// What may cross threads, and why.
///
/// With a lease a job is shared by the queue and its claims (after it has run out,
/// several), which lend it out by reference: it must be `Send` and `Sync`. Keys
/// are compared under the lock alone: they must be `Send`.
const _: () = {
    const fn send_and_sync<H: Send + Sync>() {}

    /// Stands for any key that is `Send` and no more.
    type OnlySend = std::cell::Cell<u8>;

    send_and_sync::<JobQueue<OnlySend, u8>>();
    send_and_sync::<Claim<'_, OnlySend, u8>>();
    send_and_sync::<Wait<Claiming<'_, OnlySend, u8>>>();
};
