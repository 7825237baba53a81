//! The bodies of tasks that nobody will ask for: when they have run they are kept for others of
//! their type, which ask the allocator for nothing.
//!
//! Protocol: a worker gathers what it has run, and hands that in with its report. Who takes
//! in what was posted leaves the bodies at the list, where submitters find them.
//!
//! Invariants:
//! 1. Nobody else has a body that is kept, and nothing of the user's is in it.
//! 2. In one place there are at most [`MOST`], of at most [`TYPES`] types; large ones are not
//!    kept.

use std::any::TypeId;

use crate::sync::Arc;

use super::cell::{DetachedCell, Program};
use super::local_queue::Work;

const MOST: usize = 512;
const TYPES: usize = 8;

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
    pub(super) fn put(&mut self, of: TypeId, body: Work) {
        if self.len == MOST {
            return;
        }
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
            let bodies = Vec::with_capacity(64);
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
        let of = TypeId::of::<DetachedCell<P>>();
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
pub(super) struct TaskBatch<I>(pub(super) I);

impl<I: ExactSizeIterator<Item = Work>> Batch for TaskBatch<I> {
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

/// Tasks that nobody will ask for, at least one, until they have their bodies.
pub(super) struct DetachedBatch<I>(pub(super) I);

impl<P: Program, I: ExactSizeIterator<Item = DetachedCell<P>>> Batch for DetachedBatch<I> {
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn fill(&mut self, kept: &mut Bodies) -> Option<impl ExactSizeIterator<Item = Work>> {
        let bodies = kept.take::<P>(self.0.len())?;
        Some(self.0.by_ref().map(|task| task.put_into(bodies.pop())))
    }

    fn make(&mut self) -> Vec<Work> {
        self.0.by_ref().map(|task| Arc::new(task) as Work).collect()
    }
}
