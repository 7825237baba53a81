//! A task's body: first what is to be run, then what it gave and when.
//!
//! A task ends here before it does in the core: what it gave is there from then on, and
//! who was waiting is woken when the core has recorded it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::sync::{Arc, Mutex};
use crate::wait::drop_quietly;

use super::borrows::Borrows;
use super::outcome::{Ending, Run, Verdict};
use super::task_state::{Body, Location};

/// What a worker does with a task, whatever its types.
pub(super) trait Job: Body + Any + Send + Sync {
    /// Runs it until it ends and keeps what it gave, or until it must be woken to go
    /// on. Never unwinds.
    fn run(&self, runner: &mut dyn Runner) -> Course;

    /// The same where nobody else has it.
    fn run_alone(&mut self, runner: &mut dyn Runner) -> Course {
        self.run(runner)
    }

    /// Drops what was to be run: it ends so without a worker. Who is to be woken for that.
    /// Never unwinds.
    fn end_unrun(&self, ending: Ending, run: Option<Run>) -> Option<Waker>;
}

/// What came of a run.
#[derive(Clone, Copy)]
pub(super) enum Course {
    /// It must be woken to go on.
    Suspended,
    /// It ended, and the runner was told.
    Ended(Ending),
    /// It ended well: the runner is to be told, and the body, in which nothing of it is left,
    /// may be used again.
    Spent,
}

/// Who runs a task.
pub trait Runner {
    /// It has ended so: where and when it ran.
    fn ended(&mut self, ending: Ending) -> Run;

    /// Who is to be woken for that, once it is known to the scheduler.
    fn told(&mut self, waker: Option<Waker>);

    /// When it began: earlier than now if it goes on, says the task.
    fn start(&mut self) -> &mut Duration;

    /// What wakes it if it cannot go on now.
    fn waker(&mut self) -> Waker;
}

/// What is to be run: a function, or a future.
pub trait Program: Send + Sized + 'static {
    /// What was handed in.
    type Given;

    /// What it gives.
    type Ok: Send + 'static;

    /// Its error.
    type Error: Send + 'static;

    /// Whether it may have to be woken to go on.
    const IS_FUTURE: bool;

    /// Of what was handed in.
    fn new(given: Self::Given) -> Self;

    /// Runs until it ends, or hands itself back if it must be woken to go on.
    fn go(self, runner: &mut dyn Runner) -> Result<Result<Self::Ok, Self::Error>, Self>;

    /// What was handed in, if it was never run.
    fn back(self) -> Self::Given;

    /// Whether it borrows from this scope.
    fn is_of_scope(&self, _: &Borrows) -> bool {
        false
    }
}

/// A function.
pub struct Function<F>(pub(super) F);

impl<F, R, E> Program for Function<F>
where
    F: FnOnce() -> Result<R, E> + Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    type Given = F;
    type Ok = R;
    type Error = E;

    const IS_FUTURE: bool = false;

    fn new(f: F) -> Self {
        Self(f)
    }

    fn go(self, _: &mut dyn Runner) -> Result<Result<R, E>, Self> {
        Ok((self.0)())
    }

    fn back(self) -> F {
        self.0
    }
}

/// What the task's handle does with it.
pub(super) trait Gift<R, E>: Send + Sync {
    /// Where it is to be looked for; `None` as long as it is only posted. To be asked under
    /// the lock of the state.
    fn location(&self) -> Option<Location>;

    /// Takes what came of it.
    fn take(&self) -> Gave<R, E>;

    /// The same, or leaves a waker for when something has. `None` if there is none to leave:
    /// `current` was not left before, and `spare` is empty.
    fn take_or_wait(&self, current: &Waker, spare: &mut Option<Waker>) -> Option<Gave<R, E>>;

    /// The one that waits does so no more.
    fn take_waker(&self) -> Option<Waker>;

    /// Whether it has ended.
    fn has_ended(&self) -> bool;
}

/// What a task gave; where and when it ran, if it did.
type Final<R, E> = (Verdict<R, E>, Option<Run>);

/// The same, when it has ended; `None` if that was taken before.
pub(super) type Gave<R, E> = Poll<Option<Final<R, E>>>;

/// The lock is only ever held to move a value: none of the user's code runs
/// under it.
pub(super) struct Cell<P: Program> {
    label: Option<Arc<str>>,
    there: Mutex<There<P>>,
}

struct There<P: Program> {
    location: Option<Location>,
    /// Whoever waits for what it gives.
    waker: Option<Waker>,
    stage: Stage<P>,
}

enum Stage<P: Program> {
    Ready(P),
    Running,
    /// Until it is taken.
    Gave(Option<Final<P::Ok, P::Error>>),
}

