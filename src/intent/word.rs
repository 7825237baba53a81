//! The state word: changed only by read-modify-writes, from one value of `bits` to another.
//!
//! Memory ordering: a release, even by a downgrade, is Release and pairs with the Acquire of every
//! take, by any thread and for any claim. All writes are read-modify-writes, so the release
//! sequence of each reaches the takes that follow it. The flags are acted on under the lock, or are
//! only hints; the argument for OPEN is in `stripes`.

use super::Place;
use super::bits::{Ask, Bits, ONE, OPEN, OVERTAKINGS, SLOW};
use crate::modes::Mode;
use crate::sync::Ordering;
use crate::turnstile::{self, Released};

/// The word itself.
pub(super) type Word = turnstile::Word<OVERTAKINGS>;

impl Word {
    /// Whether the stripes are still open; the caller has counted itself in one.
    #[inline]
    pub(super) fn is_open_still(&self) -> bool {
        // SeqCst: w2 of `stripes`, after w1. As an Acquire it pairs with the Release of what was
        // released before the stripes opened.
        Bits::new(self.bits.load(Ordering::SeqCst)).is_open()
    }

    /// Takes `mode`, in exchange for `own`, for a claim that is not in the queue.
    /// The caller does not hold the lock, and has read `now` from the word.
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

    /// Exchanges `from` for the weaker `to`, if that fits in the word.
    pub(super) fn weaken(&self, from: Mode, to: Mode) -> Option<Released> {
        // Release: as in `release`.
        let before = self.update(Ordering::Release, |bits| {
            let (next, place) = bits.without(Some(from)).held(to);
            (place == Place::Word).then_some(next)
        });
        before.map(|bits| bits.after_release(self.bypass))
    }

    /// Under the lock: takes for a claim that is not in the queue. `overtakes`: a waiter is passed.
    /// If that fails and the claim `waits`, sets WAITERS by the compare-and-swap that saw it.
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

    /// Under the lock: takes for a claim in the queue that conflicts with nobody ahead (`is_next`).
    /// If that fails, sets UNNOTIFIED by the compare-and-swap that saw it: the next release
    /// notifies the waiter. A take also sets UNNOTIFIED, for those behind. `is_next` is called only
    /// if the word allows the take. `restarts`: the overtakings are counted anew. `only`: nobody else
    /// is in the queue.
    #[must_use]
    pub(super) fn take_queued(
        &self,
        ask: Ask,
        is_next: impl Fn() -> bool,
        restarts: bool,
        only: bool,
    ) -> Option<Place> {
        let (mut taken, mut next_known) = (None, None);
        // Acquire: as in `take`.
        let _ = self.update(Ordering::Acquire, |bits| {
            let granted = bits.granted(ask);
            let granted = granted.filter(|_| *next_known.get_or_insert_with(&is_next));
            taken = granted.map(|(_, place)| place);
            Some(match granted {
                Some((next, _)) if only => next.dequeued(restarts, only),
                Some((next, _)) => next.dequeued(restarts, only).unnotified(),
                None => bits.unnotified(),
            })
        });
        taken
    }

    /// Under the lock: counts a holder of `mode` here, in exchange for what it has here.
    /// It holds that mode already. If there is no room, it is counted nowhere.
    pub(super) fn count_in(&self, mode: Mode, instead_of: Option<Mode>) -> Place {
        let mut place = Place::Word;
        // Release: a conversion that puts back what it was handed releases it.
        let _ = self.update(Ordering::Release, |bits| {
            let (next, at) = bits.without(instead_of).held(mode);
            place = at;
            Some(next)
        });
        place
    }

    /// Under the lock: shuts the stripes; false if they are shut already.
    #[must_use]
    pub(super) fn shut(&self) -> bool {
        // Relaxed: the fence that follows orders this; see `stripes`.
        let shut = self.update(Ordering::Relaxed, |bits| {
            bits.is_open().then_some(Bits::new(bits.0 & !OPEN | SLOW))
        });
        shut.is_some()
    }

    /// Under the lock, where nothing has spilled: opens the stripes, if possible.
    /// That is if nobody waits or holds another mode than IS and `wide`.
    pub(super) fn reopen(&self, wide: Mode) {
        // Release: as in `all_here`.
        let _ = self.update(Ordering::Release, |bits| bits.reopened(wide));
    }

    /// Under the lock: all that is held is counted here again.
    pub(super) fn all_here(&self) {
        // Release: passes on the releases of the holders that were found gone, to claims that find
        // SLOW cleared and do not check there themselves.
        self.bits.fetch_and(!SLOW, Ordering::Release);
    }
}
