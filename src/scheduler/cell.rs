//! A task's body: first what is to be run, then what it gave and when.
//!
//! A task ends here before it does in the core: what it gave is there from then on, and
//! who was waiting is woken when the core has recorded it. One that ends without a
//! worker ends here under the lock of the state.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::time::Duration;

use crate::slab::Key;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering::Relaxed};
use crate::wait::drop_quietly;

use super::outcome::{Ending, Run, Verdict};
use super::placing::Keyed;

/// What a worker does with a task, whatever its types.
pub(super) trait Job: Any + Send + Sync {
    /// It has this key in the core: told under the lock of the state.
    fn set_key(&self, key: Key);

    /// Runs it until it ends and keeps what it gave, or until it must be woken to go
    /// on: `None`. Never unwinds.
    fn run(&self, runner: &mut dyn Runner) -> Option<Ending>;

    /// The same where nobody else has it, without its lock.
    fn run_alone(&mut self, runner: &mut dyn Runner) -> Option<Ending>;

    /// It has ended so without a worker: drops nothing of the user's.
    fn end_unrun(&self, ending: Ending, run: Option<Run>);

    /// Drops what was to be run, before or after its ending is told. Never unwinds.
    fn discard(&self);
}

/// Who runs a task.
#[allow(unreachable_pub, reason = "in the type of a wait")]
pub trait Runner {
    /// It has ended so: where and when it ran.
    fn ended(&mut self, ending: Ending) -> Run;

    /// When it began: earlier than now if it goes on, says the task.
    fn start(&mut self) -> &mut Duration;

    /// What wakes it if it cannot go on now.
    fn waker(&mut self) -> Waker;
}

/// What is to be run: a function, or a future.
#[allow(unreachable_pub, reason = "in the type of a wait")]
pub trait Program<R, E>: Send + Sized {
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
    fn go(self, _: &mut dyn Runner) -> Result<Result<R, E>, Self> {
        Ok((self.0)())
    }
}

/// What the task's handle does with it.
pub(super) trait Gift<R, E>: Send + Sync {
    /// Its key in the core; `None` as long as it is only posted. To be asked under the lock
    /// of the state.
    fn key(&self) -> Option<Key>;

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
pub(super) struct Cell<P, R, E> {
    /// The bits of its key, or 0. Relaxed: the lock of the state orders it.
    key: AtomicU64,
    body: Mutex<Body<P, R, E>>,
}

enum Body<P, R, E> {
    Ready(P),
    Running,
    Gave(Verdict<R, E>, Run),
    /// It ended without a worker: how, until that is taken, and its program until that
    /// is dropped.
    Unrun(Option<(Ending, Option<Run>)>, Option<P>),
    Taken,
}

impl<P, R, E> Cell<P, R, E> {
    pub(super) fn new(program: P) -> Self {
        Self {
            key: AtomicU64::new(0),
            body: Mutex::new(Body::Ready(program)),
        }
    }

    fn swap(&self, body: Body<P, R, E>) -> Body<P, R, E> {
        std::mem::replace(&mut *self.body.lock(), body)
    }
}

/// Runs what is there; `swap` puts something else there.
#[inline]
fn run<P, R, E>(
    runner: &mut dyn Runner,
    mut swap: impl FnMut(Body<P, R, E>) -> Body<P, R, E>,
) -> Option<Ending>
where
    P: Program<R, E>,
{
    let Body::Ready(program) = swap(Body::Running) else {
        unreachable!("one worker runs it at a time");
    };
    let went = catch_unwind(AssertUnwindSafe(|| program.go(runner)));
    let (ending, verdict) = match went {
        Ok(Ok(Ok(result))) => (Ending::Ok, Verdict::Ok(result)),
        Ok(Ok(Err(error))) => (Ending::Failed, Verdict::Failed(error)),
        Ok(Err(program)) => {
            swap(Body::Ready(program));
            return None;
        }
        Err(payload) => (Ending::Panicked, Verdict::Panicked(payload)),
    };
    swap(Body::Gave(verdict, runner.ended(ending)));
    Some(ending)
}

impl<P, R, E> Job for Cell<P, R, E>
where
    P: Program<R, E> + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    fn set_key(&self, key: Key) {
        self.key.store(key.to_bits(), Relaxed);
    }

    fn run(&self, runner: &mut dyn Runner) -> Option<Ending> {
        run(runner, |body| self.swap(body))
    }

    fn run_alone(&mut self, runner: &mut dyn Runner) -> Option<Ending> {
        let there = self.body.get_mut();
        run(runner, |body| std::mem::replace(there, body))
    }

    fn end_unrun(&self, ending: Ending, run: Option<Run>) {
        let body = &mut *self.body.lock();
        *body = match std::mem::replace(body, Body::Taken) {
            Body::Ready(program) => Body::Unrun(Some((ending, run)), Some(program)),
            _ => Body::Unrun(Some((ending, run)), None),
        };
    }

    fn discard(&self) {
        let gone = match &mut *self.body.lock() {
            Body::Unrun(_, program) => Body::Unrun(None, program.take()),
            body => std::mem::replace(body, Body::Running),
        };
        drop_quietly(gone);
    }
}

impl Keyed for Arc<dyn Job> {
    #[inline]
    fn set_key(&self, key: Key) {
        Job::set_key(&**self, key);
    }
}

/// What was to be run in a cell of these types, if it did not run.
pub(super) fn reclaim<P, R, E>(job: Arc<dyn Job>) -> Option<P>
where
    P: Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    let job: Arc<dyn Any + Send + Sync> = job;
    let cell = job.downcast::<Cell<P, R, E>>().ok()?;
    match cell.swap(Body::Running) {
        Body::Ready(program) => Some(program),
        _ => None,
    }
}

impl<P, R, E> Gift<R, E> for Cell<P, R, E>
where
    P: Send,
    R: Send,
    E: Send,
{
    fn key(&self) -> Option<Key> {
        Key::from_bits(self.key.load(Relaxed))
    }

    fn take(&self) -> Gave<R, E> {
        let body = &mut *self.body.lock();
        match body {
            Body::Ready(_) | Body::Running => Gave::NotYet,
            Body::Unrun(how, _) => match how.take() {
                Some((Ending::Skipped, run)) => Gave::This(Verdict::Skipped, run),
                Some((_, run)) => Gave::This(Verdict::Cancelled, run),
                None => Gave::Taken,
            },
            Body::Gave(..) | Body::Taken => match std::mem::replace(body, Body::Taken) {
                Body::Gave(verdict, run) => Gave::This(verdict, Some(run)),
                _ => Gave::Taken,
            },
        }
    }

    fn has_ended(&self) -> bool {
        !matches!(*self.body.lock(), Body::Ready(_) | Body::Running)
    }
}
