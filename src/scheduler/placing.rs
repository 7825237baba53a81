//! How the core takes a task, and takes it back.

use std::time::Duration;

use crate::backlog::{Backlog, GroupKey};
use crate::error::TierGoesDown;
use crate::slab::Key;
use crate::sync::{Arc, Ordering::Relaxed};
use crate::wait::WakeBatch;

use super::clock::Clock;
use super::core::Core;
use super::outcome::Ending;
use super::task_state::{Later, Membership, Phase, TaskState};

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

impl Placing<'_> {
    /// Where a task is until it is due: in no line, and in its group by a pin.
    fn later(
        &self,
        backlog: &mut Backlog<Key>,
        clock: &mut Clock,
        key: Key,
        now: Duration,
    ) -> (Phase, Membership) {
        let membership = match self.group {
            Some(group) => {
                backlog.pin(group);
                Membership::Group(group, 0)
            }
            None => Membership::Absent,
        };
        let timer = clock.set(now.saturating_add(self.after), key);
        let (tier, bump) = (self.tier, self.bump);
        let later = Later { timer, tier, bump };
        (Phase::Later(Box::new(later)), membership)
    }
}

/// What may want to know its key.
pub(crate) trait Keyed {
    fn set_key(&self, _key: Key) {}
}

impl<J: Keyed> Core<J> {
    /// Whether tasks are taken for this place. What refuses one refuses all.
    pub(crate) fn admits(&self, caller: Key, placing: &Placing<'_>) -> Result<(), Refused> {
        let c = self.caller(caller);
        if self.closed || c.released {
            return Err(Refused::Closed);
        }
        let Some(group) = placing.group else {
            return Ok(());
        };
        if self.backlog.lane_of(group) != Some(c.lane) {
            return Err(Refused::ForeignGroup);
        }
        // The tier of a task that is not due is only looked at when it is.
        match placing.tier.filter(|_| placing.after.is_zero()) {
            Some(tier) => self
                .backlog
                .admits(group, tier)
                .map_err(Refused::TierGoesDown),
            None => Ok(()),
        }
    }

    /// Takes a task that is [admitted](Self::admits), as one event. One that comes after a
    /// failure in a lower tier is skipped at once.
    #[inline]
    pub(crate) fn submit(
        &mut self,
        caller: Key,
        placing: Placing<'_>,
        job: J,
        now: Duration,
    ) -> Key {
        let c = self.callers.get_mut(caller).expect(HELD);
        self.last.0 += 1;
        self.unfinished += 1;
        let mut tier = 0;
        let (backlog, clock) = (&mut self.backlog, &mut self.clock);
        let key = self.tasks.insert_with(|key| {
            job.set_key(key);
            let (phase, membership) = match placing.after.is_zero() {
                true => {
                    let (group, bump) = (placing.group, placing.bump);
                    let sent = Membership::send(backlog, c.lane, group, placing.tier, bump, key);
                    tier = sent.1;
                    (Phase::Waiting, sent.0)
                }
                false => {
                    tier = placing.tier.unwrap_or(0);
                    placing.later(backlog, clock, key, now)
                }
            };
            let place = (phase, membership, tier);
            TaskState::new(self.last, caller, job, place, now, placing.label)
        });
        c.submitted();
        if tier > 0 {
            c.may_post.store(false, Relaxed);
        }
        if c.skips(tier) {
            let mut nobody = WakeBatch::new();
            self.withdraw(key, Ending::Skipped, now, &mut nobody);
        }
        key
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
        let job = self.take_out(key, Phase::Withdrawn);
        self.tasks.remove(key);
        self.count(caller, id, None, 1, wakes);
        Some(job)
    }
}

const HELD: &str = "a caller exists while its handle or a task of its does";
