//! The tasks of one caller that no worker has, for whoever ends them all.
//!
//! Tasks mostly leave from the front, and are taken out there. One that leaves from
//! elsewhere stays, stale, until all before it have gone or until the stale are more than
//! the others: so what is kept is O(tasks that wait), and a task costs O(1) amortised.

use std::collections::VecDeque;

use crate::slab::{Key, Slab};

use super::task_state::TaskState;

/// So many stale ones are not worth a look at all.
const FEW: usize = 64;

#[derive(Debug, Default)]
pub(super) struct WaitList {
    keys: VecDeque<Key>,
    /// Those of them that are not stale.
    waiting: usize,
}

impl WaitList {
    /// Whether no task waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Adds a task that is new.
    #[inline]
    pub(super) fn add(&mut self, key: Key) {
        self.keys.push_back(key);
        self.waiting += 1;
    }

    /// A task waits again, which may still be `listed` here.
    pub(super) fn add_again(&mut self, key: Key, listed: &mut bool) {
        self.waiting += 1;
        if !std::mem::replace(listed, true) {
            self.keys.push_back(key);
        }
    }

    /// A task waits no more. If that leaves stale ones, they are to be
    /// [tidied](Self::tidy).
    #[inline]
    pub(super) fn remove(&mut self, key: Key, listed: &mut bool) -> bool {
        self.waiting -= 1;
        if self.keys.front() == Some(&key) {
            self.keys.pop_front();
            *listed = false;
        }
        self.keys.len() > self.waiting || self.is_empty() && self.keys.capacity() > FEW
    }

    /// Takes stale ones out, but for those behind one that waits, if they are few.
    #[cold]
    pub(super) fn tidy<J>(&mut self, tasks: &mut Slab<TaskState<J>>) {
        let mut is_stale = |key: &Key| match tasks.get_mut(*key) {
            Some(task) => {
                task.listed = task.waits();
                !task.listed
            }
            None => true,
        };
        while self.keys.front().is_some_and(&mut is_stale) {
            self.keys.pop_front();
        }
        if self.keys.len() > 2 * self.waiting + FEW {
            self.keys.retain(|key| !is_stale(key));
        }
        if self.is_empty() {
            self.keys = VecDeque::new();
        }
    }

    /// Those that wait, and stale ones, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = Key> {
        self.keys.iter().copied()
    }
}
