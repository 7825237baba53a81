//! Tasks that wait: how they start, are found, bumped, cancelled or skipped.

use std::time::Duration;

use crate::backlog::{GroupKey, InFlight};
use crate::error::Stale;
use crate::lanes::LaneKey;
use crate::slab::Key;
use crate::sync::Arc;

use super::core::Core;
use super::log::{Record, TaskInfo};
use super::outcome::{Ending, TaskId};
use super::task_state::{
    Body, Ended, Later, Location, Phase, Placing, Running, Started, Tag, TaskKey, Waiting,
    of_worker,
};
use super::tokens::CancelToken;

impl<J: Body> Core<J> {
    /// Worker `n` looks for work, and starts one task.
    pub(crate) fn claim(&mut self, n: u32, now: Duration) -> Option<Started<J>> {
        let (started, ..) = self.look(n).then(|| self.claim_one())??.pop(now)?;
        self.workers.claimed(n);
        self.set_running(n, Some(started.running()));
        Some(started)
    }

    /// Notes what worker `n` runs, as far as the core knows.
    #[inline]
    pub(super) fn set_running(&mut self, n: u32, running: Option<Running>) {
        *of_worker(&mut self.running, n) = running;
    }

    /// The record of a task that holds these units, or would, and ends so; with its run, if it is a
    /// future that has begun. `None` without a log.
    #[inline]
    pub(super) fn record(
        &self,
        task: &Waiting<J>,
        holds: InFlight,
        ending: Ending,
        ended: Duration,
    ) -> Option<Box<Record>> {
        self.records.then(|| {
            let (label, queued) = (task.job.label(), self.queued_of(task));
            let holds = self.holds_of(task.future(), holds);
            Box::new(Record {
                task: self.info(task.id(), label, holds, queued),
                run: self.run_of(task, ended),
                ended,
                ending,
            })
        })
    }

    /// A task as the log knows it; it holds these units, or would.
    pub(super) fn info(
        &self,
        id: TaskId,
        label: Option<&Arc<str>>,
        holds: InFlight,
        queued: Duration,
    ) -> TaskInfo {
        TaskInfo {
            id,
            caller: Arc::clone(&self.caller(self.caller_of(holds.lane)).name),
            label: label.cloned(),
            tier: holds.tier,
            group: holds.group.map(|group| self.name_of(group)),
            queued,
        }
    }

    /// The units that a task of this place would hold.
    pub(super) fn would_hold(&self, caller: Key, placing: &Placing) -> InFlight {
        InFlight {
            lane: self.caller(caller).lane,
            group: placing.group,
            tier: placing.tier.unwrap_or(0),
        }
    }

    /// Notes that a worker has the task, or that it ends unrun.
    #[inline]
    pub(super) fn taken(&mut self, task: &Waiting<J>, caller: Key) {
        self.pressing |= self.caller_mut(caller).taken(task.id(), 1);
        if let Some(future) = task.future() {
            self.future_mut(future).phase = Phase::Claimed(false);
        }
    }

    /// The tasks without a worker that `is_meant` selects, by number: of this caller, or of all. As
    /// many steps as [`each_waiting`](Self::each_waiting).
    pub(crate) fn find_waiting(
        &self,
        of: Option<Key>,
        is_meant: impl Fn(&Waiting<J>, InFlight) -> bool,
    ) -> Vec<Location> {
        let mut these = Vec::new();
        self.each_waiting(of, |task, holds, at| {
            these.extend(is_meant(task, holds).then_some((task.id(), at)));
        });
        by_number(these)
    }

