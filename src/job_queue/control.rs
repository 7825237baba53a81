//! Operations on jobs and limits by name, and the time.

use std::time::Duration;

use crate::due::{Dates, Timed};
use crate::error::{Closed, OutOfRange};
use crate::jobs::{JobId, Jobs, Name, Refused, Scope, Taken, Why};
use crate::limit::Limit;
use crate::slab::Key;
use crate::trace;
use crate::wait::{Op, Wait, sealed};

use super::JobQueue;
use super::body::{Body, Stored, taken, unwrapped};
use super::claiming::Claiming;
use super::refuse::PushError;

impl<K, J> JobQueue<K, J> {
    /// Changes a limit: how many jobs of this scope may be claimed at once.
    ///
    /// Lowering a limit takes no claim back: it leaves a debt. A limit of 0 is a pause. A limit is
    /// remembered, even for a name without a job, until it is set to the default again. The default
    /// is that of the [`Builder`](super::Builder) for groups, and no limit for tenants and the
    /// queue.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`]; nothing has changed.
    pub fn set_limit(&self, scope: Scope, limit: impl Into<Limit>) -> Result<(), OutOfRange> {
        let limit = limit.into();
        self.shared()
            .with_state(|state| state.jobs.set_limit(scope, limit))
    }

    /// The limit that applies to this scope.
    #[must_use]
    pub fn limit(&self, scope: &Scope) -> Limit {
        self.shared().read(|state| state.jobs.limit(scope))
    }

    /// Changes how many jobs in a row are claimed from a tenant in its turn, as long as it has jobs
    /// to run; 1 by default. A tenant that is in a turn, or has jobs to run and waits for one,
    /// takes that turn with the old weight. The weight is remembered as a limit is.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] if it is not in 1..=1,000,000; nothing has changed.
    pub fn set_weight(&self, tenant: impl Into<Name>, weight: u32) -> Result<(), OutOfRange> {
        let tenant = tenant.into();
        self.shared()
            .with_state(|state| state.jobs.set_weight(tenant, weight))
    }

