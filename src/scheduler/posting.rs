//! A task that was posted, and what the state knows of the list where it is: see `submissions`.

use std::time::Duration;

use crate::backlog::GroupKey;
use crate::slab::Key;
use crate::sync::Arc;

use super::cell::Job;

/// A task that the state does not know.
pub(super) struct Submission {
    pub(super) caller: Key,
    pub(super) group: Option<GroupKey>,
    pub(super) bump: Option<u8>,
    /// `None` if nobody wants to know.
    pub(super) queued: Option<Duration>,
    pub(super) label: Option<Arc<str>>,
    pub(super) job: Arc<dyn Job>,
}

/// What the state knows of the list of submissions.
#[derive(Default)]
pub(super) struct Posting {
    /// Whether it is open.
    pub(super) open: bool,
    /// Whether it may have memory.
    pub(super) used: bool,
    /// Kept for its memory.
    pub(super) buffer: Vec<Submission>,
}
