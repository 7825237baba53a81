//! The state word: changed by read-modify-writes alone, from one value of `bits`
//! to another.
//!
//! Memory ordering: a release, also that of a downgrade, is Release and pairs
//! with the Acquire of every take, by whomever and for whomever. All writes are
//! read-modify-writes, so the release sequence of each reaches to the takes that
//! follow. The flags are acted on under the lock, or only hint at it; OPEN has
//! its argument in `stripes`.

use super::Place;
use super::bits::{Ask, Bits, ONE, OPEN, OVERTAKINGS, SLOW};
use crate::modes::Mode;
use crate::sync::Ordering;
use crate::turnstile::{self, Released};

/// The word itself.
pub(super) type Word = turnstile::Word<OVERTAKINGS>;

impl Word {
    /// Whether the stripes are open, seen by one who is in one.
    #[inline]
    pub(super) fn is_open_still(&self) -> bool {
        // SeqCst: w2 of `stripes`, after w1. As an Acquire it pairs with the
        // Release of what was released before they opened.
        Bits::new(self.bits.load(Ordering::SeqCst)).is_open()
    }

    /// Takes `mode`, in exchange for `own`, for somebody who is not in the queue and
    /// has not the lock, and has seen the word like this.
    #[inline]
    #[must_use]
    pub(super) fn take(&self, now: Bits, mode: Mode, own: Option<Mode>) -> bool {
        // Acquire: pairs with the Release of `release` and `weaken`.
        let taken = self.update_from(now, Ordering::Acquire, |bits| {
            bits.taken(mode, own, self.bypass)
        });
        taken.is_some()
    }

    /// Gives `mode` back.
    #[inline]
    pub(super) fn release(&self, mode: Mode) -> Released {
        // Release: pairs with the Acquire of every take.
        let before = self.bits.fetch_sub(ONE[mode as usize], Ordering::Release);
        Bits::new(before).after_release(self.bypass)
    }

    /// Gives `from` back for the weaker `to`, if that fits in the word.
    pub(super) fn weaken(&self, from: Mode, to: Mode) -> Option<Released> {
        // Release: as in `release`.
        let before = self.update(Ordering::Release, |bits| {
            let (next, place) = bits.without(Some(from)).held(to);
            (place == Place::Word).then_some(next)
        });
        before.map(|bits| bits.after_release(self.bypass))
    }

    /// Under the lock: takes for one who is not in the queue, and who overtakes
    /// somebody there or not; or leaves WAITERS in the very word that would not
    /// have it, if it is to wait.
    #[must_use]
    pub(super) fn enter(&self, ask: Ask, overtakes: bool, waits: bool) -> Option<Place> {
        let mut taken = None;
        // Acquire: as in `take`.
        let _ = self.update(Ordering::Acquire, |bits| {
            let granted = bits.granted(ask).and_then(|(next, place)| {
                let next = if overtakes {
                    next.overtaken(self.bypass)?
                } else {
                    next
                };
                Some((next, place))
            });
            taken = granted.map(|(_, place)| place);
            match granted {
                Some((next, _)) => Some(next),
                None => waits.then(|| bits.waited_on()),
            }
        });
        taken
    }

    /// Under the lock: takes for one in the queue that `is_next`, with nobody ahead
    /// that it conflicts with, or leaves UNNOTIFIED in the very word that would not
    /// have it: the next release tells it. For those behind one that takes
    /// UNNOTIFIED is set, too. `is_next` is only asked if the word has it.
    #[must_use]
    pub(super) fn take_queued(
        &self,
        ask: Ask,
        is_next: impl Fn() -> bool,
        front: bool,
        only: bool,
    ) -> Option<Place> {
        let (mut taken, mut next_known) = (None, None);
        // Acquire: as in `take`.
        let _ = self.update(Ordering::Acquire, |bits| {
            let granted = bits.granted(ask);
            let granted = granted.filter(|_| *next_known.get_or_insert_with(&is_next));
            taken = granted.map(|(_, place)| place);
            Some(match granted {
                Some((next, _)) if only => next.dequeued(front, only),
                Some((next, _)) => next.dequeued(front, only).unnotified(),
                None => bits.unnotified(),
            })
        });
        taken
    }

    /// Under the lock: takes for the front, the only one in the queue or not.
    #[must_use]
    pub(super) fn hand_over(&self, ask: Ask, only: bool) -> Option<Place> {
        let mut taken = None;
        // Acquire: as in `take`.
        let _ = self.update(Ordering::Acquire, |bits| {
            let (next, place) = bits.granted(ask)?;
            taken = Some(place);
            Some(next.dequeued(true, only))
        });
        taken
    }

    /// Under the lock: counts one here, or nowhere if there is no room, who
    /// holds that mode already, in exchange for what it has here.
    pub(super) fn count_in(&self, mode: Mode, instead_of: Option<Mode>) -> Place {
        let mut place = Place::Word;
        // Release: what a handed over conversion gives back is a release.
        let _ = self.update(Ordering::Release, |bits| {
            let (next, at) = bits.without(instead_of).held(mode);
            place = at;
            Some(next)
        });
        place
    }

    /// Under the lock: shuts the stripes; false if they are shut.
    #[must_use]
    pub(super) fn shut(&self) -> bool {
        // Relaxed: the fence that follows orders it; see `stripes`.
        let shut = self.update(Ordering::Relaxed, |bits| {
            bits.is_open().then_some(Bits::new(bits.0 & !OPEN | SLOW))
        });
        shut.is_some()
    }

    /// Under the lock, where nothing has spilled: opens the stripes if nobody
    /// holds or wants another mode than IS and `wide`.
    pub(super) fn reopen(&self, wide: Mode) {
        // Release: as in `all_here`.
        let _ = self.update(Ordering::Release, |bits| bits.reopened(wide));
    }

    /// Under the lock: all that is held stands here again.
    pub(super) fn all_here(&self) {
        // Release: hands on what those released who were found gone, to takers
        // who find SLOW cleared and do not look there themselves.
        self.bits.fetch_and(!SLOW, Ordering::Release);
    }
}
