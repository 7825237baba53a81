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
    /// It must give up, and has not yet.
    stalled: bool,
    /// It does, since it has asked.
    gives_up: bool,
    /// It had to give up, and could not. No task has run since.
    stays: bool,
}

/// The workers whose task is blocked, in the order in which they were.
#[derive(Default)]
pub(crate) struct Stalls(Vec<Blocked>);

impl Stalls {
    /// The task of this worker is blocked until one of these comes.
    pub(super) fn block(&mut self, worker: u32, targets: Vec<Target>, waker: &Waker) {
        self.0.push(Blocked {
            worker,
            targets,
            waker: waker.clone(),
            stalled: false,
            gives_up: false,
            stays: false,
        });
    }

    /// It is awake. Returns whether it gives up.
    pub(super) fn unblock(&mut self, worker: u32) -> bool {
        let gives_up = self.0.iter().any(|b| b.worker == worker && b.gives_up);
        self.0.retain(|b| b.worker != worker);
        gives_up
    }

    /// A target has come: tasks that waited for it are not blocked.
    pub(super) fn ended(&mut self, target: Target) {
        if !self.0.is_empty() {
            self.0.retain(|b| !b.targets.contains(&target));
        }
    }

    /// The task of this worker must give up, and cannot.
    pub(super) fn keep_on(&mut self, worker: u32) {
        let own = self.0.iter_mut().filter(|b| b.worker == worker);
        own.for_each(|b| (b.stalled, b.gives_up, b.stays) = (false, false, true));
    }

    /// A task runs: those that could not give up may be able to after it.
    pub(super) fn reconsider(&mut self) {
        self.0.iter_mut().for_each(|b| b.stays = false);
    }

    /// Whether the task of this worker must give up: asked by its wait, for which nothing has come,
    /// and which then does.
    pub(super) fn gives_up(&mut self, worker: u32) -> bool {
        let own = self.0.iter_mut().find(|b| b.worker == worker && b.stalled);
        own.is_some_and(|b| {
            b.gives_up = true;
            true
        })
    }

    /// Whether the task of this worker is blocked.
    pub(super) fn is_blocked(&self, worker: u32) -> bool {
        self.0.iter().any(|b| b.worker == worker)
    }

    /// How many are blocked.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nobody is blocked.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many tasks are blocked and need not give up. A task does not count if one of its targets
    /// has come, though it does not know yet.
    pub(super) fn blocked(&self, has_come: impl Fn(&Target) -> bool) -> usize {
        let waits = |b: &&Blocked| !b.stalled && !b.targets.iter().any(&has_come);
        self.0.iter().filter(waits).count()
    }

    /// The newest of them must give up. Returns its waker.
    pub(super) fn give_up(&mut self) -> Option<Waker> {
        let may_give_up = |b: &&mut Blocked| !b.stalled && !b.stays;
        let newest = self.0.iter_mut().rev().find(may_give_up)?;
        newest.stalled = true;
        Some(newest.waker.clone())
    }
}
