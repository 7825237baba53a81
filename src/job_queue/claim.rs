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
use super::shared::Shared;
use crate::jobs::JobId;

/// A claimed job, with one unit of its group's, its tenant's and the queue's
/// limit.
///
/// It is done when [`complete`](Self::complete) is called, and only then. If it
/// is dropped the job goes back to the place of its key, one more attempt
/// counted, and [`Counts::dropped`](super::Counts::dropped) and
/// [`Builder::on_dropped`](super::Builder::on_dropped) say so, by which a
/// `complete` that was forgotten is found; dropped by a panic it [fails](Self::fail).
/// A claim that is forgotten itself (`mem::forget`) keeps its job, unless it has a lease.
/// It may outlive the queue, and its lease: then the job has gone back without it, and
/// whatever it does gives the error [`Expired`] and changes nothing. The job itself stays
/// readable.
///
/// Every method that asks or changes the queue takes its lock once.
///
/// It borrows its queue, or owns it: see [`into_owned`](Self::into_owned).
#[must_use = "dropping a claim gives its job back"]
pub struct Claim<'q, K, J> {
    shared: Owner<'q, K, J>,
    pick: Pick,
    body: Stored<J>,
    over: bool,
}

/// Whose a claim is.
pub(super) type Owner<'q, K, J> = Cow<'q, Arc<Shared<K, J>>>;

// It lends the job out, and changes it never.
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

    /// As if the job had not been claimed.
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
    /// [`complete`](Self::complete) gives a key back that cannot be copied.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out, as for the names.
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

    /// Whether its lease has not run out.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.shared.read(|state| state.jobs.holds(self.pick))
    }

    /// The job is done: it leaves the queue, and its units are free. Key and job
    /// are the caller's.
    ///
    /// ```
    /// use conversant::job_queue::{JobQueue, Place};
    ///
    /// let queue = JobQueue::new();
    /// queue.push(7, String::from("mail"), Place::new().tenant("shop"))?;
    /// let claim = queue.try_claim(1).remove(0);
    /// assert_eq!((claim.key(), claim.tenant()), (Ok(7), Ok("shop".into())));
    /// let done = claim.complete()?;
    /// assert_eq!(done.job, "mail");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out: the job waits again, is claimed by
    /// another, is dead or gone, and nothing has changed.
    ///
    /// # Panics
    ///
    /// If a claim whose lease ran out, or [`get`](super::JobQueue::get), shows the job
    /// still, and its `clone` panics. The job is done.
    pub fn complete(mut self) -> Result<Taken<K, J>, Expired> {
        self.over = true;
        let (pick, body) = (self.pick, &mut self.body);
        let done = self.shared.with_state(|state| state.complete(pick, body));
        // With what the queue had of a job that is shared.
        drop(self);
        done.map(taken)
    }

    /// As [`complete`](Self::complete) of each, in order, but the queue's lock is taken once
    /// for all; once for each run of claims of one queue.
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
    /// If the iterator does; none is completed. If a `clone` does, as for
    /// [`complete`](Self::complete); all are.
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
        // With what their queues had of jobs that are shared.
        drop(claims);
        done.into_iter().map(|done| done.map(taken)).collect()
    }

    /// Whether it is dead, of which `trace` is told.
    fn told_of(&self, dead: bool) -> bool {
        if dead {
            trace::job_died(&self.id(), self.attempt());
        }
        dead
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

    /// The job is not done, and this was no attempt at it: as
    /// [`give_back_at`](Self::give_back_at), but nothing is counted. For a job that
    /// finds that it cannot run yet.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out; nothing has changed.
    pub fn snooze(mut self, due: Duration) -> Result<(), Expired> {
        self.end(Unclaim::Snoozed(due)).map(drop)
    }

    /// The job has failed: it goes back, and is due after the
    /// [back-off](super::Builder::back_off), or it is dead if this was the last of
    /// its [attempts](super::Builder::attempts), whatever ended those before it.
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

    /// As [`fail`](Self::fail), but due no earlier than at this time, whatever the
    /// back-off.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out; nothing has changed.
    pub fn fail_at(mut self, due: Duration) -> Result<bool, Expired> {
        self.end(Unclaim::FailedUntil(due))
    }

    /// The job has failed and is dead, however many attempts it has left.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the lease has run out; nothing has changed.
    pub fn fail_for_good(mut self) -> Result<(), Expired> {
        self.end(Unclaim::FailedForGood).map(drop)
    }

    /// Has the lease end at this time, by the embedder's clock, instead of when
    /// it would have or never. If that has passed, the next
    /// [`advance`](super::JobQueue::advance) ends it.
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use conversant::job_queue::Place;
    /// # use conversant::prelude::*;
    /// let (origin, lease) = (Instant::now(), Duration::from_secs(30));
    /// let jobs = JobQueue::builder().lease(lease).build()?;
    /// let _ticker = Ticker::spawn(jobs.clone(), origin)?;
    /// jobs.push(1, "a long job", Place::new())?;
    /// let mut claim = jobs.claim(1).wait()?.remove(0);
    /// // Now and then, while it works:
    /// claim.extend(origin.elapsed() + lease)?;
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
            // It must be there if the lease runs out.
            let stored = state.jobs.claimed_data(pick.id);
            Body::put_back(body, stored);
            *body = body.take().or_else(|| Body::lend(stored, Some(J::clone)));
            Ok(())
        })
    }

    /// It was not ended before it was dropped.
    #[cold]
    fn dropped(&mut self) {
        let how = match panicking() {
            true => Unclaim::Failed,
            false => Unclaim::Ready,
        };
        // One whose lease has run out has nothing to give back.
        let ended = self.end(how);
        if ended.is_ok() && how == Unclaim::Ready {
            self.shared.tell_dropped(self.pick.id);
        }
    }

    fn end(&mut self, how: Unclaim) -> Result<bool, Expired> {
        self.over = true;
        let pick = self.pick;
        let body = &mut self.body;
        let (dead, unwanted) = self
            .shared
            .with_state(|state| state.unclaim(pick, how, body))?;
        drop(unwanted);
        Ok(self.told_of(dead))
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
