//! The body of a task that nobody will ask for: what it gives is dropped as soon as it is
//! there, and nothing is kept of where it waits.

use std::any::Any;
use std::mem::needs_drop;
use std::task::Waker;

use crate::sync::{Arc, Mutex};
use crate::wait::drop_quietly;

use super::cell::{Course, Job, Program, Runner, attempt};
use super::local_queue::Work;
use super::outcome::{Ending, Run, Verdict};
use super::task_state::Body;

/// Larger ones are not used again.
pub(super) const LARGEST: usize = 256;

/// The lock is only ever held to move the program.
pub(super) struct Solo<P> {
    label: Option<Arc<str>>,
    /// While nobody runs it, and it has not ended.
    program: Mutex<Option<P>>,
}

impl<P> Solo<P> {
    #[inline]
    pub(super) fn new(program: P, label: Option<Arc<str>>) -> Self {
        Self {
            label,
            program: Mutex::new(Some(program)),
        }
    }

    pub(super) fn take(&self) -> Option<P> {
        self.program.lock().take()
    }
}

impl<P: Program> Solo<P> {
    /// The same in this body, if that is empty, nobody's and of its type, else in a new one.
    #[inline]
    pub(super) fn put_into(self, mut body: Option<Work>) -> Work {
        let any = body.as_mut().and_then(Arc::get_mut);
        let any = any.map(|body| body as &mut dyn Any);
        match any.and_then(|any| any.downcast_mut::<Self>()) {
            Some(empty) => {
                let Self { label, program } = self;
                (empty.label, *empty.program.get_mut()) = (label, program.into_inner());
                body.expect("it was filled")
            }
            None => Arc::new(self),
        }
    }
}

impl<P: Program> Body for Solo<P> {
    fn is_future(&self) -> bool {
        P::IS_FUTURE
    }

    fn label(&self) -> Option<&Arc<str>> {
        self.label.as_ref()
    }
}

impl<P: Program> Job for Solo<P> {
    fn run(&self, runner: &mut dyn Runner) -> Course {
        let program = self.take();
        go(program, runner, false, |program| {
            *self.program.lock() = Some(program);
        })
    }

    fn run_alone(&mut self, runner: &mut dyn Runner) -> Course {
        let there = self.program.get_mut();
        let (program, reuse) = (there.take(), self.label.is_none());
        go(program, runner, reuse, |program| *there = Some(program))
    }

    fn end_unrun(&self, _: Ending, _: Option<Run>) -> Option<Waker> {
        None
    }

    fn discard(&self) {
        let gone = self.take();
        drop_quietly(gone);
    }
}

/// Runs it; `keep` keeps what must be woken to go on. If `reuse`, its body may be used again.
#[inline]
fn go<P: Program>(
    program: Option<P>,
    runner: &mut dyn Runner,
    reuse: bool,
    keep: impl FnOnce(P),
) -> Course {
    let program = program.expect("one worker runs it at a time");
    match attempt(program, runner) {
        // Its end is now, also after the drop of what it gave.
        Ok(Verdict::Ok(_))
            if reuse && size_of::<Solo<P>>() <= LARGEST && !needs_drop::<P::Ok>() =>
        {
            Course::Spent
        }
        Ok(verdict) => {
            let ending = verdict.ending();
            runner.ended(ending);
            drop_quietly(verdict);
            Course::Ended(ending)
        }
        Err(program) => {
            keep(program);
            Course::Suspended
        }
    }
}
