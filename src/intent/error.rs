//! Why a mode was refused.

use std::error::Error;
use std::fmt;

use crate::modes::Mode;

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

impl fmt::Display for WouldBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lock cannot be had now")
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            held,
            asked,
            other_held,
            other_asked,
        } = self;
        write!(
            f,
            "deadlock of conversions: {held} to {asked} against {other_held} to {other_asked}"
        )
    }
}

impl fmt::Display for NotWeaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { held, asked } = self;
        write!(f, "{held} does not cover {asked}")
    }
}

impl Error for WouldBlock {}
impl Error for Deadlock {}
impl Error for NotWeaker {}
