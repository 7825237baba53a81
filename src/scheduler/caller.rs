//! The state of a caller: its outstanding tasks, epoch by epoch.
//!
//! A task is outstanding from its submission until a successful synchronize covers it, whether it
//! has ended or not. The first poll of a synchronize closes an epoch, which covers all outstanding
//! tasks. If the synchronize is dropped, its epoch merges into the next.
//!
//! Invariants:
//! 1. Each unfinished task counts in exactly one epoch: in `closing` if there is one and the
//!    task's number is not above its last, else in `current`.
//! 2. `waiting` counts the tasks that no worker has.

use std::task::{Poll, Waker};

use crate::lanes::LaneKey;
use crate::limit::Limit;
use crate::queue::Capacity;
use crate::shown::says;
use crate::sync::{Arc, AtomicBool, Ordering::Relaxed};
use crate::wait::Waiters;

use super::outcome::{Ending, TaskId};
use super::reject::SyncError;
use super::summary::Summary;

/// What a failed task means for its caller's tasks of higher tiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// They go on.
    #[default]
    Continue,
    /// After a failure, tasks of higher tiers never start: waiting and later ones are skipped,
    /// until a successful synchronize has reported all failures.
    SkipHigherTiers,
}

says!(OnFailure {
    Self::Continue => "continue",
    Self::SkipHigherTiers => "skip higher tiers",
});

/// The settings of a caller: its share of the workers, its bounds, and what a failure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerOptions {
    /// How many turns in a row the caller takes while others wait, 1 to 1,000,000. Its woken
    /// futures take as many in addition. If it has nothing to start for a moment, since its cap or
    /// the limits of its groups are used up, it loses the rest: a caller with one serial group
    /// takes one turn in a row.
    pub weight: u32,
    /// How many of its tasks may be in flight at once.
    pub cap: Limit,
    /// Whether its higher tiers go on after a failure.
    pub on_failure: OnFailure,
    /// How many unfinished tasks it may have; 0 lets none in. A submission beyond that is refused,
    /// or [waits](super::Caller::exec_wait). A refusal takes the scheduler's lock and makes the
    /// workers report what has ended: wait, do not retry in a loop.
    pub capacity: Limit,
}

impl Default for CallerOptions {
    /// Weight 1, no cap, no capacity, and higher tiers go on after a failure.
    fn default() -> Self {
        Self {
            weight: 1,
            cap: Limit::Unlimited,
            on_failure: OnFailure::Continue,
            capacity: Limit::Unlimited,
        }
    }
}

#[derive(Debug, Default)]
struct Epoch {
    unfinished: u64,
    /// The unfinished tasks that no worker has.
    waiting: u64,
    summary: Summary,
}

#[derive(Debug)]
struct Closing {
    last: TaskId,
    epoch: Epoch,
    /// A later task failed before all tasks of the epoch.
    failed_later: bool,
    waker: Option<Waker>,
}

/// The state of a synchronize: pending, or its result.
pub(crate) type Synced = Poll<Result<Summary, SyncError>>;

#[derive(Debug)]
pub(crate) struct CallerState {
    pub(super) name: Arc<str>,
    pub(super) lane: LaneKey,
    /// The lane of its woken futures; made for the first of them.
    pub(super) woken_lane: Option<LaneKey>,
    /// Its tasks up to this one are to be cancelled.
    pub(super) cancelled: TaskId,
    pub(super) on_failure: OnFailure,
    /// Tasks of tiers above this one are skipped.
    pub(super) skip_above: Option<u32>,
    pub(super) released: bool,
    /// It is not released, and all its tasks so far were of tier 0.
    pub(super) may_post: Arc<AtomicBool>,
    pub(super) has_handles: bool,
    pub(crate) capacity: Arc<Capacity>,
    pub(super) released_waiters: Option<Box<Waiters<()>>>,
    current: Epoch,
    closing: Option<Box<Closing>>,
}

