//! Pushes of jobs, by name or by handle.

use crate::jobs::{Entering, JobId, Place, PushReason, Taken};
use crate::slab::Key;

use super::JobQueue;
use super::body::{Body, Stored, taken, unwrapped};
use super::refuse::PushError;
use super::room::Room;
use super::shared::{Shared, State};

/// A job that was pushed, and the one that it replaced.
type Replacing<K, J> = (JobId, Option<Taken<K, J>>);

impl<K: Ord, J> JobQueue<K, J> {
    /// Puts a job in.
    ///
    /// ```
    /// use conversant::job_queue::{JobQueue, Place, PushReason};
    ///
    /// let queue = JobQueue::new();
    /// let once = || Place::new().unique("nightly report");
    /// let id = queue.push(2, "draft", once())?;
    /// let refused = queue.push(1, "final", once()).unwrap_err();
    /// assert_eq!(refused.reason, PushReason::Duplicate(id));
    /// // The first still waits, so the second can take its place.
    /// assert_eq!(queue.replace(id, refused.content.1)?, "draft");
    /// assert_eq!(*queue.try_claim(9)[0], "final");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Cost: O(log n). By a [handle](Self::tenant) the names are not looked up.
    ///
    /// # Errors
    ///
    /// [`PushError`] with key and job if the queue is closed or full, or another job
    /// of the tenant has the same [unique name](super::Place::unique).
    ///
    /// # Panics
    ///
    /// If the key's `Ord` does; nothing has changed.
    pub fn push(&self, key: K, job: J, place: Place) -> Result<JobId, PushError<(K, J)>> {
        self.shared().push(key, job, place)
    }

    /// As [`push`](Self::push), but replaces, in one step, a job with the same unique name. That
    /// job must wait, due or not, and have the tenant's same [unique name](super::Place::unique).
    /// Key, due time and place are the new job's. Returns the old job, whose room the new one
    /// takes.
    ///
    /// ```
    /// use conversant::job_queue::{JobQueue, Place};
    /// use std::time::Duration;
    ///
    /// let queue = JobQueue::new();
    /// let at = |seconds| Place::new().unique("save").due(Duration::from_secs(seconds));
    /// queue.push(1, "first text", at(1))?;
    /// let (id, old) = queue.push_replacing(1, "second text", at(2))?;
    /// assert_eq!(old.map(|old| old.job), Some("first text"));
    /// queue.advance(Duration::from_secs(2));
    /// assert_eq!(queue.try_claim(9)[0].id(), id);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push); [`PushReason::Duplicate`] if the job of that name is claimed.
    ///
    /// # Panics
    ///
    /// As [`push`](Self::push). If a claim whose lease has run out still shows the old job, that is
    /// cloned; if its `Clone` panics, the new job is in.
    pub fn push_replacing(
        &self,
        key: K,
        job: J,
        place: Place,
    ) -> Result<Replacing<K, J>, PushError<(K, J)>> {
        let (shared, mut entering) = (self.shared(), entering(key, job, place));
        let mut room = Room::of(&shared.capacity);
        let pushed = shared.with_state(|state| {
            let (key, old) = state.enter(&mut entering, shared.number, &mut room, true)?;
            Ok((key, old.map(|old| state.jobs.take_replaced(old))))
        });
        let (key, old) = pushed.map_err(|why| refused(entering.0, why))?;
        room.keep();
        Ok((shared.name(key), old.map(taken)))
    }

    /// Puts many jobs in, under one lock: all of them or none.
    ///
    /// Waiting claims are woken when all jobs are in. Cost: O(log n) each; the lock is held for all
    /// of them. If the place comes from a [handle](super::Part::place), no name is looked up.
    ///
    /// # Errors
    ///
    /// [`PushError`] with all keys and jobs if one of them is refused, as by
    /// [`push`](Self::push); in a closed queue also if there are none.
    ///
    /// # Panics
    ///
    /// If the iterator does, or an `Ord`; nothing has changed.
    pub fn push_all(
        &self,
        jobs: impl IntoIterator<Item = (K, J, Place)>,
    ) -> Result<Vec<JobId>, PushError<Vec<(K, J)>>> {
        let shared = self.shared();
        let jobs = jobs.into_iter();
        let mut entering: Vec<_> = jobs
            .map(|(key, job, place)| entering(key, job, place))
            .collect();
        let mut room = Room::of(&shared.capacity);
        let pushed =
            shared.with_state(|state| state.enter_all(&mut entering, shared.number, &mut room));
        match pushed {
            Ok(ids) => {
                room.keep();
                Ok(ids)
            }
            Err(reason) => {
                let left = entering.into_iter().filter_map(|(job, _)| job);
                let content = left.map(|(key, job)| (key, unwrapped(job))).collect();
                Err(PushError { content, reason })
            }
        }
    }
}

