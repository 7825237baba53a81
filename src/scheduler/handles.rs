//! The handles of a caller and of its groups.

use std::convert::identity;
use std::fmt;
use std::time::Duration;

use crate::backlog::GroupKey;
use crate::error::{OutOfRange, Stale, Stalled};
use crate::limit::Limit;
use crate::queue::Capacity;
use crate::shown::shows;
use crate::slab::Key;
use crate::sync::{Arc, AtomicBool};
use crate::trace;
use crate::wait::{Op, Wait, WakeBatch};

use super::core::How;
use super::log::GroupId;
use super::posting::LastPosted;
use super::reject::SyncError;
use super::shared::Shared;
use super::state::State;
use super::summary::Summary;
use super::task::Task;
use super::task_state::Placing;
use super::waits::{Drained, Synchronize};

/// Where and when a task runs: its tier, group, bump, delay and label.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    pub(crate) placing: Placing,
    pub(super) group: Option<&'a Group>,
    pub(crate) label: Option<&'a str>,
}

impl<'a> Place<'a> {
    /// The label, shared by the tasks of a batch.
    #[inline]
    pub(super) fn shared_label(&self) -> Option<Arc<str>> {
        self.label.map(Arc::from)
    }

    /// Tier 0 (or the group's last), a group of its own, no bump.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// In this tier. With t tiers of the caller outstanding, one that comes or goes between others
    /// moves up to t / 2 entries of 16 bytes, under the scheduler's lock.
    #[must_use]
    pub fn tier(mut self, tier: u32) -> Self {
        self.placing.tier = Some(tier);
        self
    }

    /// In this group, which is of the same caller.
    #[must_use]
    pub fn group(mut self, group: &'a Group) -> Self {
        (self.group, self.placing.group) = (Some(group), Some(group.0.id.key));
        self
    }

    /// Bumps the task's group to this level on arrival. The bump belongs to the group: it
    /// serves the group's next task, whichever that is, even if this task is cancelled.
    ///
    /// So for a task without a group it is the task's own priority. A bump to any level, even 0,
    /// goes ahead of all that is not bumped. The [bypass](super::Builder::bypass) bounds it.
    #[must_use]
    pub fn bump(mut self, level: u8) -> Self {
        self.placing.bump = Some(level);
        self
    }

    /// With this label, for people to read in the log and in the [status](super::Status). Costs
    /// one block of memory, also for a whole batch.
    #[must_use]
    pub fn label(self, label: &'a str) -> Self {
        let label = Some(label);
        Self { label, ..self }
    }

    /// Starts no sooner than this long after its submission. Until then the task has no place in
    /// its group and opens no tier; only its caller's capacity counts it. Then it arrives like a
    /// task that is submitted at that moment; if the last task of its group came in a higher tier,
    /// and the group has unfinished tasks by then, it goes into that tier.
    ///
    /// [`synchronize`](Caller::synchronize) covers the task from its submission on, and a
    /// release or shutdown that drains waits for it. It can be cancelled at any time.
    ///
    /// While tasks are not due, one worker rests until the next date, also beyond the idle time,
    /// and also if the scheduler is dropped. Nothing polls.
    ///
    /// On a [`Pool`](super::Pool) no worker rests, so something else must keep the time: a
    /// [`Ticker`](crate::ticker::Ticker), or calls of
    /// [`Scheduler::advance`](super::Scheduler::advance), of which there must have been one.
    /// Otherwise the task is refused with [`Reason::NoTicker`](super::Reason::NoTicker). If the
    /// ticker ends first, the task starts with the next ticker, or at the next submission or end of
    /// a task after its date. A scheduler that is shut down or dropped before that, while nothing
    /// keeps the time, cancels the task; a dropped scheduler does not wait for calls of `advance`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use conversant::scheduler::{CallerOptions, Place, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().workers(2).build()?;
    /// let caller = scheduler.caller("retry", CallerOptions::default())?;
    /// let delay = Duration::from_millis(5);
    /// let again = || Ok::<_, String>("again");
    /// let mut task = caller.exec_with(Place::new().after(delay), again)?;
    /// let outcome = task.outcome().wait()?;
    /// assert!(outcome.run.is_some_and(|run| run.start >= outcome.queued + delay));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn after(mut self, after: Duration) -> Self {
        self.placing.after = after;
        self
    }
}

/// Submits tasks and waits for them.
///
/// A clone is another handle of the same caller. Dropping the last handle releases the caller: it
/// takes no more tasks, and those that it has are still done. But with a cap of 0, which nobody can
/// change then, those that have not begun are cancelled.
#[derive(Clone)]
#[must_use = "dropping the last handle releases the caller"]
pub struct Caller(pub(super) Arc<Registration>);

/// Shared by all handles of a caller.
pub(super) struct Registration {
    pub(super) shared: Arc<Shared>,
    pub(super) key: Key,
    pub(super) capacity: Arc<Capacity>,
    pub(super) may_post: Arc<AtomicBool>,
}

