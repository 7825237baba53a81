//! How the core takes a task, and takes it back.

use std::time::Duration;

use crate::backlog::{Backlog, GroupKey};
use crate::error::TierGoesDown;
use crate::lanes::LaneKey;
use crate::slab::Key;
use crate::sync::{Arc, Ordering::Relaxed};
use crate::wait::WakeBatch;

use super::core::Core;
use super::outcome::{Ending, TaskId};
use super::task_state::{Membership, Phase, TaskState};

/// Why a task was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The scheduler or the caller takes no more.
    Closed,
    /// It would wait for itself.
    TierGoesDown(TierGoesDown),
    /// The group is not of this caller.
    ForeignGroup,
}

/// Where a task goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Placing<'a> {
    pub(crate) tier: Option<u32>,
    /// A group of the caller; `None` is one of the task's own.
    pub(crate) group: Option<GroupKey>,
    pub(crate) bump: Option<u8>,
    /// How long it is not to start.
    pub(crate) after: Duration,
    /// What it is called, in records and in the status.
    pub(crate) label: Option<&'a Arc<str>>,
}

impl<J> Core<J> {
    /// Takes a task, as one event; hands the job back if it is refused. One that comes
    /// after a failure in a lower tier is skipped at once.
    pub(crate) fn submit(
        &mut self,
        caller: Key,
        placing: Placing<'_>,
        job: J,
        now: Duration,
    ) -> Result<(Key, TaskId), (Refused, J)> {
        let c = self.callers.get(caller).expect(HELD);
        if self.closed || c.released {
            return Err((Refused::Closed, job));
        }
        if let Some(group) = placing.group
            && let Err(refused) = admissible(&self.backlog, c.lane, group, placing)
        {
            return Err((refused, job));
        }
        let key = self.tasks.reserve();
        match placing.after.is_zero() {
            true => self.place(key, caller, placing, job, now),
            false => self.place_later(key, caller, placing, job, now),
        }
        Ok((key, self.last))
    }

    /// Takes a task that is admissible, as the next.
    #[inline]
    pub(super) fn place(&mut self, key: Key, caller: Key, at: Placing<'_>, job: J, now: Duration) {
        let c = self.callers.get(caller).expect(HELD);
        let sent = Membership::send(&mut self.backlog, c.lane, at.group, at.tier, at.bump, key);
        self.add(key, caller, sent, now, Phase::Waiting(job), at.label);
    }

    /// A task is there, in this phase.
    #[inline]
    pub(super) fn add(
        &mut self,
        key: Key,
        caller: Key,
        place: (Membership, u32),
        now: Duration,
        phase: Phase<J>,
        label: Option<&Arc<str>>,
    ) {
        self.last.0 += 1;
        self.unfinished += 1;
        let tier = place.1;
        let state = TaskState::new(self.last, caller, place, now, phase, label);
        self.tasks.fill(key, state);
        let c = self.callers.get_mut(caller).expect(HELD);
        c.submitted(key);
        if tier > 0 {
            c.may_post.store(false, Relaxed);
        }
        if c.skips(tier) {
            let mut nobody = WakeBatch::new();
            self.withdraw(key, Ending::Skipped, now, &mut nobody);
        }
    }

    /// Takes back a task that waits as if it had never been submitted, but that
    /// its group keeps its tier and bump; `None` if it does not wait any more.
    pub(crate) fn retract(&mut self, key: Key, wakes: &mut WakeBatch) -> Option<J> {
        let state = self.task(key);
        let (id, caller) = (state.id, state.caller);
        if !state.waits() || state.begun().is_some() {
            return None;
        }
        self.leave_backlog(key);
        let job = self.take_out(key, Phase::Between);
        self.tasks.remove(key);
        self.count(caller, id, None, 1, wakes);
        Some(job)
    }
}

/// Whether the group is of this lane, and takes a task that is due in its tier.
fn admissible(
    backlog: &Backlog<Key>,
    lane: LaneKey,
    group: GroupKey,
    placing: Placing<'_>,
) -> Result<(), Refused> {
    if backlog.lane_of(group) != Some(lane) {
        return Err(Refused::ForeignGroup);
    }
    match placing.tier.filter(|_| placing.after.is_zero()) {
        Some(tier) => backlog.admits(group, tier).map_err(Refused::TierGoesDown),
        None => Ok(()),
    }
}

const HELD: &str = "a caller exists while its handle or a task of its does";
