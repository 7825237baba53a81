//! A snapshot of a queue at one moment.

use crate::jobs::TenantStatus;
use crate::limit::Limit;
use crate::wait::WaitCounts;

use super::shared::{Shared, State};

/// What a queue held at one moment: everything in it was true at once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// Nothing more can be pushed.
    pub closed: bool,
    /// The most jobs claimed at once.
    pub limit: Limit,
    /// How many jobs there are of what.
    pub counts: Counts,
    /// The tenants with their groups, by name.
    pub tenants: Vec<TenantStatus>,
}

/// How many jobs there are of what, and how many agents wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Counts {
    /// Jobs that wait and are due.
    pub ready: usize,
    /// Those that wait for a time.
    pub later: usize,
    /// Those that could be claimed now.
    pub eligible: u64,
    /// Those that are claimed.
    pub claimed: u32,
    /// Those that failed too often.
    pub dead: usize,
    /// Claims so far that were dropped outside of a panic, neither completed nor given
    /// back explicitly: as when a `complete` was forgotten.
    pub dropped: u64,
    /// Claims in line for a job, whichever or of one tenant or group.
    pub claims: WaitCounts,
}

pub(super) fn counts<K, J>(shared: &Shared<K, J>, state: &State<K, J>) -> Counts {
    let jobs = &state.jobs;
    Counts {
        ready: jobs.waiting() - jobs.later(),
        later: jobs.later(),
        eligible: jobs.eligible(),
        claimed: jobs.running(),
        dead: jobs.dead().len(),
        dropped: shared.dropped.get(),
        claims: state.claims(),
    }
}

pub(super) fn take<K, J>(shared: &Shared<K, J>, state: &State<K, J>) -> Snapshot {
    Snapshot {
        closed: state.closed,
        limit: state.jobs.limit(&crate::jobs::Scope::Queue),
        counts: counts(shared, state),
        tenants: state.jobs.tenants().collect(),
    }
}
