//! Tasks that wait for their own scheduler, and the rule of `stall` on them.

use std::task::Waker;

use crate::sync::Arc;
use crate::wait::WakeBatch;

use super::core::Core;
use super::stall::Target;
use super::task_state::Body;

impl<J: Body> Core<J> {
    /// The task of worker `n` is about to sleep until one of these comes, unless one `has_come`.
    /// Returns whether one has.
    pub(crate) fn block(
        &mut self,
        n: u32,
        targets: Vec<Target>,
        waker: &Waker,
        has_come: bool,
    ) -> bool {
        // Room that is free now may be for another, ahead of it in line.
        let is_there = |target| !matches!(target, &Target::Room(..)) && self.has_come(target);
        let has_come = has_come || targets.iter().any(is_there);
        self.stalls.block(n, targets, waker, has_come);
        has_come
    }

    /// The label of the task of worker `n`, whose local queue is clear.
    pub(super) fn label_on(&self, n: u32) -> Option<Arc<str>> {
        self.running.get(n as usize)?.as_ref()?.label.clone()
    }

    fn has_come(&self, target: &Target) -> bool {
        match *target {
            Target::Synchronize(caller) => !self.caller(caller).is_synchronizing(),
            Target::Release(caller) => self.caller(caller).unfinished() == 0,
            Target::Room(caller, ticket) => !self.caller(caller).capacity.denies(ticket),
            Target::Borrows(ref borrows) => borrows.are_over(),
            // These report it themselves.
            Target::Task(_) | Target::Shutdown => false,
        }
    }

    pub(super) fn resolve_stall(&mut self, wakes: &mut WakeBatch) {
        let busy = self.workers.busy() as usize;
        if self.stalls.len() < busy {
            self.stalls.reconsider();
        }
        let blocked = self.stalls.blocked(|target| self.has_come(target));
        if blocked == 0 || blocked < busy {
            return;
        }
        // The end of a hold is an event, and so is what follows a call of the log or a drop of a
        // future: the rule is applied then.
        if self.is_held() || self.underway > 0 {
            return;
        }
        // A delayed task or a woken future could run on another worker.
        let comes = self.clock.is_kept() && !self.clock.is_empty() || self.suspended > 0;
        if comes && self.workers.busy() < self.workers.max() {
            return;
        }
        if self.startable(1) > 0 && self.workers.coming() > 0 {
            return;
        }
        wakes.extend(self.stalls.give_up());
    }
}
