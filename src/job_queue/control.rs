//! What is done to jobs and limits by name, and the time.

use std::time::Duration;

use crate::due::{Dates, Timed};
use crate::error::OutOfRange;
use crate::jobs::{JobId, Jobs, Name, Refused, Scope, Taken, Why};
use crate::limit::Limit;
use crate::slab::Key;
use crate::trace;
use crate::wait::sealed;

use super::JobQueue;
use super::body::{Body, Stored, taken, unwrapped};
use super::refuse::PushError;

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
        self.shared()
            .with_state(|state| state.jobs.set_limit(scope, limit))
    }

    /// The limit that holds for this scope.
    #[must_use]
    pub fn limit(&self, scope: &Scope) -> Limit {
        self.shared().read(|state| state.jobs.limit(scope))
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
        self.shared()
            .with_state(|state| state.jobs.set_weight(tenant, weight))
    }

    /// Tells the time by the embedder's clock, from an origin of its choice:
    /// jobs that are due may run, and claims whose lease has run out give their
    /// jobs back. An earlier time than the last changes nothing.
    ///
    /// Returns the time at which there will be something to do next. A
    /// [`Ticker`](crate::ticker::Ticker) does it by itself.
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
    /// let stuck = jobs.try_claim(1).remove(0);
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

    /// Has a job that waits be due at this time instead, by the embedder's clock;
    /// one that has passed makes it due now. It keeps the place of its key, and
    /// its attempts.
    ///
    /// # Errors
    ///
    /// [`Refused`] if there is no such job any more, it is claimed or dead.
    pub fn set_due(&self, id: JobId, due: Duration) -> Result<(), Refused> {
        self.with_job(id, |jobs, id| jobs.set_due(id, due))
    }

    /// Puts another job in the place of one that waits: key, due time and attempts
    /// stay. The old job.
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

    /// Gives a job another key, and the place of that key. One that is claimed stays
    /// claimed. Among equal keys its push counts as before. The old key.
    ///
    /// # Errors
    ///
    /// [`Refused::Stale`] if there is no such job any more.
    pub fn rekey(&self, id: JobId, mut key: K) -> Result<K, Refused> {
        self.with_job(id, |jobs, id| jobs.rekey(id, &mut key))?;
        Ok(key)
    }

    /// The jobs of this scope, in whatever state, in the order in which they were pushed.
    /// [`statuses`](Self::statuses) tells one from another, or, of those that are not
    /// claimed, [`get`](Self::get); [`remove_all`](Self::remove_all) takes out what was found.
    ///
    /// Cost: O(n log n) in all jobs of the queue, under the lock.
    #[must_use]
    pub fn list(&self, scope: &Scope) -> Vec<JobId> {
        let name = |id| self.shared().name(id);
        let listed = self.shared().read(|state| state.jobs.list(scope));
        listed.into_iter().map(name).collect()
    }

    /// Takes out those of these jobs that nobody has claimed, under one lock; the
    /// others stay.
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

    /// Takes out all jobs of this scope that wait, in the order in which they were
    /// pushed. Those that are claimed or dead stay.
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

    /// The jobs that [failed](super::Claim::fail) too often, those that died first
    /// first. They stay, and hold their tenant's and group's name but not their
    /// [unique](super::Place::unique) one, until they are requeued or [removed](Self::remove).
    #[must_use]
    pub fn dead(&self) -> Vec<JobId> {
        let name = |id| self.shared().name(id);
        self.shared()
            .read(|state| state.jobs.dead().map(name).collect())
    }

    /// Has a dead job wait again, at the place of its key, with no attempt
    /// counted.
    ///
    /// # Errors
    ///
    /// [`Refused`] if there is no such job, it is not dead, another has its unique
    /// name by now, or the queue is closed.
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
    /// What keeps a job from running, or who has it; `None` if it is gone.
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