impl Caller {
    /// Makes a group of tasks of this caller. At most `limit` of them run at once (1, or
    /// [`Limit::SERIAL`], for one after the other). They start in the order of submission; with a
    /// limit above 1 see [`Builder::claims`](super::Builder::claims). `level` is the group's
    /// standing level among the caller's groups: 255 is served first; see
    /// [`DEFAULT_LEVEL`](crate::limit::DEFAULT_LEVEL).
    ///
    /// Within a group no task overtakes another. For a pool of a few places whose most urgent task
    /// goes first, make a caller with that cap, and [bump](Place::bump) each task.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for a limit above [`Limit::MAX`].
    pub fn group(&self, limit: impl Into<Limit>, level: u8) -> Result<Group, OutOfRange> {
        let mut state = self.0.shared.lock();
        let key = state.core.add_group(self.0.key, limit.into(), level)?;
        let id = state.core.name_of(key);
        drop(state);
        let posted = Some(LastPosted::default());
        Ok(Group::new(&self.0.shared, self.0.key, id, posted))
    }

    /// Waits for all tasks that this caller has submitted since its last successful synchronize,
    /// up to the first poll of this one; later tasks are not waited for. If the wait is dropped or
    /// times out, the next synchronize covers its tasks. If a pending wait is forgotten
    /// ([`std::mem::forget`]), every later synchronize of the caller is refused as busy.
    ///
    /// # Errors
    ///
    /// [`SyncError`]: nothing is outstanding, another synchronize is under way, or the scheduler
    /// is stalled.
    pub fn synchronize(&self) -> Wait<impl Op<Output = Result<Summary, SyncError>>> {
        Wait::new(Synchronize::new(&self.0.shared, self.0.key, false))
    }

    /// Like [`synchronize`](Self::synchronize), but gives an empty summary if nothing is
    /// outstanding. So it tells when all is done, if tasks submit tasks before they end:
    ///
    /// ```
    /// # use conversant::prelude::*;
    /// # let scheduler = Scheduler::builder().workers(2).build()?;
    /// let build = scheduler.caller("build", CallerOptions::default())?;
    /// let link = build.clone();
    /// build.exec(move || link.exec(|| ()).map(Task::detach))?.detach();
    /// let mut done = 0;
    /// loop {
    ///     match build.synchronize_all().wait()?.tasks {
    ///         0 => break,
    ///         more => done += more,
    ///     }
    /// }
    /// assert_eq!(done, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Like [`synchronize`](Self::synchronize), except
    /// [`NothingOutstanding`](SyncError::NothingOutstanding).
    pub fn synchronize_all(&self) -> Wait<impl Op<Output = Result<Summary, SyncError>>> {
        Wait::new(Synchronize::new(&self.0.shared, self.0.key, true))
    }

    /// Takes no more tasks, and waits until those that the caller has have ended. With
    /// [`How::Cancel`] it cancels the tasks that have not started. Gives the summary of all tasks
    /// that no synchronize has covered. A second release, also while the first waits, gives the
    /// same, unless a synchronize ends or is dropped in between; with `Cancel` it cancels what a
    /// drain waits for. Tasks that a limit or cap of 0 pauses are waited for until they go on or
    /// are cancelled.
    ///
    /// Cancel safe: a dropped wait only stops waiting. The release begins with its first poll, and
    /// goes on.
    ///
    /// # Errors
    ///
    /// [`Stalled`], as for [`Task::outcome`].
    pub fn release(&self, how: How) -> Wait<impl Op<Output = Result<Summary, Stalled>>> {
        let of = Some(self.0.key);
        Wait::new(Drained::new(&self.0.shared, of, how, identity))
    }

    /// Cancels the caller's tasks that have not started, and its futures that await. A future that
    /// is being polled is cancelled at its next await, and a function that runs may ask whether it
    /// [is cancelled](super::is_cancelled). Tasks that are submitted later run. The handles of
    /// cancelled tasks, and the next [`synchronize`](Self::synchronize), report them.
    ///
    /// Cost: O(groups and waiting tasks of the caller); if some of these are not due or await, also
    /// O(all callers' tasks that are not due, and their futures). It takes the scheduler's lock
    /// once, and then once for each task that it drops.
    pub fn cancel_all(&self) {
        self.0.shared.with_state(|state, wakes, now| {
            state.exact(wakes).cancel_all(Some(self.0.key), now);
        });
    }

    /// Bumps the group of a task; if the task is a future that has begun, bumps its next poll.
    ///
    /// # Errors
    ///
    /// [`Stale`] if the task has ended, or is of another scheduler.
    pub fn bump<R, E>(&self, task: &Task<R, E>, level: u8) -> Result<(), Stale> {
        match Arc::ptr_eq(&task.shared, &self.0.shared) {
            true => task.bump(level),
            false => Err(Stale),
        }
    }

