//! A task's body: first what is to be run, then what it gave and when.
//!
//! A task ends here before it does in the core: what it gave is there from then on, and
//! who was waiting is woken when the core has recorded it. One that ends without a
//! worker ends here under the lock of the state.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::time::Duration;

use crate::sync::{Arc, Mutex};
use crate::wait::drop_quietly;

use super::outcome::{Ending, Run, Verdict};
use super::task_state::{Body, Location};

/// What a worker does with a task, whatever its types.
pub(super) trait Job: Any + Send + Sync {
    /// Its task waits here now, or has moved: told under the lock of the state.
    fn set_location(&self, location: Location);

    /// Whether it may have to be run more than once.
    fn is_future(&self) -> bool;

    /// What its task is called.
    fn label(&self) -> Option<&Arc<str>>;

    /// Runs it until it ends and keeps what it gave, or until it must be woken to go
    /// on: `None`. Never unwinds.
    fn run(&self, runner: &mut dyn Runner) -> Option<Ending>;

    /// The same where nobody else has it, without its lock.
    fn run_alone(&mut self, runner: &mut dyn Runner) -> Option<Ending>;

    /// It has ended so without a worker: drops nothing of the user's. Who is to be
    /// woken for that.
    fn end_unrun(&self, ending: Ending, run: Option<Run>) -> Option<Waker>;

    /// Drops what was to be run, before or after its ending is told. Never unwinds.
    fn discard(&self);
}

/// Who runs a task.
#[allow(unreachable_pub, reason = "in the type of a wait")]
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
#[allow(unreachable_pub, reason = "in the type of a wait")]
pub trait Program<R, E>: Send + Sized {
    /// Whether it may have to be woken to go on.
    const IS_FUTURE: bool;

    /// Runs until it ends, or hands itself back if it must be woken to go on.
    fn go(self, runner: &mut dyn Runner) -> Result<Result<R, E>, Self>;
}

/// A function.
#[allow(unreachable_pub, reason = "in the type of a wait")]
pub struct Function<F>(pub(super) F);

