//! The timers of delayed tasks, and what keeps their time: see `later`.

use std::time::Duration;

use crate::due::Dates;
use crate::timers::Timers;
use crate::wait::WakeBatch;

/// What keeps the time of delayed tasks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TimeKeeper {
    /// The driver of the core, by the time of each event.
    Driver,
    /// A resting worker, by the same clock.
    Workers,
    /// The user, by a clock of its own: a ticker while there is one, or, if it `advances`, calls of
    /// `advance`.
    Embedder { advances: bool },
}

/// The timers, and what keeps their time.
#[derive(Debug)]
pub(super) struct Clock<T> {
    pub(super) timers: Timers<T>,
    /// The resting worker that keeps the time, and until when it sleeps.
    keeper: Option<(u32, Duration)>,
    /// The tickers, and the waits for an earlier date.
    pub(super) dates: Dates,
    pub(super) keeps: TimeKeeper,
}

impl<T> Clock<T> {
    pub(super) fn new() -> Self {
        Self {
            timers: Timers::new(),
            keeper: None,
            dates: Dates::default(),
            keeps: TimeKeeper::Driver,
        }
    }

    /// Whether no timer is set.
    pub(super) fn is_empty(&self) -> bool {
        self.timers.is_empty()
    }

    /// Notifies the waits for an earlier date.
    #[inline]
    pub(super) fn notify(&mut self, wakes: &mut WakeBatch) {
        self.dates
            .update(|| next_date(&self.timers, &self.keeps), wakes);
    }

    /// The next date, and the waits for an earlier one; no date if the workers keep the time.
    pub(super) fn dates(&mut self) -> (Option<Duration>, &mut Dates) {
        (next_date(&self.timers, &self.keeps), &mut self.dates)
    }

    /// The user says that it is `now`; without a ticker that means that it keeps the time.
    pub(super) fn advance(&mut self, now: Duration) {
        if let TimeKeeper::Embedder { advances } = &mut self.keeps {
            *advances |= !self.dates.is_kept();
            self.timers.advance(now);
        }
    }

    /// The time for delays, in an event at `event`.
    pub(super) fn time(&mut self, event: Duration) -> Duration {
        if !matches!(self.keeps, TimeKeeper::Embedder { .. }) {
            return event;
        }
        self.timers.advance(self.dates.now().unwrap_or_default());
        self.timers.now()
    }

    /// Whether something keeps the time.
    pub(super) fn is_kept(&self) -> bool {
        match self.keeps {
            TimeKeeper::Driver | TimeKeeper::Workers => true,
            TimeKeeper::Embedder { advances } => advances || self.dates.is_kept(),
        }
    }

    /// The user's calls of `advance` count no more.
    pub(super) fn let_go(&mut self) {
        if let TimeKeeper::Embedder { advances } = &mut self.keeps {
            *advances = false;
        }
    }

    /// How many workers are wanted to keep the time: one or none.
    pub(super) fn wants_keeper(&self) -> u64 {
        let due = self.workers_date();
        let unkept = due.is_some_and(|due| self.keeper.is_none_or(|(_, until)| due < until));
        u64::from(unkept)
    }

    /// Worker `n` goes to rest. Returns until when, if it keeps the time.
    pub(super) fn keep(&mut self, n: u32) -> Option<Duration> {
        let due = self.workers_date()?;
        if self.wants_keeper() > 0 || self.is_kept_by(n) {
            self.keeper = Some((n, due));
        }
        self.is_kept_by(n).then_some(due)
    }

    /// Worker `n` rests no more.
    pub(super) fn end_rest(&mut self, n: u32) {
        if self.is_kept_by(n) {
            self.keeper = None;
        }
    }

    /// The next date, if the workers keep the time.
    fn workers_date(&self) -> Option<Duration> {
        let next = self.timers.next();
        next.filter(|_| self.keeps == TimeKeeper::Workers)
    }

    fn is_kept_by(&self, n: u32) -> bool {
        self.keeper.is_some_and(|(keeper, _)| keeper == n)
    }
}

fn next_date<T>(timers: &Timers<T>, keeps: &TimeKeeper) -> Option<Duration> {
    timers.next().filter(|_| *keeps != TimeKeeper::Workers)
}

/// A time in nanoseconds, at most 584 years.
#[inline]
pub(super) fn nanos(time: Duration) -> u64 {
    let seconds = time.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(time.subsec_nanos().into())
}
