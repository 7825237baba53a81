//! The body of a task that nobody will ask for: what it gives is dropped as soon as it is
//! there, and nothing is kept of where it waits.

use std::marker::PhantomData;
use std::task::Waker;

use crate::sync::{Arc, Mutex};
use crate::wait::drop_quietly;

use super::cell::{Job, Program, Runner, attempt};
use super::outcome::{Ending, Run};
use super::task_state::Location;

/// The lock is only ever held to move the program.
pub(super) struct Solo<P, R, E> {
    label: Option<Arc<str>>,
    /// While nobody runs it, and it has not ended.
    program: Mutex<Option<P>>,
    gives: PhantomData<fn() -> (R, E)>,
}

impl<P, R, E> Solo<P, R, E> {
    #[inline]
    pub(super) fn new(program: P, label: Option<Arc<str>>) -> Self {
        Self {
            label,
            program: Mutex::new(Some(program)),
            gives: PhantomData,
        }
    }

    pub(super) fn take(&self) -> Option<P> {
        self.program.lock().take()
    }
}

impl<P, R, E> Job for Solo<P, R, E>
where
    P: Program<R, E> + 'static,
    R: 'static,
    E: 'static,
{
    fn set_location(&self, _: Location) {}

    fn is_future(&self) -> bool {
        P::IS_FUTURE
    }

    fn label(&self) -> Option<&Arc<str>> {
        self.label.as_ref()
    }

    fn run(&self, runner: &mut dyn Runner) -> Option<Ending> {
        let program = self.take();
        go(program, runner, |program| {
            *self.program.lock() = Some(program);
        })
    }

    fn run_alone(&mut self, runner: &mut dyn Runner) -> Option<Ending> {
        let there = self.program.get_mut();
        go(there.take(), runner, |program| *there = Some(program))
    }

    fn end_unrun(&self, _: Ending, _: Option<Run>) -> Option<Waker> {
        None
    }

    fn discard(&self) {
        let gone = self.take();
        drop_quietly(gone);
    }
}

/// Runs it; `keep` keeps what must be woken to go on.
#[inline]
fn go<P, R, E>(program: Option<P>, runner: &mut dyn Runner, keep: impl FnOnce(P)) -> Option<Ending>
where
    P: Program<R, E>,
{
    let program = program.expect("one worker runs it at a time");
    match attempt(program, runner) {
        Ok((ending, verdict)) => {
            runner.ended(ending);
            drop_quietly(verdict);
            Some(ending)
        }
        Err(program) => {
            keep(program);
            None
        }
    }
}
