//! A task's body: what is to be run, and its result. That is kept for the task's handle, with
//! when the task ran; without a handle it is dropped at once.
//!
//! A task ends here before it does in the core: its result is there from then on, and
//! whoever waits for it is woken when the core has recorded the end.

use std::any::{Any, TypeId};
use std::mem::needs_drop;
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
    /// Runs it until it ends and keeps its result, or until it must be woken to go
    /// on. Never unwinds.
    fn run(&self, runner: &mut dyn Runner) -> Progress;

    /// The same where nobody else has it.
    fn run_alone(&mut self, runner: &mut dyn Runner) -> Progress;

    /// Drops what was to be run: it ends so without a worker. Who is to be woken for that.
    /// Never unwinds.
    fn end_unrun(&self, ending: Ending, run: Option<Run>) -> Option<Waker>;

    /// Whether it has not begun, and borrows from this scope.
    fn is_of_scope(&self, scope: &Borrows) -> bool;
}

/// What came of a run.
#[derive(Clone, Copy)]
pub(super) enum Progress {
    /// It must be woken to go on.
    Suspended,
    /// It ended, and the runner was told.
    Ended(Ending),
    /// It ended well: the runner is to be told, and the body, in which nothing of it is left, may
    /// be used again for tasks of this type.
    Spent(TypeId),
}

/// Who runs a task.
pub trait Runner {
    /// It has ended so: where and when it ran.
    fn ended(&mut self, ending: Ending) -> Run;

    /// Who is to be woken for that, once it is known to the scheduler.
    fn to_wake(&mut self, waker: Option<Waker>);

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

/// A task's result; where and when it ran, if it did.
type Final<R, E> = (Verdict<R, E>, Option<Run>);

/// The same, when it has ended; `None` if that was taken before.
pub(super) type PolledResult<R, E> = Poll<Option<Final<R, E>>>;

/// A body from which a handle takes the result.
pub(super) trait HasOutcome<R, E>: Send + Sync {
    fn slot(&self) -> &Slot<R, E>;
}

/// Where a task's result goes.
pub(super) trait ResultSink<P: Program>: Send + Sync + 'static {
    /// Whether it stays in the body.
    const STAYS: bool;

    fn new() -> Self;

    /// The task waits here now.
    fn moved(&self, to: Location);

    /// It has ended: who is to be woken.
    fn put(&self, verdict: Verdict<P::Ok, P::Error>, run: Option<Run>) -> Option<Waker>;
}

/// Nobody will ask for it, nor for where the task waits.
impl<P: Program> ResultSink<P> for () {
    const STAYS: bool = false;

    fn new() {}

    fn moved(&self, _: Location) {}

    fn put(&self, verdict: Verdict<P::Ok, P::Error>, _: Option<Run>) -> Option<Waker> {
        drop_quietly(verdict);
        None
    }
}

/// The result, for a handle. The lock is only ever held to move a value: none of the user's
/// code runs under it.
pub(super) struct Slot<R, E>(Mutex<SlotState<R, E>>);

struct SlotState<R, E> {
    location: Option<Location>,
    /// Whoever waits for what it gives.
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
    /// Where the task is to be looked for; `None` as long as it is only posted. To be asked
    /// under the lock of the state.
    pub(super) fn location(&self) -> Option<Location> {
        self.0.lock().location
    }

    /// Takes what came of it.
    #[inline(never)]
    pub(super) fn take(&self) -> PolledResult<R, E> {
        self.0.lock().take()
    }

    /// The same, or leaves a waker for when something has. `None` if there is none to leave:
    /// `current` was not left before, and `cloned` is empty.
    pub(super) fn take_or_wait(
        &self,
        current: &Waker,
        cloned: &mut Option<Waker>,
    ) -> Option<PolledResult<R, E>> {
        let state = &mut *self.0.lock();
        let result = state.take();
        let waits = |left: &Waker| left.will_wake(current);
        if result.is_pending() && !state.waker.as_ref().is_some_and(waits) {
            // What is replaced is dropped by the caller.
            *cloned = state.waker.replace(cloned.take()?);
        }
        Some(result)
    }

    /// The one that waits does so no more.
    pub(super) fn take_waker(&self) -> Option<Waker> {
        self.0.lock().waker.take()
    }

    /// Whether the task has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.0.lock().result.is_ready()
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

/// What is to be run, and where its result goes.
pub(super) struct TaskCell<P, K> {
    label: Option<Arc<str>>,
    /// While nobody runs it, and it has not ended. The lock is only ever held to move it.
    program: Mutex<Option<P>>,
    sink: K,
}

/// Of a task that has a handle.
pub(super) type Cell<P> = TaskCell<P, Slot<<P as Program>::Ok, <P as Program>::Error>>;

/// Of a task that nobody will ask for.
pub(super) type DetachedCell<P> = TaskCell<P, ()>;

/// Larger ones are not used again.
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

    /// What is to be run, if it does not run and has not ended.
    pub(super) fn take(&self) -> Option<P> {
        self.program.lock().take()
    }
}

impl<P: Program> DetachedCell<P> {
    /// The same in this body, if that is empty, nobody's and of its type, else in a new one.
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

/// Runs it until it ends; or `put_back` has what must be woken to go on. If `reuse`, its body
/// may be used again.
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
        // Its end is now, also after the drop of what it gave.
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
