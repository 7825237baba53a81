//! A task until a worker runs it, or it ends unrun.

use std::task::Waker;
use std::time::Duration;

use crate::error::Stale;
use crate::slab::Key;
use crate::wait::WakeBatch;

use super::core::Core;
use super::outcome::{Ending, Record, TaskId};
use super::task_state::{Ended, Membership, Phase, Started, TaskState};

impl<J> Core<J> {
    pub(super) fn start(&mut self, task: Key, worker: u32, now: Duration) -> Started<J> {
        let job = self.take_out(task, Phase::Running { worker, start: now });
        Started {
            task,
            job,
            record: self.record(task, Ending::Ok, now),
            start: now,
        }
    }

    /// The log's row for a task that ends so; `None` if nobody keeps a log.
    pub(super) fn record(&self, task: Key, ending: Ending, now: Duration) -> Option<Box<Record>> {
        self.rows.then(|| {
            let state = self.task(task);
            Box::new(Record {
                id: state.id,
                caller: self.caller(state.caller).name.clone(),
                label: state.label.clone(),
                tier: state.tier,
                queued: state.queued,
                run: state.run(now),
                ending,
            })
        })
    }

    /// The tasks that no worker has and that are not later than `last`, oldest first: of
    /// this caller, or of all. O(tasks of all).
    pub(crate) fn waiting_up_to(&self, last: TaskId, of: Option<Key>) -> Vec<Key> {
        let these = self.tasks.iter().filter(|(_, task)| {
            task.waits() && task.id <= last && of.is_none_or(|caller| task.caller == caller)
        });
        let mut these: Vec<_> = these.map(|(key, task)| (task.id, key)).collect();
        these.sort_unstable_by_key(|&(id, _)| id);
        these.into_iter().map(|(_, key)| key).collect()
    }

    /// Skips what waits in the caller in too high a tier.
    pub(super) fn skip(&mut self, caller: Key, now: Duration, wakes: &mut WakeBatch) {
        for key in self.waiting_up_to(TaskId::LAST, Some(caller)) {
            if self.caller(caller).skips(self.task(key).tier) {
                self.withdraw(key, Ending::Skipped, now, wakes);
            }
        }
    }

    /// Cancels one task if no worker has it; else a future, as soon as none has.
    pub(crate) fn cancel(&mut self, task: Key, now: Duration, wakes: &mut WakeBatch) -> bool {
        let waits = self.waits(task);
        if waits {
            self.withdraw(task, Ending::Cancelled, now, wakes);
        } else if let Some(state) = self.tasks.get_mut(task) {
            state.cancelled = true;
        }
        waits
    }

    /// Whether it is not to begin or to go on: it was cancelled, or its caller or the
    /// scheduler is.
    pub(super) fn is_cancelled(&self, task: Key) -> bool {
        self.tasks.get(task).is_some_and(|state| {
            let caller = self.caller(state.caller);
            self.cancelling || state.cancelled || state.id <= caller.cancelled
        })
    }

    /// Whether it waits, and no worker has it.
    pub(crate) fn waits(&self, task: Key) -> bool {
        let state = self.tasks.get(task);
        state.is_some_and(TaskState::waits)
    }

    /// Bumps the group of a task that has not ended; a future that was woken, itself.
    pub(crate) fn bump(&mut self, task: Key, level: u8) -> Result<(), Stale> {
        let state = self.tasks.get_mut(task).ok_or(Stale)?;
        let is_waiting = matches!(state.phase, Phase::Waiting);
        match &mut state.membership {
            Membership::Group(group, _) => {
                self.backlog.bump(*group, level);
            }
            Membership::Alone(alone) if is_waiting => {
                let lane = self.callers.get(state.caller).expect(HELD).lane;
                self.backlog.bump_alone(lane, state.tier, alone, level);
            }
            Membership::Alone(_) => {}
            Membership::Begun(_) => self.bump_begun(task, level),
            Membership::Absent => {
                if let Phase::Later(later) = &mut state.phase {
                    later.bump = Some(level);
                }
            }
        }
        Ok(())
    }

    /// Whether the task has ended.
    pub(crate) fn has_ended(&self, task: Key) -> bool {
        !self.tasks.contains(task)
    }

    /// Where the wait for a task that has not ended keeps its waker.
    pub(crate) fn task_waker(&mut self, task: Key) -> Option<&mut Option<Waker>> {
        self.tasks.get_mut(task).map(|task| &mut task.waker)
    }

    /// Takes a task that no worker has out of the backlog with an ending.
    pub(super) fn withdraw(
        &mut self,
        key: Key,
        ending: Ending,
        now: Duration,
        wakes: &mut WakeBatch,
    ) {
        if self.task(key).begun().is_some() {
            return self.withdraw_begun(key, now);
        }
        let record = self.record(key, ending, now);
        self.leave_backlog(key);
        let job = self.take_out(key, Phase::Withdrawn);
        self.ended.push(Ended {
            job,
            ending,
            run: None,
            record,
            begun: None,
        });
        self.conclude(key, ending, wakes);
    }

    /// A task that waits is in no line, and sets no timer, any more.
    pub(super) fn leave_backlog(&mut self, key: Key) {
        let state = self.tasks.get(key).expect(HELD);
        let lane = self.caller(state.caller).lane;
        match (&state.phase, &state.membership) {
            (Phase::Later(later), place) => {
                self.clock.cancel(later.timer);
                if let Membership::Group(group, _) = place {
                    self.backlog.unpin(*group);
                }
            }
            (_, Membership::Group(group, seq)) => _ = self.backlog.remove(*group, *seq),
            (_, Membership::Alone(alone)) => self.backlog.remove_alone(lane, state.tier, *alone),
            (_, Membership::Absent | Membership::Begun(_)) => {}
        }
    }

    /// A waiting task waits no more: a worker has it, or it ends unrun.
    #[inline]
    pub(super) fn take_out(&mut self, key: Key, phase: Phase) -> J {
        let state = self.tasks.get_mut(key).expect(HELD);
        let c = self.callers.get_mut(state.caller).expect(HELD);
        state.phase = phase;
        let job = state.job.take();
        let is_pressing = c.taken(state.id);
        self.pressing |= is_pressing;
        self.awaited = is_pressing || state.waker.is_some();
        job.expect("it waits")
    }

    /// A task waits that a worker had.
    pub(super) fn wait_again(&mut self, key: Key) {
        let state = self.tasks.get_mut(key).expect(HELD);
        let c = self.callers.get_mut(state.caller).expect(HELD);
        c.returned(state.id);
    }

    pub(super) fn task(&self, task: Key) -> &TaskState<J> {
        self.tasks.get(task).expect(HELD)
    }

    pub(super) fn task_mut(&mut self, task: Key) -> &mut TaskState<J> {
        self.tasks.get_mut(task).expect(HELD)
    }
}

const HELD: &str = "a task exists until it has ended and its handle is gone";
