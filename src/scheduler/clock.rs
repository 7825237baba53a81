//! What is due when, by whose clock, and who keeps the time: see `later`.

use std::time::Duration;

use crate::due::Dates;
use crate::timers::Timers;
use crate::wait::WakeBatch;

/// Who keeps the time of tasks that are not due.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TimeKeeper {
    /// Who drives the core, by the time of each event.
    Driver,
    /// The workers, by the same: they rest, so that one of them can.
    Workers,
    /// The embedder, by a clock of its own: a ticker, while there is one, or calls of
    /// `advance` if these are `told`.
    Embedder { told: bool },
}

/// What is due when, and who keeps the time.
#[derive(Debug)]
pub(super) struct Clock<T> {
    pub(super) timers: Timers<T>,
    /// The resting worker that sleeps until then at the latest.
    keeper: Option<(u32, Duration)>,
    /// Who waits for an earlier date; tickers.
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

    /// Tells who keeps the time from outside of the next date.
    #[inline]
    pub(super) fn tell(&mut self, wakes: &mut WakeBatch) {
        self.dates
            .update(|| next_told(&self.timers, &self.keeps), wakes);
    }

    /// The next date and those who wait for an earlier one, for who keeps the time from
    /// outside. There is none if the workers do.
    pub(super) fn dates(&mut self) -> (Option<Duration>, &mut Dates) {
        (next_told(&self.timers, &self.keeps), &mut self.dates)
    }

    /// The embedder says that it is `now`, and if it has no ticker so that it keeps the time.
    pub(super) fn tell_time(&mut self, now: Duration) {
        if let TimeKeeper::Embedder { told } = &mut self.keeps {
            *told |= !self.dates.is_kept();
            self.timers.advance(now);
        }
    }

    /// What time it is for delays, in an event at `event`.
    pub(super) fn time(&mut self, event: Duration) -> Duration {
        if !matches!(self.keeps, TimeKeeper::Embedder { .. }) {
            return event;
        }
        self.timers.advance(self.dates.now().unwrap_or_default());
        self.timers.now()
    }

    /// Whether what is set will be due by itself, or as the embedder has said.
    pub(super) fn is_kept(&self) -> bool {
        match self.keeps {
            TimeKeeper::Driver | TimeKeeper::Workers => true,
            TimeKeeper::Embedder { told } => told || self.dates.is_kept(),
        }
    }

    /// No time is told any more.
    pub(super) fn let_go(&mut self) {
        if let TimeKeeper::Embedder { told } = &mut self.keeps {
            *told = false;
        }
    }

    /// Whether a worker is wanted to keep the time: one, or none.
    pub(super) fn wants_keeper(&self) -> u64 {
        let due = self
            .timers
            .next()
            .filter(|_| self.keeps == TimeKeeper::Workers);
        let unkept = due.is_some_and(|due| self.keeper.is_none_or(|(_, until)| due < until));
        u64::from(unkept)
    }

    /// Worker `n` goes to rest: until when, if it keeps the time.
    pub(super) fn keep(&mut self, n: u32) -> Option<Duration> {
        let due = self
            .timers
            .next()
            .filter(|_| self.keeps == TimeKeeper::Workers)?;
        if self.wants_keeper() > 0 || self.is_kept_by(n) {
            self.keeper = Some((n, due));
        }
        self.is_kept_by(n).then_some(due)
    }

    /// Worker `n` does not rest.
    pub(super) fn end_rest(&mut self, n: u32) {
        if self.is_kept_by(n) {
            self.keeper = None;
        }
    }

    fn is_kept_by(&self, n: u32) -> bool {
        self.keeper.is_some_and(|(keeper, _)| keeper == n)
    }
}

fn next_told<T>(timers: &Timers<T>, keeps: &TimeKeeper) -> Option<Duration> {
    timers.next().filter(|_| *keeps != TimeKeeper::Workers)
}
