//! Timers: what is due when, by a clock of the embedder's.
//!
//! A plain data structure: it reads no clock. Times are [`Duration`]s since an origin that the
//! embedder chooses. They never run backwards: a `now` before the last one changes nothing. The
//! embedder calls `advance(now)` at the time that [`next`](Timers::next) gives, and takes what is
//! due one by one. So each is handled before the next is looked at, and a timer that a handler sets
//! for the same time is still found.
//!
//! Used for due times, back-off, leases and the timers of dialogs.
//!
//! Order: by time, and among equal times in the order in which they were set.
//! Cost: O(log n) to set, to cancel, for each timer that is due, and for `next`.

use std::collections::BTreeMap;
use std::time::Duration;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// Names one timer that was set. The name stays valid after the timer is gone, and never names
/// another timer of the same [`Timers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timer {
    at: Duration,
    number: u64,
}

impl Timer {
    /// The time for which the timer was set.
    #[must_use]
    pub fn at(self) -> Duration {
        self.at
    }
}

/// Timers, each with a value that says what it is for.
#[derive(Debug)]
pub struct Timers<T> {
    set: BTreeMap<Timer, T>,
    now: Duration,
    last: u64,
}

impl<T> Timers<T> {
    /// No timers, at time 0.
    #[must_use]
    pub fn new() -> Self {
        Self {
            set: BTreeMap::new(),
            now: Duration::ZERO,
            last: 0,
        }
    }

    /// The latest time given to [`advance`](Self::advance).
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// How many timers are set.
    #[cfg(any(test, all(feature = "scheduler", not(loom))))]
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Whether no timer is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// The first timer.
    #[must_use]
    pub fn first(&self) -> Option<Timer> {
        self.set.first_key_value().map(|(&timer, _)| timer)
    }

    /// The time of the first timer, which may have passed.
    #[must_use]
    pub fn next(&self) -> Option<Duration> {
        self.first().map(Timer::at)
    }

    /// Sets a timer. If the time has passed, it is due at once.
    pub fn set(&mut self, at: Duration, what: T) -> Timer {
        self.last += 1;
        let timer = Timer {
            at,
            number: self.last,
        };
        self.set.insert(timer, what);
        timer
    }

    /// Sets a timer for `delay` after the latest time; for [`Duration::MAX`] if the sum overflows.
    pub fn set_after(&mut self, delay: Duration, what: T) -> Timer {
        self.set(self.now.saturating_add(delay), what)
    }

    /// Removes a timer before it is due; `None` if it is not set any more.
    pub fn cancel(&mut self, timer: Timer) -> Option<T> {
        self.set.remove(&timer)
    }

    /// The value of a timer that is still set.
    pub fn get_mut(&mut self, timer: Timer) -> Option<&mut T> {
        self.set.get_mut(&timer)
    }

    /// All timers that are set, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Timer, &T)> {
        self.set.iter().map(|(&timer, what)| (timer, what))
    }

    /// Sets the time. A time before the last one changes nothing.
    pub fn advance(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Takes out the first timer if its time has come.
    pub fn due(&mut self) -> Option<(Timer, T)> {
        let first = self.set.first_entry()?;
        (first.key().at <= self.now).then(|| first.remove_entry())
    }
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self::new()
    }
}
