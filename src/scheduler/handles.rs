//! The handles of a caller and of its groups.

use std::convert::identity;
use std::fmt;
use std::time::Duration;

use crate::backlog::GroupKey;
use crate::error::{OutOfRange, Stale, Stalled};
use crate::limit::Limit;
use crate::queue::Capacity;
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

/// Where a task goes, and when: its tier, its group, its bump, its delay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    pub(super) placing: Placing,
    pub(super) group: Option<&'a Group>,
    pub(super) label: Option<&'a str>,
}

impl<'a> Place<'a> {
    /// The label, as tasks have it.
    #[inline]
    pub(super) fn shared_label(&self) -> Option<Arc<str>> {
        self.label.map(Arc::from)
    }

    /// As the core has it.
    pub(crate) fn of(placing: Placing) -> Self {
        let (group, label) = (None, None);
        Self {
            placing,
            group,
            label,
        }
    }

    /// Tier 0 (or the group's last), a group of its own, no bump.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// In this tier.
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

    /// On arrival bumps its group to this level. The bump is the group's: it
    /// serves whichever task of it is next, also if this one is cancelled.
    #[must_use]
    pub fn bump(mut self, level: u8) -> Self {
        self.placing.bump = Some(level);
        self
    }

    /// With this label, for people: it is in the task's row of the log and in the
    /// [status](super::Status). It costs a block of memory, one for a whole batch.
    #[must_use]
    pub fn label(self, label: &'a str) -> Self {
        let label = Some(label);
        Self { label, ..self }
    }

    /// No sooner than so long after its submission. Until then it is absent: it takes
    /// no place in its group, opens no tier, and keeps nobody from anything.
    /// Then it arrives like a task submitted at that moment, behind those submitted
    /// before; if by then its group's last task is in a higher tier it goes there.
    ///
    /// Its caller's [`synchronize`](Caller::synchronize) covers it from its
    /// submission on, and a release or shutdown that drains waits for it: a
    /// scheduler that is dropped keeps a worker until then. It can be cancelled
    /// at any time.
    ///
    /// While tasks are not due, one worker rests until the next one is, beyond
    /// the idle time too; nothing polls.
    ///
    /// On a [`Pool`](super::Pool) no worker rests. There it is taken only while somebody keeps
    /// the time, else refused with [`Reason::NoTicker`](super::Reason::NoTicker): a
    /// [`Ticker`](crate::ticker::Ticker) that lives, or the embedder, once it has called
    /// [`Scheduler::advance`](super::Scheduler::advance). If the ticker ends first the task
    /// waits for another one, or for the next submission or end of a task after its date; but a
    /// scheduler that is shut down or dropped before that, when nobody keeps the time, cancels
    /// it. A dropped one no longer waits for calls of `advance`.
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

/// One who submits tasks, waits for them and lets go.
///
/// A clone is another handle of the same caller. Dropping the last one releases it: it
/// takes no more, and what it submitted is still done.
#[derive(Clone)]
pub struct Caller(pub(super) Arc<Registration>);

/// A caller that stays, as somebody has a handle of it.
pub(super) struct Registration {
    pub(super) shared: Arc<Shared>,
    pub(super) key: Key,
    pub(super) capacity: Arc<Capacity>,
    pub(super) may_post: Arc<AtomicBool>,
}

impl Caller {
    /// A group of tasks of this caller: at most `limit` of them run at once
    /// (serial: [`Limit::SERIAL`]), started in order of submission; if `limit` is above 1,
    /// nearly so, as [`Builder::claims`](super::Builder::claims) says. `level` is its standing
    /// rank among the caller's groups, 255 first, 100 the usual.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for a limit above [`Limit::MAX`].
    pub fn group(&self, limit: impl Into<Limit>, level: u8) -> Result<Group, OutOfRange> {
        let mut state = self.0.shared.state.lock();
        let key = state.core.add_group(self.0.key, limit.into(), level)?;
        let id = state.core.name_of(key);
        drop(state);
        Ok(Group::new(
            &self.0.shared,
            self.0.key,
            id,
            Some(LastPosted::default()),
        ))
    }

    /// Waits for all that this caller has submitted since its last successful
    /// synchronize. The first poll draws the line: later tasks are not waited
    /// for. Dropped or timed out, it counts them towards the next. One that is
    /// forgotten ([`std::mem::forget`]) while it is pending keeps its caller busy for
    /// ever: every later synchronize is refused.
    ///
    /// # Errors
    ///
    /// [`SyncError`]: nothing outstanding, another synchronize under way, or
    /// stalled.
    pub fn synchronize(&self) -> Wait<impl Op<Output = Result<Summary, SyncError>>> {
        Wait::new(Synchronize::new(&self.0.shared, self.0.key, false))
    }

