//! The schedulers for which the calling thread works, or of which it ends a task: it must not wait
//! for their end. There are several if one runs its workers within a task of another.

use std::cell::RefCell;

use crate::sync::{Arc, per_thread};

// By the addresses of what their handles share.
per_thread! {
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// While the thread is inside of a scheduler.
pub(super) struct Inside;

impl Inside {
    pub(super) fn begin<S>(of: &Arc<S>) -> Self {
        let here = Arc::as_ptr(of).addr();
        // A thread without the list is ending.
        _ = INSIDE.try_with(|inside| inside.borrow_mut().push(here));
        Self
    }

    /// Whether the thread is inside of this one.
    pub(super) fn is_of<S>(of: &Arc<S>) -> bool {
        let here = Arc::as_ptr(of).addr();
        let found = INSIDE.try_with(|inside| inside.borrow().contains(&here));
        found.unwrap_or(false)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        _ = INSIDE.try_with(|inside| inside.borrow_mut().pop());
    }
}
