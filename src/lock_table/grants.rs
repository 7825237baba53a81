//! The grants of one resource to one owner, counted, with what a savepoint needs to know.
//!
//! Invariants:
//! 1. Epochs rise, and modes do not fall, from an entry to the next.
//! 2. The mode of an entry is what was held after its grants; the last one's is what is held now.
//! 3. An entry without grants stands only where its mode is not that of the entry before it: so
//!    grants and releases in turn do not grow the list, and it has fewer such entries than there
//!    are modes. The first has grants.
//! 4. `before` is how many there are in `earlier`.

use crate::modes::Mode;

#[derive(Default)]
pub(super) struct Grants {
    last: Option<Entry>,
    earlier: Vec<Entry>,
    before: u64,
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
        self.before + self.last.map_or(0, |last| last.count)
    }

    /// Whether there is an entry of this epoch.
    pub(super) fn has(&self, epoch: u64) -> bool {
        let earlier = || {
            self.earlier
                .binary_search_by_key(&epoch, |entry| entry.epoch)
        };
        self.last_epoch() == Some(epoch) || earlier().is_ok()
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

    /// So many more, in this epoch, which together ask for a mode. Whether they are the first in
    /// this epoch.
    pub(super) fn push(&mut self, epoch: u64, mode: Mode, count: u64) -> bool {
        let mode = self.mode().map_or(mode, |held| held.join(mode));
        match &mut self.last {
            Some(last) if last.epoch == epoch => {
                last.count += count;
                last.mode = mode;
                false
            }
            _ => {
                self.before = self.count();
                self.earlier.extend(self.last);
                self.last = Some(Entry { epoch, count, mode });
                true
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
        match &mut self.last {
            Some(last) if last.count > 0 => {
                last.count -= 1;
                if last.count == 0 {
                    self.tidy(self.earlier.len());
                }
            }
            _ => self.pop_earlier(),
        }
    }

    /// As `pop`, where the last entry has none. By invariant 3 it looks at a few.
    fn pop_earlier(&mut self) {
        let youngest = self.earlier.iter().rposition(|entry| entry.count > 0);
        if let Some(at) = youngest {
            self.before -= 1;
            self.earlier[at].count -= 1;
            self.tidy(at);
        }
    }

    /// No stronger than this any more, nor after going back to a savepoint.
    pub(super) fn cap(&mut self, mode: Mode) {
        let Some(last) = &mut self.last else { return };
        last.mode = last.mode.meet(mode);
        let weaker = |entry: &Entry| mode.covers(entry.mode);
        // By invariant 1.
        let from = self.earlier.iter().rposition(weaker).map_or(0, |at| at + 1);
        for entry in &mut self.earlier[from..] {
            entry.mode = entry.mode.meet(mode);
        }
        self.tidy(from);
    }

    /// Back to before this epoch.
    pub(super) fn cut(&mut self, epoch: u64) {
        while self.last.is_some_and(|last| last.epoch >= epoch) {
            self.step_back();
        }
        if self.last.is_none() {
            *self = Self::default();
        }
    }

    #[cfg(all(test, not(shuttle)))]
    pub(super) fn entries(&self) -> usize {
        self.earlier.len() + usize::from(self.last.is_some())
    }

    /// Without the last entry.
    fn step_back(&mut self) {
        self.last = self.earlier.pop();
        self.before -= self.last.map_or(0, |last| last.count);
    }

    /// Invariant 3, where entries from this one on have changed.
    fn tidy(&mut self, from: usize) {
        let mut before = from.checked_sub(1).map(|at| self.earlier[at].mode);
        let mut idle = |entry: &Entry| {
            let same = before.replace(entry.mode) == Some(entry.mode);
            same && entry.count == 0
        };
        let _ = self.earlier.extract_if(from.., |entry| idle(entry)).count();
        if self.last.as_ref().is_some_and(idle) {
            self.step_back();
        }
    }
}
