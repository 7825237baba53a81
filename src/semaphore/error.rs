//! Why permits were refused.

use std::error::Error;
use std::fmt;

/// Why a wait for permits failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireError {
    /// The semaphore is closed.
    Closed,
    /// More was asked for than the limit; it would wait until the limit rises.
    AboveLimit,
}

/// Why permits could not be had at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// Too few are free, or those that are belong to somebody who waits.
    NoPermits,
    /// The semaphore is closed.
    Closed,
    /// More was asked for than the limit.
    AboveLimit,
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "semaphore closed",
            Self::AboveLimit => "more permits than the limit",
        })
    }
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPermits => f.write_str("no permits to be had now"),
            Self::Closed => AcquireError::Closed.fmt(f),
            Self::AboveLimit => AcquireError::AboveLimit.fmt(f),
        }
    }
}

impl From<AcquireError> for TryAcquireError {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Closed => Self::Closed,
            AcquireError::AboveLimit => Self::AboveLimit,
        }
    }
}

impl Error for AcquireError {}
impl Error for TryAcquireError {}
