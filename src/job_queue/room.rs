//! Room for jobs that are being pushed.

use crate::jobs::PushReason;
use crate::queue::{Capacity, Permits};

/// Permits for jobs that are being pushed, given back on drop. They are taken under the queue's lock
/// once nothing else refuses the jobs.
pub(super) struct Room<'q> {
    capacity: &'q Capacity,
    permits: usize,
}

impl<'q> Room<'q> {
    /// No permits yet.
    #[inline]
    pub(super) fn of(capacity: &'q Capacity) -> Self {
        Self {
            capacity,
            permits: 0,
        }
    }

    /// The permit that a wait was granted.
    pub(super) fn granted(capacity: &'q Capacity, permits: Permits<'q>) -> Self {
        permits.keep();
        Self {
            capacity,
            permits: 1,
        }
    }

    /// Takes a permit for each of so many jobs, unless it has some.
    #[inline(always)]
    pub(super) fn take(&mut self, jobs: usize) -> Result<(), PushReason> {
        if self.permits == 0 {
            self.capacity.take(jobs)?.keep();
            self.permits = jobs;
        }
        Ok(())
    }

    /// The permits belong to the jobs from now on.
    #[inline(always)]
    pub(super) fn keep(mut self) {
        self.permits = 0;
    }
}

impl Drop for Room<'_> {
    /// Runs under no lock.
    #[inline]
    fn drop(&mut self) {
        if self.permits > 0 {
            self.capacity.release(self.permits);
        }
    }
}
