//! What happens to work that fails: how often it is tried, and the pause before each retry.
//!
//! Messages of a queue and jobs of a job queue follow the same rule.

use std::time::Duration;

use crate::error::OutOfRange;
use crate::limit::Limit;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// The rule for failures.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// How many attempts there are.
    pub attempts: Limit,
    /// The pause after the first failure; zero means no pause.
    pub first: Duration,
    /// The longest pause.
    pub most: Duration,
}

impl Default for Retry {
    /// Five attempts, without a pause.
    fn default() -> Self {
        Self {
            attempts: Limit::AtMost(5),
            first: Duration::ZERO,
            most: Duration::ZERO,
        }
    }
}

impl Retry {
    /// The rule itself, if it allows an attempt at all.
    pub fn checked(self) -> Result<Self, OutOfRange> {
        match self.attempts {
            Limit::AtMost(0) => Err(Self::NO_ATTEMPT),
            _ => Ok(self),
        }
    }

    /// The error for a rule that allows no attempt.
    pub const NO_ATTEMPT: OutOfRange = OutOfRange {
        what: "attempts",
        asked: 0,
        least: 1,
        most: u32::MAX,
    };

    /// Whether work with so many failed attempts is put back without a pause.
    pub fn is_plain(self, attempts: u32) -> bool {
        self.first.is_zero() && !self.is_last(attempts)
    }

    /// Whether work with so many failed attempts is not tried again.
    pub fn is_last(self, attempts: u32) -> bool {
        matches!(self.attempts, Limit::AtMost(most) if attempts >= most)
    }

    /// The pause after this attempt: after each attempt but the first it doubles.
    pub fn pause(self, attempt: u32) -> Duration {
        // So many doublings make even a nanosecond longer than any pause.
        let doublings = attempt.saturating_sub(1).min(94);
        let doubled = (0..doublings).fold(self.first, |pause, _| pause.saturating_mul(2));
        doubled.min(self.most)
    }
}
