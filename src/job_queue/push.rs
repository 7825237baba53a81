//! Jobs come in, by name or by handle.

use std::error::Error;
use std::fmt;

use crate::error::{Closed, Stale, TimedOut};
use crate::jobs::{Entering, NotPushed, Place};
use crate::queue::{Permits, SendReason};
use crate::slab::Key;

use super::JobQueue;
use super::body::{Body, Stored, unwrapped};
use super::builder::TAKEN;
use super::id::JobId;
use super::shared::{Shared, State};

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
    /// // Nobody has claimed the first one, so that the second can take its place.
    /// assert_eq!(queue.replace(id, refused.job)?, "draft");
    /// assert_eq!(*queue.try_claim(9)[0], "final");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Cost: O(log n). By a [handle](Self::tenant) the names are not looked up.
    ///
    /// # Errors
    ///
    /// [`PushError`] with key and job if the queue is closed or full, or another job
    /// of the tenant has the same [unique name](super::Terms::unique).
    ///
    /// # Panics
    ///
    /// If the key's `Ord` does; nothing has changed.
    pub fn push(&self, key: K, job: J, place: Place) -> Result<JobId, PushError<K, J>> {
        self.shared().push(key, job, place)
    }

    /// Puts many jobs in, under one lock: all of them or none.
    ///
    /// Waiting claims are woken when all are in. Cost: O(log n) each; the lock
    /// is held for all of them. Where a [handle](super::Part::place) says the place, no name
    /// is looked up.
    ///
    /// # Errors
    ///
    /// [`PushAllError`] with all keys and jobs if one of them is refused, as by
    /// [`push`](Self::push).
    ///
    /// # Panics
    ///
    /// If the iterator does, or an `Ord`; nothing has changed.
    pub fn push_all(
        &self,
        jobs: impl IntoIterator<Item = (K, J, Place)>,
    ) -> Result<Vec<JobId>, PushAllError<K, J>> {
        let shared = self.shared();
        let wrapped = |(key, job, place)| (Some((key, Some(Body::Own(job)))), place);
        let mut entering: Vec<_> = jobs.into_iter().map(wrapped).collect();
        let permits = shared.capacity.take(entering.len());
        let pushed = permits.map_err(PushReason::from).and_then(|permits| {
            let pushed = shared.with_state(|state| state.enter_all(&mut entering, shared.number));
            let ids = pushed.map_err(|refused| shared.reason(refused))?;
            permits.keep();
            Ok(ids)
        });
        pushed.map_err(|reason| {
            let left = entering.into_iter().filter_map(|(job, _)| job);
            let jobs = left.map(|(key, job)| (key, unwrapped(job))).collect();
            PushAllError { jobs, reason }
        })
    }
}

impl<K: Ord, J> Shared<K, J> {
    #[inline]
    pub(super) fn push(&self, key: K, job: J, place: Place) -> Result<JobId, PushError<K, J>> {
        self.push_permitted(key, job, place, self.capacity.take(1))
    }

    #[inline]
    pub(super) fn push_permitted(
        &self,
        key: K,
        job: J,
        place: Place,
        permits: Result<Permits<'_>, SendReason>,
    ) -> Result<JobId, PushError<K, J>> {
        let mut entering = (Some((key, Some(Body::Own(job)))), place);
        let pushed = permits.map_err(PushReason::from).and_then(|permits| {
            let pushed = self.with_state(|state| state.enter(&mut entering, self.number));
            let id = pushed.map_err(|refused| self.reason(refused))?;
            permits.keep();
            Ok(self.name(id))
        });
        pushed.map_err(|reason| {
            let (key, job) = entering.0.expect("what was refused is still here");
            let job = unwrapped(job);
            PushError { key, job, reason }
        })
    }
}

impl<K, J> Shared<K, J> {
    fn reason(&self, refused: Refusal) -> PushReason {
        match refused {
            Refusal::Closed => PushReason::Closed,
            Refusal::Twice => PushReason::DuplicateInBatch,
            Refusal::NotPushed(NotPushed::Duplicate(of)) => PushReason::Duplicate(self.name(of)),
            Refusal::NotPushed(NotPushed::Stale) => PushReason::Stale,
        }
    }
}

/// Why a job is not in, as the policy knows it.
#[derive(Clone, Copy)]
pub(super) enum Refusal {
    Closed,
    /// Two of a batch have one unique name.
    Twice,
    NotPushed(NotPushed),
}

