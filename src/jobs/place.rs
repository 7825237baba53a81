//! Where a job belongs, and what a push says besides.

use std::time::Duration;

use crate::limit::Limit;

use super::names::{Name, Pinned};
use super::records::Rare;

/// Where a job belongs, from when on it may run, and how often it is tried.
///
/// ```
/// use conversant::job_queue::Place;
/// use std::time::Duration;
///
/// // Dates are absolute, on the scale of what `advance` is told.
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
    /// Where a handle of this queue keeps it.
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

    /// Of this tenant. A place by handle forgets the handle, and is in no group.
    pub fn tenant(mut self, tenant: impl Into<Name>) -> Self {
        *self.names().0 = tenant.into();
        self
    }

    /// In this group of its tenant; the same name under another tenant is
    /// another group. A place by handle forgets the handle, and is of the default tenant.
    pub fn group(mut self, group: impl Into<Name>) -> Self {
        *self.names().1 = Some(group.into());
        self
    }

    /// Its names; those of a place by handle begin as the default.
    fn names(&mut self) -> (&mut Name, &mut Option<Name>) {
        if let To::Pinned { .. } = self.home {
            self.home = To::default();
        }
        match &mut self.home {
            To::Named { tenant, group } => (tenant, group),
            To::Pinned { .. } => unreachable!("it has names now"),
        }
    }

    /// Not before this time, by the embedder's clock: with a [`Ticker`](crate::ticker::Ticker)
    /// `origin.elapsed() + delay` is so long from now. Until then the job is
    /// absent: it blocks neither its group nor anyone.
    pub fn due(mut self, due: Duration) -> Self {
        self.rare.get_or_insert_default().due = Some(due);
        self
    }

    /// After so many attempts, 1 or more, the job is dead if it failed, whatever
    /// [the queue](crate::job_queue::Builder::attempts) says. With 0 its push is
    /// [refused](crate::job_queue::PushReason::OutOfRange).
    pub fn attempts(mut self, attempts: impl Into<Limit>) -> Self {
        self.rare.get_or_insert_default().attempts = Some(attempts.into());
        self
    }

    /// By this name there is one job of its tenant at most, from its push until it is done,
    /// dead or taken out: a second one is [refused](crate::job_queue::PushReason::Duplicate).
    /// A dead job that is requeued takes its name again, or is
    /// [refused](crate::job_queue::Refused::Duplicate) if another job has it by then.
    /// [`push_replacing`](crate::job_queue::JobQueue::push_replacing) takes out the one
    /// that waits.
    pub fn unique(mut self, name: impl Into<Name>) -> Self {
        self.rare.get_or_insert_default().unique = Some(name.into());
        self
    }

    /// Whether it says a group by name.
    #[inline]
    pub(super) fn has_group(&self) -> bool {
        matches!(self.home, To::Named { group: Some(_), .. })
    }

    /// Where a handle of this queue keeps it.
    #[inline]
    pub(crate) fn pinned(queue: u64, at: Pinned) -> Self {
        let home = To::Pinned { queue, at };
        Self {
            home,
            ..Self::default()
        }
    }
}