    /// The tasks of a group that are not in line in it: those that are not due, and futures that
    /// await or were woken; by number.
    ///
    /// Cost: O(all tasks that are not due, and the caller's woken futures); if any future awaits,
    /// also O(all futures).
    pub(super) fn find_out_of_line(&self, group: GroupKey) -> Vec<Location> {
        let lane = self.backlog.lane_of(group);
        // A handle of the group may outlive the caller.
        let caller = lane.and_then(|lane| self.callers.get(self.caller_of(lane)));
        let woken = caller.and_then(|c| c.woken_lane).into_iter();
        let woken = woken.flat_map(|lane| self.in_line(lane));
        let these = woken.chain(self.elsewhere());
        let these = these.filter(|(_, holds, _)| holds.group == Some(group));
        by_number(these.map(|(task, _, at)| (task.id(), at)).collect())
    }

    /// Calls `visit` with each task without a worker, of this caller or of all, in no order; and
    /// with the units that it holds or would hold, and where it is.
    ///
    /// Cost: O(the caller's groups and waiting tasks); if any of these is not due or awaits, also
    /// O(all tasks that are not due); and if any awaits, also O(all futures).
    pub(super) fn each_waiting(
        &self,
        of: Option<Key>,
        mut visit: impl FnMut(&Waiting<J>, InFlight, Location),
    ) {
        let one = of.and_then(|caller| self.callers.get(caller));
        let all = of.is_none().then(|| self.callers.iter().map(|(_, c)| c));
        let mut left = 0;
        for c in one.into_iter().chain(all.into_iter().flatten()) {
            left += c.waiting();
            for lane in [Some(c.lane), c.woken_lane].into_iter().flatten() {
                for (task, holds, at) in self.in_line(lane) {
                    left -= 1;
                    visit(task, holds, at);
                }
            }
        }
        let is_right = |lane| of.is_none_or(|of| of == self.caller_of(lane));
        let others = self
            .elsewhere()
            .filter(|(_, holds, _)| is_right(holds.lane));
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        for (task, holds, at) in others.take(left) {
            visit(task, holds, at);
        }
    }

    /// The tasks in a lane.
    fn in_line(&self, lane: LaneKey) -> impl Iterator<Item = (&Waiting<J>, InFlight, Location)> {
        self.backlog.waiting_in(lane).map(|(spot, holds, task)| {
            let future = task.future();
            let at = future.map_or(Location::Backlog(spot), Location::Future);
            (task, self.holds_of(future, holds), at)
        })
    }

    /// The tasks that are not due, and the futures that await.
    fn elsewhere(&self) -> impl Iterator<Item = (&Waiting<J>, InFlight, Location)> {
        let timers = self.clock.timers.iter().map(|(timer, later)| {
            let holds = self.would_hold(later.caller, &later.placing);
            (&later.task, holds, Location::Later(timer))
        });
        let futures = self.futures.iter();
        let awaits = futures.filter_map(|(key, future)| match &future.phase {
            Phase::Suspended(task) => Some((task, future.holds, Location::Future(key))),
            _ => None,
        });
        // As many await, or fewer.
        let most = usize::try_from(self.suspended).unwrap_or(usize::MAX);
        timers.chain(awaits.take(most))
    }

    /// Skips the caller's waiting tasks of too high a tier.
    pub(super) fn skip(&mut self, caller: Key, now: Duration) {
        let c = self.caller(caller);
        for at in self.find_waiting(Some(caller), |_, holds| c.skips(holds.tier)) {
            self.withdraw(at, Ending::Skipped, now);
        }
    }

    /// Cancels the task that waits there; false if it does not.
    pub(crate) fn cancel(&mut self, at: Location, now: Duration) -> bool {
        self.withdraw(at, Ending::Cancelled, now)
    }

    /// The token of a task that worker `n` runs.
    pub(super) fn token(&mut self, TaskKey { id, future }: TaskKey, n: u32) -> &CancelToken {
        let Some(future) = future else {
            let (task, token) = of_worker(&mut self.tokens, n);
            if std::mem::replace(task, id) != id {
                *token = CancelToken::default();
            }
            return token;
        };
        let token = &mut self.future_mut(future).token;
        token.get_or_insert_default()
    }

