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
    type Bodies;

    fn len(&self) -> usize;

    /// What all of them are.
    fn kind(&self) -> Kind;

    /// Takes bodies that were kept, if these are enough.
    fn take_bodies(&self, kept: &mut Bodies) -> Option<Self::Bodies>;

    /// In these bodies.
    fn fill(self, bodies: Self::Bodies) -> Self::Jobs;

    /// In new ones.
    fn make(self) -> Self::Jobs;
}

/// Tasks that have their bodies, and what they are.
pub(super) struct Made<I>(pub(super) I, pub(super) Kind);

impl<I: ExactSizeIterator<Item = Work>> Batch for Made<I> {
    type Jobs = I;
    type Bodies = ();

    fn len(&self) -> usize {
        self.0.len()
    }

    fn kind(&self) -> Kind {
        self.1
    }

    #[inline]
    fn take_bodies(&self, _: &mut Bodies) -> Option<()> {
        Some(())
    }

    #[inline]
    fn fill(self, (): ()) -> I {
        self.0
    }

    #[inline]
    fn make(self) -> I {
        self.0
    }
}

impl<P: Program> Batch for Solo<P> {
    type Jobs = Once<Work>;
    type Bodies = Work;

    #[inline]
    fn len(&self) -> usize {
        1
    }

    #[inline]
    fn kind(&self) -> Kind {
        Kind::of(self, false)
    }

    #[inline]
    fn take_bodies(&self, kept: &mut Bodies) -> Option<Work> {
        kept.take::<P>()
    }

    #[inline]
    fn fill(self, body: Work) -> Self::Jobs {
        once(self.put_into(body))
    }

    #[inline]
    fn make(self) -> Self::Jobs {
        once(Arc::new(self))
    }
}

impl<P: Program> Batch for Vec<Solo<P>> {
    type Jobs = IntoIter<Work>;
    type Bodies = Vec<Work>;

    fn len(&self) -> usize {
        self.len()
    }

    fn kind(&self) -> Kind {
        Kind::of(&self[0], false)
    }

    fn take_bodies(&self, kept: &mut Bodies) -> Option<Vec<Work>> {
        kept.take_many::<P>(self.len())
    }

    fn fill(self, bodies: Vec<Work>) -> Self::Jobs {
        let filled = self.into_iter().zip(bodies);
        let filled = filled.map(|(task, body)| task.put_into(body));
        filled.collect::<Vec<_>>().into_iter()
    }

    fn make(self) -> Self::Jobs {
        let jobs = self.into_iter().map(|task| Arc::new(task) as Work);
        jobs.collect::<Vec<_>>().into_iter()
    }
}
