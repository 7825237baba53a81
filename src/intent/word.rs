//! The state word: changed by read-modify-writes alone, from one value of `bits`
//! to another.
//!
//! Memory ordering: a release, also that of a downgrade, is Release and pairs
//! with the Acquire of every take, by whomever and for whomever. All writes are
//! read-modify-writes, so the release sequence of each reaches to the takes that
//! follow. The flags are acted on under the lock, or only hint at it; OPEN has
//! its argument in `stripes`.

use super::Place;
use super::bits::{Ask, Bits, ONE, OPEN, OVERTAKINGS, Release, SLOW, UNTOLD, WAITERS, is_strong};
use crate::limit::Bypass;
use crate::modes::Mode;
use crate::sync::{AtomicU64, Ordering, model_size, spin_loop};

/// The model has enough to explore without.
const PAUSE: bool = model_size(1, 0) == 1;

/// What came of a look by one who was not in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Enter {
    Taken(Place),
    /// The stripes must be shut first.
    Open,
    NotNow,
}

/// The word itself, in a line of its own: what is only read stays readable.
#[repr(align(128))]
pub(super) struct Word(AtomicU64);

impl Word {
    pub(super) fn new(open: bool) -> Self {
        Self(AtomicU64::new(if open { OPEN } else { 0 }))
    }

