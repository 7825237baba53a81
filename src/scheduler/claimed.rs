//! Tasks that a worker has prefetched: how they leave the line, and go back to it.

use crate::slab::Key;

use crate::lanes::LaneKey;

use super::caller::CallerState;
use super::core::Core;
use super::outcome::{Ending, TaskId};
use super::task_state::{Body, Claimed, Phase, Waiting};

impl<J: Body> Core<J> {
    /// More for a worker that runs one already: at most so many.
    #[inline]
    pub(super) fn prefetch(&mut self, most: usize) -> Option<Claimed<J>> {
        if !self.may_start() {
            return None;
        }
        match self.rows {
            true => self.prefetch_logged(),
            false => self.prefetch_unlogged(most),
        }
    }

    #[inline]
    fn prefetch_unlogged(&mut self, most: usize) -> Option<Claimed<J>> {
        let (callers, by_lane) = (&self.callers, &self.by_lane);
        let limits = |lane: LaneKey| {
            let caller = callers.get(by_lane[lane.index() as usize]);
            let (awaited, closed) = caller.map_or((None, TaskId(0)), CallerState::awaited);
            (awaited.map_or(most, |awaited| most.min(awaited)), closed)
        };
        // Of several a synchronize covers all or none, and behind the last that somebody
        // waits for there is none.
        let run = self.backlog.claim_run(|lane, first| {
            let (most, closed) = limits(lane);
            let covered = first.id() <= closed;
            (most, move |task: &Waiting<J>| {
                (task.id() <= closed) == covered
            })
        });
        if let Some(mut run) = run {
            let (caller, holds) = (self.caller_of(run.lane), run.holds());
            self.all_taken(caller, run.iter().map(Waiting::id));
            let futures = run.iter_mut().filter(|task| task.is_new_future());
            futures.for_each(|task| self.enter(task, holds));
            return Some(Claimed::Run(run));
        }
        let mut claim = self.backlog.claim()?;
        let (lane, first) = (claim.lane, &claim.item);
        if claim.group.is_none() || first.is_future() {
            self.claimed(&mut claim);
            return Some(Claimed::One(claim, None));
        }
        let (most, closed) = limits(lane);
        let covered = first.id() <= closed;
        let goes = |task: &Waiting<J>| (task.id() <= closed) == covered && !task.is_future();
        let lent = self.backlog.lend(claim, most.saturating_sub(1), goes);
        match lent {
            Ok(group) => {
                let caller = self.caller_of(lane);
                self.all_taken(caller, group.iter().map(Waiting::id));
                Some(Claimed::Group(Box::new(group)))
            }
            Err(mut claim) => {
                self.claimed(&mut claim);
                Some(Claimed::One(claim, None))
            }
        }
    }

    /// A worker has these tasks, of which it has had none.
    #[inline]
    fn all_taken(&mut self, caller: Key, tasks: impl Iterator<Item = TaskId>) {
        let c = self.callers.get_mut(caller).expect("it has tasks");
        for task in tasks {
            self.pressing |= c.taken(task);
        }
    }

    fn prefetch_logged(&mut self) -> Option<Claimed<J>> {
        let mut claim = self.backlog.claim()?;
        self.claimed(&mut claim);
        let caller = self.caller_of(claim.lane);
        let begun = self.begun_of(&claim.item);
        let tier = begun.map_or(claim.tier, |(tier, _)| tier);
        let record = self.record(&claim.item, caller, tier, Ending::Ok, None);
        Some(Claimed::One(claim, record))
    }

    /// What did not start waits again, where it waited before.
    pub(super) fn unclaim(&mut self, claimed: Claimed<J>) {
        match claimed {
            Claimed::One(claim, _) => {
                let (id, spot) = (claim.item.id(), claim.spot());
                let caller = self.caller_of(claim.lane);
                if let Some(future) = claim.item.future() {
                    self.future_mut(future).phase = Phase::InLine(spot);
                }
                self.backlog.unclaim(claim);
                self.caller_mut(caller).returned(id);
            }
            Claimed::Run(run) => {
                let caller = self.caller_of(run.lane);
                self.all_returned(caller, run.iter().map(Waiting::id));
                for (spot, task) in run.spots() {
                    let future = task.future();
                    let future = future.and_then(|future| self.futures.get_mut(future));
                    future
                        .into_iter()
                        .for_each(|f| f.phase = Phase::InLine(spot));
                }
                self.backlog.unclaim_run(run);
            }
            Claimed::Group(group) => {
                let caller = self.caller_of(group.holds().lane);
                self.all_returned(caller, group.iter().map(Waiting::id));
                self.backlog.give_back(*group);
            }
        }
    }

    fn all_returned(&mut self, caller: Key, tasks: impl Iterator<Item = TaskId>) {
        let c = self.caller_mut(caller);
        tasks.for_each(|task| c.returned(task));
    }

    /// Whether the caller has work in a lower tier than the open one.
    pub(super) fn is_undercut(&self, caller: Key) -> bool {
        self.backlog.lane(self.caller(caller).lane).drains()
    }

    /// Whether workers have all that the caller's synchronize covers.
    pub(super) fn is_all_claimed(&self, caller: Key) -> bool {
        self.caller(caller).is_claimed()
    }
}
