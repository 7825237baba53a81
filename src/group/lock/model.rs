//! What stands for the lock in models of other parts: a mutex, the mark and the note.

use crate::sync::{AtomicU32, Mutex, MutexGuard, Ordering};

pub(crate) type Guard<'a, T> = MutexGuard<'a, T>;

pub(crate) struct Lock<T> {
    mark: bool,
    note: AtomicU32,
    value: Mutex<T>,
}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self::marked(value, false)
    }

    pub(crate) fn marked(value: T, mark: bool) -> Self {
        Self {
            mark,
            note: AtomicU32::new(0),
            value: Mutex::new(value),
        }
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.value.lock()
    }

    /// With loom never: its `try_lock` waits.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        if cfg!(loom) {
            return None;
        }
        self.value.try_lock()
    }

    pub(crate) fn mark(&self) -> bool {
        self.mark
    }

    pub(crate) fn note(&self) -> u32 {
        self.note.load(Ordering::Relaxed)
    }

    pub(crate) fn set_note(&self, note: u32) {
        self.note.store(note, Ordering::Relaxed);
    }
}
