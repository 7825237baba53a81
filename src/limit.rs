//! Limits on what is in flight, and bounds on overtaking.

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use crate::error::OutOfRange;
use crate::shown::says;

/// How many units may be in flight at once.
///
/// A number is a limit: where one is asked for, `8` is `Limit::AtMost(8)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// At most so many; 0 is a pause. No more than [`Limit::MAX`].
    AtMost(u32),
    /// No limit.
    Unlimited,
}

impl Limit {
    /// The largest number that a limit takes.
    pub const MAX: u32 = i32::MAX as u32;

    /// One at a time.
    pub const SERIAL: Self = Self::AtMost(1);

    /// The limit itself, if it is not above [`Limit::MAX`]; `what` it limits.
    pub(crate) fn checked(self, what: &'static str) -> Result<Self, OutOfRange> {
        if let Self::AtMost(n) = self {
            OutOfRange::check(what, n, 0, Self::MAX)?;
        }
        Ok(self)
    }

    /// How many more fit beside `in_flight`; none while a debt is left.
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

/// How many times in a row the one that has waited longest may be overtaken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bypass {
    /// At most so many times, then it is served; 0 is strict order of age.
    AtMost(u32),
    /// As often as the order of rank says: low ranks can starve.
    Unbounded,
}

impl Bypass {
    /// Whether one that was overtaken `times` in a row must be served now.
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
