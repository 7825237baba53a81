//! The value of the state word at one moment, and the values that it changes to.
//!
//! ```text
//!   63    48 47    32 31    16 15         7   6   5   4   3      2      1            0
//!  +--------+--------+--------+------------+---+-----+---+------+------+------------+---------+
//!  |   S    |   IX   |   IS   | overtaking | X | SIX | U | OPEN | SLOW | UNNOTIFIED | WAITERS |
//!  +--------+--------+--------+------------+---+-----+---+------+------+------------+---------+
//! ```
//!
//! Three counts and three bits say how many holders of each mode are counted here. SLOW: more may
//! be held than is counted here, and every claim looks under the lock. OPEN: IS and one more mode
//! may be taken in a stripe; a claim for another mode first shuts the stripes.
//!
//! Who may change what:
//! - held modes and `overtakings` up: every claim that takes;
//! - held modes down: every release;
//! - everything else: under the queue's lock. OPEN is set there only if nobody waits or holds
//!   another mode, and so nobody waits while it is set.

use super::Place;
use crate::limit::Bypass;
use crate::modes::Mode;
use crate::turnstile::{self, WAITERS};

pub(super) const SLOW: u64 = 1 << 2;
pub(super) const OPEN: u64 = 1 << 3;
pub(super) const OVERTAKINGS: u64 = 0xFF80;
const COUNT: u64 = 0xFFFF;

/// What one holder adds to the word, by mode.
pub(super) const ONE: [u64; 6] = [1 << 16, 1 << 32, 1 << 48, 1 << 4, 1 << 5, 1 << 6];

/// All bits that the word has for a mode.
const FIELD: [u64; 6] = [
    ONE[0] * COUNT,
    ONE[1] * COUNT,
    ONE[2] * COUNT,
    ONE[3],
    ONE[4],
    ONE[5],
];

/// The bits that must be clear when a mode is taken.
const AGAINST: [u64; 6] = against();

/// The bits that holders set.
const HELD: u64 = FIELD[0] | FIELD[1] | FIELD[2] | FIELD[3] | FIELD[4] | FIELD[5];

/// The bits that send a claim for a mode to `taken_at_closer_look`.
/// They are those of conflicting modes, waiters and other places, and of its own count half full.
const CLOSER: [u64; 6] = closer();

const fn closer() -> [u64; 6] {
    let mut closer = AGAINST;
    let mut i = 0;
    while i < 6 {
        let half = FIELD[i] & !(FIELD[i] >> 1);
        closer[i] |= half | WAITERS | SLOW | OPEN;
        i += 1;
    }
    closer
}

const fn against() -> [u64; 6] {
    let mut against = [0; 6];
    let mut pair = 0;
    while pair < 36 {
        let (mode, other) = (Mode::ALL[pair / 6], Mode::ALL[pair % 6]);
        if !mode.compatible(other) {
            against[mode as usize] |= FIELD[other as usize];
        }
        pair += 1;
    }
    against
}

/// The value of the word at one moment.
pub(super) type Bits = turnstile::Bits<OVERTAKINGS>;

/// What is asked for under the lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) mode: Mode,
    /// The mode that the asker holds in the word, and gives in exchange.
    pub(super) own: Option<Mode>,
    /// The set of modes that others hold outside the word.
    pub(super) elsewhere: u8,
}

impl Bits {
    pub(super) fn count(self, mode: Mode) -> u64 {
        let field = self.0 & FIELD[mode as usize];
        field / ONE[mode as usize]
    }

    #[inline]
    pub(super) fn is_slow(self) -> bool {
        self.0 & SLOW != 0
    }

    #[inline]
    pub(super) fn is_open(self) -> bool {
        self.0 & OPEN != 0
    }

    /// Whether one more holder of this mode fits beside those in the word.
    #[inline]
    pub(super) fn admits(self, mode: Mode) -> bool {
        self.0 & AGAINST[mode as usize] == 0
    }

    #[inline]
    pub(super) fn is_full(self, mode: Mode) -> bool {
        self.0 & FIELD[mode as usize] == FIELD[mode as usize]
    }

    #[inline]
    pub(super) fn without(self, own: Option<Mode>) -> Self {
        Self(self.0 - own.map_or(0, |own| ONE[own as usize]))
    }

    /// Whether the mode asked for is compatible with all that others hold.
    /// If stripes do not take this mode, they have been shut.
    pub(super) fn grants(self, ask: Ask) -> bool {
        self.without(ask.own).admits(ask.mode) && ask.mode.conflicts() & ask.elsewhere == 0
    }

    pub(super) fn granted(self, ask: Ask) -> Option<(Self, Place)> {
        self.grants(ask)
            .then(|| self.without(ask.own).held(ask.mode))
    }

    /// With one more holder; also returns where it is counted.
    pub(super) fn held(self, mode: Mode) -> (Self, Place) {
        if self.is_full(mode) {
            (Self(self.0 | SLOW), Place::Spill)
        } else {
            (Self(self.0 + ONE[mode as usize]), Place::Word)
        }
    }

    /// After a claim that is not in the queue took `mode` in exchange for `own`.
    /// The claim does not hold the lock, and overtook the waiters, if any.
    #[inline]
    pub(super) fn taken(self, mode: Mode, own: Option<Mode>, bypass: Bypass) -> Option<Self> {
        let rest = self.without(own);
        if rest.0 & CLOSER[mode as usize] == 0 {
            return Some(Self(rest.0 + ONE[mode as usize]));
        }
        self.taken_at_closer_look(mode, own, bypass)
    }

    fn taken_at_closer_look(self, mode: Mode, own: Option<Mode>, bypass: Bypass) -> Option<Self> {
        let rest = self.without(own);
        if !rest.admits(mode) || rest.is_full(mode) {
            return None;
        }
        let taken = Self(rest.0 + ONE[mode as usize]);
        if self.0 & (WAITERS | SLOW | OPEN) == 0 {
            return Some(taken);
        }
        // Only under the lock are stripes shut, and is it known what a conversion overtakes.
        if self.0 & (SLOW | OPEN) != 0 || own.is_some() {
            return None;
        }
        taken.overtaken(bypass)
    }

    /// With the stripes for IS and `wide` open, if nobody waits or holds another mode.
    pub(super) fn reopened(self, wide: Mode) -> Option<Self> {
        let others = HELD & !(FIELD[Mode::Is as usize] | FIELD[wide as usize]);
        let opens = !self.is_open() && self.0 & (others | WAITERS) == 0;
        opens.then_some(Self(self.0 & !SLOW | OPEN))
    }
}
