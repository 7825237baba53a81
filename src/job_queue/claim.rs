//! A claimed job.

use std::borrow::Cow;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

use crate::jobs::{Expired, Jobs, Name, Pick, Taken, Unclaim};
use crate::shown::shows;
use crate::sync::{Arc, panicking};
use crate::trace;

use super::body::{Body, Stored, taken};
use super::shared::{Shared, State};
use crate::jobs::JobId;

/// A claimed job, with one unit of its group's, its tenant's and the queue's limit.
///
/// The job is done when [`complete`](Self::complete) is called, and only then. A claim that is
/// dropped [fails](Self::fail) its job, so a handler may leave by `?`, by a panic, or by the abort
/// of its task. To give a job back that has not failed, call [`give_back`](Self::give_back).
/// [`Counts::dropped`](super::Counts::dropped) and
/// [`Builder::on_dropped`](super::Builder::on_dropped) report drops outside of a panic, and so show
/// a forgotten `complete`.
///
/// A claim may outlive the queue, and its lease. A lease that runs out fails the job: from then on,
/// methods that return a `Result` give the error [`Expired`] and change nothing. The job itself
/// stays readable. A claim that is forgotten (`mem::forget`) keeps its job unless it has a lease.
///
/// Every method that reads or changes the queue takes the queue's lock once.
///
/// A claim borrows its queue, or owns it: see [`into_owned`](Self::into_owned).
#[must_use = "dropping a claim fails its job"]
pub struct Claim<'q, K, J> {
    shared: Owner<'q, K, J>,
    pick: Pick,
    body: Stored<J>,
    over: bool,
}

/// The queue of a claim, borrowed or owned.
pub(super) type Owner<'q, K, J> = Cow<'q, Arc<Shared<K, J>>>;

// A claim lends its job out, and never changes it.
impl<K, J> UnwindSafe for Claim<'_, K, J> {}
impl<K, J> RefUnwindSafe for Claim<'_, K, J> {}

impl<'q, K, J> Claim<'q, K, J> {
    pub(super) fn new(shared: Owner<'q, K, J>, pick: Pick, body: Stored<J>) -> Self {
        Self {
            shared,
            pick,
            body,
            over: false,
        }
    }

    /// Puts a job back as if it had not been claimed.
    pub(super) fn unpick(jobs: &mut Jobs<K, Stored<J>>, mut claim: Self) {
        claim.over = true;
        Body::put_back(&mut claim.body, jobs.unpick(claim.pick));
    }

    /// The same claim, which borrows nothing: for a thread or a task that may outlive
    /// the borrow.
    pub fn into_owned(mut self) -> Claim<'static, K, J>
    where
        K: 'static,
        J: 'static,
    {
        self.over = true;
        Claim {
            shared: Cow::Owned(Arc::clone(&self.shared)),
            pick: self.pick,
            body: self.body.take(),
            over: false,
        }
    }

