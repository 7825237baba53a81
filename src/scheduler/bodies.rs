//! Used bodies of tasks without handles, kept for other tasks of their type, which then need no
//! allocation.
//!
//! Protocol: a worker collects the bodies of the tasks that it has run, and hands them in with its
//! report. The event that takes in the posted tasks leaves the bodies at their list, where
//! submitters find them.
//!
//! Invariants:
//! 1. A kept body has no other owner, and contains nothing of the user's.
//! 2. One place keeps at most [`MOST`] bodies, of at most [`TYPES`] types, and no large ones.

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

    /// Keeps a body, for which invariant 1 holds.
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

    /// The row of this type. A new type may replace the oldest.
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

    /// Moves all of `more` here, up to the bound.
    pub(super) fn take_in(&mut self, more: &mut Self) {
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

    /// The bodies of this type, if there are `many`: the caller must take so many from the end.
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

/// Tasks to be posted together.
pub(super) trait Batch {
    fn len(&self) -> usize;

    /// The tasks in kept bodies, if there are enough.
    fn fill(&mut self, kept: &mut Bodies) -> Option<impl ExactSizeIterator<Item = Work>>;

    /// The tasks in new bodies.
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

/// At least one task without a handle, which has no body yet.
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
