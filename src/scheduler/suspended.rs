//! Futures: from their first claim to their end each has an entry, by which it is woken.
//!
//! Between its first poll and its end such a task keeps what it took when it started: its
//! unit of its group's limit and of its caller's cap, and its tier, which stays open. While
//! it waits to be woken it stands nowhere. Woken, it stands in a line that its caller has
//! for that: a lane of the caller's weight, without cap and tiers, oldest wake-up first.
//! Those that a worker reports as woken come there as one run.
//!
//! Whether it was woken is known under the lock of the state, beside what a worker
//! does with it: so no wake-up is lost between a poll and its report.
//!
//! Invariants:
//! 1. An entry's phase says where its future is: in the backlog, with a worker, here, or
//!    about to be dropped.
//! 2. `suspended` counts the futures that have begun, that no worker has and that are not
//!    in the backlog: those whose phase is `Suspended`, and those that are cancelled,
//!    until they have been dropped. Until then these keep their unit and tier.

use std::time::Duration;

use crate::backlog::InFlight;
use crate::lanes::LaneKey;
use crate::limit::Limit;
use crate::slab::Key;

use super::core::Core;
use super::outcome::Run;
use super::task_state::{Body, FutureState, Location, Phase, Tag, Waiting};
use super::tokens::CancelToken;

/// Futures that were woken while they were polled, one after the other, in one lane: at least
/// one, if there is a lane. For the time being their phase does not say where they are.
pub(super) struct WokenRun<J> {
    lane: Option<LaneKey>,
    tasks: Vec<Option<Waiting<J>>>,
}

impl<J> Default for WokenRun<J> {
    fn default() -> Self {
        let (lane, tasks) = (None, Vec::new());
        Self { lane, tasks }
    }
}

impl<J: Body> Core<J> {
    /// A worker has claimed a future for the first time.
    pub(super) fn enter(&mut self, task: &mut Waiting<J>, holds: InFlight) {
        let (id, queued) = (task.id(), task.queued());
        let key = self.futures.insert_with(|key| FutureState {
            tag: Tag {
                id,
                holds,
                future: Some(key),
            },
            begun: None,
            queued,
            phase: Phase::Claimed(false),
            bump: None,
            token: None,
        });
        task.enter(key);
    }

    /// Worker `n` has polled a task since `start`, and it is not ready; it may have woken
    /// itself. One that was woken joins others, unless it is bumped; these are to be
    /// [put in line](Self::enqueue_run) before anybody looks there.
    pub(super) fn suspend(
        &mut self,
        ((tag, job), woken): ((Tag, J), bool),
        n: u32,
        (start, now): (Duration, Duration),
        run: &mut WokenRun<J>,
    ) {
        let key = tag.future.expect(ENTRY);
        let future = self.futures.get_mut(key).expect(ENTRY);
        match &mut future.begun {
            Some((_, worker)) => {
                *worker = n;
                self.backlog.finish(tag.holds);
            }
            None => (future.tag.holds, future.begun) = (tag.holds, Some((start, n))),
        }
        let task = Waiting::entered(tag.id, key, job);
        let woken = woken || matches!(future.phase, Phase::Claimed(true));
        let joins = future.bump.is_none();
        let is_cancelled = future.token.as_ref().is_some_and(CancelToken::is_cancelled);
        future.phase = Phase::Withdrawn;
        let caller = self.caller_of(tag.holds.lane);
        self.caller_mut(caller).returned(tag.id, 1);
        if woken && joins && !is_cancelled {
            let lane = self.woken_lane(caller);
            if run.lane != Some(lane) {
                self.enqueue_run(run);
                run.lane = Some(lane);
            }
            run.tasks.push(Some(task));
            return;
        }
        self.future_mut(key).phase = Phase::Suspended(task);
        self.suspended += 1;
        if is_cancelled {
            self.cancel(Location::Future(key), now);
        } else if woken {
            self.enqueue(key);
        }
    }

