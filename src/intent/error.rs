//! Why a mode was refused.

use crate::modes::Mode;
use crate::shown::error_says;

/// The mode cannot be had now, or it is another's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WouldBlock;

/// Two who hold the lock ask for more than the other's mode allows: neither
/// could go on before the other gave its own back. The one that asked later gets
/// this, and keeps what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// What this one holds, and keeps.
    pub held: Mode,
    /// What it would have held.
    pub asked: Mode,
    /// What the other holds.
    pub other_held: Mode,
    /// What the other waits for.
    pub other_asked: Mode,
}

/// A downgrade to a mode that is not covered by the one held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotWeaker {
    /// What is held, still.
    pub held: Mode,
    /// What was asked for.
    pub asked: Mode,
}

error_says!(WouldBlock { Self => "the lock cannot be had now" });

error_says!(Deadlock {
    Self { held, asked, other_held, other_asked } =>
        "deadlock of conversions: {held} to {asked} against {other_held} to {other_asked}",
});

error_says!(NotWeaker { Self { held, asked } => "{held} does not cover {asked}" });
