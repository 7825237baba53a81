//! Tasks that nobody will ask for: what such a task is run in, and how that is used again. What
//! it gives is dropped as soon as it is there, and nothing is kept of where it waits.
//!
//! Its body is kept for others of its type, which ask the allocator for nothing.
//!
//! Protocol: a worker gathers what it has run, and hands that in with its report. Who takes
//! in what was posted leaves the bodies at the list, where submitters find them.
//!
//! Invariants:
//! 1. Nobody else has a body that is kept, and nothing of the user's is in it.
//! 2. In one place there are at most [`MOST`], of at most [`TYPES`] types; of those that are
//!    larger than [`LARGEST`] there are none.

use std::any::{Any, TypeId};
use std::iter::once;
use std::mem::needs_drop;
use std::task::Waker;
use std::vec::IntoIter;

use crate::sync::{Arc, Mutex};
use crate::wait::drop_quietly;

use super::borrows::Borrows;
use super::cell::{Course, Job, Program, Runner, attempt};
use super::local_queue::Work;
use super::outcome::{Ending, Run, Verdict};
use super::task_state::Body;

const MOST: usize = 512;
const TYPES: usize = 8;
/// Larger ones are not used again.
const LARGEST: usize = 256;

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

    fn is_of_scope(&self, scope: &Borrows) -> bool {
        let program = self.program.lock();
        program.as_ref().is_some_and(|p| p.is_of_scope(scope))
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
        drop_quietly(self.take());
        None
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

/// Bodies of one type.
struct Row {
    of: TypeId,
    bodies: Vec<Work>,
}

#[derive(Default)]
pub(super) struct Bodies {
    rows: Vec<Row>,
    len: usize,
}

impl Bodies {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keeps one, by invariant 1.
    #[inline]
    pub(super) fn put(&mut self, body: Work) {
        if self.len == MOST {
            return;
        }
        let any: &dyn Any = &*body;
        let of = any.type_id();
        self.len += 1;
        match self.rows.last_mut() {
            Some(row) if row.of == of => row.bodies.push(body),
            _ => self.row(of).bodies.push(body),
        }
    }

    /// Those of this type; for a new one the oldest type may go.
    #[cold]
    fn row(&mut self, of: TypeId) -> &mut Row {
        let at = self.rows.iter().position(|row| row.of == of);
        let at = at.unwrap_or_else(|| {
            if self.rows.len() == TYPES {
                self.len -= self.rows.remove(0).bodies.len();
            }
            let bodies = Vec::with_capacity(32);
            self.rows.push(Row { of, bodies });
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }

    /// Moves what there is in `more` here, up to the bound.
    pub(super) fn take_in(&mut self, more: &mut Self) {
        if self.len < more.len {
            std::mem::swap(self, more);
        }
        if more.is_empty() {
            return;
        }
        more.len = 0;
        for Row { of, bodies } in &mut more.rows {
            bodies.truncate(MOST - self.len);
            self.len += bodies.len();
            self.row(*of).bodies.append(bodies);
        }
    }

    /// So many for tasks of this type, if they are there: the last of these, to be taken.
    #[inline]
    pub(super) fn take<P: Program>(&mut self, many: usize) -> Option<&mut Vec<Work>> {
        let of = TypeId::of::<Solo<P>>();
        let row = self.rows.iter_mut().find(|row| row.of == of);
        let bodies = &mut row?.bodies;
        if bodies.len() < many {
            return None;
        }
        self.len -= many;
        Some(bodies)
    }
}

/// Tasks that are to be posted together.
pub(super) trait Batch {
    fn len(&self) -> usize;

    /// In bodies that were kept, if these are enough.
    fn fill(&mut self, kept: &mut Bodies) -> Option<impl ExactSizeIterator<Item = Work>>;

    /// In new ones.
    fn make(&mut self) -> Vec<Work>;
}

/// Tasks that have their bodies.
pub(super) struct Made<I>(pub(super) I);

impl<I: ExactSizeIterator<Item = Work>> Batch for Made<I> {
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn fill(&mut self, _: &mut Bodies) -> Option<impl ExactSizeIterator<Item = Work>> {
        Some(&mut self.0)
    }

    fn make(&mut self) -> Vec<Work> {
        self.0.by_ref().collect()
    }
}

/// One that nobody will ask for, until it has its body.
impl<P: Program> Batch for Option<Solo<P>> {
    fn len(&self) -> usize {
        usize::from(self.is_some())
    }

    #[inline]
    fn fill(&mut self, kept: &mut Bodies) -> Option<impl ExactSizeIterator<Item = Work>> {
        let body = kept.take::<P>(1)?.pop();
        Some(once(self.take()?.put_into(body)))
    }

    fn make(&mut self) -> Vec<Work> {
        let made = self.take().map(|task| Arc::new(task) as Work);
        made.into_iter().collect()
    }
}

/// Several, at least one.
impl<P: Program> Batch for IntoIter<Solo<P>> {
    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn fill(&mut self, kept: &mut Bodies) -> Option<impl ExactSizeIterator<Item = Work>> {
        let bodies = kept.take::<P>(self.as_slice().len())?;
        Some(self.map(|task| task.put_into(bodies.pop())))
    }

    fn make(&mut self) -> Vec<Work> {
        self.map(|task| Arc::new(task) as Work).collect()
    }
}