    /// The same as one event; its worker looks for the next. Whether the future awaits.
    pub(crate) fn suspend_one(
        &mut self,
        polled: ((Tag, J), bool),
        n: u32,
        times: (Duration, Duration),
    ) -> bool {
        self.workers.finished(n);
        self.set_running(n, None);
        let (mut woken, before) = (WokenRun::default(), self.suspended);
        self.suspend(polled, n, times, &mut woken);
        let awaits = woken.lane.is_none() && self.suspended > before;
        self.enqueue_run(&mut woken);
        awaits
    }

    /// Those that were woken together wait for a worker.
    pub(super) fn enqueue_run(&mut self, run: &mut WokenRun<J>) {
        let WokenRun {
            lane: Some(lane),
            tasks,
        } = std::mem::take(run)
        else {
            return;
        };
        let spots = self.backlog.next_spots(lane);
        for (task, spot) in tasks.iter().flatten().zip(spots) {
            let key = task.future().expect(ENTRY);
            self.future_mut(key).phase = Phase::InLine(spot);
        }
        self.backlog.send_run(lane, tasks, false);
    }

    /// A future is woken. One that a worker has is polled once more if it is not ready. Whether it
    /// awaited.
    pub(crate) fn wake_task(&mut self, key: Key) -> bool {
        let phase = self.futures.get_mut(key).map(|future| &mut future.phase);
        match phase {
            Some(Phase::Suspended(_)) => {
                self.enqueue(key);
                return true;
            }
            Some(Phase::Claimed(woken)) => *woken = true,
            Some(Phase::InLine(_) | Phase::Withdrawn) | None => {}
        }
        false
    }

    /// A suspended future waits for a worker.
    fn enqueue(&mut self, key: Key) {
        self.suspended -= 1;
        let future = self.future_mut(key);
        let Phase::Suspended(task) = std::mem::replace(&mut future.phase, Phase::Withdrawn) else {
            unreachable!("it is suspended");
        };
        let (lane, bump) = (future.tag.holds.lane, future.bump.take());
        let lane = self.woken_lane(self.caller_of(lane));
        let (spot, _) = self.backlog.send_to(lane, None, None, bump, task);
        self.future_mut(key).phase = Phase::InLine(spot);
    }

    /// The lane of the caller's tasks that were woken.
    fn woken_lane(&mut self, caller: Key) -> LaneKey {
        let c = self.caller(caller);
        if let Some(lane) = c.woken_lane {
            return lane;
        }
        let weight = c.weight;
        let lane = self.backlog.add_lane(weight, Limit::Unlimited);
        let lane = lane.expect("the caller's own lane has this weight");
        self.caller_mut(caller).woken_lane = Some(lane);
        self.set_caller_of(lane, caller);
        lane
    }

    /// What a future that has begun holds since, and its run, were it to end now.
    #[inline]
    pub(super) fn begun_of(&self, task: &Waiting<J>, now: Duration) -> Option<(InFlight, Run)> {
        let future = self.future(task.future()?);
        Some((future.tag.holds, future.run(now)?))
    }

    /// When a task was queued.
    pub(super) fn queued_of(&self, task: &Waiting<J>) -> Duration {
        let future = task.future().map(|future| self.future(future).queued);
        future.unwrap_or_else(|| task.queued())
    }

    /// What a task that a worker has holds since it began.
    pub(super) fn holds_of(&self, tag: &Tag) -> InFlight {
        let future = tag.future.map(|future| self.future(future));
        let begun = future.filter(|future| future.begun.is_some());
        begun.map_or(tag.holds, |future| future.tag.holds)
    }

    #[inline]
    pub(super) fn future(&self, key: Key) -> &FutureState<J> {
        self.futures.get(key).expect(ENTRY)
    }

    #[inline]
    pub(super) fn future_mut(&mut self, key: Key) -> &mut FutureState<J> {
        self.futures.get_mut(key).expect(ENTRY)
    }
}

const ENTRY: &str = "a future that was claimed has an entry until it has ended";
