//! A claimed job.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use crate::jobs::{Expired, Pick, Unclaim};
use crate::slab::Key;
use crate::sync::{Arc, panicking};

use super::shared::Shared;

/// Names a job, for as long as there is one: a copyable name that pins nothing.
/// It never names another job, of this queue or of any other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    pub(super) queue: u64,
    pub(super) key: Key,
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobId({}: {:?})", self.queue, self.key)
    }
}

/// A claimed job, with one unit of its group's, its tenant's and the queue's
/// limit.
///
/// It is done when [`complete`](Self::complete) is called, and only then. If it
/// is dropped the job goes back to the place of its key, one more attempt
/// counted; dropped by a panic it [fails](Self::fail). It may outlive the queue,
/// and its lease: then the job has gone back without it, and whatever it does is
/// the error [`Expired`] and changes nothing. The job itself stays readable.
///
/// Every method takes the queue's lock once, but `deref`.
#[must_use = "dropping a claim gives its job back"]
pub struct Claim<K, J> {
    shared: Arc<Shared<K, J>>,
    pick: Pick,
    job: Arc<J>,
    over: bool,
}

impl<K, J> Claim<K, J> {
    pub(super) fn new(shared: &Arc<Shared<K, J>>, pick: Pick, job: Arc<J>) -> Self {
        Self {
            shared: shared.clone(),
            pick,
            job,
            over: false,
        }
    }

    /// The job's name.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.shared.name(self.pick.id)
    }

    /// Which claim of this job it is: 1 is the first.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.pick.attempts.saturating_add(1)
    }

    /// Whether its lease has not run out.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.shared.read(|state| state.jobs.holds(self.pick))
    }

    /// The job is done: it leaves the queue, and its units are free. Key and
    /// job are dropped, the job when no other claim shows it.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out: the job waits again, is claimed by
    /// another, is dead or gone, and nothing has changed.
    ///
    /// # Panics
    ///
    /// If the drop of key or job does; the job is done all the same.
    pub fn complete(mut self) -> Result<(), Expired> {
        self.over = true;
        let pick = self.pick;
        let taken = self.shared.with_state(|state| state.jobs.complete(pick));
        taken.map(drop)
    }

    /// The job is not done: it goes back to the place of its key, one more
    /// attempt counted. The same as dropping it, but for the answer.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out; nothing has changed.
    pub fn give_back(mut self) -> Result<(), Expired> {
        self.end(Unclaim::Ready).map(drop)
    }

    /// As [`give_back`](Self::give_back), and due no earlier than at this time
    /// by the embedder's clock. Until then it is absent.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out; nothing has changed.
    pub fn give_back_at(mut self, due: Duration) -> Result<(), Expired> {
        self.end(Unclaim::At(due)).map(drop)
    }

    /// The job has failed: it goes back, or is dead if this was the last of its
    /// [attempts](super::Builder::attempts), whatever ended those before it.
    /// Whether it is dead.
    ///
    /// A lease that runs out and a panic that drops the claim fail it too.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out; nothing has changed.
    pub fn fail(mut self) -> Result<bool, Expired> {
        self.end(Unclaim::Failed)
    }

    /// Has the lease end at this time, by the embedder's clock, instead of when
    /// it would have or never. If that has passed, the next
    /// [`advance`](super::JobQueue::advance) ends it.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out; nothing has changed.
    pub fn extend(&self, until: Duration) -> Result<(), Expired> {
        self.shared
            .with_state(|state| state.jobs.extend(self.pick, until))
    }

    fn end(&mut self, how: Unclaim) -> Result<bool, Expired> {
        self.over = true;
        let pick = self.pick;
        let (dead, unwanted) = self.shared.with_state(|state| state.unclaim(pick, how))?;
        drop(unwanted);
        Ok(dead)
    }
}

impl<K, J> Deref for Claim<K, J> {
    type Target = J;

    fn deref(&self) -> &J {
        &self.job
    }
}

impl<K, J> Drop for Claim<K, J> {
    fn drop(&mut self) {
        if !self.over {
            let failed = panicking();
            let how = if failed {
                Unclaim::Failed
            } else {
                Unclaim::Ready
            };
            // One whose lease has run out has nothing to give back.
            _ = self.end(how);
        }
    }
}

/// Without the job, so that every claim has it.
impl<K, J> fmt::Debug for Claim<K, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("id", &self.id())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}
