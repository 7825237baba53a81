//! What is due when, by a clock of the embedder's.
//!
//! A plain data structure: it reads no clock. Times are [`Duration`]s since an
//! origin that the embedder chooses, and never run backwards here: an earlier
//! `now` than the last changes nothing. Who embeds it calls `advance(now)`
//! when [`next`](Timers::next) says so, and takes what is due one by one, so
//! that each is handled before the next is looked at, and what a handler sets
//! for the same time is still found.
//!
//! Due times, back-off, leases and the timers of dialogs stand here.
//!
//! Order: by time, and among equal times in the order in which they were set.
//! Cost: O(log n) to set, to cancel, and for each one due; O(log n) for `next`.

use std::collections::BTreeMap;
use std::time::Duration;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// Names one timer that was set. A name outlives its timer, and never names
/// another one of the same [`Timers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timer {
    at: Duration,
    number: u64,
}

impl Timer {
    /// The time for which it was set.
    #[must_use]
    pub fn at(self) -> Duration {
        self.at
    }
}

/// Timers, each with what it is for.
#[derive(Debug)]
pub struct Timers<T> {
    set: BTreeMap<Timer, T>,
    now: Duration,
    last: u64,
}

impl<T> Timers<T> {
    /// None set, at time 0.
    #[must_use]
    pub fn new() -> Self {
        Self {
            set: BTreeMap::new(),
            now: Duration::ZERO,
            last: 0,
        }
    }

    /// The latest time told.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// How many are set.
    #[cfg(any(test, all(feature = "scheduler", not(loom))))]
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Whether none is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// The first one.
    #[must_use]
    pub fn first(&self) -> Option<Timer> {
        self.set.first_key_value().map(|(&timer, _)| timer)
    }

    /// The time of the first one, which may have passed.
    #[must_use]
    pub fn next(&self) -> Option<Duration> {
        self.first().map(Timer::at)
    }

    /// Sets one. A time that has passed is due at once.
    pub fn set(&mut self, at: Duration, what: T) -> Timer {
        self.last += 1;
        let timer = Timer {
            at,
            number: self.last,
        };
        self.set.insert(timer, what);
        timer
    }

    /// Sets one so long after the latest time told; [`Duration::MAX`] if the
    /// sum cannot be told.
    pub fn set_after(&mut self, delay: Duration, what: T) -> Timer {
        self.set(self.now.saturating_add(delay), what)
    }

    /// Takes one out before it is due; `None` if it is not set any more.
    pub fn cancel(&mut self, timer: Timer) -> Option<T> {
        self.set.remove(&timer)
    }

    /// What a timer that is still set is for.
    #[must_use]
    pub fn get(&self, timer: Timer) -> Option<&T> {
        self.set.get(&timer)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, timer: Timer) -> Option<&mut T> {
        self.set.get_mut(&timer)
    }

    /// All that are set, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Timer, &T)> {
        self.set.iter().map(|(&timer, what)| (timer, what))
    }

    /// Tells the time. An earlier one than the last changes nothing.
    pub fn advance(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Takes the first one whose time has come.
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
