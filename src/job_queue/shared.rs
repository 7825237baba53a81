//! The one lock of a job queue, and what follows from each change.
//!
//! State: the policy (`jobs`), the claims that wait, and how far the queue is
//! closed, all under one mutex.
//!
//! Protocol: every change runs in [`with_state`](Shared::with_state). The change comes first, then
//! the waking rule. Then, without the lock, the wakers are woken and the user's values are dropped.
//!
//! Invariants:
//! 1. The waking rule: at the end of every change at least so many waits are notified, or all if
//!    fewer wait: of the claims for any job, as many as jobs may run; of the claims for one tenant
//!    or group, as many as its jobs that may run, or as its tenant or the queue has room for, all
//!    that wait for a part taken together; of the waits for a dead job, as many as there are dead
//!    jobs that no wait has returned. Once the queue is [`finished`](State::finished), all are
//!    notified.
//! 2. The only user code under the lock is `Ord`. Keys and jobs come in by reference to an owner
//!    outside of the change, and leave as its result. So they are dropped without the lock even if
//!    a comparison panics.
//! 3. A change that panics has changed nothing that could wake anybody.
//! 4. What a change claims is in a handle that gives it back (a claim) before the first waker is
//!    woken.
//! 5. In a queue that was dropped (`gone`) no job waits.
//! 6. The permits of the capacity that are in use are those of the jobs, of pushes in progress, and
//!    of waits that were granted one and have not been polled since. A push takes its permits in
//!    its change, after everything else that could refuse it. A change that took jobs out gives
//!    their permits back after it has unlocked.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

use crate::due::Dates;
use crate::error::Closed;
use crate::jobs::{Expired, Jobs, Pick, Pinned, Refused, Scope, Taken, Unclaim};
use crate::queue::Capacity;
use crate::slab::Key;
use crate::sync::{Tally, unique};
use crate::wait::{ClonedWaker, Guarded, Session, Ticket, WaitCounts, Waiters, WakeBatch};

use super::body::{Body, Clones, Stored};
use super::part_waits::PartWaits;
use crate::jobs::JobId;

pub(super) struct Shared<K, J> {
    state: Guarded<State<K, J>>,
    /// Distinguishes this queue from all others.
    pub(super) number: u64,
    /// How long a claim holds, and how its job is cloned.
    pub(super) lease: Option<(Duration, Clones<J>)>,
    /// Claims that were dropped, neither completed nor given back.
    pub(super) dropped: Tally,
    /// The user's callback for each of these.
    on_dropped: Option<OnDropped>,
    /// Has a permit for each job.
    pub(super) capacity: Capacity,
}

pub(super) type OnDropped = Box<dyn Fn(JobId) + Send + Sync>;

// The callback runs when nothing is half done.
impl<K, J> UnwindSafe for Shared<K, J> {}
impl<K, J> RefUnwindSafe for Shared<K, J> {}

pub(super) struct State<K, J> {
    pub(super) jobs: Jobs<K, Stored<J>>,
    /// The claims that wait for any job.
    pub(super) claims: Waiters<()>,
    pub(super) part_claims: PartWaits,
    /// The waits for a dead job.
    pub(super) watchers: Waiters<()>,
    pub(super) dates: Dates,
    /// Nothing more is pushed.
    pub(super) closed: bool,
    /// The queue was dropped: nobody claims any more.
    gone: bool,
}

/// What a wait stands in line for.
#[derive(Clone, Copy)]
pub(super) enum Line {
    /// Any job that may run.
    Any,
    /// One of this tenant or group.
    Part(Pinned),
    /// A dead job that no wait has returned.
    Dead,
}

impl Line {
    /// For a job of this part, or for any.
    pub(super) fn of(part: Option<Pinned>) -> Self {
        part.map_or(Self::Any, Self::Part)
    }

    pub(super) fn part(self) -> Option<Pinned> {
        match self {
            Self::Part(of) => Some(of),
            Self::Any | Self::Dead => None,
        }
    }
}

/// Whether a job is dead now; and the job, if nobody will ever claim it.
type Returned<K, J> = (bool, Option<Taken<K, Stored<J>>>);

impl<K, J> Shared<K, J> {
    pub(super) fn new(
        jobs: Jobs<K, Stored<J>>,
        lease: Option<(Duration, Clones<J>)>,
        on_dropped: Option<OnDropped>,
        capacity: Capacity,
    ) -> Self {
        let state = State {
            jobs,
            claims: Waiters::new(),
            part_claims: PartWaits::default(),
            watchers: Waiters::new(),
            dates: Dates::default(),
            closed: false,
            gone: false,
        };
        Self {
            state: Guarded::new(state),
            number: unique(),
            lease,
            dropped: Tally::new(),
            on_dropped,
            capacity,
        }
    }

    /// Runs `change` under the lock, then the waking rule if somebody waits, then the wakers that
    /// the rule gathered.
    #[inline]
    pub(super) fn with_state<R>(&self, change: impl FnOnce(&mut State<K, J>) -> R) -> R {
        let mut state = self.state.lock_patiently();
        if let Some(now) = state.dates.now() {
            state.jobs.set_now(now);
        }
        let before = state.jobs.total();
        let result = change(&mut state);
        let gone = before.saturating_sub(state.jobs.total());
        // First, because a waker may push.
        let serve = gone > 0 && self.capacity.put(gone);
        match state.is_awaited() {
            true => Session::over(state).repeat(State::notify_due),
            false => drop(state),
        }
        if serve {
            self.capacity.serve();
        }
        result
    }