    /// Tells the queue the time: how long ago the origin of your choice was. Jobs that are due may
    /// run, and jobs whose lease has run out fail. A time before the last one counts as the last
    /// one.
    ///
    /// Returns when there will be something to do next. A [`Ticker`](crate::ticker::Ticker) makes
    /// these calls by itself.
    ///
    /// ```
    /// use conversant::job_queue::{JobQueue, Place};
    /// use std::time::Duration;
    ///
    /// let at = Duration::from_secs;
    /// let jobs = JobQueue::builder().lease(at(30)).build()?;
    /// jobs.push(1, "report", Place::new().due(at(9)))?;
    /// assert_eq!(jobs.advance(at(8)), Some(at(9)));
    /// assert!(jobs.try_claim(1).is_empty());
    /// assert_eq!(jobs.advance(at(9)), None);
    /// let stuck = jobs.claim_one().wait()?;
    /// // Its lease runs out: somebody else has the job.
    /// assert_eq!(jobs.advance(at(10)), Some(at(39)));
    /// assert_eq!(jobs.advance(at(39)), None);
    /// assert_eq!(jobs.try_claim(1)[0].attempt(), 2);
    /// assert!(stuck.complete().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance(&self, now: Duration) -> Option<Duration> {
        let shared = self.shared();
        let (next, died) = shared.with_state(|state| {
            let before = state.jobs.last_number();
            let next = state.jobs.advance(now);
            (next, state.jobs.died_since(before))
        });
        for (id, attempts) in died {
            trace::job_died(&shared.name(id), attempts);
        }
        next
    }

    /// The date of now: all dates of this queue count from the same origin. It is the latest time
    /// that [`advance`](Self::advance) was told; if there is or was a
    /// [`Ticker`](crate::ticker::Ticker), at least the time since the first one's origin. What is
    /// due by now, and a lease that has run out by now, waits for the next `advance`: a ticker's
    /// comes as soon as its thread gets to run.
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use conversant::job_queue::Place;
    /// # use conversant::prelude::*;
    /// let jobs = JobQueue::new();
    /// let _ticker = Ticker::spawn(jobs.clone(), Instant::now())?;
    /// let in_a_minute = jobs.now() + Duration::from_secs(60);
    /// jobs.push(1, "report", Place::new().due(in_a_minute))?;
    /// assert!(jobs.try_claim_one().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn now(&self) -> Duration {
        self.shared().with_state(|state| state.jobs.now())
    }

    /// A clone of the job of this name, made without the lock. `None` if it is gone, or if
    /// a claim without a lease has it.
    #[must_use]
    pub fn get(&self, id: JobId) -> Option<J>
    where
        J: Clone,
    {
        let id = self.shared().key(id).ok()?;
        let clone = Some(J::clone as fn(&J) -> J);
        let shown = self
            .shared()
            .with_state(|state| Body::lend(state.jobs.get_mut(id)?, clone));
        shown.map(Body::into_job)
    }

    /// Takes out a job that nobody has claimed.
    ///
    /// # Errors
    ///
    /// [`Refused`] if there is no such job any more, or it is claimed.
    ///
    /// # Panics
    ///
    /// As [`Claim::complete`](super::Claim::complete); the job is out.
    pub fn remove(&self, id: JobId) -> Result<Taken<K, J>, Refused> {
        self.with_job(id, Jobs::remove).map(taken)
    }

    /// Changes the date at which a waiting job is due, [`now()`](Self::now)` + length`; if that
    /// date has passed, the job is due now. It keeps the place of its key, and its attempts.
    ///
    /// # Errors
    ///
    /// [`Refused`] if there is no such job any more, it is claimed or dead.
    pub fn set_due(&self, id: JobId, due: Duration) -> Result<(), Refused> {
        self.with_job(id, |jobs, id| jobs.set_due(id, due))
    }

    /// Puts another job in the place of a waiting one: key, due time and attempts stay. Returns the
    /// old job.
    ///
    /// # Errors
    ///
    /// [`PushError`] with the new job if there is no such job any more, or it is
    /// claimed or dead.
    ///
    /// # Panics
    ///
    /// As [`Claim::complete`](super::Claim::complete); the new job is in.
    pub fn replace(&self, id: JobId, job: J) -> Result<J, PushError<J, Refused>> {
        let mut job = Some(Body::Own(job));
        let replaced = self.with_job(id, |jobs, id| jobs.replace(id, &mut job));
        let content = unwrapped(job);
        match replaced {
            Ok(()) => Ok(content),
            Err(reason) => Err(PushError { content, reason }),
        }
    }

    /// Gives a job another key, and the place of that key; returns the old key. A claimed job stays
    /// claimed. Among equal keys, the time of its push counts as before.
    ///
    /// # Errors
    ///
    /// [`Refused::Stale`] if there is no such job any more. The new key is dropped.
    pub fn rekey(&self, id: JobId, mut key: K) -> Result<K, Refused> {
        self.with_job(id, |jobs, id| jobs.rekey(id, &mut key))?;
        Ok(key)
    }

    /// The jobs of this scope, in any state, in the order in which they were pushed. To tell them
    /// apart, use [`statuses`](Self::statuses), or [`get`](Self::get) for jobs that are not
    /// claimed. [`remove_all`](Self::remove_all) takes out those that you choose.
    ///
    /// Cost: O(n log n) in all jobs of the queue, under the lock.
    #[must_use]
    pub fn list(&self, scope: &Scope) -> Vec<JobId> {
        let name = |id| self.shared().name(id);
        let listed = self.shared().read(|state| state.jobs.list(scope));
        listed.into_iter().map(name).collect()
    }

    /// Takes out those of these jobs that are not claimed, under one lock; the others stay.
    ///
    /// ```
    /// use conversant::job_queue::{JobQueue, Place, Scope};
    ///
    /// let queue = JobQueue::new();
    /// for (key, to) in ["ann", "bob", "ann"].into_iter().enumerate() {
    ///     queue.push(key, to, Place::new().tenant("mail"))?;
    /// }
    /// let mut to_ann = queue.list(&Scope::tenant("mail"));
    /// to_ann.retain(|&id| queue.get(id) == Some("ann"));
    /// assert_eq!(queue.remove_all(to_ann).len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`Claim::complete`](super::Claim::complete); what was taken out is dropped.
    pub fn remove_all(&self, ids: impl IntoIterator<Item = JobId>) -> Vec<Taken<K, J>> {
        let ids = ids.into_iter().filter_map(|id| self.shared().key(id).ok());
        let ids: Vec<_> = ids.collect();
        let removed: Vec<_> = self.shared().with_state(|state| {
            let removed = ids.iter().filter_map(|&id| state.jobs.remove(id).ok());
            removed.collect()
        });
        removed.into_iter().map(taken).collect()
    }

    /// Takes out all jobs of this scope that wait, in the order in which they were pushed. Claimed
    /// and dead jobs stay.
    ///
    /// Cost: as [`list`](Self::list).
    ///
    /// # Panics
    ///
    /// As [`remove_all`](Self::remove_all).
    pub fn drain(&self, scope: &Scope) -> Vec<Taken<K, J>> {
        let drained = self.shared().with_state(|state| state.jobs.drain(scope));
        drained.into_iter().map(taken).collect()
    }

    /// The jobs that [failed](super::Claim::fail) too often, in the order in which they died. They
    /// stay until they are requeued or [removed](Self::remove). Until then they hold the names of
    /// their tenant and group, but not their [unique](super::Place::unique) name.
    #[must_use]
    pub fn dead(&self) -> Vec<JobId> {
        let name = |id| self.shared().name(id);
        self.shared()
            .read(|state| state.jobs.dead().map(name).collect())
    }

    /// Waits for a [dead](Self::dead) job that no wait has returned yet. Each death is returned
    /// once, by one wait, even if it was before any wait began. A job that is requeued or removed
    /// before it is returned is skipped.
    ///
    /// Cancel safe: if a dropped wait had been woken, the next one is woken.
    ///
    /// ```
    /// use conversant::job_queue::{JobQueue, Place};
    ///
    /// let queue = JobQueue::builder().attempts(1).build()?;
    /// let mail = queue.push(1, "mail", Place::new())?;
    /// queue.claim_one().wait()?.fail()?;
    /// assert_eq!(queue.next_dead().wait(), Ok(mail));
    /// queue.requeue(mail)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Closed`] if the queue is closed, no job waits, none is claimed, and each dead job has been
    /// returned.
    pub fn next_dead(&self) -> Wait<impl Op<Output = Result<JobId, Closed>>> {
        Claiming::dead(self.shared())
    }

    /// Lets a dead job wait again, at the place of its key, with no attempt counted.
    ///
    /// # Errors
    ///
    /// [`Refused`] if there is no such job, it is not dead, another job has its unique name by now,
    /// or the queue is closed.
    pub fn requeue(&self, id: JobId) -> Result<(), Refused> {
        let shared = self.shared();
        shared.key(id)?;
        shared.with_state(|state| {
            state.open()?;
            state.jobs.requeue(id)
        })
    }
}

