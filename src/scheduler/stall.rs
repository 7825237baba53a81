//! Stalls: tasks that wait for their own scheduler while nothing can go on.
//!
//! Rule: if every running task is blocked in an untimed blocking wait for this scheduler and no
//! task can start, the newest such wait gives up with an error. What it waits for is untouched.

use std::task::Waker;

use crate::slab::Key;
use crate::sync::Arc;
use crate::wait::Ticket;

use super::borrows::Borrows;
use super::outcome::TaskId;

/// What a task waits for.
#[derive(PartialEq)]
pub(crate) enum Target {
    /// A task's outcome.
    Task(TaskId),
    /// A caller's synchronize.
    Synchronize(Key),
    /// A caller's release.
    Release(Key),
    /// The scheduler's shutdown.
    Shutdown,
    /// Room in a caller, by the ticket of the waiting submission.
    Room(Key, Ticket),
    /// The end of a scope.
    Borrows(Arc<Borrows>),
}

struct Blocked {
    worker: u32,
    /// One of them is enough.
    targets: Vec<Target>,
    /// The parker of its thread.
    waker: Waker,
    /// One of the targets has come: it is not blocked, but does not know yet.
    has_come: bool,
    /// Its thread waits in another wait, inside of this one.
    covered: bool,
    /// It must give up, and has not yet.
    stalled: bool,
    /// It does, since it has asked.
    gives_up: bool,
    /// It had to give up, and could not. No task has run since.
    stays: bool,
}

impl Blocked {
    fn waits(&self) -> bool {
        !self.has_come && !self.covered
    }
}

/// The waits of workers whose task is blocked, in the order in which they were. Of several waits of
/// one worker each is inside of the one before: such as that of a subscriber that is told of it.
#[derive(Default)]
pub(crate) struct Stalls(Vec<Blocked>);

impl Stalls {
    /// The task of this worker is blocked until one of these comes, unless one `has_come`.
    pub(super) fn block(
        &mut self,
        worker: u32,
        targets: Vec<Target>,
        waker: &Waker,
        has_come: bool,
    ) {
        self.cover(worker, true);
        self.0.push(Blocked {
            worker,
            targets,
            waker: waker.clone(),
            has_come,
            covered: false,
            stalled: false,
            gives_up: false,
            stays: false,
        });
    }

    /// Its last wait is over. Returns whether it gives up.
    pub(super) fn unblock(&mut self, worker: u32) -> bool {
        let last = self.0.iter().rposition(|b| b.worker == worker);
        let gives_up = last.is_some_and(|last| self.0.remove(last).gives_up);
        self.cover(worker, false);
        gives_up
    }

    /// The last wait of a worker is covered by another one, or no more.
    fn cover(&mut self, worker: u32, covered: bool) {
        let last = self.0.iter_mut().rfind(|b| b.worker == worker);
        last.into_iter().for_each(|b| b.covered = covered);
    }

    /// A target has come: tasks that waited for it are not blocked.
    pub(super) fn ended(&mut self, target: Target) {
        let waited = self.0.iter_mut().filter(|b| b.targets.contains(&target));
        waited.for_each(|b| b.has_come = true);
    }

    /// The task of this worker must give up, and cannot.
    pub(super) fn keep_on(&mut self, worker: u32) {
        let last = self.0.iter_mut().rfind(|b| b.worker == worker);
        last.into_iter()
            .for_each(|b| (b.stalled, b.gives_up, b.stays) = (false, false, true));
    }

    /// A task runs: those that could not give up may be able to after it.
    pub(super) fn reconsider(&mut self) {
        self.0.iter_mut().for_each(|b| b.stays = false);
    }

    /// Whether the task of this worker must give up: asked by its last wait, for which nothing has
    /// come, and which then does. A wait that is not blocked must not ask: the last is another.
    pub(super) fn gives_up(&mut self, worker: u32) -> bool {
        let last = self.0.iter_mut().rfind(|b| b.worker == worker);
        last.is_some_and(|b| {
            b.gives_up = b.stalled && !b.has_come;
            b.gives_up
        })
    }

    /// Whether the task of this worker is blocked.
    pub(super) fn is_blocked(&self, worker: u32) -> bool {
        self.0.iter().any(|b| b.worker == worker && b.waits())
    }

    /// How many are blocked.
    pub(super) fn len(&self) -> usize {
        self.0.iter().filter(|b| b.waits()).count()
    }

    /// Whether nobody is blocked.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.0.iter().any(Blocked::waits)
    }

    /// How many tasks are blocked and need not give up. A task does not count if one of its targets
    /// has come, though it does not know yet.
    pub(super) fn blocked(&self, has_come: impl Fn(&Target) -> bool) -> usize {
        let waits = |b: &&Blocked| b.waits() && !b.stalled && !b.targets.iter().any(&has_come);
        self.0.iter().filter(waits).count()
    }

    /// The newest of them must give up. Returns its waker.
    pub(super) fn give_up(&mut self) -> Option<Waker> {
        let may_give_up = |b: &&mut Blocked| b.waits() && !b.stalled && !b.stays;
        let newest = self.0.iter_mut().rev().find(may_give_up)?;
        newest.stalled = true;
        Some(newest.waker.clone())
    }
}
