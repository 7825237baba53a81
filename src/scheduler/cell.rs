//! A task's body: first what is to be run, then what it gave and when.
//!
//! A task ends here before it does in the core: what it gave is there from then on, and
//! who was waiting is woken when the core has recorded it. One that ends without having
//! run ends here under the lock of the state.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::sync::Mutex;
use crate::wait::drop_quietly;

use super::outcome::{Ending, Run, Verdict};

/// What a worker does with a task, whatever its types.
pub(super) trait Job: Send + Sync {
    /// Runs it and keeps what it gave, with the run that `ended` makes of its ending.
    /// Never unwinds.
    fn run(&self, ended: &mut dyn FnMut(Ending) -> Run) -> Ending;

    /// It has ended so without having run: nothing of the user's is dropped yet.
    fn end_unrun(&self, ending: Ending);

    /// Drops what was to be run, or what it gave. Never unwinds.
    fn discard(&self);
}

/// What the task's handle does with it.
pub(super) trait Gift<R, E>: Send + Sync {
    /// Takes what came of it.
    fn take(&self) -> Gave<R, E>;

    /// Whether it has ended.
    fn has_ended(&self) -> bool;
}

/// What came of a task.
pub(super) enum Gave<R, E> {
    /// It has not ended.
    NotYet,
    /// It was taken before.
    Taken,
    This(Verdict<R, E>, Option<Run>),
}

/// The lock is only ever held to move a value: none of the user's code runs
/// under it.
pub(super) struct Cell<F, R, E>(Mutex<Body<F, R, E>>);

enum Body<F, R, E> {
    Ready(F),
    Running,
    Gave(Verdict<R, E>, Run),
    /// It ended without having run; its function may not have been dropped yet.
    Unrun(Ending, Option<F>),
    Taken,
}

impl<F, R, E> Cell<F, R, E> {
    pub(super) fn new(f: F) -> Self {
        Self(Mutex::new(Body::Ready(f)))
    }

    /// The function of a task that was refused.
    pub(super) fn reclaim(&self) -> Option<F> {
        match self.swap(Body::Running) {
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
    fn run(&self, ended: &mut dyn FnMut(Ending) -> Run) -> Ending {
        let f = self.reclaim().expect("it is run once");
        let (ending, verdict) = match catch_unwind(AssertUnwindSafe(f)) {
            Ok(Ok(result)) => (Ending::Ok, Verdict::Ok(result)),
            Ok(Err(error)) => (Ending::Failed, Verdict::Failed(error)),
            Err(payload) => (Ending::Panicked, Verdict::Panicked(payload)),
        };
        self.swap(Body::Gave(verdict, ended(ending)));
        ending
    }

    fn end_unrun(&self, ending: Ending) {
        let body = &mut *self.0.lock();
        if let Body::Ready(f) = std::mem::replace(body, Body::Taken) {
            *body = Body::Unrun(ending, Some(f));
        }
    }

    fn discard(&self) {
        let gone = match &mut *self.0.lock() {
            Body::Unrun(_, f) => Body::Unrun(Ending::Cancelled, f.take()),
            body => std::mem::replace(body, Body::Taken),
        };
        drop_quietly(gone);
    }
}

impl<F, R, E> Gift<R, E> for Cell<F, R, E>
where
    F: Send,
    R: Send,
    E: Send,
{
    fn take(&self) -> Gave<R, E> {
        let body = &mut *self.0.lock();
        match body {
            Body::Ready(_) | Body::Running => Gave::NotYet,
            Body::Unrun(Ending::Skipped, _) => Gave::This(Verdict::Skipped, None),
            Body::Unrun(..) => Gave::This(Verdict::Cancelled, None),
            Body::Gave(..) | Body::Taken => match std::mem::replace(body, Body::Taken) {
                Body::Gave(verdict, run) => Gave::This(verdict, Some(run)),
                _ => Gave::Taken,
            },
        }
    }

    fn has_ended(&self) -> bool {
        !matches!(*self.0.lock(), Body::Ready(_) | Body::Running)
    }
}
