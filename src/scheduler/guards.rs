//! Guards of a scheduler: one keeps tasks from starting, one waits for the shutdown.

use std::ops::Deref;

use super::Scheduler;
use super::core::How;
use super::inside::Inside;

impl Scheduler {
    /// While the hold lives, no task starts; running tasks go on. When it is dropped, all tasks
    /// that were submitted meanwhile count as having arrived at one instant. Do not wait for a
    /// task that has not started while you keep a hold.
    pub fn hold(&self) -> Hold<&Self> {
        Self::hold_owned(self)
    }

    /// Like [`hold`](Self::hold), for an `Arc` of the scheduler, or a type of yours that derefs to
    /// it, always to the same one.
    ///
    /// ```
    /// use conversant::scheduler::{CallerOptions, Scheduler};
    /// use std::sync::Arc;
    ///
    /// let scheduler = Arc::new(Scheduler::builder().workers(1).build()?);
    /// let caller = scheduler.caller("main", CallerOptions::default())?;
    /// let hold = Scheduler::hold_owned(Arc::clone(&scheduler));
    /// let mut task = caller.exec(|| Ok::<_, String>(1))?;
    /// std::thread::spawn(move || drop(hold));
    /// assert_eq!(task.outcome().wait()?.verdict.ok(), Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hold_owned<L: Deref<Target = Self>>(scheduler: L) -> Hold<L> {
        scheduler
            .shared
            .with_state(|state, wakes, _| state.exact(wakes).hold());
        Hold { scheduler }
    }

    /// [Shuts down](Self::shutdown) at the end of the scope, also if a panic unwinds it, and
    /// blocks the thread until that is done. So values that the tasks use outlive them. Within a
    /// task of the same scheduler, where such a task is dropped, and in a hook or log that this
    /// calls, it does not wait.
    ///
    /// ```
    /// use conversant::scheduler::{CallerOptions, How, Scheduler};
    /// # use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    /// # use std::sync::Arc;
    ///
    /// let done = Arc::new(AtomicU32::new(0));
    /// {
    ///     let scheduler = Scheduler::builder().workers(2).build()?;
    ///     let _all_is_done = scheduler.shutdown_at_end(How::Drain);
    ///     let caller = scheduler.caller("main", CallerOptions::default())?;
    ///     for _ in 0..10 {
    ///         let done = Arc::clone(&done);
    ///         caller.exec(move || _ = done.fetch_add(1, Relaxed))?.detach();
    ///     }
    /// }
    /// assert_eq!(done.load(Relaxed), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown_at_end(&self, how: How) -> ShutdownAtEnd<&Self> {
        Self::shutdown_at_end_owned(self, how)
    }

    /// Like [`shutdown_at_end`](Self::shutdown_at_end), for an `Arc` or a type of yours, as in
    /// [`hold_owned`](Self::hold_owned): keep it in a structure, whose drop then waits.
    pub fn shutdown_at_end_owned<L: Deref<Target = Self>>(
        scheduler: L,
        how: How,
    ) -> ShutdownAtEnd<L> {
        ShutdownAtEnd { scheduler, how }
    }
}

/// Keeps tasks from starting until it is dropped; if it is forgotten (`mem::forget`), until the
/// scheduler is. See [`Scheduler::hold`].
#[derive(Debug)]
#[must_use = "dropping it lets tasks start"]
pub struct Hold<L: Deref<Target = Scheduler>> {
    scheduler: L,
}

impl<L: Deref<Target = Scheduler>> Drop for Hold<L> {
    fn drop(&mut self) {
        self.scheduler
            .shared
            .with_state(|state, _, _| state.core.unhold());
    }
}

/// Shuts the scheduler down when it is dropped. See [`Scheduler::shutdown_at_end`].
#[derive(Debug)]
#[must_use = "it waits where it is dropped"]
pub struct ShutdownAtEnd<L: Deref<Target = Scheduler>> {
    scheduler: L,
    how: How,
}

impl<L: Deref<Target = Scheduler>> Drop for ShutdownAtEnd<L> {
    fn drop(&mut self) {
        let shared = &self.scheduler.shared;
        if Inside::is_of(&**shared) {
            // A task would wait for itself.
            return shared.close(None, self.how);
        }
        _ = self.scheduler.shutdown(self.how).wait();
    }
}
