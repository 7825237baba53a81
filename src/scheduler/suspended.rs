//! Futures: each has an entry from its first claim to its end, by which it is woken.
//!
//! From its first poll to its end a future keeps its unit of its group's limit and of its caller's
//! cap, and its tier, which stays open. While it waits to be woken it is in no ready queue. Woken,
//! it waits in a lane that its caller has for that: of the caller's weight, without a cap and
//! tiers, oldest wake-up first. Futures that a worker reports as woken join it as one run.
//!
//! The entry says, under the state's lock, both whether the future was woken and what a worker does
//! with it. So no wake-up is lost between a poll and its report.
//!
//! Invariants:
//! 1. The phase of an entry says where its future is: in the backlog, with a worker, here, or about
//!    to be dropped.
//! 2. `suspended` counts the futures that have begun, that no worker has, and that are not in the
//!    backlog: those of phase `Suspended`, and cancelled ones until they are dropped. Until then
//!    these keep their units and tier.

use std::time::Duration;

use crate::backlog::InFlight;
use crate::lanes::LaneKey;
use crate::limit::Limit;
use crate::slab::Key;

use super::core::Core;
use super::outcome::Run;
use super::task_state::{Body, FutureState, Location, Phase, Tag, Waiting};
use super::tokens::CancelToken;

/// Futures that were woken while they were polled, and the lane of all of them. Meanwhile their
/// phase does not say where they are.
pub(super) type WokenRun<J> = Option<(LaneKey, Vec<Option<Waiting<J>>>)>;

impl<J: Body> Core<J> {
    /// A worker has claimed a future for the first time.
    pub(super) fn enter(&mut self, task: &mut Waiting<J>, holds: InFlight) {
        let key = self.futures.insert(FutureState {
            holds,
            begun: None,
            queued: task.queued(),
            phase: Phase::Claimed(false),
            bump: None,
            token: None,
        });
        task.enter(key);
    }

    /// Worker `n` began to poll a future at `start`, and it is pending; it may have woken itself. A
    /// woken one joins `run`, unless it is bumped; [`enqueue_run`](Self::enqueue_run) must follow
    /// before anybody looks at the backlog.
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
            None => future.begun = Some((start, n)),
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
            if run.as_ref().is_some_and(|&(of, _)| of != lane) {
                self.enqueue_run(run.take());
            }
            let (_, tasks) = run.get_or_insert_with(|| (lane, Vec::new()));
            tasks.push(Some(task));
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

    /// The same as one event, after which the worker looks for the next task. Returns whether the
    /// future awaits.
    pub(crate) fn suspend_one(
        &mut self,
        polled: ((Tag, J), bool),
        n: u32,
        times: (Duration, Duration),
    ) -> bool {
        self.workers.finished(n);
        self.set_running(n, None);
        let (mut woken, before) = (None, self.suspended);
        self.suspend(polled, n, times, &mut woken);
        let awaits = woken.is_none() && self.suspended > before;
        self.enqueue_run(woken);
        awaits
    }

    /// Enqueues the futures that were woken together.
    pub(super) fn enqueue_run(&mut self, run: WokenRun<J>) {
        let Some((lane, tasks)) = run else {
            return;
        };
        let spots = self.backlog.next_spots(lane);
        for (task, spot) in tasks.iter().flatten().zip(spots) {
            let key = task.future().expect(ENTRY);
            self.future_mut(key).phase = Phase::InLine(spot);
        }
        self.backlog.send_run(lane, tasks, false, true);
    }

    /// A future is woken. If a worker has it, it is polled once more if it is pending. Returns
    /// whether it awaited.
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

    /// Enqueues a suspended future.
    fn enqueue(&mut self, key: Key) {
        self.suspended -= 1;
        let future = self.future_mut(key);
        let Phase::Suspended(task) = std::mem::replace(&mut future.phase, Phase::Withdrawn) else {
            unreachable!("it is suspended");
        };
        let (lane, bump) = (future.holds.lane, future.bump.take());
        let lane = self.woken_lane(self.caller_of(lane));
        let (spot, _) = self.backlog.send_to(lane, None, None, bump, task);
        self.future_mut(key).phase = Phase::InLine(spot);
    }

    /// The lane of the caller's woken futures.
    fn woken_lane(&mut self, caller: Key) -> LaneKey {
        let c = self.caller(caller);
        if let Some(lane) = c.woken_lane {
            return lane;
        }
        let weight = self.backlog.lane(c.lane).link.weight;
        let lane = self.backlog.add_lane(weight, Limit::Unlimited);
        let lane = lane.expect("the caller's own lane has this weight");
        self.caller_mut(caller).woken_lane = Some(lane);
        self.set_caller_of(lane, caller);
        lane
    }

    /// The run of a future that has begun, if it ended now.
    #[inline]
    pub(super) fn run_of(&self, task: &Waiting<J>, end: Duration) -> Option<Run> {
        let (start, worker) = self.future(task.future()?).begun?;
        Some(Run { worker, start, end })
    }

    /// Whether it is a future that was polled.
    pub(super) fn has_begun(&self, task: &Waiting<J>) -> bool {
        self.run_of(task, Duration::ZERO).is_some()
    }

    /// Whether it is a future that waits to be woken.
    pub(super) fn awaits(&self, task: &Waiting<J>) -> bool {
        let future = task.future().map(|future| self.future(future));
        future.is_some_and(|future| matches!(future.phase, Phase::Suspended(_)))
    }

    /// When a task was queued.
    pub(super) fn queued_of(&self, task: &Waiting<J>) -> Duration {
        let future = task.future().map(|future| self.future(future).queued);
        future.unwrap_or_else(|| task.queued())
    }

    /// The units that a task holds, or would: its turn's, or with an entry those of its first.
    #[inline]
    pub(super) fn holds_of(&self, entry: Option<Key>, turn: InFlight) -> InFlight {
        entry.map_or(turn, |entry| self.future(entry).holds)
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
