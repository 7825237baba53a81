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
    /// Its thread waits in another wait, inside of this one.
    covered: bool,
    progress: Progress,
}

/// How far a wait is.
#[derive(Clone, Copy, PartialEq)]
enum Progress {
    /// Nothing has come.
    Waits,
    /// One of the targets has come, but the task does not know yet; or one may come from elsewhere.
    HasCome,
    /// It must give up, and does not know yet.
    Stalled,
    /// It knows, and gives up.
    GivesUp,
    /// It had to give up, and could not. No task has run since.
    Stays,
}

impl Blocked {
    fn is_blocked(&self) -> bool {
        self.progress != Progress::HasCome && !self.covered
    }

    fn must_give_up(&self) -> bool {
        matches!(self.progress, Progress::Stalled | Progress::GivesUp)
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
            covered: false,
            progress: match has_come {
                true => Progress::HasCome,
                false => Progress::Waits,
            },
        });
    }

    /// Its last wait is over. Returns whether it gives up.
    pub(super) fn unblock(&mut self, worker: u32) -> bool {
        let last = self.0.iter().rposition(|b| b.worker == worker);
        let gives_up = last.is_some_and(|last| self.0.remove(last).progress == Progress::GivesUp);
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
        for b in &mut self.0 {
            if b.progress != Progress::GivesUp && b.targets.contains(&target) {
                b.progress = Progress::HasCome;
            }
        }
    }

    /// The task of this worker must give up, and cannot.
    pub(super) fn keep_on(&mut self, worker: u32) {
        let last = self.0.iter_mut().rfind(|b| b.worker == worker);
        last.into_iter().for_each(|b| b.progress = Progress::Stays);
    }

    /// A task runs: those that could not give up may be able to after it.
    pub(super) fn reconsider(&mut self) {
        let stay = self.0.iter_mut().filter(|b| b.progress == Progress::Stays);
        stay.for_each(|b| b.progress = Progress::Waits);
    }

    /// Whether the task of this worker must give up: asked by its last wait, for which nothing has
    /// come, and which then does.
    pub(super) fn gives_up(&mut self, worker: u32) -> bool {
        let last = self.0.iter_mut().rfind(|b| b.worker == worker);
        let stalled = last.filter(|b| b.must_give_up());
        stalled.map(|b| b.progress = Progress::GivesUp).is_some()
    }

    /// Whether the task of this worker is blocked.
    pub(super) fn is_blocked(&self, worker: u32) -> bool {
        self.0.iter().any(|b| b.worker == worker && b.is_blocked())
    }

    /// How many are blocked.
    pub(super) fn len(&self) -> usize {
        self.0.iter().filter(|b| b.is_blocked()).count()
    }

    /// Whether nobody is blocked.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.0.iter().any(Blocked::is_blocked)
    }

    /// How many tasks are blocked and need not give up. A task does not count if one of its targets
    /// has come, though it does not know yet.
    pub(super) fn blocked(&self, has_come: impl Fn(&Target) -> bool) -> usize {
        let of_these = |b: &&Blocked| b.is_blocked() && !b.must_give_up();
        let waits = |b: &&Blocked| !b.targets.iter().any(&has_come);
        self.0.iter().filter(of_these).filter(waits).count()
    }

    /// The newest of them must give up. Returns its waker.
    pub(super) fn give_up(&mut self) -> Option<Waker> {
        let may_give_up = |b: &&mut Blocked| b.progress == Progress::Waits && !b.covered;
        let newest = self.0.iter_mut().rfind(may_give_up)?;
        newest.progress = Progress::Stalled;
        Some(newest.waker.clone())
    }
}
