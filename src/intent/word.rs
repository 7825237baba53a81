//! The state word: one value per moment, changed by read-modify-writes alone.
//!
//! ```text
//!   63    48 47    32 31    16 15         7   6   5   4   3      2      1        0
//!  +--------+--------+--------+------------+---+-----+---+------+------+--------+---------+
//!  |   S    |   IX   |   IS   | overtaking | X | SIX | U | OPEN | SLOW | UNTOLD | WAITERS |
//!  +--------+--------+--------+------------+---+-----+---+------+------+--------+---------+
//! ```
//!
//! Three counts and three bits say how many hold which mode here. SLOW: more may
//! be held than stands here, and who wants anything looks under the lock. OPEN:
//! IS and IX may be taken in a stripe, and whoever wants more shuts first.
//!
//! Who may change what: held modes and `overtakings` up, whoever takes; held
//! modes down, and OPEN set where nobody holds or wants more than IX, whoever
//! releases; all else under the line's lock.
//!
//! Memory ordering: a release, also that of a downgrade, is Release and pairs
//! with the Acquire of every take, by whomever and for whomever. All writes are
//! read-modify-writes, so the release sequence of each reaches to the takes that
//! follow. The flags are acted on under the lock, or only hint at it; OPEN has
//! its argument in `stripes`.

use std::fmt;

use super::Place;
use crate::limit::Bypass;
use crate::modes::Mode;
use crate::sync::{AtomicU64, Ordering};

const WAITERS: u64 = 1;
const UNTOLD: u64 = 1 << 1;
const SLOW: u64 = 1 << 2;
const OPEN: u64 = 1 << 3;
const OVERTAKING: u64 = 1 << 7;
const OVERTAKINGS: u64 = 0xFF80;
const COUNT: u64 = 0xFFFF;

/// What the word adds for one holder, by mode.
const ONE: [u64; 6] = [1 << 16, 1 << 32, 1 << 48, 1 << 4, 1 << 5, 1 << 6];

/// All that the word has for a mode.
const FIELD: [u64; 6] = [
    ONE[0] * COUNT,
    ONE[1] * COUNT,
    ONE[2] * COUNT,
    ONE[3],
    ONE[4],
    ONE[5],
];

/// What must not be in the word when a mode is taken.
const AGAINST: [u64; 6] = against();

/// What holders of more than IX leave in the word.
const STRONG: u64 = FIELD[2] | FIELD[3] | FIELD[4] | FIELD[5];

const fn against() -> [u64; 6] {
    let mut against = [0; 6];
    let mut i = 0;
    while i < 6 {
        let mode = Mode::ALL[i];
        let mut j = 0;
        while j < 6 {
            if !mode.compatible(Mode::ALL[j]) {
                against[mode as usize] |= FIELD[Mode::ALL[j] as usize];
            }
            j += 1;
        }
        if is_strong(mode) {
            against[mode as usize] |= OPEN;
        }
        i += 1;
    }
    against
}

/// Whether a mode is for the word alone, and pays where there are stripes.
pub(super) const fn is_strong(mode: Mode) -> bool {
    !matches!(mode, Mode::Is | Mode::Ix)
}

/// A bound that the word can count to.
pub(super) fn countable(bypass: Bypass) -> Bypass {
    match bypass {
        Bypass::AtMost(most) => Bypass::AtMost(most.min((OVERTAKINGS / OVERTAKING) as u32)),
        Bypass::Unbounded => Bypass::Unbounded,
    }
}

/// What the word said at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Bits(u64);

/// What somebody under the lock asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) mode: Mode,
    /// What it holds in the word, and gives for it.
    pub(super) own: Option<Mode>,
    /// The set of modes that others hold outside the word.
    pub(super) elsewhere: u8,
}

/// What came of a look by one who was not in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Enter {
    Taken(Place),
    /// The stripes must be shut first.
    Open,
    NotNow,
}

/// Whether a release concerns anybody in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Release {
    /// Nobody waits, or all who could go on will look anyway.
    Done,
    /// The line must be served.
    Serve,
    /// Nothing has changed: what it is to become does not fit in the word.
    Full,
}

impl Bits {
    pub(super) fn count(self, mode: Mode) -> u64 {
        let field = self.0 & FIELD[mode as usize];
        field / ONE[mode as usize]
    }

    pub(super) fn overtakings(self) -> u32 {
        ((self.0 & OVERTAKINGS) / OVERTAKING) as u32
    }

