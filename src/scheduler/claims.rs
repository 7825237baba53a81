//! Tasks that a worker has prefetched: how they leave the line, and go back to it.

use std::cell::Cell;
use std::collections::VecDeque;

use crate::backlog::{Several, Spot};
use crate::lanes::LaneKey;
use crate::slab::Key;

use super::caller::CallerState;
use super::core::Core;
use super::outcome::TaskId;
use super::task_state::{Body, Claimed, Phase, Waiting};

impl<J: Body> Core<J> {
    /// Tasks for a worker, into `to`: at most so many of those that could start now, and those
    /// that follow one of these in its serial group, `most` in all. How many that could start,
    /// and how many in all.
    #[inline]
    pub(super) fn prefetch(
        &mut self,
        turns: usize,
        most: usize,
        to: &mut VecDeque<Claimed<J>>,
    ) -> (usize, usize) {
        let several = most > 1 && !self.rows;
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

    /// The next that can start.
    #[inline]
    pub(super) fn claim_one(&mut self) -> Option<Claimed<J>> {
        let mut claim = self.backlog.claim()?;
        if claim.item.is_new_future() {
            let holds = claim.holds();
            self.enter(&mut claim.item, holds);
        }
        let caller = self.caller_of(claim.lane);
        self.taken(&claim.item, caller);
        let record = self.begin_record(&claim);
        Some(Claimed::One(Some(claim), record))
    }

    /// Those that follow it in its serial group, if it is no future.
    #[inline]
    fn claim_behind(&mut self, one: &Claimed<J>, most: usize) -> Option<Claimed<J>> {
        let Claimed::One(Some(claim), None) = one else {
            return None;
        };
        let (task, holds) = (&claim.item, claim.holds());
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

    /// Several that are alone, or of serial groups: at most so many that could start, and at most
    /// so many in all; and how many could start.
    #[inline]
    fn claim_several(&mut self, turns: usize, most: usize) -> Option<(Several<Waiting<J>>, usize)> {
        let (callers, by_lane) = (&self.callers, &self.by_lane);
        let limits = |lane: LaneKey, first: &Waiting<J>, most| {
            let caller = callers.get(by_lane[lane.index() as usize]);
            goes_with(caller.expect("its tasks wait"), first.id(), most)
        };
        // Whether any of them is one.
        let futures = &Cell::new(false);
        // New ones of a caller and those that were woken: nobody else waits for a turn.
        let pair = self.backlog.pair();
        let together = pair.is_some_and(|(a, b)| self.caller_of(a) == self.caller_of(b));
        let alone = turns.min(most);
        let run = self.backlog.claim_run(together, |lane, first| {
            let (most, goes) = limits(lane, first, alone);
            (most, move |task: &_| {
                futures.set(futures.get() | Waiting::is_future(task));
                goes(task)
            })
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
        if futures.get() {
            self.futures_taken(&mut several);
        }
        Some((several, turns))
    }

    /// A worker has the futures among these.
    fn futures_taken(&mut self, several: &mut Several<Waiting<J>>) {
        let holds = several.holds();
        for task in several.iter_mut().filter(|task| task.is_future()) {
            match task.future() {
                Some(future) => self.future_mut(future).phase = Phase::Claimed(false),
                None => self.enter(task, holds),
            }
        }
    }

    /// A worker has these tasks of one epoch, of which it has had none.
    #[inline]
    fn all_taken(&mut self, caller: Key, first: Option<&Waiting<J>>, tasks: usize) {
        let c = self.callers.get_mut(caller).expect("it has tasks");
        if let Some(first) = first {
            self.pressing |= c.taken(first.id(), tasks);
        }
    }

    /// What did not start waits again, where it waited before.
    pub(super) fn unclaim(&mut self, claimed: Claimed<J>) {
        match claimed {
            Claimed::One(None, _) => {}
            Claimed::One(Some(claim), _) => {
                let caller = self.caller_of(claim.lane);
                self.all_returned(caller, Some(&claim.item), 1);
                self.waits_again(&claim.item, claim.spot());
                self.backlog.unclaim(claim);
            }
            Claimed::Several(several) => {
                let caller = self.caller_of(several.holds().lane);
                self.all_returned(caller, several.iter().next(), several.len());
                let spots = several.spots();
                spots.for_each(|(spot, task)| self.waits_again(task, spot));
                self.backlog.give_back(several);
            }
        }
    }

    fn all_returned(&mut self, caller: Key, first: Option<&Waiting<J>>, tasks: usize) {
        let id = first.expect("some have not begun").id();
        self.caller_mut(caller).returned(id, tasks);
    }

    fn waits_again(&mut self, task: &Waiting<J>, spot: Spot) {
        if let Some(future) = task.future() {
            self.future_mut(future).phase = Phase::InLine(spot);
        }
    }

    /// Whether the caller, if it is still there, has work in a lower tier than the open one.
    pub(super) fn is_undercut(&self, caller: Key) -> bool {
        let caller = self.callers.get(caller);
        caller.is_some_and(|caller| self.backlog.lane(caller.lane).drains())
    }
}

/// How many may be taken together with this task, and which of the caller's: a synchronize
/// covers all of them or none, and behind the last that somebody waits for there is none.
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
