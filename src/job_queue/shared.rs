//! The one lock of a job queue, and what follows from each change.
//!
//! State: the policy (`jobs`), the claims that wait, and how far the queue is
//! closed, all under one mutex.
//!
//! Protocol: every change runs in [`with_state`](Shared::with_state): first the
//! change, then the waking rule; then, without the lock, the wakers are woken
//! and what is the user's is dropped.
//!
//! Invariants:
//! 1. The waking rule: at the end of every change at least as many claims are
//!    notified as jobs may run, or all that wait if they are fewer; and all of
//!    them once the queue is [`finished`](State::finished).
//! 2. Of the user's only `Ord` runs under the lock. Keys and jobs come in by
//!    reference to an owner outside of the change, and leave as its result, so
//!    that they are dropped without the lock also when a comparison panics.
//! 3. A change that panics has changed nothing that could wake anybody.
//! 4. What a change takes is in a handle that gives it back (a claim) before
//!    the first waker is woken.
//! 5. In a queue that is gone (it was dropped) no job waits.

use std::time::Duration;

use crate::error::Closed;
use crate::jobs::{Expired, Jobs, Pick, Place, Refused, Taken, Unclaim};
use crate::limit::Limit;
use crate::retry::Retry;
use crate::slab::Key;
use crate::sync::{Arc, unique};
use crate::wait::{Guarded, Session, Waiters, WakeBatch};

use super::claim::JobId;

pub(super) struct Shared<K, J> {
    state: Guarded<State<K, J>>,
    /// Distinguishes this queue from all others.
    number: u64,
    /// How long a claim holds.
    pub(super) lease: Option<Duration>,
}

pub(super) struct State<K, J> {
    pub(super) jobs: Jobs<K, Arc<J>>,
    pub(super) claims: Waiters<()>,
    /// Nothing more is pushed.
    pub(super) closed: bool,
    /// Nobody claims any more.
    gone: bool,
}

/// A job on its way in; `None` once it is.
pub(super) type Entering<K, J> = Option<(K, Arc<J>, Place)>;

/// Whether a job is dead now; and the job, if nobody will ever claim it.
type Returned<K, J> = (bool, Option<Taken<K, Arc<J>>>);

impl<K, J> Shared<K, J> {
    pub(super) fn new(group_limit: Limit, retry: Retry, lease: Option<Duration>) -> Self {
        let state = State {
            jobs: Jobs::new(group_limit, retry),
            claims: Waiters::new(),
            closed: false,
            gone: false,
        };
        Self {
            state: Guarded::new(state),
            number: unique(),
            lease,
        }
    }

    /// Runs `change` under the lock, then the waking rule, then the
    /// wakers it gathered.
    pub(super) fn with_state<'a, R>(
        &'a self,
        change: impl FnOnce(&mut Session<'a, State<K, J>>) -> R,
    ) -> R {
        let mut session = self.state.lock();
        let result = change(&mut session);
        session.settle(State::notify_due);
        result
    }

    /// Reads, and changes nothing.
    pub(super) fn read<R>(&self, read: impl FnOnce(&State<K, J>) -> R) -> R {
        read(&self.state.lock())
    }

    /// As [`read`](Self::read), unless somebody holds the lock.
    pub(super) fn try_read<R>(&self, read: impl FnOnce(&State<K, J>) -> R) -> Option<R> {
        self.state.try_lock().map(|session| read(&session))
    }

    /// Refuses all that is pushed from now on, and takes out what waits.
    pub(super) fn shut(&self, gone: bool) -> Vec<Taken<K, Arc<J>>> {
        self.with_state(|state| {
            state.closed = true;
            state.gone |= gone;
            state.jobs.drain()
        })
    }

    pub(super) fn name(&self, key: Key) -> JobId {
        let queue = self.number;
        JobId { queue, key }
    }

    /// The policy's name of a job, if it is one of this queue's.
    pub(super) fn key(&self, id: JobId) -> Result<Key, Refused> {
        let own = id.queue == self.number;
        own.then_some(id.key).ok_or(Refused::Stale)
    }
}

impl<K: Ord, J> State<K, J> {
    pub(super) fn enter(&mut self, entering: &mut Entering<K, J>) -> Result<Key, Closed> {
        self.open()?;
        let (key, _, place) = entering.as_ref().expect(ONCE);
        let position = self.jobs.find_position(key, place);
        let (key, job, place) = entering.take().expect(ONCE);
        Ok(self.jobs.push(position, key, place, job))
    }

    /// All or none: if a comparison panics, those that are in come out again,
    /// into `withdrawn`.
    pub(super) fn enter_all(
        &mut self,
        entering: &mut [Entering<K, J>],
        withdrawn: &mut Vec<Taken<K, Arc<J>>>,
    ) -> Result<Vec<Key>, Closed> {
        self.open()?;
        withdrawn.reserve(entering.len());
        let ids = Vec::with_capacity(entering.len());
        let mut all = AllOrNone {
            state: self,
            ids,
            withdrawn,
        };
        for job in entering {
            let id = all.state.enter(job)?;
            all.ids.push(id);
        }
        Ok(std::mem::take(&mut all.ids))
    }

    pub(super) fn rekey(&mut self, id: Key, key: &mut Option<K>) -> Result<K, Refused> {
        let position = self.jobs.rekey_position(id, key.as_ref().expect(ONCE))?;
        Ok(self.jobs.rekey(id, position, key.take().expect(ONCE)))
    }
}

const ONCE: &str = "it enters once";

/// Jobs that come out again unless all of them get in.
struct AllOrNone<'a, K, J> {
    state: &'a mut State<K, J>,
    ids: Vec<Key>,
    withdrawn: &'a mut Vec<Taken<K, Arc<J>>>,
}

impl<K, J> Drop for AllOrNone<'_, K, J> {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            self.withdrawn.extend(self.state.jobs.remove(id));
        }
    }
}

impl<K, J> State<K, J> {
    /// Nothing new comes into a closed queue.
    pub(super) fn open(&self) -> Result<(), Closed> {
        if self.closed { Err(Closed) } else { Ok(()) }
    }

    /// Closed, and nothing is left that could be claimed.
    pub(super) fn finished(&self) -> bool {
        self.closed && self.jobs.waiting() == 0 && self.jobs.running() == 0
    }

    /// Puts a claimed job back; what nobody will ever claim comes out.
    pub(super) fn unclaim(&mut self, pick: Pick, how: Unclaim) -> Result<Returned<K, J>, Expired> {
        if self.gone {
            return Ok((false, Some(self.jobs.complete(pick)?)));
        }
        Ok((self.jobs.give_back(pick, how)?, None))
    }

    /// How many claims must be awake: the waking rule.
    fn due(&self) -> usize {
        let all = self.claims.len();
        if self.finished() {
            return all;
        }
        usize::try_from(self.jobs.eligible()).map_or(all, |jobs| jobs.min(all))
    }

    /// Notifies who is due; false if the batch is full and more are.
    fn notify_due(&mut self, wakes: &mut WakeBatch) -> bool {
        self.claims.notify_up_to(self.due(), wakes)
    }
}