impl<F, R, E> Program<R, E> for Function<F>
where
    F: FnOnce() -> Result<R, E> + Send,
{
    const IS_FUTURE: bool = false;

    fn go(self, _: &mut dyn Runner) -> Result<Result<R, E>, Self> {
        Ok((self.0)())
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

    /// Who waits does so no more.
    fn take_waker(&self) -> Option<Waker>;

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
pub(super) struct Cell<P, R, E> {
    label: Option<Arc<str>>,
    there: Mutex<There<P, R, E>>,
}

struct There<P, R, E> {
    location: Option<Location>,
    /// Whoever waits for what it gives.
    waker: Option<Waker>,
    stage: Stage<P, R, E>,
}

enum Stage<P, R, E> {
    Ready(P),
    Running,
    Gave(Verdict<R, E>, Run),
    /// It ended without a worker: how, until that is taken, and its program until that
    /// is dropped.
    Unrun(Option<(Ending, Option<Run>)>, Option<P>),
    Taken,
}

impl<P, R, E> Cell<P, R, E> {
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
}

impl<P, R, E> There<P, R, E> {
    /// Puts something else there; and if that is what came of the task, takes out who is to
    /// be woken for it.
    fn swap(&mut self, stage: Stage<P, R, E>) -> (Stage<P, R, E>, Option<Waker>) {
        let waker = match &stage {
            Stage::Gave(..) | Stage::Unrun(..) => self.waker.take(),
            _ => None,
        };
        (std::mem::replace(&mut self.stage, stage), waker)
    }
}

/// Runs what is there; `swap` puts something else there.
#[inline]
fn run<P, R, E>(
    runner: &mut dyn Runner,
    mut swap: impl FnMut(Stage<P, R, E>) -> (Stage<P, R, E>, Option<Waker>),
) -> Option<Ending>
where
    P: Program<R, E>,
{
    let (Stage::Ready(program), _) = swap(Stage::Running) else {
        unreachable!("one worker runs it at a time");
    };
    match attempt(program, runner) {
        Ok((ending, verdict)) => {
            let (_, waker) = swap(Stage::Gave(verdict, runner.ended(ending)));
            runner.told(waker);
            Some(ending)
        }
        Err(program) => {
            swap(Stage::Ready(program));
            None
        }
    }
}

/// Runs it until it ends, or hands itself back.
#[inline]
pub(super) fn attempt<P, R, E>(
    program: P,
    runner: &mut dyn Runner,
) -> Result<(Ending, Verdict<R, E>), P>
where
    P: Program<R, E>,
{
    match catch_unwind(AssertUnwindSafe(|| program.go(runner))) {
        Ok(Ok(Ok(result))) => Ok((Ending::Ok, Verdict::Ok(result))),
        Ok(Ok(Err(error))) => Ok((Ending::Failed, Verdict::Failed(error))),
        Ok(Err(program)) => Err(program),
        Err(payload) => Ok((Ending::Panicked, Verdict::Panicked(payload))),
    }
}

impl<P, R, E> Job for Cell<P, R, E>
where
    P: Program<R, E> + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    fn set_location(&self, location: Location) {
        self.there.lock().location = Some(location);
    }

    fn is_future(&self) -> bool {
        P::IS_FUTURE
    }

    fn label(&self) -> Option<&Arc<str>> {
        self.label.as_ref()
    }

    fn run(&self, runner: &mut dyn Runner) -> Option<Ending> {
        run(runner, |stage| self.there.lock().swap(stage))
    }

    fn run_alone(&mut self, runner: &mut dyn Runner) -> Option<Ending> {
        let there = self.there.get_mut();
        run(runner, |stage| there.swap(stage))
    }

    fn end_unrun(&self, ending: Ending, run: Option<Run>) -> Option<Waker> {
        let there = &mut *self.there.lock();
        let program = match std::mem::replace(&mut there.stage, Stage::Taken) {
            Stage::Ready(program) => Some(program),
            _ => None,
        };
        there.swap(Stage::Unrun(Some((ending, run)), program)).1
    }

    fn discard(&self) {
        let gone = {
            let stage = &mut self.there.lock().stage;
            match stage {
                Stage::Unrun(_, program) => Stage::Unrun(None, program.take()),
                stage => std::mem::replace(stage, Stage::Running),
            }
        };
        drop_quietly(gone);
    }
}

impl Body for Arc<dyn Job> {
    fn moved(&self, to: Location) {
        self.set_location(to);
    }

    #[inline]
    fn is_future(&self) -> bool {
        Job::is_future(&**self)
    }

    #[inline]
    fn label(&self) -> Option<&Arc<str>> {
        Job::label(&**self)
    }
}

impl<P, R, E> Cell<P, R, E> {
    /// What was to be run, if it did not run.
    pub(super) fn reclaim(&self) -> Option<P> {
        match self.there.lock().swap(Stage::Running).0 {
            Stage::Ready(program) => Some(program),
            _ => None,
        }
    }
}

impl<P, R, E> Gift<R, E> for Cell<P, R, E>
where
    P: Send,
    R: Send,
    E: Send,
{
    fn location(&self) -> Option<Location> {
        self.there.lock().location
    }

    fn take(&self) -> Gave<R, E> {
        self.there.lock().take()
    }

    fn take_or_wait(&self, current: &Waker, spare: &mut Option<Waker>) -> Option<Gave<R, E>> {
        let there = &mut *self.there.lock();
        match there.take() {
            Gave::NotYet => {}
            gave => return Some(gave),
        }
        let waits = there
            .waker
            .as_ref()
            .is_some_and(|left| left.will_wake(current));
        if !waits {
            // What is replaced is dropped by who has the spare.
            *spare = there.waker.replace(spare.take()?);
        }
        Some(Gave::NotYet)
    }

    fn take_waker(&self) -> Option<Waker> {
        self.there.lock().waker.take()
    }

    fn has_ended(&self) -> bool {
        !matches!(self.there.lock().stage, Stage::Ready(_) | Stage::Running)
    }
}

impl<P, R, E> There<P, R, E> {
    fn take(&mut self) -> Gave<R, E> {
        match &mut self.stage {
            Stage::Ready(_) | Stage::Running => Gave::NotYet,
            Stage::Unrun(how, _) => match how.take() {
                Some((Ending::Skipped, run)) => Gave::This(Verdict::Skipped, run),
                Some((_, run)) => Gave::This(Verdict::Cancelled, run),
                None => Gave::Taken,
            },
            stage @ Stage::Gave(..) => match std::mem::replace(stage, Stage::Taken) {
                Stage::Gave(verdict, run) => Gave::This(verdict, Some(run)),
                _ => Gave::Taken,
            },
            Stage::Taken => Gave::Taken,
        }
    }
}
