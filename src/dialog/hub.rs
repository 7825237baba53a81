//! What the dialogs of one `Dialogs` share: their clock and their count.

use std::time::Duration;

use crate::due::Dates;
use crate::sync::AtomicUsize;
use crate::timers::{Timer, Timers};
use crate::wait::{Guarded, Panics, WakeBatch};

/// `S` is a side of a dialog. Lock order: a dialog's, then this one.
pub(super) struct Hub<S> {
    state: Guarded<State<S>>,
    /// Dialogs with a side that has not ended. Relaxed: a count.
    pub(super) live: AtomicUsize,
}

struct State<S> {
    timers: Timers<S>,
    dates: Dates,
}

impl<S> Hub<S> {
    pub(super) fn new() -> Self {
        let (timers, dates) = Default::default();
        Self {
            state: Guarded::new(State { timers, dates }),
            live: AtomicUsize::new(0),
        }
    }

    /// Sets a timer that is due `delay` after the latest time told. If that makes the next date
    /// earlier, puts those who wait for it into `wakes`, to be woken under no lock.
    pub(super) fn set_after(&self, delay: Duration, side: S, wakes: &mut WakeBatch) -> Timer {
        let state = &mut *self.state.lock();
        if let Some(now) = state.dates.now() {
            state.timers.advance(now);
        }
        let timer = state.timers.set_after(delay, side);
        state.dates.update(|| state.timers.next(), wakes);
        timer
    }

    pub(super) fn with_dates(&self, f: &mut dyn FnMut(Option<Duration>, &mut Dates)) {
        let state = &mut *self.state.lock();
        f(state.timers.next(), &mut state.dates);
    }

    /// Cancels a timer, if it is still set. The caller holds a reference to the dialog, so this
    /// never drops the last one.
    pub(super) fn cancel(&self, timer: Timer) {
        self.state.lock().timers.cancel(timer);
    }

    /// Sets the time to `now`, and calls `ring` for each timer that is due, under no lock.
    pub(super) fn advance(
        &self,
        now: Duration,
        mut ring: impl FnMut(S, Timer),
    ) -> Option<Duration> {
        let mut panics = Panics::default();
        self.state.lock().timers.advance(now);
        loop {
            // A separate guard, so that the lock is released before the call.
            let due = self.state.lock().timers.due();
            let Some((timer, side)) = due else {
                break;
            };
            panics.contain(|| ring(side, timer));
        }
        panics.resume();
        self.state.lock().timers.next()
    }
}