    /// As [`synchronize`](Self::synchronize), where nothing to wait for is no mistake:
    /// then the summary is empty.
    ///
    /// # Errors
    ///
    /// As there, but for [`NothingOutstanding`](SyncError::NothingOutstanding).
    pub fn synchronize_all(&self) -> Wait<impl Op<Output = Result<Summary, SyncError>>> {
        Wait::new(Synchronize::new(&self.0.shared, self.0.key, true))
    }

    /// Takes no more tasks, and waits for those that were taken; with
    /// [`How::Cancel`] those that have not started are cancelled. Gives the
    /// summary of all that no synchronize has covered. Releasing again is
    /// harmless. What a group or cap of 0 pauses is waited for until it goes on
    /// or is cancelled.
    ///
    /// Cancel safe in that a dropped wait gives up its place; the release that
    /// its first poll began stays begun.
    ///
    /// # Errors
    ///
    /// [`Stalled`] as for [`Task::outcome`].
    pub fn release(&self, how: How) -> Wait<impl Op<Output = Result<Summary, Stalled>>> {
        Wait::new(Drained::new(
            &self.0.shared,
            Some(self.0.key),
            how,
            identity,
        ))
    }

    /// Cancels all that it has submitted and that has not started, and its futures
    /// that await; one that is being polled is cancelled when it awaits next. The caller
    /// goes on: what is submitted later runs. The handles of what was cancelled, and the
    /// next [`synchronize`](Self::synchronize), tell of it.
    ///
    /// Cost: O(its groups and waiting tasks), and if some of these are not due or await,
    /// O(all callers' tasks that are not due or await) too. It looks for them under the
    /// scheduler's lock and cancels a few at a time; meanwhile no task of any caller starts.
    pub fn cancel_all(&self) {
        self.0.shared.cancel_all(Some(self.0.key));
    }

    /// Bumps the group of a task; a future that has begun, itself: its next poll.
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

    /// The most of its tasks that have not ended. See
    /// [`capacity`](super::CallerOptions::capacity).
    #[must_use]
    pub fn capacity(&self) -> Limit {
        self.0.capacity.limit()
    }

    /// How many more it takes now, if it has a capacity. An ending counts as soon as it is
    /// reported, and workers report several at once where nobody waits for them. Out of date
    /// when it is returned.
    #[must_use]
    pub fn available_permits(&self) -> Option<i64> {
        self.0.capacity.available()
    }

    /// Changes the cap; lowering it leaves a debt that endings pay, 0 pauses.
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

impl fmt::Debug for Caller {
    /// With its name, if nobody has the scheduler's lock just then.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Caller");
        let state = self.0.shared.state.try_lock();
        if let Some(name) = state.map(|state| Arc::clone(&state.core.caller(self.0.key).name)) {
            out.field("name", &name);
        }
        out.finish_non_exhaustive()
    }
}

/// A group of a caller's tasks. Dropping it leaves its tasks as they are; a clone is another
/// handle of it.
#[derive(Clone)]
pub struct Group(pub(super) Arc<Pinned>);

/// A group that stays, as somebody has a handle of it.
pub(super) struct Pinned {
    pub(super) shared: Arc<Shared>,
    pub(super) caller: Key,
    pub(super) id: GroupId,
    /// `None` for who found it by its name: its tasks are not posted, beside those of the
    /// other row.
    pub(super) row: Option<LastPosted>,
}

impl Group {
    fn new(shared: &Arc<Shared>, caller: Key, id: GroupId, row: Option<LastPosted>) -> Self {
        let shared = Arc::clone(shared);
        Self(Arc::new(Pinned {
            shared,
            caller,
            id,
            row,
        }))
    }

    /// The group of that name.
    pub(super) fn find(shared: &Arc<Shared>, id: GroupId) -> Result<Self, Stale> {
        let caller = shared.state.lock().core.pin(id)?;
        Ok(Self::new(shared, caller, id, None))
    }

    fn with<R>(&self, f: impl FnOnce(&mut State, &mut WakeBatch, GroupKey) -> R) -> R {
        let Pinned { shared, id, .. } = &*self.0;
        shared.with_state(|state, wakes, _| f(state, wakes, id.key))
    }

    /// Bumps its next task ahead of all groups of the caller that are not
    /// bumped; used up when that task starts.
    pub fn bump(&self, level: u8) {
        // What a worker has taken along goes back first: one of these may be its next task.
        self.with(|state, wakes, key| state.exact(wakes).backlog.bump(key, level));
        trace::tasks_bumped(&self.id(), level);
    }

    /// What the [log](super::Builder::log) and the [status](super::Status) call it. By that
    /// [`Scheduler::group`](super::Scheduler::group) finds it.
    #[must_use]
    pub fn id(&self) -> GroupId {
        self.0.id
    }

    /// Changes its standing level.
    pub fn set_level(&self, level: u8) {
        self.with(|state, _, key| state.core.backlog.set_level(key, level));
    }

    /// Changes its limit; lowering it leaves a debt that endings pay, 0 pauses.
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
            state.core.cancel_paused(key, now);
        });
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Group").field(&self.0.id).finish()
    }
}
