//! Why a push was refused.

use std::error::Error;
use std::fmt;

use crate::jobs::PushReason;
use crate::queue::SendReason;
use crate::shown::{pad, shows};

impl From<SendReason> for PushReason {
    fn from(reason: SendReason) -> Self {
        match reason {
            SendReason::Closed => Self::Closed,
            SendReason::AboveCapacity => Self::AboveCapacity,
            SendReason::TimedOut => Self::TimedOut,
            // The other reasons are of a queue's parts, handlers and tiers, never of a push.
            _ => Self::Full,
        }
    }
}

/// What was not taken, and why.
///
/// The content of a single job is its key and the job; of several jobs, it is all of them in order,
/// and the reason is that of the first one that was refused. For a
/// [replacement](super::JobQueue::replace), it is the job alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PushError<C, R = PushReason> {
    /// What was not taken.
    pub content: C,
    /// The reason.
    pub reason: R,
}

shows!(
    /// Omits the content, so that `unwrap` works with any content.
    [C, R: fmt::Debug] PushError<C, R>, |this| reason: this.reason
);

impl<C, R: fmt::Display> fmt::Display for PushError<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        pad(f, format_args!("not taken: {}", self.reason))
    }
}

impl<C, R: fmt::Debug + fmt::Display> Error for PushError<C, R> {}
