//! The body of a task: its program (a function or a future) and its result. The result and the
//! times of the run are kept for the task's handle; without a handle the result is dropped at once.
//!
//! A task ends here before it ends in the core: its result is there from then on, and its waiter is
//! woken when the core has recorded the end.

use std::any::{Any, TypeId};
use std::mem::needs_drop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::sync::{Arc, Mutex};
use crate::wait::drop_quietly;

use super::borrows::Borrows;
use super::outcome::{Ending, Run, TaskResult, Verdict};
use super::task_state::{Body, Location};

/// A task's body without its types, as a worker uses it.
pub(super) trait Job: Body + Any + Send + Sync {
    /// Runs the program until it ends, or until it must be woken to go on. Never unwinds.
    fn run(&self, runner: &mut dyn Runner) -> Progress;

    /// The same, for a body that nobody else has.
    fn run_alone(&mut self, runner: &mut dyn Runner) -> Progress;

    /// Drops the program: the task ends without a worker. Returns the waker of its waiter. Never
    /// unwinds.
    fn end_unrun(&self, ending: Ending, run: Option<Run>) -> Option<Waker>;

    /// Whether its program has not begun, and borrows from this scope.
    fn is_of_scope(&self, scope: &Borrows) -> bool;
}

/// The result of a run.
#[derive(Clone, Copy)]
pub(super) enum Progress {
    /// It must be woken to go on.
    Suspended,
    /// It ended, and the runner knows.
    Ended(Ending),
    /// It ended as `Ok`, and the runner does not know yet. The body is empty, and may be reused for
    /// tasks of this type.
    Spent(TypeId),
}

/// Runs a task.
pub trait Runner {
    /// The task has ended. Returns where and when it ran.
    fn ended(&mut self, ending: Ending) -> Run;

    /// The waker to wake once the scheduler knows of the end.
    fn to_wake(&mut self, waker: Option<Waker>);

    /// When the task began; a future that goes on sets an earlier time.
    fn start(&mut self) -> &mut Duration;

    /// The waker of the future that is polled.
    fn waker(&mut self) -> Waker;
}

/// The program of a task: a function or a future.
pub trait Program: Send + Sized + 'static {
    /// The function or future of the user.
    type Given;

    /// Its result.
    type Ok: Send + 'static;

    /// Its error.
    type Error: Send + 'static;

    /// Whether it may have to be woken to go on.
    const IS_FUTURE: bool = false;

    /// Makes a program.
    fn new(given: Self::Given) -> Self;

    /// Runs until it ends; gives itself back if it must be woken to go on.
    fn go(self, runner: &mut dyn Runner) -> Result<Result<Self::Ok, Self::Error>, Self>;

    /// The user's function or future, of a program that was never run.
    fn back(self) -> Self::Given;

    /// Whether it borrows from this scope.
    fn is_of_scope(&self, _: &Borrows) -> bool {
        false
    }
}

/// A function.
pub struct Function<F>(pub(super) F);

impl<F, T> Program for Function<F>
where
    F: FnOnce() -> T + Send + 'static,
    T: TaskResult,
{
    type Given = F;
    type Ok = T::Ok;
    type Error = T::Error;

    fn new(f: F) -> Self {
        Self(f)
    }

    fn go(self, _: &mut dyn Runner) -> Result<Result<T::Ok, T::Error>, Self> {
        Ok((self.0)().into_result())
    }

    fn back(self) -> F {
        self.0
    }
}

/// The result of a task, and where and when it ran, if it did.
type Final<R, E> = (Verdict<R, E>, Option<Run>);

/// The same, once the task has ended; `None` if it was taken before.
pub(super) type PolledResult<R, E> = Poll<Option<Final<R, E>>>;

/// A body from which a handle takes the result.
pub(super) trait HasOutcome<R, E>: Send + Sync {
    fn slot(&self) -> &Slot<R, E>;
}

