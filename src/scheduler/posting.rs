//! Tasks that were posted, and what the state knows of the list where they are: see
//! `submissions`.

use crate::slab::Key;

use super::bodies::Bodies;
use super::local_queue::Work;
use super::task_state::{Placing, Waiting};

/// What the state does not know: a task, or several of one caller that are alone, one after
/// the other.
pub(super) struct Posted {
    pub(super) caller: Key,
    pub(super) placing: Placing,
    /// While it is the only one.
    pub(super) one: Option<Waiting<Work>>,
    pub(super) run: Vec<Option<Waiting<Work>>>,
}

impl Posted {
    /// Whether others of this caller that are alone may join.
    #[inline]
    pub(super) fn takes(&self, caller: Key) -> bool {
        self.caller == caller && self.placing.is_alone()
    }

    /// One more.
    #[inline]
    pub(super) fn push(&mut self, task: Waiting<Work>) {
        if self.one.is_some() {
            self.run = Vec::with_capacity(64);
            self.run.push(self.one.take());
        }
        self.run.push(Some(task));
    }
}

/// What the state knows of the list of submissions.
#[derive(Default)]
pub(super) struct Posting {
    /// Whether it is open.
    pub(super) open: bool,
    /// Whether it may have memory.
    pub(super) used: bool,
    /// Kept for its memory.
    pub(super) buffer: Vec<Posted>,
    /// What workers have handed in since some were left at the list.
    pub(super) bodies: Bodies,
}
