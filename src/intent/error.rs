//! Why a mode was refused.

use crate::modes::Mode;
use crate::shown::error_says;

/// The mode conflicts with a holder, or it is a waiter's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WouldBlock;

/// Two guards convert, and each asks for a mode that conflicts with what the other holds.
/// Neither could go on before the other released. The one that asked later gets this error, and
/// keeps what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deadlock {
    /// The mode that this guard holds, and keeps.
    pub held: Mode,
    /// The mode that it would have held.
    pub asked: Mode,
    /// The mode that the other guard holds.
    pub other_held: Mode,
    /// The mode that the other guard waits for.
    pub other_asked: Mode,
}

/// A downgrade to a mode that is not covered by the one held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NotWeaker {
    /// The mode that is still held.
    pub held: Mode,
    /// The mode that was asked for.
    pub asked: Mode,
}

error_says!(WouldBlock { Self => "the lock cannot be had now" });

error_says!(Deadlock {
    Self { held, asked, other_held, other_asked } =>
        "deadlock of conversions: {held} to {asked} against {other_held} to {other_asked}",
});

error_says!(NotWeaker { Self { held, asked } => "{held} does not cover {asked}" });
