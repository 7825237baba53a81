//! Room for jobs that are being pushed.

use crate::jobs::PushReason;
use crate::queue::{Capacity, Permits};

/// Permits for jobs that are being pushed. They are taken under the queue's lock once nothing else
/// refuses the jobs. If the jobs are refused after all, the permits are put back under that lock,
/// so no other push finds them taken.
pub(super) struct Room<'q> {
    capacity: &'q Capacity,
    permits: usize,
    /// Pushes that wait for room must be served.
    serve: bool,
}

impl<'q> Room<'q> {
    /// No permits yet.
    #[inline]
    pub(super) fn of(capacity: &'q Capacity) -> Self {
        Self {
            capacity,
            permits: 0,
            serve: false,
        }
    }

    /// The permit that a wait was granted.
    pub(super) fn granted(capacity: &'q Capacity, permits: Permits<'q>) -> Self {
        permits.keep();
        Self {
            permits: 1,
            ..Self::of(capacity)
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

    /// Puts the permits back. Runs under the queue's lock, or under none.
    pub(super) fn put_back(&mut self) {
        let permits = std::mem::take(&mut self.permits);
        self.serve |= permits > 0 && self.capacity.put(permits);
    }
}

impl Drop for Room<'_> {
    /// Runs under no lock.
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