    /// The job's name.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.shared.name(self.pick.id)
    }

    /// Which attempt at this job it is: 1 is the first. Claims that were
    /// [snoozed](Self::snooze) do not count.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.pick.attempts.saturating_add(1)
    }

    /// The job's key as it is now: a [`rekey`](super::JobQueue::rekey) changes it.
    /// [`complete`](Self::complete) returns the key even if it is not `Copy`.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out.
    pub fn key(&self) -> Result<K, Expired>
    where
        K: Copy,
    {
        self.shared
            .read(|state| Ok(*state.jobs.claimed(self.pick)?.0))
    }

    /// The name of the job's tenant.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out.
    pub fn tenant(&self) -> Result<Name, Expired> {
        self.shared
            .read(|state| Ok(state.jobs.claimed(self.pick)?.1.clone()))
    }

    /// The name of the job's group, if it is in one.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out.
    pub fn group(&self) -> Result<Option<Name>, Expired> {
        self.shared
            .read(|state| Ok(state.jobs.claimed(self.pick)?.2.cloned()))
    }

    /// Whether the claim's lease has not run out.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.shared.read(|state| state.jobs.holds(self.pick))
    }

    /// Completes the job: it leaves the queue, and its units are free. Returns the key and the job.
    ///
    /// ```
    /// use conversant::job_queue::{JobQueue, Place};
    ///
    /// let queue = JobQueue::new();
    /// queue.push(7, String::from("mail"), Place::new().tenant("shop"))?;
    /// let claim = queue.claim_one().wait()?;
    /// assert_eq!((claim.key(), claim.tenant()), (Ok(7), Ok("shop".into())));
    /// let done = claim.complete()?;
    /// assert_eq!(done.job, "mail");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out: by then the job waits again, is claimed by another
    /// agent, is dead or gone. Nothing has changed.
    ///
    /// # Panics
    ///
    /// If the job's `clone` does, which runs if [`get`](super::JobQueue::get), or an earlier claim
    /// that is over, still shows the job. The job is done.
    pub fn complete(mut self) -> Result<Taken<K, J>, Expired> {
        self.over = true;
        let (pick, body) = (self.pick, &mut self.body);
        let done = self.shared.with_state(|state| state.complete(pick, body));
        // The queue's share of a shared job is dropped too.
        drop(self);
        done.map(taken)
    }

    /// As [`complete`](Self::complete) of each claim, in order, but under one lock. Each run of
    /// claims of one queue takes that queue's lock once.
    ///
    /// ```
    /// use conversant::job_queue::{Claim, JobQueue, Place};
    ///
    /// let queue = JobQueue::new();
    /// queue.push_all((1..=3).map(|key| (key, "job", Place::new())))?;
    /// let done = Claim::complete_all(queue.try_claim(3));
    /// assert!(done.iter().flatten().map(|done| done.key).eq(1..=3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the iterator does; then no claim is completed. If a `clone` does, as for
    /// [`complete`](Self::complete), or the drop of a job that an expired claim still showed; then
    /// all are completed, and what they return is dropped.
    pub fn complete_all(
        claims: impl IntoIterator<Item = Self>,
    ) -> Vec<Result<Taken<K, J>, Expired>> {
        let mut claims: Vec<Self> = claims.into_iter().collect();
        let mut done = Vec::with_capacity(claims.len());
        while let Some(first) = claims.get(done.len()) {
            let shared = first.shared.clone();
            let left = claims[done.len()..].iter_mut();
            let own = left.take_while(|claim| Arc::ptr_eq(&shared, &claim.shared));
            shared.with_state(|state| {
                for claim in own {
                    claim.over = true;
                    done.push(state.complete(claim.pick, &mut claim.body));
                }
            });
        }
        // The queues' shares of shared jobs are dropped too.
        drop(claims);
        done.into_iter().map(|done| done.map(taken)).collect()
    }

    /// Gives the job back to the place of its key, and counts one more attempt. The job has not
    /// failed: there is no back-off, and it does not become dead.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out; nothing has changed.
    pub fn give_back(self) -> Result<(), Expired> {
        self.give_back_at(Duration::ZERO)
    }

    /// As [`give_back`](Self::give_back), but the job is not due before this date. A date, not a
    /// length: [`now()`](super::JobQueue::now)` + length`. Until then the job is absent.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out; nothing has changed.
    pub fn give_back_at(mut self, due: Duration) -> Result<(), Expired> {
        self.end(Unclaim::At(due)).map(drop)
    }

    /// As [`give_back_at`](Self::give_back_at), with a date too, but no attempt is counted. For a
    /// job that finds that it cannot run yet.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out; nothing has changed.
    pub fn snooze(mut self, due: Duration) -> Result<(), Expired> {
        self.end(Unclaim::Snoozed(due)).map(drop)
    }

    /// Fails the job, which goes back or is dead; returns whether it is dead. The job is dead if
    /// this was the last of its [attempts](super::Builder::attempts), however the earlier ones
    /// ended. Otherwise it is due after the [back-off](super::Builder::back_off).
    ///
    /// A lease that runs out fails the job too, and so does a drop of the claim.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out; nothing has changed.
    pub fn fail(mut self) -> Result<bool, Expired> {
        self.end(Unclaim::Failed)
    }

    /// As [`fail`](Self::fail), but the back-off is not used: the job is not due before this date,
    /// [`now()`](super::JobQueue::now)` + length`.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out; nothing has changed.
    pub fn fail_at(mut self, due: Duration) -> Result<bool, Expired> {
        self.end(Unclaim::FailedUntil(due))
    }

    /// Fails the job, and makes it dead even if it has attempts left.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out; nothing has changed.
    pub fn fail_for_good(mut self) -> Result<(), Expired> {
        self.end(Unclaim::FailedForGood).map(drop)
    }

    /// Sets the date at which the lease ends; a claim without a lease gets one. A date, not a
    /// length: [`now()`](super::JobQueue::now)` + length`. If that date has passed, the next
    /// [`advance`](super::JobQueue::advance) ends the lease.
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use conversant::job_queue::Place;
    /// # use conversant::prelude::*;
    /// let lease = Duration::from_secs(30);
    /// let jobs = JobQueue::builder().lease(lease).build()?;
    /// let _ticker = Ticker::spawn(jobs.clone(), Instant::now())?;
    /// jobs.push(1, "a long job", Place::new())?;
    /// let mut claim = jobs.claim_one().wait()?;
    /// // Now and then, while it works:
    /// claim.extend(jobs.now() + lease)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out; nothing has changed.
    pub fn extend(&mut self, until: Duration) -> Result<(), Expired>
    where
        J: Clone,
    {
        let Self { pick, body, .. } = self;
        self.shared.with_state(|state| {
            state.jobs.extend(*pick, until)?;
            // The queue must have the job if the lease runs out.
            let stored = state.jobs.claimed_data(pick.id);
            Body::put_back(body, stored);
            *body = body.take().or_else(|| Body::lend(stored, Some(J::clone)));
            Ok(())
        })
    }

    /// Ends a claim that is dropped and was not ended before.
    #[cold]
    fn dropped(&mut self) {
        // A claim whose lease has run out has nothing to fail.
        let ended = self.end(Unclaim::Failed);
        if ended.is_ok() && !panicking() {
            self.shared.report_dropped(self.pick.id);
        }
    }

    /// Whether the job is dead now.
    fn end(&mut self, how: Unclaim) -> Result<bool, Expired> {
        self.over = true;
        let (pick, body) = (self.pick, &mut self.body);
        let unclaim = |state: &mut State<K, J>| state.unclaim(pick, how, body);
        let (dead, unwanted) = self.shared.with_state(unclaim)?;
        drop(unwanted);
        if dead {
            trace::job_died(&self.id(), self.attempt());
        }
        Ok(dead)
    }
}

impl<K, J> Deref for Claim<'_, K, J> {
    type Target = J;

    fn deref(&self) -> &J {
        self.body.as_ref().expect("a claim has its job")
    }
}

impl<K, J> Drop for Claim<'_, K, J> {
    #[inline]
    fn drop(&mut self) {
        if !self.over {
            self.dropped();
        }
    }
}

shows!([K, J] Claim<'_, K, J>, |this| id: this.id(), attempt: this.attempt());