/// Where the result of a task goes.
pub(super) trait ResultSink<P: Program>: Send + Sync + 'static {
    /// Whether the result stays in the body.
    const STAYS: bool;

    fn new() -> Self;

    /// The task waits here now.
    fn moved(&self, to: Location);

    /// The task has ended. Returns the waker of its waiter.
    fn put(&self, verdict: Verdict<P::Ok, P::Error>, run: Option<Run>) -> Option<Waker>;
}

/// Of a task without a handle: nobody asks for its result, or where it waits.
impl<P: Program> ResultSink<P> for () {
    const STAYS: bool = false;

    fn new() {}

    fn moved(&self, _: Location) {}

    fn put(&self, verdict: Verdict<P::Ok, P::Error>, _: Option<Run>) -> Option<Waker> {
        drop_quietly(verdict);
        None
    }
}

/// The result, for a handle. The lock is only held to move values: no user code runs under it.
pub(super) struct Slot<R, E>(Mutex<SlotState<R, E>>);

struct SlotState<R, E> {
    location: Option<Location>,
    /// Of the handle that waits for the result.
    waker: Option<Waker>,
    result: PolledResult<R, E>,
}

impl<P: Program> ResultSink<P> for Slot<P::Ok, P::Error> {
    const STAYS: bool = true;

    #[inline]
    fn new() -> Self {
        Self(Mutex::new(SlotState {
            location: None,
            waker: None,
            result: Poll::Pending,
        }))
    }

    fn moved(&self, to: Location) {
        self.0.lock().location = Some(to);
    }

    fn put(&self, verdict: Verdict<P::Ok, P::Error>, run: Option<Run>) -> Option<Waker> {
        let state = &mut *self.0.lock();
        state.result = Poll::Ready(Some((verdict, run)));
        state.waker.take()
    }
}

impl<R, E> Slot<R, E> {
    /// Where the task waits or waited; `None` while it is only posted. Call it under the state's
    /// lock.
    pub(super) fn location(&self) -> Option<Location> {
        self.0.lock().location
    }

    /// Takes the result, if it is there.
    #[inline(never)]
    pub(super) fn take(&self) -> PolledResult<R, E> {
        self.0.lock().take()
    }

    /// Takes the result, or leaves a waker. `None` if it has no waker to leave: `cloned` is empty,
    /// and `current` was not left before.
    pub(super) fn take_or_wait(
        &self,
        current: &Waker,
        cloned: &mut Option<Waker>,
    ) -> Option<PolledResult<R, E>> {
        let state = &mut *self.0.lock();
        let result = state.take();
        let waits = |left: &Waker| left.will_wake(current);
        if result.is_pending() && !state.waker.as_ref().is_some_and(waits) {
            // The caller drops the old waker.
            *cloned = state.waker.replace(cloned.take()?);
        }
        Some(result)
    }

    /// The handle stops waiting.
    pub(super) fn take_waker(&self) -> Option<Waker> {
        self.0.lock().waker.take()
    }

    /// Whether the task has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.0.lock().result.is_ready()
    }

    /// Whether the result was taken.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self.0.lock().result, Poll::Ready(None))
    }
}

impl<R, E> SlotState<R, E> {
    #[inline]
    fn take(&mut self) -> PolledResult<R, E> {
        match &mut self.result {
            Poll::Pending => Poll::Pending,
            Poll::Ready(result) => Poll::Ready(result.take()),
        }
    }
}

/// A task's body.
pub(super) struct TaskCell<P, K> {
    label: Option<Arc<str>>,
    /// There while nobody runs it and it has not ended. The lock is only held to move it.
    program: Mutex<Option<P>>,
    sink: K,
}

/// The body of a task with a handle.
pub(super) type Cell<P> = TaskCell<P, Slot<<P as Program>::Ok, <P as Program>::Error>>;

/// The body of a task without a handle.
pub(super) type DetachedCell<P> = TaskCell<P, ()>;

/// Larger bodies are not reused.
const LARGEST: usize = 256;

