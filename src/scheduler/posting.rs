//! Posted tasks, and what the state knows of their list: see `submissions`.

use crate::slab::Key;
use crate::sync::{AtomicU64, Ordering::Relaxed};

use super::bodies::Bodies;
use super::local_queue::Work;
use super::task_state::{Kind, Placing, Waiting};

/// The most tasks in the list: the next submitter takes the list in.
pub(super) const MOST: usize = 1024;

/// Posted tasks: one; or several of a caller without groups, one after the other; or several of a
/// group, of which only the first may be bumped.
pub(super) struct Posted {
    pub(super) caller: Key,
    pub(super) placing: Placing,
    /// The task, while it is the only one.
    pub(super) one: Option<Waiting<Work>>,
    pub(super) run: Vec<Option<Waiting<Work>>>,
    /// What one or more of them are.
    pub(super) kinds: Kind,
}

impl Posted {
    #[inline]
    pub(super) fn new(caller: Key, placing: Placing, task: Waiting<Work>) -> Self {
        Self {
            caller,
            placing,
            kinds: Kind::default().or(&task),
            one: Some(task),
            run: Vec::new(),
        }
    }

    /// Whether other tasks of this caller without groups may join.
    #[inline]
    pub(super) fn takes(&self, caller: Key) -> bool {
        self.caller == caller && self.placing.is_alone()
    }

    /// Adds a task.
    #[inline(always)]
    pub(super) fn push(&mut self, task: Waiting<Work>) {
        if self.one.is_some() {
            self.begin_run();
        }
        self.kinds = self.kinds.or(&task);
        self.run.push(Some(task));
    }

    #[inline(never)]
    fn begin_run(&mut self) {
        self.run = Vec::with_capacity(if self.placing.is_alone() { 64 } else { 8 });
        self.run.push(self.one.take());
    }
}

/// Where the last posted tasks of a group are: one more than the number of the list, and the place
/// in it. Used under the list's lock.
#[derive(Debug, Default)]
pub(super) struct LastPosted(AtomicU64);

impl LastPosted {
    /// The place, if it is in this list.
    #[inline]
    pub(super) fn get(&self, list: u64) -> Option<usize> {
        let last = self.0.load(Relaxed);
        (last / MOST as u64 == list + 1).then_some(last as usize % MOST)
    }

    #[inline]
    pub(super) fn set(&self, list: u64, at: usize) {
        self.0.store((list + 1) * MOST as u64 + at as u64, Relaxed);
    }
}

/// What the state knows of the list.
#[derive(Default)]
pub(super) struct Posting {
    /// Whether it is open.
    pub(super) open: bool,
    /// Whether it may have memory.
    pub(super) used: bool,
    /// A reused buffer.
    pub(super) buffer: Vec<Posted>,
    /// The bodies that workers have handed in, for the list.
    pub(super) bodies: Bodies,
}
