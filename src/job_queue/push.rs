//! Jobs come in, by name or by handle.

use std::error::Error;
use std::fmt;

use crate::error::{Closed, OutOfRange, Stale, TimedOut};
use crate::jobs::{Entering, NotPushed, Place, Taken};
use crate::queue::{Capacity, Permits, SendReason};
use crate::slab::Key;

use super::JobQueue;
use super::body::{Body, Stored, taken, unwrapped};
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
    /// // It waits still, so that the second can take its place.
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

    /// As [`push`](Self::push), but a job of the tenant that waits, due or not, and has the
    /// same [unique name](super::Terms::unique) leaves for this one, in one step: key, due
    /// time and place are the new one's. The old job, which leaves its room too.
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
    /// As [`push`](Self::push); [`PushReason::Duplicate`] if that other job is claimed.
    ///
    /// # Panics
    ///
    /// As [`push`](Self::push).
    pub fn push_replacing(
        &self,
        key: K,
        job: J,
        place: Place,
    ) -> Result<(JobId, Option<Taken<K, J>>), PushError<K, J>> {
        let (shared, mut entering) = (self.shared(), entering(key, job, place));
        let mut room = Room::of(&shared.capacity);
        let pushed = shared.with_state(|state| {
            state.open()?;
            let admit = || room.take(1);
            state
                .jobs
                .push_replacing(&mut entering, shared.number, admit)
        });
        let (key, old) = pushed.map_err(|refused| shared.refused(entering, refused).0)?;
        room.keep();
        Ok((shared.name(key), old.map(taken)))
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
            Err(refused) => {
                let reason = shared.reason(refused);
                let left = entering.into_iter().filter_map(|(job, _)| job);
                let jobs = left.map(|(key, job)| (key, unwrapped(job))).collect();
                Err(PushAllError { jobs, reason })
            }
        }
    }
}

#[inline(always)]
fn entering<K, J>(key: K, job: J, place: Place) -> Entering<K, Stored<J>> {
    (Some((key, Some(Body::Own(job)))), place)
}

impl<K: Ord, J> Shared<K, J> {
    #[inline]
    pub(super) fn push(&self, key: K, job: J, place: Place) -> Result<JobId, PushError<K, J>> {
        let pushed = self.push_into(key, job, place, Room::of(&self.capacity));
        pushed.map_err(|(error, _)| error)
    }

    /// Puts a job in that has its room, or takes it. What is refused leaves its place as
    /// it was.
    #[inline]
    pub(super) fn push_into(
        &self,
        key: K,
        job: J,
        place: Place,
        mut room: Room<'_>,
    ) -> Result<JobId, (PushError<K, J>, Place)> {
        let mut entering = entering(key, job, place);
        let pushed = self.with_state(|state| state.enter(&mut entering, self.number, &mut room));
        match pushed {
            Ok(key) => {
                room.keep();
                Ok(self.name(key))
            }
            Err(refused) => Err(self.refused(entering, refused)),
        }
    }
}

impl<K, J> Shared<K, J> {
    #[cold]
    fn refused(
        &self,
        (left, place): Entering<K, Stored<J>>,
        refused: Refusal,
    ) -> (PushError<K, J>, Place) {
        let (key, job) = left.expect("what was refused is still here");
        let (job, reason) = (unwrapped(job), self.reason(refused));
        (PushError { key, job, reason }, place)
    }

