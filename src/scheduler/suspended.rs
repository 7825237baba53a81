//! Futures between their first poll and their end.
//!
//! Such a task keeps what it took when it started: its unit of its group's limit and
//! of its caller's cap, and its tier, which stays open. While it waits to be woken it
//! stands nowhere. Woken, it stands in a line that its caller has for that: a lane of
//! the caller's weight, without cap and tiers, oldest wake-up first.
//!
//! Whether it was woken is known under the lock of the state, beside what a worker
//! does with it: so no wake-up is lost between a poll and its report.
//!
//! Invariants:
//! 1. What has begun and no worker has is in its caller's list of waiting tasks.
//! 2. It is in the backlog exactly if its phase is `Waiting`; then it has a `line`.
//! 3. `suspended` counts the tasks that have begun, that no worker has and that are not
//!    in the backlog: those whose phase is `Suspended`, and those that are cancelled,
//!    until their future has been dropped. Until then these keep their unit and tier.

use std::time::Duration;

use crate::lanes::LaneKey;
use crate::limit::Limit;
use crate::slab::Key;
use crate::wait::WakeBatch;

use super::core::Core;
use super::outcome::Ending;
use super::task_state::{Begun, Ended, Membership, Phase};

impl<J> Core<J> {
    /// Worker `n` has polled a task since `start`, and it is not ready; it may have woken
    /// itself.
    pub(super) fn suspend(
        &mut self,
        (task, job): (Key, J),
        n: u32,
        (start, now): (Duration, Duration),
        woken: bool,
    ) {
        self.end_poll(task);
        let state = self.task_mut(task);
        match &mut state.membership {
            Membership::Begun(begun) => begun.worker = n,
            first => {
                let group = match *first {
                    Membership::Group(group, _) => Some(group),
                    _ => None,
                };
                *first = Membership::Begun(Box::new(Begun {
                    start,
                    worker: n,
                    group,
                    line: None,
                }));
            }
        }
        (state.phase, state.job) = (Phase::Suspended, Some(job));
        let woken = std::mem::take(&mut state.woken) || woken;
        self.suspended += 1;
        self.wait_again(task);
        if self.is_cancelled(task) {
            self.withdraw_begun(task, now);
        } else if woken {
            self.enqueue(task);
        }
    }

    /// A task is woken. One that a worker has is polled once more if it is not ready.
    pub(super) fn wake_task(&mut self, task: Key) {
        let Some(state) = self.tasks.get_mut(task) else {
            return;
        };
        match state.phase {
            Phase::Suspended => self.enqueue(task),
            Phase::Claimed { .. } | Phase::Running { .. } => state.woken = true,
            Phase::Waiting | Phase::Later(_) | Phase::Withdrawn => {}
        }
    }

    /// A suspended task waits for a worker.
    fn enqueue(&mut self, task: Key) {
        self.suspended -= 1;
        let caller = self.task(task).caller;
        let lane = self.woken_lane(caller);
        let line = self.backlog.send_alone(lane, 0, None, task);
        let state = self.task_mut(task);
        state.phase = Phase::Waiting;
        let begun = state.begun_mut();
        begun.expect("what is suspended has begun").line = Some(line);
    }

    /// The lane of the caller's tasks that were woken.
    pub(super) fn woken_lane(&mut self, caller: Key) -> LaneKey {
        let c = self.callers.get_mut(caller).expect("it has a task");
        let (weight, backlog) = (c.weight, &mut self.backlog);
        *c.woken_lane.get_or_insert_with(|| {
            let lane = backlog.add_lane(weight, Limit::Unlimited);
            lane.expect("the caller's own lane has this weight")
        })
    }

    /// A worker has polled it. Ends its turn in the line of those that were woken.
    fn end_poll(&mut self, task: Key) {
        let state = self.task_mut(task);
        let (caller, begun) = (state.caller, state.begun_mut());
        if begun.and_then(|begun| begun.line.take()).is_some() {
            let lane = self.woken_lane(caller);
            self.backlog.complete_alone(lane, 0, 1);
        }
    }

    /// A task that has begun has run to its end.
    #[cold]
    pub(super) fn end_begun(&mut self, task: Key) {
        self.end_poll(task);
        self.let_go(task);
    }

    /// It takes no more part in its group, its tier and its caller's cap.
    fn let_go(&mut self, task: Key) {
        let state = self.task(task);
        match state.begun().and_then(|begun| begun.group) {
            Some(group) => self.backlog.complete(group, state.tier),
            None => {
                let lane = self.caller(state.caller).lane;
                self.backlog.complete_alone(lane, state.tier, 1);
            }
        }
    }

    /// A task that has begun, and that no worker has, will not go on: the owner is to
    /// drop its future and say [`dropped`](Self::dropped).
    #[cold]
    pub(super) fn withdraw_begun(&mut self, task: Key, now: Duration) {
        let record = self.record(task, Ending::Cancelled, now);
        let job = self.take_out(task, Phase::Withdrawn);
        let state = self.task_mut(task);
        let (run, caller) = (state.run(now), state.caller);
        let line = state.begun_mut().and_then(|begun| begun.line.take());
        if let Some(line) = line {
            self.suspended += 1;
            let lane = self.woken_lane(caller);
            self.backlog.remove_alone(lane, 0, line);
        }
        self.dropping += 1;
        self.ended.push(Ended {
            job,
            ending: Ending::Cancelled,
            run,
            record,
            begun: Some(task),
        });
    }

    /// The future of a task that was withdrawn is gone.
    pub(super) fn dropped(&mut self, task: Key, wakes: &mut WakeBatch) {
        self.suspended -= 1;
        self.dropping -= 1;
        self.let_go(task);
        self.conclude(task, Ending::Cancelled, wakes);
    }

    /// Bumps a task that has begun, if it waits for a worker.
    #[cold]
    pub(super) fn bump_begun(&mut self, task: Key, level: u8) {
        let caller = self.task(task).caller;
        let lane = self.woken_lane(caller);
        let state = self.tasks.get_mut(task).expect("it was just seen");
        let is_waiting = matches!(state.phase, Phase::Waiting);
        let line = state.begun_mut().and_then(|begun| begun.line.as_mut());
        if let Some(line) = line.filter(|_| is_waiting) {
            self.backlog.bump_alone(lane, 0, line, level);
        }
    }
}
