//! Tasks that are to be posted together, and what they are posted in.

use std::iter::{Once, once};
use std::vec::IntoIter;

use crate::sync::Arc;

use super::bodies::Bodies;
use super::cell::Program;
use super::local_queue::Work;
use super::solo::Solo;
use super::task_state::Kind;

/// Tasks that are to be posted together.
pub(super) trait Batch: Sized {
    type Jobs: ExactSizeIterator<Item = Work>;

    fn len(&self) -> usize;

    /// What all of them are.
    fn kind(&self) -> Kind;

    /// In bodies that were kept, if these are enough.
    fn fill(self, bodies: &mut Bodies) -> Result<Self::Jobs, Self>;

    /// In new ones.
    fn make(self) -> Self::Jobs;
}

/// Tasks that have their bodies, and what they are.
pub(super) struct Made<I>(pub(super) I, pub(super) Kind);

impl<I: ExactSizeIterator<Item = Work>> Batch for Made<I> {
    type Jobs = I;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn kind(&self) -> Kind {
        self.1
    }

    #[inline]
    fn fill(self, _: &mut Bodies) -> Result<I, Self> {
        Ok(self.0)
    }

    #[inline]
    fn make(self) -> I {
        self.0
    }
}

impl<P: Program> Batch for Solo<P> {
    type Jobs = Once<Work>;

    #[inline]
    fn len(&self) -> usize {
        1
    }

    #[inline]
    fn kind(&self) -> Kind {
        Kind::of(self, false)
    }

    #[inline]
    fn fill(self, bodies: &mut Bodies) -> Result<Self::Jobs, Self> {
        bodies.fill(self).map(once)
    }

    #[inline]
    fn make(self) -> Self::Jobs {
        once(Arc::new(self))
    }
}

impl<P: Program> Batch for Vec<Solo<P>> {
    type Jobs = IntoIter<Work>;

    fn len(&self) -> usize {
        self.len()
    }

    fn kind(&self) -> Kind {
        Kind::of(&self[0], false)
    }

    fn fill(self, bodies: &mut Bodies) -> Result<Self::Jobs, Self> {
        if !bodies.has::<P>(self.len()) {
            return Err(self);
        }
        let filled = self.into_iter().map(|task| match bodies.fill(task) {
            Ok(job) => job,
            Err(task) => Arc::new(task),
        });
        Ok(filled.collect::<Vec<_>>().into_iter())
    }

    fn make(self) -> Self::Jobs {
        let jobs = self.into_iter().map(|task| Arc::new(task) as Work);
        jobs.collect::<Vec<_>>().into_iter()
    }
}