impl<P: Program, K: ResultSink<P>> TaskCell<P, K> {
    #[inline]
    pub(super) fn new(program: P, label: Option<Arc<str>>) -> Self {
        Self {
            label,
            program: Mutex::new(Some(program)),
            sink: K::new(),
        }
    }

    /// Takes the program, if it does not run and has not ended.
    pub(super) fn take(&self) -> Option<P> {
        self.program.lock().take()
    }
}

impl<P: Program> DetachedCell<P> {
    /// Moves into this body, if it is unused and of the same type, else into a new one.
    #[inline]
    pub(super) fn put_into(self, mut body: Option<Arc<dyn Job>>) -> Arc<dyn Job> {
        let any = body.as_mut().and_then(Arc::get_mut);
        let any = any.map(|body| body as &mut dyn Any);
        match any.and_then(|any| any.downcast_mut::<Self>()) {
            Some(empty) => {
                let Self { label, program, .. } = self;
                (empty.label, *empty.program.get_mut()) = (label, program.into_inner());
                body.expect("it was filled")
            }
            None => Arc::new(self),
        }
    }
}

impl<P: Program, K: ResultSink<P>> Body for TaskCell<P, K> {
    fn moved(&self, to: Location) {
        self.sink.moved(to);
    }

    fn is_future(&self) -> bool {
        P::IS_FUTURE
    }

    fn label(&self) -> Option<&Arc<str>> {
        self.label.as_ref()
    }
}

impl<P: Program, K: ResultSink<P>> Job for TaskCell<P, K> {
    fn run(&self, runner: &mut dyn Runner) -> Progress {
        let program = self.take();
        go(program, &self.sink, false, runner, |program| {
            *self.program.lock() = Some(program);
        })
    }

    fn run_alone(&mut self, runner: &mut dyn Runner) -> Progress {
        let there = self.program.get_mut();
        let program = there.take();
        let reuse = !K::STAYS && size_of::<Self>() <= LARGEST && self.label.is_none();
        go(program, &self.sink, reuse, runner, |program| {
            *there = Some(program);
        })
    }

    fn end_unrun(&self, ending: Ending, run: Option<Run>) -> Option<Waker> {
        drop_quietly(self.take());
        let verdict = match ending {
            Ending::Skipped => Verdict::Skipped,
            _ => Verdict::Cancelled,
        };
        self.sink.put(verdict, run)
    }

    fn is_of_scope(&self, scope: &Borrows) -> bool {
        let program = self.program.lock();
        program.as_ref().is_some_and(|p| p.is_of_scope(scope))
    }
}

impl<P: Program> HasOutcome<P::Ok, P::Error> for Cell<P> {
    fn slot(&self) -> &Slot<P::Ok, P::Error> {
        &self.sink
    }
}

/// Runs a program until it ends; `put_back` gets one that must be woken to go on. With `reuse`, the
/// body may be reused.
#[inline]
fn go<P: Program>(
    program: Option<P>,
    sink: &impl ResultSink<P>,
    reuse: bool,
    runner: &mut dyn Runner,
    put_back: impl FnOnce(P),
) -> Progress {
    let program = program.expect("one worker runs it at a time");
    let verdict = match catch_unwind(AssertUnwindSafe(|| program.go(runner))) {
        // No drop of the result could take time after the end.
        Ok(Ok(Ok(_))) if reuse && !needs_drop::<P::Ok>() => {
            return Progress::Spent(TypeId::of::<DetachedCell<P>>());
        }
        Ok(Ok(Ok(result))) => Verdict::Ok(result),
        Ok(Ok(Err(error))) => Verdict::Failed(error),
        Ok(Err(program)) => {
            put_back(program);
            return Progress::Suspended;
        }
        Err(payload) => Verdict::Panicked(payload),
    };
    let ending = verdict.ending();
    let run = runner.ended(ending);
    runner.to_wake(sink.put(verdict, Some(run)));
    Progress::Ended(ending)
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
}