    /// With so many holders of a mode already.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn with_held(mode: Mode, count: u64) -> Self {
        Self(AtomicU64::new(count * ONE[mode as usize]))
    }

    /// Relaxed: whoever acts on it does so by an exchange, or under the lock.
    #[inline]
    pub(super) fn look(&self) -> Bits {
        Bits(self.0.load(Ordering::Relaxed))
    }

    /// Whether the stripes are open, seen by one who is in one.
    #[inline]
    pub(super) fn is_open_still(&self) -> bool {
        // SeqCst: w2 of `stripes`, after w1. As an Acquire it pairs with the
        // Release of the release that opened.
        Bits(self.0.load(Ordering::SeqCst)).is_open()
    }

    /// Changes the word if `change` finds it possible; says what it was.
    #[inline]
    fn update(
        &self,
        success: Ordering,
        mut change: impl FnMut(Bits) -> Option<Bits>,
    ) -> Option<Bits> {
        let mut now = self.look();
        loop {
            let next = change(now)?;
            let exchanged = self
                .0
                .compare_exchange_weak(now.0, next.0, success, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return Some(now),
                Err(other) => now = Bits(other),
            }
        }
    }

    /// Takes `mode`, in exchange for `own`, for somebody who is not in line and
    /// has not the lock.
    #[inline]
    #[must_use]
    pub(super) fn take(&self, mode: Mode, own: Option<Mode>, bypass: Bypass) -> bool {
        let mut now = self.look();
        loop {
            let Some(next) = now.overtaken(mode, own, bypass) else {
                return false;
            };
            // Acquire: pairs with the Release of `release` and `weaken`.
            let (ok, lost) = (Ordering::Acquire, Ordering::Relaxed);
            match self.0.compare_exchange_weak(now.0, next.0, ok, lost) {
                Ok(_) => return true,
                Err(other) if !PAUSE => now = Bits(other),
                Err(_) => {
                    // Whoever was first does more with the line than if it had to go to and fro.
                    spin_loop();
                    now = self.look();
                }
            }
        }
    }

    /// Gives `mode` back.
    #[inline]
    pub(super) fn release(&self, mode: Mode, bypass: Bypass) -> Release {
        // Release: pairs with the Acquire of every take.
        let before = self.0.fetch_sub(ONE[mode as usize], Ordering::Release);
        Bits(before).after_release(bypass)
    }

    /// [`release`](Self::release), and opens the stripes if that may be.
    pub(super) fn release_and_open(&self, mode: Mode, bypass: Bypass) -> Release {
        // Release: as there, and pairs with the Acquire of `is_open_still`.
        let before = self.update(Ordering::Release, |bits| {
            Some(bits.without(Some(mode)).reopened())
        });
        before.map_or(Release::Done, |bits| bits.after_release(bypass))
    }

    /// Gives `from` back for the weaker `to`.
    pub(super) fn weaken(&self, from: Mode, to: Mode, open: bool, bypass: Bypass) -> Release {
        // Release: as in `release_and_open`.
        let before = self.update(Ordering::Release, |bits| {
            let rest = bits.without(Some(from));
            let next = Bits(rest.0.checked_add(ONE[to as usize])?);
            let next = if open { next.reopened() } else { next };
            (!rest.is_full(to)).then_some(next)
        });
        before.map_or(Release::Full, |bits| bits.after_release(bypass))
    }

    /// Under the lock: takes for one who is not in line, and who overtakes
    /// somebody there or not; or leaves WAITERS in the very word that would not
    /// have it, if it is to stand in line.
    pub(super) fn enter(&self, ask: Ask, overtakes: bool, waits: bool, bypass: Bypass) -> Enter {
        let mut outcome = Enter::NotNow;
        // Acquire: as in `take`.
        let _ = self.update(Ordering::Acquire, |bits| {
            if is_strong(ask.mode) && bits.is_open() {
                outcome = Enter::Open;
                return None;
            }
            let granted = bits.granted(ask).and_then(|(next, place)| {
                let next = if overtakes {
                    next.counted(bypass)?
                } else {
                    next
                };
                Some((next, place))
            });
            outcome = granted.map_or(Enter::NotNow, |(_, place)| Enter::Taken(place));
            match granted {
                Some((next, _)) => Some(next),
                None => waits.then_some(Bits(bits.0 | WAITERS | UNTOLD)),
            }
        });
        outcome
    }

    /// Under the lock: takes for one in line, with nobody ahead that stands
    /// against it, or leaves UNTOLD in the very word that would not have it: the
    /// next release tells it.
    #[must_use]
    pub(super) fn take_in_line(&self, ask: Ask, front: bool, only: bool) -> Option<Place> {
        let mut taken = None;
        // Acquire: as in `take`.
        let _ = self.update(Ordering::Acquire, |bits| {
            let granted = bits.granted(ask);
            taken = granted.map(|(_, place)| place);
            Some(match granted {
                Some((next, _)) => next.left_line(front, only),
                None => Bits(bits.0 | UNTOLD),
            })
        });
        taken
    }

    /// Under the lock: takes for the front, the only one in line or not.
    #[must_use]
    pub(super) fn hand_over(&self, ask: Ask, only: bool) -> Option<Place> {
        let mut taken = None;
        // Acquire: as in `take`.
        let _ = self.update(Ordering::Acquire, |bits| {
            let (next, place) = bits.granted(ask)?;
            taken = Some(place);
            Some(next.left_line(true, only))
        });
        taken
    }

    /// Under the lock: counts one here, or nowhere if there is no room, who
    /// holds that mode already, in exchange for what it has here.
    pub(super) fn move_in(&self, mode: Mode, instead_of: Option<Mode>) -> Place {
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
            bits.is_open().then_some(Bits(bits.0 & !OPEN | SLOW))
        });
        shut.is_some()
    }

    /// Under the lock, where nothing has spilled: opens the stripes if nobody
    /// holds or wants more than IX.
    pub(super) fn reopen(&self) {
        // Release: as in `all_here`.
        let _ = self.update(Ordering::Release, |bits| {
            let next = Bits(bits.0 & !SLOW).reopened();
            (next.is_open() && next != bits).then_some(next)
        });
    }

    /// Under the lock: all that is held stands here again.
    pub(super) fn all_here(&self) {
        // Release: hands on what those released who were found gone, to takers
        // who find SLOW cleared and do not look there themselves.
        self.0.fetch_and(!SLOW, Ordering::Release);
    }

    /// Under the lock: releases must serve. Relaxed, as the next two: who acts
    /// on these flags does so under the lock.
    pub(super) fn some_untold(&self) {
        self.0.fetch_or(UNTOLD, Ordering::Relaxed);
    }

    /// Under the lock: whoever in line could go on has been told.
    pub(super) fn all_told(&self) {
        self.0.fetch_and(!UNTOLD, Ordering::Relaxed);
    }

    /// Under the lock: nobody is in line any more.
    pub(super) fn nobody_waits(&self) {
        self.0
            .fetch_and(!(WAITERS | UNTOLD | OVERTAKINGS), Ordering::Relaxed);
    }
}
