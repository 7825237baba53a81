//! What the calling thread is inside of: schedulers for which it works, or of which it ends a task
//! or tells the log, so that it must not wait for their end; and a driver's `at_once`. There are
//! several schedulers if one runs its workers within a task of another.

use std::cell::RefCell;
use std::mem::{ManuallyDrop, take};
use std::ptr;

use crate::sync::per_thread;

/// By address. What is entered last is left first.
struct Places {
    first: [usize; FEW],
    len: usize,
    /// What is beyond these. It has memory only while it is needed, so nothing is left to drop: a
    /// thread has its list to its end, also in destructors of its locals.
    more: ManuallyDrop<Vec<usize>>,
}

const FEW: usize = 4;

per_thread! {
    static INSIDE: RefCell<Places> = const { RefCell::new(Places {
        first: [0; FEW],
        len: 0,
        more: ManuallyDrop::new(Vec::new()),
    }) };
}

impl Places {
    fn push(&mut self, here: usize) {
        match self.first.get_mut(self.len) {
            Some(place) => *place = here,
            None => self.more.push(here),
        }
        self.len += 1;
    }

    fn pop(&mut self) {
        self.len -= 1;
        self.more.pop();
        if self.more.is_empty() {
            drop(take(&mut *self.more));
        }
    }

    fn contains(&self, here: usize) -> bool {
        let first = &self.first[..self.len.min(FEW)];
        first.contains(&here) || self.more.contains(&here)
    }
}

/// While the thread is inside.
pub(crate) struct Inside;

impl Inside {
    pub(crate) fn begin<S>(of: &S) -> Self {
        let here = ptr::from_ref(of).addr();
        INSIDE.with(|inside| inside.borrow_mut().push(here));
        Self
    }

    /// Whether the thread is inside of this one.
    pub(crate) fn is_of<S>(of: &S) -> bool {
        let here = ptr::from_ref(of).addr();
        INSIDE.with(|inside| inside.borrow().contains(here))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.borrow_mut().pop());
    }
}
