//! Guards of a scheduler: what keeps its tasks from starting, and what waits for its end.

use std::ops::Deref;

use super::Scheduler;
use super::core::How;

impl Scheduler {
    /// While the hold lives no task starts, whatever is submitted: when it is
    /// dropped, all of that has arrived at one instant. Running tasks go on. Who
    /// keeps a hold must not wait for a task that has not started.
    pub fn hold(&self) -> Hold<&Self> {
        Self::hold_owned(self)
    }

    /// [`hold`](Self::hold), that has what leads to the scheduler: an `Arc` of it, or a type of
    /// yours that derefs to it, always to the same.
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

    /// At the end of the scope, or while a panic unwinds it, [shuts down](Self::shutdown)
    /// and blocks the thread until that is done: what the tasks use outlives them. A task
    /// of the same scheduler does not wait there for itself.
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
    ///         caller.exec(move || Ok::<_, ()>(done.fetch_add(1, Relaxed)))?.detach();
    ///     }
    /// }
    /// assert_eq!(done.load(Relaxed), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown_at_end(&self, how: How) -> ShutdownAtEnd<&Self> {
        Self::shutdown_at_end_owned(self, how)
    }

    /// [`shutdown_at_end`](Self::shutdown_at_end), that has what leads to the scheduler, as
    /// [`hold_owned`](Self::hold_owned) has: to keep it in a structure, whose drop then waits.
    pub fn shutdown_at_end_owned<L: Deref<Target = Self>>(
        scheduler: L,
        how: How,
    ) -> ShutdownAtEnd<L> {
        ShutdownAtEnd { scheduler, how }
    }
}

/// Keeps tasks from starting; if it is forgotten (`mem::forget`), until the scheduler is
/// dropped. See [`Scheduler::hold`].
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

/// Waits for the shutdown when it is dropped; see [`Scheduler::shutdown_at_end`].
#[derive(Debug)]
#[must_use = "it waits where it is dropped"]
pub struct ShutdownAtEnd<L: Deref<Target = Scheduler>> {
    scheduler: L,
    how: How,
}

impl<L: Deref<Target = Scheduler>> Drop for ShutdownAtEnd<L> {
    fn drop(&mut self) {
        // Stalled: a task would wait for itself.
        _ = self.scheduler.shutdown(self.how).wait();
    }
}
