//! What the calling thread is inside of: schedulers for which it works, or of which it ends a task
//! or tells the log, so that it must not wait for their end; and a driver's `at_once`. There are
//! several schedulers if one runs its workers within a task of another.

use std::cell::RefCell;
use std::mem::{ManuallyDrop, take};
use std::ptr;

use crate::sync::per_thread;

// By address. What is entered last is left first. It has memory only while the thread is inside, so
// nothing is left to drop: a thread has its list to its end, also in destructors of its locals.
per_thread! {
    static INSIDE: RefCell<ManuallyDrop<Vec<usize>>> = const {
        RefCell::new(ManuallyDrop::new(Vec::new()))
    };
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
        INSIDE.with(|inside| inside.borrow().contains(&here))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with(|inside| {
            let list = &mut **inside.borrow_mut();
            list.pop();
            if list.is_empty() {
                drop(take(list));
            }
        });
    }
}