impl CallerState {
    pub(super) fn new(
        name: Arc<str>,
        lane: LaneKey,
        capacity: Arc<Capacity>,
        options: &CallerOptions,
    ) -> Self {
        Self {
            name,
            lane,
            woken_lane: None,
            cancelled: TaskId(0),
            on_failure: options.on_failure,
            skip_above: None,
            released: false,
            may_post: Arc::new(AtomicBool::new(true)),
            has_handles: true,
            capacity,
            released_waiters: None,
            current: Epoch::default(),
            closing: None,
        }
    }

    /// It takes no more tasks.
    pub(super) fn release(&mut self) {
        self.released = true;
        self.may_post.store(false, Relaxed);
    }

    /// A task of `tier` failed. Returns whether waiting tasks must be skipped: those above the tier
    /// of an earlier failure are gone already.
    pub(super) fn failed(&mut self, tier: u32) -> bool {
        let skips = self.would_skip(tier);
        if skips {
            self.skip_above = Some(tier);
        }
        skips
    }

    /// Whether a failure in this tier skips waiting tasks.
    pub(super) fn would_skip(&self, tier: u32) -> bool {
        let is_lower = self.skip_above.is_none_or(|above| tier < above);
        is_lower && self.on_failure == OnFailure::SkipHigherTiers
    }

    /// Whether a task of this tier is never to start.
    pub(super) fn skips(&self, tier: u32) -> bool {
        self.skip_above.is_some_and(|above| tier > above)
    }

    #[inline]
    pub(super) fn submitted(&mut self, tasks: u64) {
        self.current.unfinished += tasks;
        self.current.waiting += tasks;
        self.current.summary.tasks += tasks;
    }

    /// A worker claims the task and others of its epoch, or the task ends unrun. Returns whether
    /// each ending must be reported at once: somebody waits for room, or for tasks that workers
    /// have all claimed.
    #[inline]
    pub(super) fn taken(&mut self, id: TaskId, tasks: usize) -> bool {
        self.epoch_of(id).waiting -= tasks as u64;
        let closing = self.closing.as_ref();
        id <= self.closed() && closing.is_some_and(|closing| closing.epoch.waiting == 0)
            || self.released_waiters.is_some() && self.waiting() == 0
            || self.wants_room()
    }

    /// A claimed task waits again, with others of its epoch.
    pub(super) fn returned(&mut self, id: TaskId, tasks: usize) {
        self.epoch_of(id).waiting += tasks as u64;
    }

    /// Whether somebody waits for room.
    #[inline]
    fn wants_room(&self) -> bool {
        let permits = self.capacity.permits();
        permits.is_some_and(|permits| permits.is_awaited())
    }

    /// How many unclaimed tasks must end before a waiter can go on; and the last task that a
    /// synchronize under way covers.
    pub(super) fn awaited(&self) -> (Option<usize>, TaskId) {
        let closing = self.closing.as_ref().map(|closing| closing.epoch.waiting);
        let covered = closing.filter(|&waiting| waiting > 0);
        let released = self.released_waiters.as_ref();
        let all = released.map(|_| self.waiting());
        let one = self.wants_room().then_some(1);
        let awaited = one.or(covered).or(all.filter(|&waiting| waiting > 0));
        let awaited = awaited.map(|awaited| usize::try_from(awaited).unwrap_or(usize::MAX));
        (awaited, self.closed())
    }

    /// Whether workers have claimed all tasks that a synchronize covers, or would cover.
    pub(super) fn is_claimed(&self) -> bool {
        let closing = self.closing.as_ref();
        closing.map_or(&self.current, |c| &c.epoch).waiting == 0
    }

    #[inline]
    fn epoch_of(&mut self, id: TaskId) -> &mut Epoch {
        match &mut self.closing {
            Some(closing) if id <= closing.last => &mut closing.epoch,
            _ => &mut self.current,
        }
    }

