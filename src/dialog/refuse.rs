//! What is refused, and why.

use crate::error::Closed;
use crate::queue::SendReason;
use crate::shown::error_says;

/// Why a message was not sent, or no dialog was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Refused {
    /// This side has ended. For a new dialog: the endpoint to be [related](super::SideGroup) to has
    /// ended, and its group is gone.
    Ended,
    /// The peer has ended.
    PeerEnded,
    /// The peer's queue is closed. For a new dialog: one of the queues is.
    Closed,
    /// The messages that wait in the peer's queue or are in flight fill its capacity, or the rest
    /// of the room is granted to waiting sends; or the peer's group or lane is full.
    Full,
}

impl Refused {
    /// For a send in the tier of the group's last message: the tier is never the reason.
    pub(super) fn by_queue(reason: SendReason) -> Self {
        match reason {
            SendReason::Closed => Self::Closed,
            // Full. The other reasons are those of sends of several, in a tier, or that wait.
            _ => Self::Full,
        }
    }
}

impl From<Closed> for Refused {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

error_says!(Refused {
    Self::Ended => "this side of the dialog has ended",
    Self::PeerEnded => "the peer has ended",
    Self::Closed => "the queue is closed",
    Self::Full => "the peer's queue is full",
});
