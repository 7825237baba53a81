//! What is refused, and why.

use crate::error::{Closed, Stale};
use crate::queue::SendReason;
use crate::shown::error_says;

/// Why there is no new dialog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginError {
    /// One of the queues is closed.
    Closed,
    /// The endpoint to be related to has ended, and its group is gone.
    Stale,
}

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// This side has ended.
    Ended,
    /// The peer has ended.
    PeerEnded,
    /// The peer's queue is closed.
    PeerGone,
    /// As many messages as the capacity of the peer's queue wait there or are
    /// in flight, or the room is promised to others; or its group or lane is full.
    Full,
}

impl Refused {
    /// Of a send in the tier of the group's last message, which cannot go down.
    pub(super) fn by_queue(reason: SendReason) -> Self {
        match reason {
            SendReason::Closed => Self::PeerGone,
            // The others are those of sends of several, in a tier, or that wait.
            _ => Self::Full,
        }
    }
}

impl From<Closed> for BeginError {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<Stale> for BeginError {
    fn from(_: Stale) -> Self {
        Self::Stale
    }
}

error_says!(BeginError {
    Self::Closed => "closed",
    Self::Stale => "stale handle",
});

error_says!(Refused {
    Self::Ended => "this side of the dialog has ended",
    Self::PeerEnded => "the peer has ended",
    Self::PeerGone => "the peer's queue is closed",
    Self::Full => "the peer's queue is full",
});