impl<P: Program> Cell<P> {
    #[inline]
    pub(super) fn new(program: P, label: Option<Arc<str>>) -> Self {
        let there = There {
            location: None,
            waker: None,
            stage: Stage::Ready(program),
        };
        Self {
            label,
            there: Mutex::new(there),
        }
    }

    /// What was to be run, if it did not run.
    pub(super) fn reclaim(&self) -> Option<P> {
        let stage = &mut self.there.lock().stage;
        match std::mem::replace(stage, Stage::Running) {
            Stage::Ready(program) => Some(program),
            _ => None,
        }
    }
}

impl<P: Program> There<P> {
    /// It does not run any more: who is to be woken if it has ended.
    fn put(&mut self, stage: Stage<P>) -> Option<Waker> {
        self.stage = stage;
        match self.stage {
            Stage::Gave(_) => self.waker.take(),
            _ => None,
        }
    }

    /// Takes what came of it.
    fn take(&mut self) -> Gave<P::Ok, P::Error> {
        match &mut self.stage {
            Stage::Ready(_) | Stage::Running => Poll::Pending,
            Stage::Gave(gave) => Poll::Ready(gave.take()),
        }
    }
}

/// Runs it until it ends, or hands itself back.
#[inline]
pub(super) fn attempt<P: Program>(
    program: P,
    runner: &mut dyn Runner,
) -> Result<Verdict<P::Ok, P::Error>, P> {
    match catch_unwind(AssertUnwindSafe(|| program.go(runner))) {
        Ok(Ok(Ok(result))) => Ok(Verdict::Ok(result)),
        Ok(Ok(Err(error))) => Ok(Verdict::Failed(error)),
        Ok(Err(program)) => Err(program),
        Err(payload) => Ok(Verdict::Panicked(payload)),
    }
}

impl<P: Program> Body for Cell<P> {
    fn moved(&self, to: Location) {
        self.there.lock().location = Some(to);
    }

    fn is_future(&self) -> bool {
        P::IS_FUTURE
    }

    fn label(&self) -> Option<&Arc<str>> {
        self.label.as_ref()
    }

    fn is_of_scope(&self, scope: &Borrows) -> bool {
        match &self.there.lock().stage {
            Stage::Ready(program) => program.is_of_scope(scope),
            Stage::Running | Stage::Gave(_) => false,
        }
    }
}

impl<P: Program> Job for Cell<P> {
    fn run(&self, runner: &mut dyn Runner) -> Course {
        let program = self.reclaim().expect("one worker runs it at a time");
        let (course, stage) = match attempt(program, runner) {
            Ok(verdict) => {
                let ending = verdict.ending();
                let run = runner.ended(ending);
                (
                    Course::Ended(ending),
                    Stage::Gave(Some((verdict, Some(run)))),
                )
            }
            Err(program) => (Course::Suspended, Stage::Ready(program)),
        };
        runner.told(self.there.lock().put(stage));
        course
    }

    fn end_unrun(&self, ending: Ending, run: Option<Run>) -> Option<Waker> {
        drop_quietly(self.reclaim());
        let verdict = match ending {
            Ending::Skipped => Verdict::Skipped,
            _ => Verdict::Cancelled,
        };
        self.there.lock().put(Stage::Gave(Some((verdict, run))))
    }
}

impl Body for Arc<dyn Job> {
    fn moved(&self, to: Location) {
        (**self).moved(to);
    }

    #[inline]
    fn is_future(&self) -> bool {
        (**self).is_future()
    }

    #[inline]
    fn label(&self) -> Option<&Arc<str>> {
        (**self).label()
    }

    fn is_of_scope(&self, scope: &Borrows) -> bool {
        (**self).is_of_scope(scope)
    }
}

impl<P: Program> Gift<P::Ok, P::Error> for Cell<P> {
    fn location(&self) -> Option<Location> {
        self.there.lock().location
    }

    fn take(&self) -> Gave<P::Ok, P::Error> {
        self.there.lock().take()
    }

    fn take_or_wait(
        &self,
        current: &Waker,
        spare: &mut Option<Waker>,
    ) -> Option<Gave<P::Ok, P::Error>> {
        let there = &mut *self.there.lock();
        let gave = there.take();
        if gave.is_ready() {
            return Some(gave);
        }
        let waits = there
            .waker
            .as_ref()
            .is_some_and(|left| left.will_wake(current));
        if !waits {
            // What is replaced is dropped by who has the spare.
            *spare = there.waker.replace(spare.take()?);
        }
        Some(Poll::Pending)
    }

    fn take_waker(&self) -> Option<Waker> {
        self.there.lock().waker.take()
    }

    fn has_ended(&self) -> bool {
        !matches!(self.there.lock().stage, Stage::Ready(_) | Stage::Running)
    }
}