    pub(super) fn has_waiters(self) -> bool {
        self.0 & WAITERS != 0
    }

    pub(super) fn is_slow(self) -> bool {
        self.0 & SLOW != 0
    }

    pub(super) fn is_open(self) -> bool {
        self.0 & OPEN != 0
    }

    /// Whether one more holder of this mode fits beside those in the word.
    pub(super) fn admits(self, mode: Mode) -> bool {
        self.0 & AGAINST[mode as usize] == 0
    }

    fn is_full(self, mode: Mode) -> bool {
        self.0 & FIELD[mode as usize] == FIELD[mode as usize]
    }

    pub(super) fn without(self, own: Option<Mode>) -> Self {
        Self(self.0 - own.map_or(0, |own| ONE[own as usize]))
    }

    /// Whether what is asked for can be granted beside all that others hold.
    pub(super) fn grants(self, ask: Ask) -> bool {
        ask.mode.conflicts() & ask.elsewhere == 0 && self.without(ask.own).admits(ask.mode)
    }

    fn granted(self, ask: Ask) -> Option<(Self, Place)> {
        self.grants(ask)
            .then(|| self.without(ask.own).held(ask.mode))
    }

    /// With one more holder, who is told where it is counted.
    fn held(self, mode: Mode) -> (Self, Place) {
        if self.is_full(mode) {
            (Self(self.0 | SLOW), Place::Spill)
        } else {
            (Self(self.0 + ONE[mode as usize]), Place::Word)
        }
    }

    /// After a taker that is not in line and has not the lock took `mode` for
    /// `own`, overtaking whoever waits.
    #[inline]
    fn overtaken(self, mode: Mode, own: Option<Mode>, bypass: Bypass) -> Option<Self> {
        let rest = self.without(own);
        if !rest.admits(mode) || rest.is_full(mode) {
            return None;
        }
        let taken = Self(rest.0 + ONE[mode as usize]);
        if self.0 & (WAITERS | SLOW) == 0 {
            return Some(taken);
        }
        // What a conversion overtakes is seen under the lock.
        if self.is_slow() || own.is_some() {
            return None;
        }
        taken.counted(bypass)
    }

    /// One overtaking more, if that may be.
    fn counted(self, bypass: Bypass) -> Option<Self> {
        match bypass {
            Bypass::Unbounded => Some(self),
            _ if bypass.spent(self.overtakings()) => None,
            Bypass::AtMost(_) => Some(Self(self.0 + OVERTAKING)),
        }
    }

    /// At the front it ends a run of overtakings; the only one in line takes
    /// WAITERS with it.
    fn left_line(self, front: bool, only: bool) -> Self {
        match (front, only) {
            (_, true) => Self(self.0 & !(OVERTAKINGS | WAITERS | UNTOLD)),
            (true, false) => Self(self.0 & !OVERTAKINGS | UNTOLD),
            (false, false) => Self(self.0 | UNTOLD),
        }
    }

    /// Stripes open where nobody holds or wants more than IX.
    fn reopened(self) -> Self {
        let shut = self.0 & (STRONG | WAITERS | SLOW) != 0;
        if shut { self } else { Self(self.0 | OPEN) }
    }

    fn after_release(self, bypass: Bypass) -> Release {
        let serve =
            self.has_waiters() && (self.0 & UNTOLD != 0 || bypass.spent(self.overtakings()));
        if serve { Release::Serve } else { Release::Done }
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut held = f.debug_map();
        for mode in Mode::ALL {
            held.entry(&mode, &self.count(mode));
        }
        held.entry(&"overtakings", &self.overtakings());
        held.entry(&"flags", &(self.0 & (WAITERS | UNTOLD | SLOW | OPEN)));
        held.finish()
    }
}

/// The word itself.
pub(super) struct Word(AtomicU64);

impl Word {
    pub(super) fn new(open: bool) -> Self {
        Self(AtomicU64::new(if open { OPEN } else { 0 }))
    }

    /// With so many holders of a mode already.
    #[cfg(all(test, not(loom)))]
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
        // Acquire: pairs with the Release of the release that opened; as to the
        // order of this load after the stripe, see `stripes`.
        Bits(self.0.load(Ordering::Acquire)).is_open()
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
        // Acquire: pairs with the Release of `release` and `weaken`.
        let taken = self.update(Ordering::Acquire, |bits| bits.overtaken(mode, own, bypass));
        taken.is_some()
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