impl<K, J> JobQueue<K, J> {
    fn with_job<R>(
        &self,
        id: JobId,
        change: impl FnOnce(&mut Jobs<K, Stored<J>>, Key) -> Result<R, Refused>,
    ) -> Result<R, Refused> {
        let id = self.shared().key(id)?;
        self.shared()
            .with_state(|state| change(&mut state.jobs, id))
    }
}

impl<K: Ord, J> JobQueue<K, J> {
    /// What keeps a job from running, or that it is claimed; `None` if it is gone.
    ///
    /// Cost: a step for each job of its group that comes before it.
    ///
    /// # Panics
    ///
    /// If an `Ord` does; nothing has changed.
    #[must_use]
    pub fn why(&self, id: JobId) -> Option<Why> {
        let id = self.shared().key(id).ok()?;
        self.shared().with_state(|state| state.jobs.why(id))
    }
}

impl<K, J> sealed::Sealed for JobQueue<K, J> {}

impl<K: Ord, J> Timed for JobQueue<K, J> {
    fn advance(&self, now: Duration) -> Option<Duration> {
        Self::advance(self, now)
    }

    fn with_dates(&self, f: &mut dyn FnMut(Option<Duration>, &mut Dates)) {
        self.shared()
            .with_state(|state| f(state.jobs.next_due(), &mut state.dates));
    }
}
