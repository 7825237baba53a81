//! The public errors: small values that say what was refused and why.

use std::error::Error;
use std::fmt;

/// What was asked for is closed: nothing more goes in, or comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// The time was up before what was waited for came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut;

/// The handle or name is of something that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale;

/// Nothing could go on: every running task was blocked in an untimed wait of its
/// own scheduler and none could start, so the newest such wait gave up.
///
/// Each scheduler looks at its own tasks only: two schedulers whose tasks wait for
/// each other hang, and no wait of theirs gives this error. Where that can happen
/// wait with a limit: [`wait_timeout`](crate::wait::Wait::wait_timeout) ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalled;

/// A number outside its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// What the number is for.
    pub what: &'static str,
    /// The number.
    pub asked: u32,
    /// The least that is allowed.
    pub least: u32,
    /// The most that is allowed.
    pub most: u32,
}

impl OutOfRange {
    pub(crate) fn check(
        what: &'static str,
        asked: u32,
        least: u32,
        most: u32,
    ) -> Result<(), OutOfRange> {
        if (least..=most).contains(&asked) {
            return Ok(());
        }
        Err(OutOfRange {
            what,
            asked,
            least,
            most,
        })
    }
}

/// A tier below that of the group's last message, while something of the group
/// is outstanding: it could wait for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierGoesDown {
    /// The tier of the group's last message.
    pub last: u32,
    /// The tier asked for.
    pub asked: u32,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("closed")
    }
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("timed out")
    }
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stale handle")
    }
}

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stalled: all running tasks wait for their own scheduler")
    }
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            asked,
            least,
            most,
        } = self;
        write!(f, "{what} {asked} is outside {least}..={most}")
    }
}

impl fmt::Display for TierGoesDown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { last, asked } = self;
        write!(f, "tier {asked} after tier {last} in the same group")
    }
}

impl Error for Closed {}
impl Error for TimedOut {}
impl Error for Stale {}
impl Error for Stalled {}
impl Error for OutOfRange {}
impl Error for TierGoesDown {}