impl Refusal {
    /// The same, if it is not for one of these, which are in only for now.
    fn beside(self, batch: &[JobId]) -> Self {
        match self {
            Self::NotPushed(NotPushed::Duplicate(of)) if batch.iter().any(|id| id.key == of) => {
                Self::Twice
            }
            other => other,
        }
    }
}

impl From<Closed> for Refusal {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<NotPushed> for Refusal {
    fn from(why: NotPushed) -> Self {
        Self::NotPushed(why)
    }
}

impl<K: Ord, J> State<K, J> {
    fn enter(&mut self, entering: &mut Entering<K, Stored<J>>, queue: u64) -> Result<Key, Refusal> {
        self.open()?;
        Ok(self.jobs.push(entering, queue)?)
    }

    /// All or none: if one is refused or a comparison panics, those that are in
    /// come out again.
    fn enter_all(
        &mut self,
        entering: &mut [Entering<K, Stored<J>>],
        queue: u64,
    ) -> Result<Vec<JobId>, Refusal> {
        self.open()?;
        let ids = Vec::with_capacity(entering.len());
        let mut all = AllOrNone {
            state: self,
            ids,
            entering,
        };
        for entering in &mut *all.entering {
            let entered = all.state.enter(entering, queue);
            let key = entered.map_err(|refused| refused.beside(&all.ids))?;
            all.ids.push(JobId { queue, key });
        }
        Ok(std::mem::take(&mut all.ids))
    }
}

/// Jobs that come out again unless all of them get in.
struct AllOrNone<'a, K, J> {
    state: &'a mut State<K, J>,
    ids: Vec<JobId>,
    entering: &'a mut [Entering<K, Stored<J>>],
}

impl<K, J> Drop for AllOrNone<'_, K, J> {
    fn drop(&mut self) {
        for (id, entering) in self.ids.drain(..).zip(&mut *self.entering) {
            let taken = self.state.jobs.remove(id.key).ok();
            entering.0 = taken.map(|taken| (taken.key, taken.job));
        }
    }
}

/// Why a job was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushReason {
    /// The queue is closed.
    Closed,
    /// The queue holds as many jobs as its capacity, or the room is promised to
    /// others, or is taken for a moment by a push that is refused for another reason.
    Full,
    /// So many at once are more than the queue's capacity.
    AboveCapacity,
    /// There was no room in time.
    TimedOut,
    /// This job of the same tenant has the same
    /// [unique name](super::Terms::unique).
    Duplicate(JobId),
    /// Two jobs of the batch, of one tenant, have one unique name.
    DuplicateInBatch,
    /// Its [place](super::Part::place) is by the handle of a name that is gone, or of another
    /// queue.
    Stale,
}

impl fmt::Display for PushReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => Closed.fmt(f),
            Self::Full => f.write_str("full"),
            Self::AboveCapacity => f.write_str("more than the capacity"),
            Self::TimedOut => TimedOut.fmt(f),
            Self::Duplicate(_) => f.write_str(TAKEN),
            Self::DuplicateInBatch => f.write_str("two of the batch have one unique name"),
            Self::Stale => Stale.fmt(f),
        }
    }
}

impl From<SendReason> for PushReason {
    fn from(reason: SendReason) -> Self {
        match reason {
            SendReason::Closed => Self::Closed,
            SendReason::AboveCapacity => Self::AboveCapacity,
            SendReason::TimedOut => Self::TimedOut,
            // The others are of a queue's parts, handlers and tiers: never of a push.
            _ => Self::Full,
        }
    }
}

/// A job that was not taken, and why.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PushError<K, J> {
    /// Its key.
    pub key: K,
    /// What was to be pushed.
    pub job: J,
    /// Why it was not.
    pub reason: PushReason,
}

/// Jobs that were not taken, and why the first of them was refused that was.
#[derive(Clone, PartialEq, Eq)]
pub struct PushAllError<K, J> {
    /// All that was to be pushed, in order.
    pub jobs: Vec<(K, J)>,
    /// Why it was not.
    pub reason: PushReason,
}

/// Without key and job, so that any of them can be unwrapped on.
impl<K, J> fmt::Debug for PushError<K, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("PushError");
        out.field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<K, J> fmt::Debug for PushAllError<K, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("PushAllError");
        out.field("jobs", &self.jobs.len());
        out.field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<K, J> fmt::Display for PushError<K, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not pushed: {}", self.reason)
    }
}

impl<K, J> fmt::Display for PushAllError<K, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "none was pushed: {}", self.reason)
    }
}

impl<K, J> Error for PushError<K, J> {}
impl<K, J> Error for PushAllError<K, J> {}
