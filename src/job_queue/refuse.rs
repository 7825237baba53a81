//! Why a job is not in.

use std::error::Error;
use std::fmt;

use crate::jobs::PushReason;
use crate::queue::SendReason;
use crate::shown::shows;

impl From<SendReason> for PushReason {
    fn from(reason: SendReason) -> Self {
        match reason {
            SendReason::Closed => Self::Closed,
            SendReason::AboveCapacity => Self::AboveCapacity,
            SendReason::TimedOut => Self::TimedOut,
            // The others are of a queue's parts, handlers and tiers: never of a push.
            _ => Self::Full,
        }
    }
}

/// What was not taken, and why.
///
/// Of one job the content is its key and the job. Of several it is all of them, in order, and the
/// reason is that of the first that was refused. Of one that was to
/// [replace](super::JobQueue::replace) another it is the job alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PushError<C, R = PushReason> {
    /// What was not taken.
    pub content: C,
    /// The reason.
    pub reason: R,
}

shows!(
    /// Without the content, so that any can be unwrapped on.
    [C, R: fmt::Debug] PushError<C, R>, |this| reason: this.reason
);

impl<C, R: fmt::Display> fmt::Display for PushError<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not taken: {}", self.reason)
    }
}

impl<C, R: fmt::Debug + fmt::Display> Error for PushError<C, R> {}
