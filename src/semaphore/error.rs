//! Why permits were refused.

use crate::shown::error_says;

/// Why permits were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireError {
    /// Too few are free, or those that are belong to somebody who waits. Of a
    /// [`try_acquire`](super::Semaphore::try_acquire) only: a wait waits.
    NoPermits,
    /// The semaphore is closed.
    Closed,
    /// More was asked for than the limit; it would wait until the limit rises.
    AboveLimit,
}

error_says!(AcquireError {
    Self::NoPermits => "no permits to be had now",
    Self::Closed => "semaphore closed",
    Self::AboveLimit => "more permits than the limit",
});
