//! Tasks that are to be posted together, and what they are posted in.

use std::iter::once;
use std::vec::IntoIter;

use crate::sync::Arc;

use super::bodies::Bodies;
use super::cell::Program;
use super::local_queue::Work;
use super::solo::Solo;
use super::task_state::Kind;

/// Tasks that are to be posted together.
pub(super) trait Batch {
    fn len(&self) -> usize;

    /// What all of them are.
    fn kind(&self) -> Kind;

    /// In bodies that were kept, if these are enough.
    fn fill(&mut self, kept: &mut Bodies) -> Option<impl ExactSizeIterator<Item = Work>>;

    /// In new ones.
    fn make(&mut self) -> Vec<Work>;
}

/// Tasks that have their bodies, and what they are.
pub(super) struct Made<I>(pub(super) I, pub(super) Kind);

impl<I: ExactSizeIterator<Item = Work>> Batch for Made<I> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn kind(&self) -> Kind {
        self.1
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
    fn kind(&self) -> Kind {
        Kind::of(self.as_ref().expect(BEFORE), false)
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

    fn kind(&self) -> Kind {
        Kind::of(self.as_slice().first().expect(BEFORE), false)
    }

    fn fill(&mut self, kept: &mut Bodies) -> Option<impl ExactSizeIterator<Item = Work>> {
        let bodies = kept.take::<P>(self.as_slice().len())?;
        Some(self.map(|task| task.put_into(bodies.pop())))
    }

    fn make(&mut self) -> Vec<Work> {
        self.map(|task| Arc::new(task) as Work).collect()
    }
}

const BEFORE: &str = "it is asked for before it has its body";
