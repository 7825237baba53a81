//! An ordered job queue: agents claim the first N jobs that may run, by key.
//!
//! It does in memory what people do with `SELECT .. FOR UPDATE SKIP LOCKED` in a database, exactly
//! and without a scan. A job is pushed with a key and a [`Place`]: its tenant, its group, and when
//! it is due. Agents, which may be threads, tasks or a simulator, [`claim`](JobQueue::claim) jobs
//! and complete them, give them back, or fail them.
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
//! // A job that is given back, or fails, goes back to its place.
//! claims.pop().unwrap().give_back()?;
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
//! A job is in its tenant's line if and only if it is due and its group's limit has room for it. A
//! tenant takes turns if and only if its line has a job and its own limit has room. A blocked job
//! is in no line, so a claim costs the same with a million blocked jobs ahead. [`JobQueue::why`]
//! says what keeps a job from running.
//!
//! # Guarantees
//!
//! - A claim of `n` gives min(n, jobs that may run) jobs: never fewer, and it
//!   never waits for another agent's claim.
//! - No more jobs of a group, of a tenant or of the queue are claimed at once than its limit
//!   allows; after a limit is lowered, none is claimed until enough claims have ended. A job takes a
//!   unit of each of these limits, or of none.
//! - Within a tenant, jobs are claimed in exact order of their keys, and jobs with equal keys in
//!   the order in which they were pushed. Jobs that may not run are skipped. There is no bypass:
//!   endless smaller keys starve larger ones.
//! - Tenants take turns by weighted round robin over jobs. Let W be the sum of the weights of the
//!   tenants that have jobs to run. Then w of every W claimed jobs are of such a tenant with weight
//!   w. A tenant that has none for a moment, since its limits are used up, loses the rest of its
//!   turn: with a limit of 1, or all jobs in one group of limit 1, its weight counts as 1.
//! - Each job is completed exactly once, or taken out, or stays. A job that is given back, or
//!   fails, goes back to the place of its key; after its last [attempt](Builder::attempts) a job
//!   that fails is dead.
//! - When a lease runs out, the job fails. From then on, each change that its claim tries gives
//!   the error [`Expired`] and changes nothing.
//! - Claims [of one tenant or group](Part::claim) obey the same limits and the same order, and do
//!   not count as the tenant's turn.
//! - A queue with a capacity never holds more jobs than that, and no push overtakes [pushes that
//!   wait](JobQueue::push_wait) for room, except one that replaces a job.
//! - One waiting claim is woken for each job that may run. A claim that was woken and is not polled
//!   keeps one job from the other waiting claims, until it is polled or dropped, or until more jobs
//!   may run than claims have been woken. Nothing else frees the job for them, but a
//!   [`try_claim`](JobQueue::try_claim) can take it.
//!
//! # The user's code
//!
//! The only user code that runs under the queue's lock is `Ord` of the key: in
//! [`push`](JobQueue::push), in [`why`](JobQueue::why), and in claims. It must not call the queue.
//! If it panics, the panic goes on, that one operation has done nothing, and the queue goes on;
//! only the turns of tenants may have moved on. Completing and giving back jobs, and changing
//! limits, leases and keys, compare nothing. A key that cannot be compared, such as a NaN, makes
//! each claim panic until its job is [removed](JobQueue::remove): check keys before you push them.
//! Without the lock, keys, jobs and wakers are dropped, jobs are cloned and wakers are woken; this
//! code may call the queue. A job is cloned by [`JobQueue::get`], and when it is returned by value
//! while an earlier claim, which is over, still shows it. A waker that panics stops nobody: all
//! others are woken, and the call that woke it goes on.
//!
//! # Memory ordering
//!
//! A push happens before the claim of its job. The completion or return of a claim happens before
//! each claim of a job that needed its room, and before the next claim of the same job.
//!
//! # Cost
//!
//! Each operation takes one mutex. With a [capacity](Builder::capacity), each push and each job
//! that leaves adds a read-modify-write of a word. Every operation is O(log n) per job, and of the
//! blocked jobs only those of the same group count; the exceptions say what they cost: snapshots,
//! lists, [`why`](JobQueue::why), [`drain`](JobQueue::drain) and shutdown. While
//! claims of parts wait, a change may also check the queues of [other parts](Part::claim). The next
//! claim puts all jobs in order that have become due. When the last job of a tenant or group is
//! gone nothing of it is left, unless a handle keeps it or something was set for it.
//!
//! A key that is not smaller than those before it costs least. Any other one is searched for in a
//! binary tree, where each step may miss the cache: with random keys a job takes, from push to
//! completion, some 2 times as long among 1,000 jobs, and 12 times among a million.

mod body;
mod builder;
mod claim;
mod claiming;
mod control;
#[cfg(all(test, loom))]
mod model;
mod part_waits;
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
/// A clone is cheap. The drop of the last clone shuts the queue down, and drops the jobs that wait.
/// [Owned](Claim::into_owned) claims stay valid: they can be completed, and a job that is given
/// back then is dropped. A job that has a handle of its own queue keeps the queue.
#[must_use = "dropping the last handle drops the jobs that wait"]
pub struct JobQueue<K, J> {
    owner: Arc<Owner<K, J>>,
}

/// Shuts the queue down when its last handle is dropped.
struct Owner<K, J> {
    shared: Arc<Shared<K, J>>,
}

