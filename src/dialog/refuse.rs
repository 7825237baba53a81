//! What is refused, and why.

use crate::error::Closed;
use crate::queue::SendReason;
use crate::shown::error_says;

/// Why a message was not sent, or no dialog was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Refused {
    /// This side has ended; of a new dialog, that it was to be [related](super::SideGroup) to
    /// one that has ended, whose group is gone.
    Ended,
    /// The peer has ended.
    PeerEnded,
    /// The peer's queue is closed; of a new dialog, one of the queues.
    Closed,
    /// As many messages as the capacity of the peer's queue wait there or are
    /// in flight, or the room is promised to others; or its group or lane is full.
    Full,
}

impl Refused {
    /// Of a send in the tier of the group's last message, which cannot go down.
    pub(super) fn by_queue(reason: SendReason) -> Self {
        match reason {
            SendReason::Closed => Self::Closed,
            // The others are those of sends of several, in a tier, or that wait.
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
