//! The six modes of a lock in a hierarchy, and the algebra over them.
//!
//! The modes and their compatibility are those of J. Gray, R. Lorie, G. Putzolu and I. Traiger,
//! "Granularity of Locks and Degrees of Consistency in a Shared Data Base" (1976), with the update
//! mode of later systems added:
//!
//! | | IS | S | U | IX | SIX | X |
//! |-----|----|---|---|----|-----|---|
//! | IS  | Y  | Y | Y | Y  | Y   | - |
//! | S   | Y  | Y | Y | -  | -   | - |
//! | U   | Y  | Y | - | -  | -   | - |
//! | IX  | Y  | - | - | Y  | -   | - |
//! | SIX | Y  | - | - | -  | -   | - |
//! | X   | -  | - | - | -  | -   | - |
//!
//! By strength they form a lattice: IS below IX and S, S below U, IX and U below SIX, SIX below X.
//! A stronger mode conflicts with all that a weaker one conflicts with, so that holding the
//! [`join`](Mode::join) of two modes never gives less protection than holding both.
//!
//! Everything here is pure, constant time and usable in constants.

use std::fmt;

use crate::shown::says;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// How a resource is locked. The names are those of the field, written as Rust writes acronyms;
/// `Display` and `Debug` give the usual capitals.
///
/// ```
/// use conversant::modes::Mode;
///
/// assert!(Mode::S.compatible(Mode::U));
/// assert!(!Mode::S.compatible(Mode::Ix));
/// assert_eq!(Mode::S.join(Mode::Ix), Mode::Six);
/// assert_eq!(Mode::X.parent_needs(), Mode::Ix);
/// assert_eq!(Mode::Six.to_string(), "SIX");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[repr(u8)]
pub enum Mode {
    /// Intent shared: something below is read.
    Is,
    /// Intent exclusive: something below is changed.
    Ix,
    /// Shared: this and everything below is read.
    S,
    /// Update: this is read now, and perhaps changed later. Compatible with readers, but not with
    /// another update, so that two owners that mean to change this do not both begin by reading.
    U,
    /// Shared with intent exclusive: all is read, something below is changed.
    Six,
    /// Exclusive: this and everything below is changed.
    X,
}

use Mode::{Is, Ix, S, Six, U, X};

impl Mode {
    /// All modes; a weaker mode never comes after a stronger one.
    pub const ALL: [Mode; 6] = [Is, Ix, S, U, Six, X];

    /// Whether two owners may hold these two modes of one resource at once. Symmetric.
    #[must_use]
    pub const fn compatible(self, other: Mode) -> bool {
        self.conflicts() & other.bit() == 0
    }

    /// The weakest mode that is at least as strong as both. An owner that was granted one and then
    /// the other holds it.
    #[must_use]
    pub const fn join(self, other: Mode) -> Mode {
        if self.covers(other) {
            self
        } else if other.covers(self) {
            other
        } else {
            // IX and S, or IX and U.
            Six
        }
    }

    /// The strongest mode that is no stronger than either.
    #[must_use]
    pub const fn meet(self, other: Mode) -> Mode {
        if self.covers(other) {
            other
        } else if other.covers(self) {
            self
        } else {
            // As in `join`.
            Is
        }
    }

    /// Whether this mode is at least as strong as the other: then its holder need not ask for that.
    #[must_use]
    pub const fn covers(self, other: Mode) -> bool {
        other.conflicts() & !self.conflicts() == 0
    }

    /// The weakest mode that every ancestor must be held in before this mode is asked for.
    #[must_use]
    pub const fn parent_needs(self) -> Mode {
        match self {
            Is | S => Is,
            Ix | U | Six | X => Ix,
        }
    }

    /// The mode that this one amounts to on everything below the resource: S for the modes that
    /// read all of it, X for X, none for the intents.
    #[must_use]
    pub const fn below(self) -> Option<Mode> {
        match self {
            Is | Ix => None,
            S | U | Six => Some(S),
            X => Some(X),
        }
    }

    /// Whether holding this mode on an ancestor makes a request for `child` below it needless.
    #[must_use]
    pub const fn covers_below(self, child: Mode) -> bool {
        match self.below() {
            Some(mode) => mode.covers(child),
            None => false,
        }
    }

    /// The mode's bit in a set of modes.
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// The set of modes that this one conflicts with.
    pub(crate) const fn conflicts(self) -> u8 {
        match self {
            Is => X.bit(),
            S => Ix.bit() | Six.bit() | X.bit(),
            U => Ix.bit() | U.bit() | Six.bit() | X.bit(),
            Ix => S.bit() | U.bit() | Six.bit() | X.bit(),
            Six => !Is.bit(),
            X => !0,
        }
    }
}

/// The join of two modes, either of which may be missing.
#[inline]
pub(crate) fn joined(one: Option<Mode>, other: Option<Mode>) -> Option<Mode> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.join(other)),
        (one, other) => one.or(other),
    }
}

/// The modes of a set.
pub(crate) fn modes_in(set: u8) -> impl Iterator<Item = Mode> {
    let all = Mode::ALL.into_iter();
    all.filter(move |mode| set & mode.bit() != 0)
}

says!(Mode {
    Is => "IS",
    Ix => "IX",
    S => "S",
    U => "U",
    Six => "SIX",
    X => "X",
});

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
