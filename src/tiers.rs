//! The tiers of one caller or of one gate, and which of them is open.
//!
//! # The rule
//!
//! A task is *outstanding* from its arrival until it has finished or is gone; it waits or it runs.
//! One tier is open. It stays open until none of its tasks runs and either it has no outstanding
//! task or a lower tier has one; then the lowest outstanding tier opens. While a lower tier has an
//! outstanding task, the open tier *drains*: it starts nothing new. So a late arrival in a lower
//! tier waits for one drain at most, and endless arrivals in lower tiers hold back a higher one for
//! ever.
//!
//! # Invariants
//!
//! 1. A tier is open exactly if a task is outstanding; only tasks of the open tier run.
//! 2. `others` holds the number of outstanding tasks of each other tier, ascending by tier, and no
//!    zero. It allocates nothing while it is empty.
//! 3. `draining` is set exactly if the first tier of `others` is below the open one; then at least
//!    one task of the open tier runs.

use std::collections::VecDeque;

use crate::shown::shows;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// The outstanding tasks of each tier, and which tier is open.
///
/// Every method is O(1) while one tier is outstanding. With t outstanding tiers, opening a tier and
/// arriving in the highest are O(1), and all else is O(log t). The exception is a tier that comes
/// or goes in the middle: that moves up to t / 2 entries of 16 bytes. Nothing is allocated while at
/// most one tier is outstanding; memory that many tiers have taken is given back.
///
/// The caller reports what its tasks do, and starts one only where [`startable`](Self::startable)
/// allows it. A report that cannot be true, such as the end of a task that does not run, fails a
/// debug assertion; without debug assertions it changes nothing.
#[derive(Default)]
pub struct Tiers {
    others: VecDeque<(u32, u64)>,
    /// How many tasks of the open tier wait.
    waiting: u64,
    /// How many tasks of the open tier run.
    running: u64,
    /// The open tier; meaningless while both counts above are 0.
    tier: u32,
    draining: bool,
}

/// So little capacity is not given back.
const FEW: usize = 64;

impl Tiers {
    /// No task is outstanding.
    pub fn new() -> Self {
        Self::default()
    }

    /// The open tier, if anything is outstanding.
    #[inline]
    pub fn open(&self) -> Option<u32> {
        (!self.is_empty()).then_some(self.tier)
    }

    /// Whether the open tier starts nothing new because a lower tier has an outstanding task.
    #[inline]
    pub fn draining(&self) -> bool {
        self.draining
    }

    /// Whether a waiting task of this tier may begin to run now, if there is one.
    #[inline]
    pub fn startable(&self, tier: u32) -> bool {
        !self.draining && self.open() == Some(tier)
    }