    /// How many unfinished tasks the caller may have. See
    /// [`capacity`](super::CallerOptions::capacity).
    #[must_use]
    pub fn capacity(&self) -> Limit {
        self.0.capacity.limit()
    }

    /// How many more tasks the caller takes now, if it has a capacity. An ending counts once it is
    /// reported; workers report several at once if nobody waits for them. The result may be out
    /// of date when it is returned.
    #[must_use]
    pub fn room(&self) -> Option<i64> {
        self.0.capacity.available()
    }

    /// Changes the cap; 0 is a pause. A lower cap leaves a debt, which endings pay.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for a limit above [`Limit::MAX`].
    pub fn set_cap(&self, cap: impl Into<Limit>) -> Result<(), OutOfRange> {
        let (key, cap) = (self.0.key, cap.into());
        self.0
            .shared
            .with_state(|state, wakes, _| state.exact(wakes).set_cap(key, cap))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let key = self.key;
        self.shared
            .with_state(|state, _, now| state.core.remove_handles(key, now));
    }
}

shows! {
    /// With its name, unless somebody has the scheduler's lock.
    Caller, |this|;
    if name: {
        let state = this.0.shared.try_lock();
        state.map(|state| Arc::clone(&state.core.caller(this.0.key).name))
    }
}

/// A handle of a group of tasks. A clone is another handle of the same group; a drop leaves the
/// group's tasks as they are.
#[derive(Clone)]
#[must_use = "a group ends with its last handle and task"]
pub struct Group(pub(super) Arc<Pinned>);

/// Shared by all handles of a group.
pub(super) struct Pinned {
    pub(super) shared: Arc<Shared>,
    pub(super) caller: Key,
    pub(super) id: GroupId,
    /// `None` in a handle that was found by its id: its tasks are not posted, since the posted
    /// ones go by the first handle's.
    pub(super) posted: Option<LastPosted>,
}

impl Group {
    fn new(shared: &Arc<Shared>, caller: Key, id: GroupId, posted: Option<LastPosted>) -> Self {
        let shared = Arc::clone(shared);
        Self(Arc::new(Pinned {
            shared,
            caller,
            id,
            posted,
        }))
    }

    /// The group with this id.
    pub(super) fn find(shared: &Arc<Shared>, id: GroupId) -> Result<Self, Stale> {
        let caller = shared.lock().core.pin(id)?;
        Ok(Self::new(shared, caller, id, None))
    }

    fn with<R>(&self, f: impl FnOnce(&mut State, &mut WakeBatch, GroupKey) -> R) -> R {
        let Pinned { shared, id, .. } = &*self.0;
        shared.with_state(|state, wakes, _| f(state, wakes, id.key))
    }

    /// Bumps the group's next task ahead of all groups of the caller that are not bumped. The
    /// bump is used up when that task starts.
    pub fn bump(&self, level: u8) {
        // Claimed tasks go back first: one of them may be the group's next task.
        self.with(|state, wakes, key| state.exact(wakes).backlog.bump(key, level));
        trace::tasks_bumped(&self.id(), level);
    }

    /// Cancels the group's tasks, as [`Caller::cancel_all`] does those of a caller. A task whose
    /// submission has not returned may count as submitted later.
    ///
    /// Cost: O(waiting tasks of the group, woken futures of its caller, and all tasks that are not
    /// due); if a future awaits, also O(all futures). It takes the lock as that does.
    pub fn cancel_all(&self) {
        let Pinned { shared, id, .. } = &*self.0;
        shared.with_state(|state, wakes, now| state.exact(wakes).cancel_group(id.key, now));
    }

    /// The group's id, as in the [log](super::Builder::log) and in the [status](super::Status).
    /// [`Scheduler::group`](super::Scheduler::group) finds the group by it.
    #[must_use]
    pub fn id(&self) -> GroupId {
        self.0.id
    }

    /// Changes the standing level.
    pub fn set_level(&self, level: u8) {
        self.with(|state, _, key| state.core.backlog.set_level(key, level));
    }

    /// Changes the limit; 0 is a pause. A lower limit leaves a debt, which endings pay.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for a limit above [`Limit::MAX`].
    pub fn set_limit(&self, limit: impl Into<Limit>) -> Result<(), OutOfRange> {
        let limit = limit.into();
        let set = self.with(|state, wakes, key| state.exact(wakes).backlog.set_limit(key, limit));
        set.unwrap_or(Ok(()))?;
        if limit == Limit::AtMost(0) {
            trace::tasks_paused(&self.id());
        }
        Ok(())
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let key = self.id.key;
        self.shared.with_state(|state, _, now| {
            state.core.backlog.unpin(key);
            state.core.forget_places();
            state.core.cancel_paused(&[key], now);
        });
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Group").field(&self.0.id).finish()
    }
}