    fn reason(&self, refused: Refusal) -> PushReason {
        match refused {
            Refusal::Closed => PushReason::Closed,
            Refusal::Twice => PushReason::DuplicateInBatch,
            Refusal::NotPushed(NotPushed::Duplicate(of)) => PushReason::Duplicate(self.name(of)),
            Refusal::NotPushed(NotPushed::Stale) => PushReason::Stale,
            Refusal::NotPushed(NotPushed::OutOfRange(why)) => PushReason::OutOfRange(why),
            Refusal::Room(reason) => reason,
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
    Room(PushReason),
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
    #[inline(always)]
    fn enter(
        &mut self,
        entering: &mut Entering<K, Stored<J>>,
        queue: u64,
        room: &mut Room<'_>,
    ) -> Result<Key, Refusal> {
        self.open()?;
        self.jobs.push(entering, queue, || room.take(1))
    }

    /// All or none: if one is refused or a comparison panics, those that are in
    /// come out again, and so does their room.
    fn enter_all(
        &mut self,
        entering: &mut [Entering<K, Stored<J>>],
        queue: u64,
        room: &mut Room<'_>,
    ) -> Result<Vec<JobId>, Refusal> {
        self.open()?;
        room.take(entering.len())?;
        let ids = Vec::with_capacity(entering.len());
        let mut all = AllOrNone {
            state: self,
            ids,
            entering,
            room,
            done: false,
        };
        for entering in &mut *all.entering {
            let entered = all
                .state
                .jobs
                .push(entering, queue, || Ok::<_, Refusal>(()));
            let key = entered.map_err(|refused| refused.beside(&all.ids))?;
            all.ids.push(JobId { queue, key });
        }
        all.done = true;
        Ok(std::mem::take(&mut all.ids))
    }
}

/// Jobs that come out again unless all of them get in.
struct AllOrNone<'a, 'q, K, J> {
    state: &'a mut State<K, J>,
    ids: Vec<JobId>,
    entering: &'a mut [Entering<K, Stored<J>>],
    room: &'a mut Room<'q>,
    done: bool,
}

impl<K, J> Drop for AllOrNone<'_, '_, K, J> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        for (id, entering) in self.ids.drain(..).zip(&mut *self.entering) {
            let taken = self.state.jobs.remove(id.key).ok();
            entering.0 = taken.map(|taken| (taken.key, taken.job));
        }
        self.room.put_back();
    }
}

/// The room of jobs on their way in. It is taken under the queue's lock once nothing else
/// refuses them, and put back under it, so that none who is refused has any that others see.
pub(super) struct Room<'q> {
    capacity: &'q Capacity,
    permits: usize,
    /// Who waits for room must be served.
    serve: bool,
}

impl<'q> Room<'q> {
    /// None yet.
    #[inline]
    pub(super) fn of(capacity: &'q Capacity) -> Self {
        Self {
            capacity,
            permits: 0,
            serve: false,
        }
    }

    /// That of a wait which was granted it.
    pub(super) fn granted(capacity: &'q Capacity, permits: Permits<'q>) -> Self {
        permits.keep();
        Self {
            permits: 1,
            ..Self::of(capacity)
        }
    }

    /// For so many jobs, if it has none.
    #[inline(always)]
    fn take(&mut self, jobs: usize) -> Result<(), Refusal> {
        if self.permits == 0 {
            let permits = self.capacity.take(jobs);
            permits.map_err(|why| Refusal::Room(why.into()))?.keep();
            self.permits = jobs;
        }
        Ok(())
    }

    /// It is the jobs' from now on.
    #[inline(always)]
    fn keep(mut self) {
        self.permits = 0;
    }

    fn put_back(&mut self) {
        let permits = std::mem::take(&mut self.permits);
        self.serve |= permits > 0 && self.capacity.put(permits);
    }
}

impl Drop for Room<'_> {
    /// Under no lock.
    #[inline]
    fn drop(&mut self) {
        if self.permits > 0 {
            self.put_back();
        }
        if self.serve {
            self.capacity.serve();
        }
    }
}

/// Why a job was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushReason {
    /// The queue is closed.
    Closed,
    /// The queue holds as many jobs as its capacity, or the room is promised to those
    /// that wait for it.
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
    /// Its own number of [attempts](super::Terms::attempts) is 0.
    OutOfRange(OutOfRange),
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
            Self::OutOfRange(why) => why.fmt(f),
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
