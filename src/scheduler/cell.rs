//! A task's body: first what is to be run, then what it gave.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::sync::Mutex;
use crate::wait::drop_quietly;

use super::outcome::{Ending, Verdict};

/// What a worker does with a task, whatever its types.
pub(super) trait Job: Send + Sync {
    /// Runs it and keeps what it gave. Never unwinds.
    fn run(&self) -> Ending;

    /// Drops what is to be run, or what it gave. Never unwinds.
    fn discard(&self);
}

/// What the task's handle does with it.
pub(super) trait Gift<R, E>: Send + Sync {
    /// Takes what the task gave; `None` if it gave nothing or it was taken.
    fn take(&self) -> Option<Verdict<R, E>>;
}

/// The lock is only ever held to move a value: none of the user's code runs
/// under it.
pub(super) struct Cell<F, R, E>(Mutex<Body<F, R, E>>);

enum Body<F, R, E> {
    Ready(F),
    Empty,
    Gave(Verdict<R, E>),
}

impl<F, R, E> Cell<F, R, E> {
    pub(super) fn new(f: F) -> Self {
        Self(Mutex::new(Body::Ready(f)))
    }

    /// The function, if it was never run.
    pub(super) fn reclaim(&self) -> Option<F> {
        match self.swap(Body::Empty) {
            Body::Ready(f) => Some(f),
            _ => None,
        }
    }

    fn swap(&self, body: Body<F, R, E>) -> Body<F, R, E> {
        std::mem::replace(&mut *self.0.lock(), body)
    }
}

impl<F, R, E> Job for Cell<F, R, E>
where
    F: FnOnce() -> Result<R, E> + Send,
    R: Send,
    E: Send,
{
    fn run(&self) -> Ending {
        let Some(f) = self.reclaim() else {
            return Ending::Cancelled;
        };
        let (ending, verdict) = match catch_unwind(AssertUnwindSafe(f)) {
            Ok(Ok(result)) => (Ending::Ok, Verdict::Ok(result)),
            Ok(Err(error)) => (Ending::Failed, Verdict::Failed(error)),
            Err(payload) => (Ending::Panicked, Verdict::Panicked(payload)),
        };
        self.swap(Body::Gave(verdict));
        ending
    }

    fn discard(&self) {
        drop_quietly(self.swap(Body::Empty));
    }
}

impl<F, R, E> Gift<R, E> for Cell<F, R, E>
where
    F: Send,
    R: Send,
    E: Send,
{
    fn take(&self) -> Option<Verdict<R, E>> {
        match self.swap(Body::Empty) {
            Body::Gave(verdict) => Some(verdict),
            _ => None,
        }
    }
}
