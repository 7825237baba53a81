//! The room of jobs on their way in.

use crate::jobs::PushReason;
use crate::queue::{Capacity, Permits};

/// The room of jobs on their way in. It is taken under the queue's lock once nothing else
/// refuses them, and put back under it, so that none who is refused has any that others see.
pub(super) struct Room<'q> {
    capacity: &'q Capacity,
    permits: usize,
    /// Who waits for room must be served.
    serve: bool,
}

impl<'q> Room<'q> {
    /// None yet.
    #[inline]
    pub(super) fn of(capacity: &'q Capacity) -> Self {
        Self {
            capacity,
            permits: 0,
            serve: false,
        }
    }

    /// That of a wait which was granted it.
    pub(super) fn granted(capacity: &'q Capacity, permits: Permits<'q>) -> Self {
        permits.keep();
        Self {
            permits: 1,
            ..Self::of(capacity)
        }
    }

    /// For so many jobs, if it has none.
    #[inline(always)]
    pub(super) fn take(&mut self, jobs: usize) -> Result<(), PushReason> {
        if self.permits == 0 {
            self.capacity.take(jobs)?.keep();
            self.permits = jobs;
        }
        Ok(())
    }

    /// It is the jobs' from now on.
    #[inline(always)]
    pub(super) fn keep(mut self) {
        self.permits = 0;
    }

    /// Under the queue's lock, or under none.
    pub(super) fn put_back(&mut self) {
        let permits = std::mem::take(&mut self.permits);
        self.serve |= permits > 0 && self.capacity.put(permits);
    }
}

impl Drop for Room<'_> {
    /// Under no lock.
    #[inline]
    fn drop(&mut self) {
        if self.permits > 0 {
            self.put_back();
        }
        if self.serve {
            self.capacity.serve();
        }
    }
}
