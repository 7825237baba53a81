//! What the calling thread is inside of: schedulers for which it works, or of which it ends a task
//! or tells the log, so that it must not wait for their end; and a driver's `at_once`. There are
//! several schedulers if one runs its workers within a task of another.

use std::cell::RefCell;
use std::ptr;

use crate::sync::per_thread;

// By address. What is entered last is left first.
per_thread! {
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// While the thread is inside.
pub(crate) struct Inside;

impl Inside {
    pub(crate) fn begin<S>(of: &S) -> Self {
        let here = ptr::from_ref(of).addr();
        // A thread without the list is ending.
        _ = INSIDE.try_with(|inside| inside.borrow_mut().push(here));
        Self
    }

    /// Whether the thread is inside of this one.
    pub(crate) fn is_of<S>(of: &S) -> bool {
        let here = ptr::from_ref(of).addr();
        let found = INSIDE.try_with(|inside| inside.borrow().contains(&here));
        found.unwrap_or(false)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        _ = INSIDE.try_with(|inside| inside.borrow_mut().pop());
    }
}
