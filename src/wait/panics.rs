//! Runs several pieces of user code, each of them even if others panic.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::sync::panicking;

use super::session::drop_quietly;

/// The first panic of several pieces of user code that must all run, such as drops of messages.
/// Later panics are discarded.
#[derive(Default)]
pub(crate) struct Panics(Option<Box<dyn Any + Send>>);

impl Panics {
    pub(crate) fn contain(&mut self, run: impl FnOnce()) {
        // Unwind safe: `run` is user code and shares nothing of ours.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
            if self.0.is_none() {
                self.0 = Some(payload);
            } else {
                drop_quietly(payload);
            }
        }
    }

    /// Resumes the first panic, unless the thread is unwinding already.
    #[inline]
    pub(crate) fn resume(self) {
        if let Some(payload) = self.0 {
            if !panicking() {
                resume_unwind(payload);
            }
            drop_quietly(payload);
        }
    }
}
