//! Tasks that wait for their own scheduler, and the rule of `stall` on them.

use crate::wait::WakeBatch;

use super::core::Core;
use super::stall::Target;

impl<J> Core<J> {
    /// The task that worker `n` runs is about to sleep until `target` comes.
    pub(crate) fn block(&mut self, n: u32, target: Target) {
        if !self.has_come(target) {
            self.stalls.block(n, target);
        }
    }

    /// The task that worker `n` runs is awake.
    pub(crate) fn unblock(&mut self, n: u32) {
        self.stalls.unblock(n);
    }

    /// Whether the wait of the task that worker `n` runs is to give up.
    pub(crate) fn is_stalled(&self, n: u32) -> bool {
        self.stalls.is_stalled(n)
    }

    fn has_come(&self, target: Target) -> bool {
        match target {
            Target::Task(task) => self.has_ended(task),
            Target::Synchronize(caller) => !self.caller(caller).is_synchronizing(),
            Target::Release(caller) => self.caller(caller).unfinished() == 0,
            Target::Shutdown => false,
        }
    }

    pub(super) fn resolve_stall(&mut self, wakes: &mut WakeBatch) {
        let blocked = self.stalls.blocked();
        if blocked == 0 || blocked < self.workers.busy() as usize {
            return;
        }
        // When the hold is dropped, that is an event, and the rule is applied.
        if self.is_held() {
            return;
        }
        // The drop of a future is an event, too.
        if self.dropping > 0 {
            return;
        }
        // What is due later, or woken from elsewhere, could go on on another worker.
        let comes = !self.clock.is_empty() || self.suspended > 0;
        if comes && self.workers.busy() < self.workers.max() {
            return;
        }
        if self.startable(1) > 0 && self.workers.coming() > 0 {
            return;
        }
        match self.stalls.give_up() {
            None => {}
            Some(Target::Task(task)) => {
                let waker = self.task_waker(task).and_then(Option::take);
                waker.into_iter().for_each(|w| wakes.push(w));
            }
            Some(Target::Synchronize(caller)) => {
                let waker = self.sync_waker(caller).and_then(Option::take);
                waker.into_iter().for_each(|w| wakes.push(w));
            }
            Some(Target::Release(caller)) => {
                let waiters = self.release_waiters(caller);
                while waiters.notify_next(wakes).is_some() {}
            }
            Some(Target::Shutdown) => while self.shutdown_waiters.notify_next(wakes).is_some() {},
        }
    }
}
