//! Claims: how workers take tasks from the backlog, and how unstarted ones go back.

use std::collections::VecDeque;
use std::time::Duration;

use crate::backlog::{Several, Spot};
use crate::lanes::LaneKey;
use crate::slab::Key;

use super::caller::CallerState;
use super::core::Core;
use super::outcome::{Ending, TaskId};
use super::task_state::{Body, Claimed, Phase, Waiting};

impl<J: Body> Core<J> {
    /// Claims tasks into `to`: at most `turns` that could start now, and those that follow one of
    /// these in its serial group, at most `most` in all. Returns how many could start, and how many
    /// there are in all.
    #[inline]
    pub(super) fn prefetch(
        &mut self,
        turns: usize,
        most: usize,
        to: &mut VecDeque<Claimed<J>>,
    ) -> (usize, usize) {
        let several = most > 1 && !self.records;
        if several && let Some((several, turns)) = self.claim_several(turns, most) {
            let taken = several.len();
            to.push_back(Claimed::Several(several));
            return (turns, taken);
        }
        let Some(one) = self.claim_one() else {
            return (0, 0);
        };
        let behind = self.claim_behind(&one, most - 1);
        to.push_back(one);
        let taken = behind.as_ref().map_or(0, Claimed::len);
        to.extend(behind);
        (1, 1 + taken)
    }

    /// Claims the next task that can start.
    #[inline]
    pub(super) fn claim_one(&mut self) -> Option<Claimed<J>> {
        let mut claim = self.backlog.claim()?;
        if claim.item.is_new_future() {
            self.enter(&mut claim.item, claim.holds);
        }
        let caller = self.caller_of(claim.holds.lane);
        self.taken(&claim.item, caller);
        let record = self.record(&claim.item, claim.holds, Ending::Ok, Duration::ZERO);
        Some(Claimed::One(Some(claim), record))
    }

    /// Takes the tasks that follow it in its serial group, if it is no future.
    #[inline]
    fn claim_behind(&mut self, one: &Claimed<J>, most: usize) -> Option<Claimed<J>> {
        let Claimed::One(Some(claim), None) = one else {
            return None;
        };
        let (task, holds) = (&claim.item, claim.holds);
        let alone = most == 0 || task.is_future() || self.pressing;
        if alone || !self.backlog.has_behind(holds) {
            return None;
        }
        let caller = self.caller_of(holds.lane);
        let (most, goes) = goes_with(self.caller(caller), task.id(), most);
        let goes = |task: &Waiting<J>| goes(task) && !task.is_future();
        let lent = self.backlog.lend(holds, most, goes);
        self.all_taken(caller, lent.iter().next(), lent.len());
        Some(Claimed::Several(lent)).filter(|lent| lent.len() > 0)
    }

    /// Claims several tasks without groups, or of serial groups: at most `turns` that could start,
    /// and at most `most` in all. Also returns how many could start.
    #[inline]
    fn claim_several(&mut self, turns: usize, most: usize) -> Option<(Several<Waiting<J>>, usize)> {
        let (callers, by_lane) = (&self.callers, &self.by_lane);
        let of = |lane: LaneKey| {
            let caller = callers.get(by_lane[lane.index() as usize]);
            caller.expect("its tasks wait")
        };
        let limits = |lane, first: &Waiting<J>, most| goes_with(of(lane), first.id(), most);
        // Whether there may be a future among them.
        let mut futures = false;
        // The new tasks of a caller and its woken futures; no other caller waits for a turn.
        let pair = self.backlog.pair();
        let together = pair.is_some_and(|(a, b)| self.caller_of(a) == self.caller_of(b));
        let alone = turns.min(most);
        let run = self.backlog.claim_run(together, |lane, first, mark| {
            futures = mark;
            let (most, goes) = limits(lane, first, alone);
            // Without a synchronize all of them go.
            let closes = of(lane).closed() != TaskId::default();
            (most, closes.then_some(goes))
        });
        let (mut several, turns) = match run {
            Some(run) => {
                let taken = run.len();
                (run, taken)
            }
            None => self.backlog.claim_groups(turns, |lane, first| {
                let (most, goes) = limits(lane, first, most);
                (most, move |task: &_| goes(task) && !task.is_future())
            })?,
        };
        let caller = self.caller_of(several.holds().lane);
        self.all_taken(caller, several.iter().next(), several.len());
        if futures {
            self.futures_taken(&mut several);
        }
        Some((several, turns))
    }

    /// Notes that a worker has the futures among these tasks.
    fn futures_taken(&mut self, several: &mut Several<Waiting<J>>) {
        let holds = several.holds();
        for task in several.iter_mut().filter(|task| task.is_future()) {
            match task.future() {
                Some(future) => self.future_mut(future).phase = Phase::Claimed(false),
                None => self.enter(task, holds),
            }
        }
    }

    /// Notes that a worker has these tasks, which are of one epoch.
    #[inline]
    fn all_taken(&mut self, caller: Key, first: Option<&Waiting<J>>, tasks: usize) {
        let c = self.callers.get_mut(caller).expect("it has tasks");
        if let Some(first) = first {
            self.pressing |= c.taken(first.id(), tasks);
        }
    }

    /// Takes a claim back: unstarted tasks wait again where they waited.
    pub(super) fn unclaim(&mut self, claimed: Claimed<J>) {
        match claimed {
            Claimed::One(None, _) => {}
            Claimed::One(Some(claim), _) => {
                self.returned(claim.holds.lane, Some(&claim.item), 1);
                self.waits_again(&claim.item, claim.spot());
                self.backlog.unclaim(claim);
            }
            Claimed::Several(several) => {
                let lane = several.holds().lane;
                self.returned(lane, several.iter().next(), several.len());
                several
                    .spots()
                    .for_each(|(spot, task)| self.waits_again(task, spot));
                self.backlog.give_back(several);
            }
        }
    }

    fn returned(&mut self, lane: LaneKey, first: Option<&Waiting<J>>, tasks: usize) {
        let id = first.expect("some have not begun").id();
        let caller = self.caller_of(lane);
        self.caller_mut(caller).returned(id, tasks);
    }

    fn waits_again(&mut self, task: &Waiting<J>, spot: Spot) {
        if let Some(future) = task.future() {
            self.future_mut(future).phase = Phase::InLine(spot);
        }
    }

    /// Whether the caller, if it still exists, has work in a lower tier than the open one.
    pub(super) fn is_undercut(&self, caller: Key) -> bool {
        let caller = self.callers.get(caller);
        caller.is_some_and(|caller| self.backlog.lane(caller.lane).drains())
    }
}

/// How many tasks may be claimed together with this one, and which: either a synchronize covers all
/// of them or none, and there is none behind the last one that somebody waits for.
#[inline]
fn goes_with<J: Body>(
    caller: &CallerState,
    task: TaskId,
    most: usize,
) -> (usize, impl Fn(&Waiting<J>) -> bool + use<J>) {
    let (awaited, closed) = caller.awaited();
    let covered = task <= closed;
    let most = awaited.map_or(most, |awaited| most.min(awaited));
    (most, move |other: &Waiting<J>| {
        (other.id() <= closed) == covered
    })
}
