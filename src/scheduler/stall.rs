//! When nothing can go on: tasks that wait for their own scheduler.
//!
//! Rule: if every running task is blocked in an untimed blocking wait of this
//! scheduler and none can start, the newest such wait gives up with an error.
//! What it waited for is untouched.

use crate::slab::Key;
use crate::wait::WakeBatch;

use super::core::Core;

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A task's outcome.
    Task(Key),
    /// A caller's synchronize.
    Synchronize(Key),
    /// A caller's release.
    Release(Key),
    /// The scheduler's shutdown.
    Shutdown,
}

#[derive(Debug)]
struct Blocked {
    reader: u32,
    target: Target,
    /// Told to give up, and has not yet.
    stalled: bool,
}

/// The readers whose task is blocked, in order of blocking.
#[derive(Debug, Default)]
pub(crate) struct Stalls(Vec<Blocked>);

impl Stalls {
    /// What was waited for has come: those who waited for it are not blocked.
    pub(super) fn ended(&mut self, target: Target) {
        if !self.0.is_empty() {
            self.0.retain(|b| b.target != target);
        }
    }
}

impl<J> Core<J> {
    /// The task that reader `n` runs is about to sleep until `target` comes.
    pub(crate) fn block(&mut self, n: u32, target: Target) {
        if !self.has_come(target) {
            self.stalls.0.push(Blocked {
                reader: n,
                target,
                stalled: false,
            });
        }
    }

    /// The task that reader `n` runs is awake.
    pub(crate) fn unblock(&mut self, n: u32) {
        self.stalls.0.retain(|b| b.reader != n);
    }

    /// Whether the wait of the task that reader `n` runs is to give up.
    pub(crate) fn is_stalled(&self, n: u32) -> bool {
        self.stalls.0.iter().any(|b| b.reader == n && b.stalled)
    }

    fn has_come(&self, target: Target) -> bool {
        match target {
            Target::Task(task) => self.ending(task).1.is_some(),
            Target::Synchronize(caller) => !self.caller(caller).is_synchronizing(),
            Target::Release(caller) => self.caller(caller).unfinished() == 0,
            Target::Shutdown => false,
        }
    }

    pub(super) fn resolve_stall(&mut self, wakes: &mut WakeBatch) {
        let blocked = self.stalls.0.iter().filter(|b| !b.stalled).count();
        if blocked == 0 || blocked < self.readers.busy() as usize {
            return;
        }
        if self.startable() > 0 && self.readers.coming() > 0 {
            return;
        }
        let newest = self.stalls.0.iter_mut().rev().find(|b| !b.stalled);
        let Some(newest) = newest else {
            return;
        };
        newest.stalled = true;
        match newest.target {
            Target::Task(task) => {
                let waker = self.task_waker(task).take();
                waker.into_iter().for_each(|w| wakes.push(w));
            }
            Target::Synchronize(caller) => {
                let waker = self.sync_waker(caller).and_then(Option::take);
                waker.into_iter().for_each(|w| wakes.push(w));
            }
            Target::Release(caller) => {
                let waiters = self.release_waiters(caller);
                while waiters.notify_next(wakes).is_some() {}
            }
            Target::Shutdown => while self.shutdown_waiters.notify_next(wakes).is_some() {},
        }
    }
}
