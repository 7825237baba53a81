//! The outcome of each task.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ok,
    /// The command's exit code; 127 when it could not be started.
    Failed(i32),
    /// The signal that ended the command.
    Signal(i32),
    /// Never started, as an earlier task of its caller failed.
    Skipped,
    /// Never started, as Ctrl-C came first.
    Cancelled,
}

impl Verdict {
    /// Whether it ran and failed.
    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Self::Failed(_) | Self::Signal(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Failed(code) => write!(f, "failed({code})"),
            Self::Signal(number) => write!(f, "signal({number})"),
            Self::Skipped => f.write_str("skipped"),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

/// Where and when a task ran, in microseconds since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ran {
    /// Counted from 1.
    pub(crate) reader: u32,
    pub(crate) start_us: u64,
    pub(crate) end_us: u64,
}

/// One row's outcome; a run gives one for each row, in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Finished {
    /// When it was submitted, or its `arrive_ms` where it never arrived.
    pub(crate) queued_us: u64,
    pub(crate) ran: Option<Ran>,
    pub(crate) verdict: Verdict,
}
