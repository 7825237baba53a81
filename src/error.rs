//! The public errors: small values that say what was refused and why.

use crate::shown::error_says;

/// The object is closed: nothing more goes in, or comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Closed;

/// The time was up before the wait was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimedOut;

/// The thing that the handle or name refers to has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stale;

/// Nothing could go on, so the newest untimed wait gave up.
///
/// Every running task was blocked in an untimed wait of its own scheduler, and none could start. In
/// `Driver::at_once`, where none can start, a `synchronize` gives it for all that has not ended.
///
/// Each scheduler looks at its own tasks only. If tasks of two schedulers wait for each other, they
/// hang, and none of their waits gives this error. Where that can happen use
/// [`wait_timeout`](crate::wait::Wait::wait_timeout), which ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stalled;

/// A number outside its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutOfRange {
    /// What the number stands for.
    pub what: &'static str,
    /// The number.
    pub asked: u32,
    /// The smallest number that is allowed.
    pub least: u32,
    /// The largest number that is allowed.
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

/// The tier is below that of the group's last message, while the group has outstanding work, or a
/// turn of it lives.
///
/// The group could wait for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