    /// Sets the tokens of the running tasks that `is_meant` selects.
    pub(crate) fn cancel_running(&mut self, is_meant: impl Fn(&Self, Tag) -> bool) {
        for n in 0..self.running.len() as u32 {
            let tag = self.running[n as usize].as_ref().map(|running| running.tag);
            if let Some(tag) = tag.filter(|&tag| is_meant(self, tag)) {
                self.token(tag.key(), n).cancel();
            }
        }
    }

    /// Bumps the group of an unfinished task; without a group, the task itself while it waits; and
    /// a future that has begun, for its next poll.
    pub(crate) fn bump(&mut self, at: Location, level: u8) -> Result<(), Stale> {
        let (group, bump) = match at {
            Location::Backlog(spot) => {
                self.backlog.bump_at(spot, level);
                return Ok(());
            }
            Location::Later(timer) => {
                let later = self.clock.timers.get_mut(timer).ok_or(Stale)?;
                (later.placing.group, &mut later.placing.bump)
            }
            Location::Future(future) => {
                let future = self.futures.get_mut(future).ok_or(Stale)?;
                if let Phase::InLine(spot) = &mut future.phase {
                    *spot = self.backlog.bump_at(*spot, level).unwrap_or(*spot);
                    return Ok(());
                }
                // A worker polls it, perhaps for the first time.
                let is_polled = matches!(future.phase, Phase::Claimed(_));
                let begun = is_polled || future.begun.is_some();
                (future.holds.group.filter(|_| !begun), &mut future.bump)
            }
        };
        match group {
            Some(group) => _ = self.backlog.bump(group, level),
            None => *bump = Some(level),
        }
        Ok(())
    }

    /// Ends the task that waits there without a worker; false if it does not. It counts once it is
    /// [dropped](Self::dropped).
    pub(super) fn withdraw(&mut self, at: Location, ending: Ending, now: Duration) -> bool {
        let Some((task, holds)) = self.take_out(at) else {
            return false;
        };
        let (holds, run) = (self.holds_of(task.future(), holds), self.run_of(&task, now));
        let caller = self.caller_of(holds.lane);
        // A future that has begun is not skipped.
        let ending = run.map_or(ending, |_| Ending::Cancelled);
        let record = self.record(&task, holds, ending, now);
        self.taken(&task, caller);
        let tag = Tag::of(&task, holds);
        if let Some(future) = tag.future.filter(|_| run.is_some()) {
            let future = self.future_mut(future);
            future.phase = Phase::Withdrawn;
            future.token.iter().for_each(CancelToken::cancel);
            self.suspended += 1;
        }
        self.underway += 1;
        self.todo.ended.push(Ended {
            tag,
            job: task.job,
            ending,
            run,
            record,
        });
        true
    }

    /// Takes a task out of where it waits, with the units that it would have held.
    pub(super) fn take_out(&mut self, at: Location) -> Option<(Waiting<J>, InFlight)> {
        let spot = match at {
            Location::Backlog(spot) => spot,
            Location::Later(timer) => {
                let Later {
                    task,
                    caller,
                    placing,
                } = self.clock.timers.cancel(timer)?;
                let pinned = placing.group.into_iter();
                pinned.for_each(|group| self.backlog.unpin(group));
                return Some((task, self.would_hold(caller, &placing)));
            }
            Location::Future(future) => {
                let future = self.futures.get_mut(future)?;
                match std::mem::replace(&mut future.phase, Phase::Withdrawn) {
                    Phase::InLine(spot) => spot,
                    Phase::Suspended(task) => {
                        self.suspended -= 1;
                        return Some((task, future.holds));
                    }
                    other => {
                        future.phase = other;
                        return None;
                    }
                }
            }
        };
        self.backlog.take_out(spot)
    }
}

/// The places of tasks, by number.
fn by_number(mut these: Vec<(TaskId, Location)>) -> Vec<Location> {
    these.sort_unstable_by_key(|&(id, _)| id);
    these.into_iter().map(|(_, at)| at).collect()
}