    /// Whether nothing is outstanding.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting == 0 && self.running == 0
    }

    /// How many tasks run: all are of the open tier.
    #[inline]
    pub fn running(&self) -> u64 {
        self.running
    }

    /// How many tasks of the open tier wait.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Each tier with an outstanding task and how many it has, the open tier first, then ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
        let open = self.open().map(|tier| (tier, self.waiting + self.running));
        open.into_iter().chain(self.others())
    }

    /// The tiers that are not open, and how many tasks of each wait, ascending.
    pub fn others(&self) -> impl Iterator<Item = (u32, u64)> {
        self.others.iter().copied()
    }

    /// Takes over counts that were made elsewhere: for the open tier, or for any tier if no other
    /// tier has an outstanding task.
    #[inline]
    pub fn recount(&mut self, tier: u32, waiting: u64, running: u64) {
        debug_assert!(
            self.others.is_empty() || self.tier == tier && waiting + running > 0,
            "the open tier changed unseen"
        );
        (self.tier, self.waiting, self.running) = (tier, waiting, running);
    }

    /// A task of this tier has arrived: it is outstanding, and waits.
    #[inline]
    pub fn arrive(&mut self, tier: u32) {
        if self.is_empty() {
            self.tier = tier;
        }
        if self.tier == tier {
            self.waiting += 1;
            return;
        }
        self.add_other(tier, 1);
        self.draining |= tier < self.tier;
        self.update();
    }

    /// A waiting task of this tier is gone without having run: cancelled or skipped.
    #[inline]
    pub fn leave(&mut self, tier: u32) {
        if self.open() != Some(tier) {
            return self.leave_other(tier);
        }
        debug_assert!(self.waiting > 0, "no task of tier {tier} waits");
        self.waiting = self.waiting.saturating_sub(1);
        self.update();
    }

    /// A waiting task of the open tier begins to run.
    ///
    /// This never changes which tier is open, nor whether it drains.
    #[inline]
    pub fn start(&mut self, tier: u32) {
        debug_assert!(self.startable(tier), "tier {tier} starts nothing now");
        debug_assert!(self.waiting > 0, "no task of tier {tier} waits");
        if self.startable(tier) && self.waiting > 0 {
            self.waiting -= 1;
            self.running += 1;
        }
    }

    /// A running task has ended, in whichever way.
    #[inline]
    pub fn finish(&mut self, tier: u32) {
        self.finish_all(tier, 1);
    }

    /// As [`finish`](Self::finish), for several tasks at once: at least one.
    #[inline]
    pub fn finish_all(&mut self, tier: u32, tasks: u32) {
        let tasks = u64::from(tasks);
        debug_assert!(
            self.tier == tier && self.running >= tasks,
            "no task of tier {tier} runs"
        );
        if self.tier == tier && self.running >= tasks {
            self.running -= tasks;
            self.update();
        }
    }

    /// A running task was not finished, and waits again.
    #[inline]
    pub fn give_back(&mut self, tier: u32) {
        debug_assert!(
            self.tier == tier && self.running > 0,
            "no task of tier {tier} runs"
        );
        if self.tier == tier && self.running > 0 {
            self.running -= 1;
            self.waiting += 1;
            self.update();
        }
    }

    /// The index of a tier among the others, or the index where it would be.
    fn find(&self, tier: u32) -> Result<usize, usize> {
        self.others.binary_search_by_key(&tier, |&(other, _)| other)
    }

    /// Counts more waiting tasks of a tier that is not open.
    fn add_other(&mut self, tier: u32, tasks: u64) {
        match self.others.back_mut() {
            Some((last, count)) if *last == tier => *count += tasks,
            Some((last, _)) if *last > tier => match self.find(tier) {
                Ok(at) => self.others[at].1 += tasks,
                Err(at) => self.others.insert(at, (tier, tasks)),
            },
            _ => self.others.push_back((tier, tasks)),
        }
    }

    /// Applies the rule.
    #[inline]
    fn update(&mut self) {
        let stays = self.running > 0 || self.waiting > 0 && !self.draining;
        if !stays && !self.others.is_empty() {
            self.open_lowest();
        }
    }

    /// Closes the open tier, of which no task runs, and opens the lowest of the others.
    #[cold]
    fn open_lowest(&mut self) {
        debug_assert_eq!(self.running, 0);
        let Some((tier, waiting)) = self.others.pop_front() else {
            return;
        };
        if self.waiting > 0 {
            self.add_other(self.tier, self.waiting);
        }
        (self.tier, self.waiting, self.draining) = (tier, waiting, false);
        self.shrink();
    }

    #[cold]
    fn leave_other(&mut self, tier: u32) {
        let Ok(at) = self.find(tier) else {
            debug_assert!(false, "no task of tier {tier} waits");
            return;
        };
        let (_, count) = &mut self.others[at];
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.others.remove(at);
        let lowest = self.others.front();
        self.draining = lowest.is_some_and(|&(lowest, _)| lowest < self.tier);
        self.shrink();
    }

    /// Gives back memory that many tiers have left.
    fn shrink(&mut self) {
        let (len, capacity) = (self.others.len(), self.others.capacity());
        if len == 0 {
            self.others = VecDeque::new();
        } else if capacity > FEW && len < capacity / 4 {
            self.others.shrink_to(2 * len);
        }
    }
}

shows!(Tiers, |tiers| open: tiers.open(), draining: tiers.draining, waiting: tiers.waiting,
    running: tiers.running, others: tiers.others);
