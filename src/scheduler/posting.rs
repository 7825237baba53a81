//! Tasks that were posted, and what the state knows of the list where they are: see
//! `submissions`.

use crate::slab::Key;
use crate::sync::{AtomicU64, Ordering::Relaxed};

use super::bodies::Bodies;
use super::local_queue::Work;
use super::task_state::{Placing, Waiting};

/// The list is not longer than that: then who submits takes it in.
pub(super) const MOST: usize = 1024;

/// What the state does not know: a task; or several of one caller that are alone, one after
/// the other; or several of a group, of which only the first may be bumped.
pub(super) struct Posted {
    pub(super) caller: Key,
    pub(super) placing: Placing,
    /// While it is the only one.
    pub(super) one: Option<Waiting<Work>>,
    pub(super) run: Vec<Option<Waiting<Work>>>,
    /// Somebody has a handle of one of them.
    pub(super) named: bool,
}

impl Posted {
    #[inline]
    pub(super) fn new(caller: Key, placing: Placing, task: Waiting<Work>) -> Self {
        Self {
            caller,
            placing,
            named: task.is_named(),
            one: Some(task),
            run: Vec::new(),
        }
    }

    /// Whether others of this caller that are alone may join.
    #[inline]
    pub(super) fn takes(&self, caller: Key) -> bool {
        self.caller == caller && self.placing.is_alone()
    }

    /// One more.
    #[inline(always)]
    pub(super) fn push(&mut self, task: Waiting<Work>) {
        if self.one.is_some() {
            self.begin_run();
        }
        self.named |= task.is_named();
        self.run.push(Some(task));
    }

    #[inline(never)]
    fn begin_run(&mut self) {
        self.run = Vec::with_capacity(if self.placing.is_alone() { 64 } else { 8 });
        self.run.push(self.one.take());
    }
}

/// Where in the list of submissions a group's last task is: that list, and the place. Looked at
/// and changed under the lock of the list.
#[derive(Debug, Default)]
pub(super) struct LastPosted(AtomicU64);

impl LastPosted {
    /// In that list.
    #[inline]
    pub(super) fn get(&self, list: u64) -> Option<usize> {
        let row = self.0.load(Relaxed);
        (row / MOST as u64 == list).then_some(row as usize % MOST)
    }

    #[inline]
    pub(super) fn set(&self, list: u64, at: usize) {
        self.0.store(list * MOST as u64 + at as u64, Relaxed);
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
