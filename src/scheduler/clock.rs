//! What is due when, and which worker keeps the time: see `later`.

use std::time::Duration;

use crate::due::Dates;
use crate::timers::Timers;
use crate::wait::WakeBatch;

/// What is due when, and who keeps the time.
#[derive(Debug)]
pub(super) struct Clock<T> {
    pub(super) timers: Timers<T>,
    /// The resting worker that sleeps until then at the latest.
    keeper: Option<(u32, Duration)>,
    /// Who else keeps the time.
    pub(super) dates: Dates,
    /// Workers rest, so that one of them can keep the time.
    pub(super) workers_keep: bool,
}

impl<T> Clock<T> {
    pub(super) fn new() -> Self {
        Self {
            timers: Timers::new(),
            keeper: None,
            dates: Dates::default(),
            workers_keep: false,
        }
    }

    /// Whether no timer is set.
    pub(super) fn is_empty(&self) -> bool {
        self.timers.is_empty()
    }

    /// Tells who keeps the time from outside of the next date.
    #[inline]
    pub(super) fn tell(&mut self, wakes: &mut WakeBatch) {
        self.dates.update(|| self.timers.next(), wakes);
    }

    /// Whether a worker is wanted to keep the time: one, or none.
    pub(super) fn wants_keeper(&self) -> u64 {
        let due = self.timers.next().filter(|_| self.workers_keep);
        let unkept = due.is_some_and(|due| self.keeper.is_none_or(|(_, until)| due < until));
        u64::from(unkept)
    }

    /// Worker `n` goes to rest: until when, if it keeps the time.
    pub(super) fn keep(&mut self, n: u32) -> Option<Duration> {
        let due = self.timers.next().filter(|_| self.workers_keep)?;
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

    /// Whether worker `n` must not leave, since it keeps the time.
    pub(super) fn keeps(&self, n: u32) -> bool {
        self.is_kept_by(n) && !self.is_empty()
    }

    fn is_kept_by(&self, n: u32) -> bool {
        self.keeper.is_some_and(|(keeper, _)| keeper == n)
    }
}
