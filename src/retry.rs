//! What becomes of work that fails: how often it is tried, and the pause before
//! it is tried again.
//!
//! A message of a queue and a job of a job queue fail by the same rule.

use std::time::Duration;

use crate::error::OutOfRange;
use crate::limit::Limit;

/// What is done about failures.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// How often it is tried.
    pub attempts: Limit,
    /// The pause after the first failure; zero for none.
    pub first: Duration,
    /// No pause is longer.
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
    /// The same, if there is an attempt at all.
    pub fn checked(self) -> Result<Self, OutOfRange> {
        match self.attempts {
            Limit::AtMost(0) => Err(Self::NO_ATTEMPT),
            _ => Ok(self),
        }
    }

    /// What may never be tried.
    pub const NO_ATTEMPT: OutOfRange = OutOfRange {
        what: "attempts",
        asked: 0,
        least: 1,
        most: u32::MAX,
    };

    /// Whether what has failed so often just goes back.
    pub fn is_plain(self, attempts: u32) -> bool {
        self.first.is_zero() && !self.is_last(attempts)
    }

    /// Whether what has failed so often is not tried again.
    pub fn is_last(self, attempts: u32) -> bool {
        matches!(self.attempts, Limit::AtMost(most) if attempts >= most)
    }

    /// The pause after this attempt: doubled after each but the first.
    pub fn pause(self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.most)
    }
}
