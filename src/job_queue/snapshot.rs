//! A snapshot of a queue at one moment.

use crate::jobs::{Counts, TenantStatus};
use crate::limit::Limit;

use super::shared::State;

/// What a queue held at one moment: everything in it was true at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Nothing more can be pushed.
    pub closed: bool,
    /// The most jobs claimed at once.
    pub limit: Limit,
    /// How many jobs there are of what.
    pub counts: Counts,
    /// Claims that sleep.
    pub agents_waiting: usize,
    /// Claims that were woken and have not looked since. One that stays here is
    /// a task that is not polled.
    pub agents_notified: usize,
    /// The tenants with their groups, by name.
    pub tenants: Vec<TenantStatus>,
}

pub(super) fn take<K, J>(state: &State<K, J>) -> Snapshot {
    let (agents_waiting, agents_notified) = state.claims();
    Snapshot {
        closed: state.closed,
        limit: state.jobs.limit(&crate::jobs::Scope::Queue),
        counts: state.jobs.counts(),
        agents_waiting,
        agents_notified,
        tenants: state.jobs.tenants().collect(),
    }
}
