//! Where a job belongs, and the other settings of a push.

use std::time::Duration;

use crate::limit::Limit;

use super::names::{Name, Pinned};
use super::records::Rare;

/// Where a job belongs, when it is due, and how often it is tried.
///
/// ```
/// use conversant::job_queue::Place;
/// use std::time::Duration;
///
/// // Dates are absolute, on the scale of the times passed to `advance`.
/// let now = Duration::from_secs(3_600);
/// let place = Place::new().tenant("shop").group("order 7").due(now + Duration::from_secs(60));
/// # assert_eq!(place, place.clone());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Place {
    pub(super) home: To,
    pub(super) rare: Option<Box<Rare>>,
}

/// Where a job belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum To {
    Named {
        tenant: Name,
        group: Option<Name>,
    },
    /// In the part of a handle of this queue.
    Pinned {
        queue: u64,
        at: Pinned,
    },
}

impl Default for To {
    fn default() -> Self {
        Self::Named {
            tenant: Name::default(),
            group: None,
        }
    }
}

impl Place {
    /// The default tenant, no group, due at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the tenant. A place by handle forgets the handle, and is in no group.
    pub fn tenant(mut self, tenant: impl Into<Name>) -> Self {
        *self.names().0 = tenant.into();
        self
    }

    /// Sets the group within the tenant; the same name under another tenant is another group. A
    /// place by handle forgets the handle, and is of the default tenant.
    pub fn group(mut self, group: impl Into<Name>) -> Self {
        *self.names().1 = Some(group.into());
        self
    }

    /// The names of a place; those of a place by handle begin as the default.
    fn names(&mut self) -> (&mut Name, &mut Option<Name>) {
        if let To::Pinned { .. } = self.home {
            self.home = To::default();
        }
        match &mut self.home {
            To::Named { tenant, group } => (tenant, group),
            To::Pinned { .. } => unreachable!("it has names now"),
        }
    }

    /// Sets the date before which the job may not run. A date, not a length:
    /// [`now()`](crate::job_queue::JobQueue::now)` + length`. Until then the job blocks
    /// neither its group nor other jobs; the capacity counts it, and it has its unique name.
    pub fn due(mut self, due: Duration) -> Self {
        self.rare.get_or_insert_default().due = Some(due);
        self
    }

    /// Sets after how many attempts, 1 or more, the job is dead if it fails. It replaces [the
    /// queue's number](crate::job_queue::Builder::attempts). With 0 the push is
    /// [refused](crate::job_queue::PushReason::OutOfRange).
    pub fn attempts(mut self, attempts: impl Into<Limit>) -> Self {
        self.rare.get_or_insert_default().attempts = Some(attempts.into());
        self
    }

    /// Sets how often the job was tried before: for a job that was stored, or that comes from
    /// another queue. [`Taken::attempts`](crate::job_queue::Taken::attempts) is that number. A job
    /// without an attempt left is tried once more.
    ///
    /// ```
    /// use conversant::job_queue::{JobQueue, Place};
    ///
    /// let (from, to) = (JobQueue::new(), JobQueue::new());
    /// from.push(7, "mail", Place::new())?;
    /// from.claim_one().wait()?.fail()?;
    /// for left in from.shutdown() {
    ///     to.push(left.key, left.job, Place::new().tried(left.attempts))?;
    /// }
    /// assert_eq!(to.claim_one().wait()?.attempt(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tried(mut self, attempts: u32) -> Self {
        self.rare.get_or_insert_default().tried = attempts;
        self
    }

    /// Sets a name that at most one job of the tenant has at a time. The job has it from its push
    /// until it is done, dead or taken out. A second push is
    /// [refused](crate::job_queue::PushReason::Duplicate). A dead job that is requeued takes its
    /// name again, or is [refused](crate::job_queue::Refused::Duplicate) if another job has it by
    /// then. [`push_replacing`](crate::job_queue::JobQueue::push_replacing) takes out the job that
    /// waits.
    pub fn unique(mut self, name: impl Into<Name>) -> Self {
        self.rare.get_or_insert_default().unique = Some(name.into());
        self
    }

    /// The place in the part of a handle of this queue.
    #[inline]
    pub(crate) fn pinned(queue: u64, at: Pinned) -> Self {
        let home = To::Pinned { queue, at };
        Self {
            home,
            ..Self::default()
        }
    }
}
