//! The public errors: small values that say what was refused and why.

use crate::shown::error_says;

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

error_says!(Closed { Self => "closed" });

error_says!(TimedOut { Self => "timed out" });

error_says!(Stale { Self => "stale handle" });

error_says!(Stalled { Self => "stalled: all running tasks wait for their own scheduler" });

error_says!(OutOfRange {
    Self { what, asked, least, most } => "{what} {asked} is outside {least}..={most}",
});

error_says!(TierGoesDown {
    Self { last, asked } => "tier {asked} after tier {last} in the same group",
});