impl<K: Ord, J> JobQueue<K, J> {
    /// A queue with the defaults of its [`Builder`].
    pub fn new() -> Self {
        let built = Builder::new().build();
        built.expect("the defaults are in range")
    }

    /// Begins a queue whose settings you choose.
    pub fn builder() -> Builder<K, J> {
        Builder::new()
    }

    /// Claims up to `n` jobs that may run now; none if none may.
    ///
    /// It may overtake waiting claims that have been woken and have not looked yet. The claims have
    /// the queue's [lease](Builder::lease); [`extend`](Claim::extend) changes that of one claim.
    ///
    /// # Panics
    ///
    /// If an `Ord` does; nothing is claimed.
    #[must_use = "dropping the claims fails the jobs"]
    pub fn try_claim(&self, n: usize) -> Vec<Claim<'_, K, J>> {
        let shared = self.shared();
        shared.with_state(|state| claiming::claim(shared, state, None, n))
    }

    /// Waits for at least one job, and claims up to `n` that may run then. An `n` of 0 does not
    /// wait, and claims nothing.
    ///
    /// The claim that has waited longest is woken first. A claim that has just begun may overtake
    /// it; the woken claim then keeps its place in the wait queue.
    ///
    /// Cancel safe: a wait that is dropped has claimed nothing, and if it had been woken, the next
    /// one is woken. A wait that is woken and not polled keeps a job from the others: poll it, or
    /// drop it.
    ///
    /// # Errors
    ///
    /// [`Closed`] if the queue is closed, no job waits and none is claimed. While a job is paused
    /// or not due, the wait goes on until that changes or the queue is [shut down](Self::shutdown).
    ///
    /// # Panics
    ///
    /// If an `Ord` does, in a poll; nothing is claimed, and the wait can be
    /// polled again.
    pub fn claim(&self, n: usize) -> Wait<impl Op<Output = Result<Vec<Claim<'_, K, J>>, Closed>>> {
        Claiming::several(self.shared(), None, n)
    }

    /// Claims the first job that may run now, if there is one. As [`try_claim`](Self::try_claim),
    /// without a list.
    ///
    /// # Panics
    ///
    /// As [`try_claim`](Self::try_claim).
    pub fn try_claim_one(&self) -> Option<Claim<'_, K, J>> {
        let shared = self.shared();
        shared.with_state(|state| claiming::claim_one(shared, state, None))
    }

    /// Waits for a job, and claims it. As [`claim`](Self::claim), without a list.
    ///
    /// ```
    /// use conversant::job_queue::{JobQueue, Place};
    ///
    /// let queue = JobQueue::new();
    /// queue.push(1, "mail", Place::new())?;
    /// queue.close();
    /// // In a task: `queue.claim_one().await`.
    /// while let Ok(job) = queue.claim_one().wait() {
    ///     println!("{}", job.complete()?.job);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`claim`](Self::claim).
    ///
    /// # Panics
    ///
    /// As [`claim`](Self::claim).
    pub fn claim_one(&self) -> Wait<impl Op<Output = Result<Claim<'_, K, J>, Closed>>> {
        Claiming::one(self.shared(), None)
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

    /// How many jobs are in each state, and how many agents wait. Cost: O(1).
    #[must_use]
    pub fn counts(&self) -> Counts {
        let shared = self.shared();
        shared.read(|state| snapshot::counts(shared, state))
    }

    /// How many jobs the queue holds at most. See [`Builder::capacity`].
    #[must_use]
    pub fn capacity(&self) -> Limit {
        self.shared().capacity.limit()
    }

    /// How many more jobs the queue has room for now, if it has a capacity. The number may be stale
    /// when it is returned.
    #[must_use]
    pub fn room(&self) -> Option<i64> {
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

    /// Refuses all pushes and requeues from now on. Jobs that wait, and claimed jobs that come
    /// back, can still be claimed. When no job waits or is claimed, claims give [`Closed`]. A
    /// second close does nothing.
    pub fn close(&self) {
        self.shared().close(|_| ());
    }

    /// Whether nothing more can be pushed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared().read(|state| state.closed)
    }

    /// Closes the queue and takes out all jobs that wait, in the order in which they were pushed.
    /// Claimed jobs stay claimed; if one is given back or fails, it waits again and can be claimed,
    /// up to its last attempt. Dead jobs stay.
    ///
    /// To stop by a deadline, set a flag for the agents, or abort their tasks, and call this. An
    /// agent that waits ends once no job is claimed; but it waits for what comes back, through a
    /// back-off too. So let each agent that sees the flag call this as its last act; or call it
    /// when all have ended.
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
/// With a lease, the queue and the job's claims (several, once a lease has run out) share the job
/// and lend it out by reference: it must be `Send` and `Sync`. Keys are compared only under the
/// lock: they must be `Send`.
const _: () = {
    const fn send_and_sync<H: Send + Sync>() {}

    /// Represents any key that is `Send` and no more.
    type OnlySend = std::cell::Cell<u8>;

    send_and_sync::<JobQueue<OnlySend, u8>>();
    send_and_sync::<Claim<'_, OnlySend, u8>>();
    send_and_sync::<Wait<Claiming<'_, OnlySend, u8, Claim<'_, OnlySend, u8>>>>();
};
