//! Why permits were refused.

use crate::shown::error_says;

/// Why permits were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcquireError {
    /// Too few permits are free, or a waiter has a right to those that are.
    /// Only [`try_acquire`](super::Semaphore::try_acquire) returns this: a wait goes on.
    NoPermits,
    /// The semaphore is closed.
    Closed,
    /// More permits than the limit were asked for: the request would wait until the limit rises.
    AboveLimit,
}

error_says!(AcquireError {
    Self::NoPermits => "no permits to be had now",
    Self::Closed => "semaphore closed",
    Self::AboveLimit => "more permits than the limit",
});
