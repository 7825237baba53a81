//! When nothing can go on: tasks that wait for their own scheduler.
//!
//! Rule: if every running task is blocked in an untimed blocking wait of this
//! scheduler and none can start, the newest such wait gives up with an error.
//! What it waited for is untouched.

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
    /// Room in a caller; its place in line.
    Room(Key, Ticket),
    /// What a scope has lent.
    Borrows(Arc<Borrows>),
}

struct Blocked {
    worker: u32,
    /// One of them suffices.
    targets: Vec<Target>,
    /// One of ours, which wakes its thread.
    waker: Waker,
    /// Told to give up, and has not yet.
    stalled: bool,
    /// It was told, and cannot.
    stays: bool,
}

/// The workers whose task is blocked, in order of blocking.
#[derive(Default)]
pub(crate) struct Stalls(Vec<Blocked>);

impl Stalls {
    /// The task that this worker runs is blocked until one of these comes.
    pub(super) fn block(&mut self, worker: u32, targets: Vec<Target>, waker: &Waker) {
        self.0.push(Blocked {
            worker,
            targets,
            waker: waker.clone(),
            stalled: false,
            stays: false,
        });
    }

    /// It is awake; whether it was told to give up.
    pub(super) fn unblock(&mut self, worker: u32) -> bool {
        let stalled = self.is_stalled(worker);
        self.0.retain(|b| b.worker != worker);
        stalled
    }

    /// What was waited for has come: those who waited for it are not blocked.
    pub(super) fn ended(&mut self, target: Target) {
        if !self.0.is_empty() {
            self.0.retain(|b| !b.targets.contains(&target));
        }
    }

    /// The task that this worker runs was told to give up, and cannot.
    pub(super) fn keep_on(&mut self, worker: u32) {
        let own = self.0.iter_mut().filter(|b| b.worker == worker);
        own.for_each(|b| (b.stalled, b.stays) = (false, true));
    }

    /// Whether the task that worker `n` runs was told to give up.
    pub(super) fn is_stalled(&self, worker: u32) -> bool {
        self.0.iter().any(|b| b.worker == worker && b.stalled)
    }

    /// Whether the task that worker `n` runs is blocked.
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

    /// How many are blocked and were not told to give up: something that they wait for may
    /// have come, though they do not know.
    pub(super) fn blocked(&self, has_come: impl Fn(&Target) -> bool) -> usize {
        let waits = |b: &&Blocked| !b.stalled && !b.targets.iter().any(&has_come);
        self.0.iter().filter(waits).count()
    }

    /// Tells the newest of them to give up, which is to be woken for that.
    pub(super) fn give_up(&mut self) -> Option<Waker> {
        let may_give_up = |b: &&mut Blocked| !b.stalled && !b.stays;
        let newest = self.0.iter_mut().rev().find(may_give_up)?;
        newest.stalled = true;
        Some(newest.waker.clone())
    }
}
