//! Keeping the time of a scheduler on a pool. See `later`.

use std::time::Duration;

use crate::due::{Dates, Timed};
use crate::wait::sealed;

use super::Scheduler;

impl Scheduler {
    /// Sets the time, since an origin of your choice, of a scheduler whose workers run on a
    /// [pool](super::Builder::pool): tasks whose [delay](super::Place::after) is over arrive.
    /// Returns the time of the next call, if one is needed. A time before the last one counts as
    /// the last one. Worker threads of the scheduler keep the time themselves: then this does
    /// nothing and returns `None`.
    ///
    /// A [`Ticker`](crate::ticker::Ticker) calls this for you. Without a ticker, your first call
    /// says that more will follow: from then on tasks with a delay are accepted, and wait for your
    /// calls.
    ///
    /// ```
    /// use std::time::Duration;
    /// use conversant::scheduler::{CallerOptions, Place, Reason, Scheduler};
    ///
    /// // A pool that runs each worker at once.
    /// let scheduler = Scheduler::builder().pool(|worker: Box<dyn FnOnce() + Send>| {
    ///     worker();
    ///     Ok(())
    /// });
    /// let scheduler = scheduler.build()?;
    /// let caller = scheduler.caller("retry", CallerOptions::default())?;
    /// let at = Duration::from_secs;
    /// let late = Place::new().after(at(5));
    /// let refused = caller.exec_with(late, || Ok::<_, ()>(1)).unwrap_err();
    /// assert_eq!(refused.reason, Reason::NoTicker);
    ///
    /// assert_eq!(scheduler.advance(at(100)), None);
    /// let task = caller.exec_with(late, refused.task)?;
    /// assert_eq!(scheduler.advance(at(104)), Some(at(105)));
    /// assert!(!task.has_ended());
    /// assert_eq!(scheduler.advance(at(105)), None);
    /// assert!(task.has_ended());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance(&self, now: Duration) -> Option<Duration> {
        let mut session = self.shared.lock();
        session.core.clock.advance(now);
        self.shared
            .with_locked(session, false, |state, _, _| state.core.clock.dates().0)
    }
}

impl sealed::Sealed for Scheduler {}

impl Timed for Scheduler {
    fn advance(&self, now: Duration) -> Option<Duration> {
        Self::advance(self, now)
    }

    fn with_dates(&self, f: &mut dyn FnMut(Option<Duration>, &mut Dates)) {
        self.shared.with_state(|state, _, now| {
            let (next, dates) = state.core.clock.dates();
            f(next, dates);
            state.core.cancel_abandoned(now);
        });
    }
}