    /// Reads, and changes nothing.
    pub(super) fn read<R>(&self, read: impl FnOnce(&State<K, J>) -> R) -> R {
        read(&self.state.lock())
    }

    /// As [`read`](Self::read), unless the lock is held.
    pub(super) fn try_read<R>(&self, read: impl FnOnce(&State<K, J>) -> R) -> Option<R> {
        self.state.try_lock().map(|session| read(&session))
    }

    /// Refuses all pushes from now on, and runs `then` in the same change.
    pub(super) fn close<R>(&self, then: impl FnOnce(&mut State<K, J>) -> R) -> R {
        let result = self.with_state(|state| {
            state.closed = true;
            then(state)
        });
        self.capacity.close();
        result
    }

    /// Closes the queue, and takes out the jobs that wait; if it is gone, dead ones too.
    pub(super) fn shut(&self, gone: bool) -> Vec<Taken<K, Stored<J>>> {
        self.close(|state| {
            let mut jobs = state.jobs.drain(&Scope::Queue);
            if gone {
                state.gone = true;
                jobs.extend(state.jobs.drain_dead());
            }
            jobs
        })
    }

    /// Reports a dropped claim, whose job has gone back. Runs the user's callback.
    #[cold]
    pub(super) fn report_dropped(&self, job: Key) {
        self.dropped.count();
        if let Some(on_dropped) = &self.on_dropped {
            on_dropped(self.name(job));
        }
    }

    pub(super) fn name(&self, key: Key) -> JobId {
        let queue = self.number;
        JobId { queue, key }
    }

    /// The policy's name of a job, if the job is of this queue.
    pub(super) fn key(&self, id: JobId) -> Result<Key, Refused> {
        let own = id.queue == self.number;
        own.then_some(id.key).ok_or(Refused::Stale)
    }
}

impl<K, J> State<K, J> {
    /// An error if the queue is closed: then no new job comes in.
    pub(super) fn open(&self) -> Result<(), Closed> {
        if self.closed { Err(Closed) } else { Ok(()) }
    }

    /// Whether the queue is closed, and no job waits or is claimed.
    pub(super) fn finished(&self) -> bool {
        self.closed && self.jobs.waiting() == 0 && self.jobs.running() == 0
    }

    /// Completes a claimed job: the result has the content of its claim's `body`, and `body` gets
    /// what the queue had of the job.
    #[inline(always)]
    pub(super) fn complete(
        &mut self,
        pick: Pick,
        body: &mut Stored<J>,
    ) -> Result<Taken<K, Stored<J>>, Expired> {
        let mut done = self.jobs.complete(pick)?;
        std::mem::swap(&mut done.job, body);
        Ok(done)
    }

    /// Puts a claimed job back, or takes it out if the queue was dropped.
    pub(super) fn unclaim(
        &mut self,
        pick: Pick,
        how: Unclaim,
        body: &mut Stored<J>,
    ) -> Result<Returned<K, J>, Expired> {
        if self.gone {
            return Ok((false, Some(self.jobs.complete(pick)?)));
        }
        let dead = self.jobs.give_back(pick, how)?;
        Body::put_back(body, self.jobs.claimed_data(pick.id));
        Ok((dead, None))
    }

    /// Whether the waking rule may have to notify somebody.
    #[inline]
    fn is_awaited(&self) -> bool {
        let nobody_claims = self.claims.is_empty() && self.part_claims.is_empty();
        !nobody_claims || !self.watchers.is_empty() || self.dates.is_awaited()
    }

    /// Notifies by the waking rule; false if the batch is full and more are due.
    #[cold]
    fn notify_due(&mut self, wakes: &mut WakeBatch) -> bool {
        self.dates.update(|| self.jobs.next_due(), wakes);
        let finished = self.finished();
        let due = usize::try_from(self.jobs.eligible()).ok();
        let due = due.filter(|_| !finished).unwrap_or(usize::MAX);
        if !self.claims.notify_up_to(due, wakes) {
            return false;
        }
        if !self.part_claims.notify(&mut self.jobs, finished, wakes) {
            return false;
        }
        self.watchers.is_empty() || self.notify_watchers(wakes)
    }

    /// Notifies the waits for dead jobs that are due; false if the batch is full and more are due.
    #[cold]
    fn notify_watchers(&mut self, wakes: &mut WakeBatch) -> bool {
        let due = match self.finished() {
            true => usize::MAX,
            false => self.jobs.unreported(),
        };
        self.watchers.notify_up_to(due, wakes)
    }

    /// Changes the waits in a line.
    pub(super) fn waits_in<R>(
        &mut self,
        line: Line,
        change: impl FnOnce(&mut Waiters<()>) -> R,
    ) -> R {
        let of = match line {
            Line::Any => return change(&mut self.claims),
            Line::Part(of) => of,
            Line::Dead => return change(&mut self.watchers),
        };
        self.part_claims.change(&mut self.jobs, of, change)
    }

    /// Takes a wait out of its line. As [`Waiters::withdraw`].
    pub(super) fn withdraw(&mut self, line: Line, ticket: &mut Option<Ticket>) -> ClonedWaker {
        match ticket {
            None => ClonedWaker::default(),
            Some(_) => ClonedWaker(self.waits_in(line, |waits| waits.withdraw(ticket))),
        }
    }

    /// How many claims wait.
    pub(super) fn claims(&self) -> WaitCounts {
        let mut sum = self.part_claims.counts();
        sum.change(WaitCounts::default(), self.claims.counts());
        sum
    }
}
