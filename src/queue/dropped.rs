//! Deliveries that were dropped where they should have been completed.

use crate::group::GroupKey;
use crate::sync::{Tally, panicking};

/// Who is told of it, with the number of the queue.
pub(super) type OnDropped = Box<dyn Fn(u64, GroupKey) + Send + Sync>;

/// How many there were.
pub(super) struct Dropped {
    count: Tally,
    on_dropped: Option<OnDropped>,
}

impl Dropped {
    pub(super) fn new(on_dropped: Option<OnDropped>) -> Self {
        Self {
            count: Tally::new(),
            on_dropped,
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count.get()
    }

    /// A delivery of this group was dropped, and has gone back. Under no lock: runs
    /// what is the user's. A panic drops deliveries by rights.
    #[cold]
    pub(super) fn tell(&self, queue: u64, group: GroupKey) {
        if panicking() {
            return;
        }
        self.count.count();
        if let Some(on_dropped) = &self.on_dropped {
            on_dropped(queue, group);
        }
    }
}