#[inline(always)]
pub(super) fn entering<K, J>(key: K, job: J, place: Place) -> Entering<K, Stored<J>> {
    (Some((key, Some(Body::Own(job)))), place)
}

impl<K: Ord, J> Shared<K, J> {
    #[inline]
    pub(super) fn push(&self, key: K, job: J, place: Place) -> Result<JobId, PushError<(K, J)>> {
        let mut entering = entering(key, job, place);
        let pushed = self.push_into(&mut entering, Room::of(&self.capacity));
        pushed.map_err(|why| refused(entering.0, why))
    }

    /// Pushes a job with this room, or takes room for it. A refused job is left as it was.
    #[inline(always)]
    pub(super) fn push_into(
        &self,
        entering: &mut Entering<K, Stored<J>>,
        mut room: Room<'_>,
    ) -> Result<JobId, PushReason> {
        let number = self.number;
        let pushed = self.with_state(|state| state.enter(entering, number, &mut room, false));
        let (key, _) = pushed?;
        room.keep();
        Ok(self.name(key))
    }
}

#[cold]
pub(super) fn refused<K, J>(left: Option<(K, Stored<J>)>, reason: PushReason) -> PushError<(K, J)> {
    let (key, job) = left.expect("what was refused is still here");
    let content = (key, unwrapped(job));
    PushError { content, reason }
}

impl<K: Ord, J> State<K, J> {
    /// Pushes a job, which takes room unless it has some or replaces another job. With `replaces`,
    /// also returns the job that it replaces: that one is still there, and the new job has its
    /// room.
    #[inline(always)]
    fn enter(
        &mut self,
        entering: &mut Entering<K, Stored<J>>,
        queue: u64,
        room: &mut Room<'_>,
        replaces: bool,
    ) -> Result<(Key, Option<Key>), PushReason> {
        self.open()?;
        let admit = || room.take(1);
        self.jobs.push((entering, queue), replaces, admit)
    }

    /// All or none: if one job is refused, there is no room for all, or a comparison panics, the
    /// jobs that are in already are taken out again.
    fn enter_all(
        &mut self,
        entering: &mut [Entering<K, Stored<J>>],
        queue: u64,
        room: &mut Room<'_>,
    ) -> Result<Vec<JobId>, PushReason> {
        self.open()?;
        let ids = Vec::with_capacity(entering.len());
        let mut all = AllOrNone {
            state: self,
            ids,
            entering,
        };
        for entering in &mut *all.entering {
            let entered = all.state.jobs.push((entering, queue), false, || Ok(()));
            let (key, _) = entered.map_err(|why| beside(&all.ids, why))?;
            all.ids.push(JobId { queue, key });
        }
        room.take(all.ids.len())?;
        Ok(std::mem::take(&mut all.ids))
    }
}

/// Why a job is refused whose batch has these jobs in the queue, for now.
fn beside(batch: &[JobId], why: PushReason) -> PushReason {
    match why {
        PushReason::Duplicate(of) if batch.contains(&of) => PushReason::DuplicateInBatch,
        other => other,
    }
}

/// Takes the jobs of a batch out again, unless all are in: then `ids` is taken away.
struct AllOrNone<'a, K, J> {
    state: &'a mut State<K, J>,
    ids: Vec<JobId>,
    entering: &'a mut [Entering<K, Stored<J>>],
}

impl<K, J> Drop for AllOrNone<'_, K, J> {
    fn drop(&mut self) {
        for (id, entering) in self.ids.drain(..).zip(&mut *self.entering) {
            let taken = self.state.jobs.unpush(id.key);
            entering.0 = Some((taken.key, taken.job));
        }
    }
}
