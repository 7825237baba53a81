//! Limits on what is in flight, bounds on overtaking, and the default level.

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use crate::error::OutOfRange;
use crate::shown::says;

/// The standing level of a group for which none was set. Levels go from 0 to 255; the highest goes
/// first.
pub const DEFAULT_LEVEL: u8 = 100;

/// How many units may be in flight at once.
///
/// Where a method takes a limit, a number will do: `8` is `Limit::AtMost(8)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// At most so many; 0 is a pause. The number is at most [`Limit::MAX`].
    AtMost(u32),
    /// No limit.
    Unlimited,
}

impl Limit {
    /// The largest number that a limit may have.
    pub const MAX: u32 = i32::MAX as u32;

    /// One at a time.
    pub const SERIAL: Self = Self::AtMost(1);

    /// The limit itself, if it is at most [`Limit::MAX`]. `what` names it in the error.
    pub(crate) fn checked(self, what: &'static str) -> Result<Self, OutOfRange> {
        if let Self::AtMost(n) = self {
            OutOfRange::check(what, n, 0, Self::MAX)?;
        }
        Ok(self)
    }

    /// How many more units fit, with `in_flight` in use; none while there is a debt.
    pub(crate) fn room(self, in_flight: u32) -> u32 {
        match self {
            Self::AtMost(n) => n.saturating_sub(in_flight),
            Self::Unlimited => u32::MAX - in_flight,
        }
    }
}

impl From<u32> for Limit {
    /// At most so many.
    fn from(most: u32) -> Self {
        Self::AtMost(most)
    }
}

/// A number, or null.
#[cfg(feature = "serde")]
impl serde::Serialize for Limit {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::AtMost(most) => serializer.serialize_some(most),
            Self::Unlimited => serializer.serialize_none(),
        }
    }
}

says!(Limit {
    Self::AtMost(most) => "at most {most}",
    Self::Unlimited => "unlimited",
});

/// How many times in a row the longest waiting one may be overtaken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bypass {
    /// At most so many times, then it is served; 0 is the strict order of age.
    AtMost(u32),
    /// No bound: groups of low rank, and waiters for many permits, can starve.
    Unbounded,
}

impl Bypass {
    /// Whether one that was overtaken `times` times in a row must be served now.
    pub(crate) fn spent(self, times: u32) -> bool {
        matches!(self, Self::AtMost(most) if times >= most)
    }
}

impl Default for Bypass {
    /// At most 64 times.
    fn default() -> Self {
        Self::AtMost(64)
    }
}

says!(Bypass {
    Self::AtMost(most) => "overtaken at most {most} times",
    Self::Unbounded => "overtaken without bound",
});