    /// The last task that the synchronize under way covers, if there is one.
    #[inline]
    pub(super) fn closed(&self) -> TaskId {
        let closing = self.closing.as_ref();
        closing.map_or(TaskId::default(), |closing| closing.last)
    }

    /// Counts the endings of `tasks` tasks of the epoch of `id`; with `how` of `None`, of a task
    /// whose submission is taken back. Returns whether they were the last of the epoch.
    #[inline]
    #[must_use]
    pub(super) fn ended(&mut self, id: TaskId, how: Option<Ending>, tasks: u32) -> bool {
        let epoch = self.epoch_of(id);
        epoch.unfinished -= u64::from(tasks);
        match how {
            Some(how) => epoch.summary.count(id, how, tasks),
            None => epoch.summary.tasks -= 1,
        }
        let is_over = epoch.unfinished == 0;
        if how.is_some_and(Ending::is_failure)
            && let Some(closing) = &mut self.closing
        {
            closing.failed_later |= closing.epoch.summary.first_failure.is_none();
        }
        is_over
    }

    /// Tasks submitted and not ended.
    pub(super) fn unfinished(&self) -> u64 {
        self.sum(|epoch| epoch.unfinished)
    }

    /// The unfinished tasks that no worker has.
    pub(super) fn waiting(&self) -> u64 {
        self.sum(|epoch| epoch.waiting)
    }

    fn sum(&self, of: impl Fn(&Epoch) -> u64) -> u64 {
        of(&self.current) + self.closing.as_ref().map_or(0, |c| of(&c.epoch))
    }

    /// The summary of the tasks that no synchronize has covered.
    pub(super) fn summary(&self) -> Summary {
        self.current.summary
    }

    /// Begins a synchronize. `last` is the newest task of the scheduler.
    pub(super) fn close_epoch(&mut self, last: TaskId) -> Synced {
        if self.closing.is_some() {
            return Poll::Ready(Err(SyncError::Busy));
        }
        if self.current.summary.tasks == 0 {
            return Poll::Ready(Err(SyncError::NothingOutstanding));
        }
        let epoch = std::mem::take(&mut self.current);
        self.closing = Some(Box::new(Closing {
            last,
            epoch,
            failed_later: false,
            waker: None,
        }));
        self.synced()
    }

    /// Goes on with the synchronize that closed the epoch.
    pub(crate) fn synced(&mut self) -> Synced {
        match &self.closing {
            Some(closing) if closing.epoch.unfinished == 0 => {
                let summary = closing.epoch.summary;
                self.closing = None;
                // A failure outside of the epoch is not reported yet.
                if self.current.summary.first_failure.is_none() {
                    self.skip_above = None;
                }
                Poll::Ready(Ok(summary))
            }
            _ => Poll::Pending,
        }
    }

    /// Whether a synchronize would have to wait, if none is under way.
    pub(super) fn has_to_wait(&self) -> bool {
        self.closing.is_none() && self.current.unfinished > 0
    }

    /// Whether a synchronize waits, and is not done.
    pub(super) fn is_synchronizing(&self) -> bool {
        let closing = self.closing.as_ref();
        closing.is_some_and(|c| c.epoch.unfinished > 0)
    }

    pub(super) fn sync_waker(&mut self) -> Option<&mut Option<Waker>> {
        self.closing.as_mut().map(|closing| &mut closing.waker)
    }

    /// The synchronize was dropped: its epoch merges into the next.
    #[must_use]
    pub(crate) fn reopen_epoch(&mut self) -> Option<Waker> {
        let closing = self.closing.take()?;
        self.current.unfinished += closing.epoch.unfinished;
        self.current.waiting += closing.epoch.waiting;
        let mut earlier = closing.epoch.summary;
        if closing.failed_later {
            earlier.first_failure = None;
        }
        let later = std::mem::replace(&mut self.current.summary, earlier);
        self.current.summary += later;
        closing.waker
    }
}
