//! The grants of one resource to one owner, counted, with what a savepoint needs to know.
//!
//! Invariants:
//! 1. Epochs rise, and modes do not fall, from an entry to the next.
//! 2. The mode of an entry is what was held after its grants; the last one's is what is held now.
//! 3. An entry without grants stands only where its mode is not that of the entry before it: so
//!    grants and releases in turn do not grow the list.

use crate::modes::Mode;

#[derive(Default)]
pub(super) struct Grants {
    last: Option<Entry>,
    earlier: Vec<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    epoch: u64,
    count: u64,
    mode: Mode,
}

impl Grants {
    /// So many, which together ask for a mode, or none, where there are none.
    #[inline]
    pub(super) fn begin(&mut self, epoch: u64, asked: Option<(Mode, u64)>) {
        self.last = asked.map(|(mode, count)| Entry { epoch, count, mode });
    }

    #[inline]
    pub(super) fn mode(&self) -> Option<Mode> {
        self.last.map(|last| last.mode)
    }

    pub(super) fn last_epoch(&self) -> Option<u64> {
        self.last.map(|last| last.epoch)
    }

    #[inline]
    pub(super) fn count(&self) -> u64 {
        let earlier: u64 = self.earlier.iter().map(|entry| entry.count).sum();
        earlier + self.last.map_or(0, |last| last.count)
    }

    /// Whether they are one.
    #[inline]
    pub(super) fn is_one(&self) -> bool {
        self.earlier.is_empty() && self.last.is_some_and(|last| last.count == 1)
    }

    /// None, where there was one at most.
    #[inline]
    pub(super) fn end(&mut self) {
        debug_assert!(self.count() <= 1 && self.earlier.is_empty());
        self.last = None;
    }

    /// So many more, in this epoch, which together ask for a mode.
    pub(super) fn push(&mut self, epoch: u64, mode: Mode, times: u64) {
        let mode = self.mode().map_or(mode, |held| held.join(mode));
        match &mut self.last {
            Some(last) if last.epoch == epoch => {
                last.count += times;
                last.mode = mode;
            }
            _ => {
                self.earlier.extend(self.last);
                self.last = Some(Entry {
                    epoch,
                    count: times,
                    mode,
                });
            }
        }
    }

    /// One less, the youngest. The mode stays until the last is gone.
    #[inline]
    pub(super) fn pop(&mut self) {
        if self.count() <= 1 {
            *self = Self::default();
            return;
        }
        let entries = self.last.iter_mut().chain(self.earlier.iter_mut().rev());
        let youngest = entries.into_iter().find(|entry| entry.count > 0);
        if let Some(entry) = youngest {
            entry.count -= 1;
        }
        self.tidy();
    }

    /// No stronger than this any more, nor after going back to a savepoint.
    pub(super) fn cap(&mut self, mode: Mode) {
        for entry in self.earlier.iter_mut().chain(&mut self.last) {
            entry.mode = entry.mode.meet(mode);
        }
        self.tidy();
    }

    /// Back to before this epoch.
    pub(super) fn cut(&mut self, epoch: u64) {
        while self.last.is_some_and(|last| last.epoch >= epoch) {
            self.last = self.earlier.pop();
        }
        if self.count() == 0 {
            *self = Self::default();
        }
    }

    #[cfg(all(test, not(shuttle)))]
    pub(super) fn entries(&self) -> usize {
        self.earlier.len() + usize::from(self.last.is_some())
    }

    /// By invariant 3.
    fn tidy(&mut self) {
        if self.earlier.is_empty() {
            return;
        }
        let mut all: Vec<Entry> = std::mem::take(&mut self.earlier);
        all.extend(self.last);
        let mut before = None;
        all.retain(|entry| {
            let idle = entry.count == 0 && before == Some(entry.mode);
            before = Some(entry.mode);
            !idle
        });
        self.last = all.pop();
        self.earlier = all;
    }
}
