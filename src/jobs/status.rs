//! The status of jobs, groups and tenants, and what keeps a job from running.

use std::time::Duration;

use crate::limit::Limit;
use crate::shown::says;
use crate::slab::{Key, NO_INDEX};

use super::records::{Group, Job, State};
use super::{Jobs, Name};

/// What keeps a job from being claimed, or that it is claimed. If several things keep it, the
/// innermost is named: the job's own, then its group's, its tenant's, the queue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Why {
    /// Nothing now: it is claimed in its tenant's turn, after those before it in the tenant's order,
    /// if these leave room in the limits of the tenant and the queue.
    Ready,
    /// It is not due before this time.
    Due(Duration),
    /// It is claimed, with a lease until this time, if any.
    Claimed(Option<Duration>),
    /// It failed too often.
    Dead,
    /// Its group has room, but so many earlier jobs of the group come first.
    Behind(u32),
    /// Its group's limit is 0.
    GroupPaused,
    /// As many of its group are claimed as the limit allows.
    GroupLimit,
    /// Its tenant's limit is 0.
    TenantPaused,
    /// As many of its tenant are claimed as the limit allows.
    TenantLimit,
    /// The queue's limit is 0.
    QueuePaused,
    /// As many are claimed as the queue's limit allows.
    QueueLimit,
}

says!(Why {
    Self::Ready => "ready: nothing keeps it",
    Self::Due(due) => "not due before {due:?}",
    Self::Claimed(None) => "claimed",
    Self::Claimed(Some(until)) => "claimed until {until:?}",
    Self::Dead => "dead: it failed too often",
    Self::Behind(before) => "behind {before} of its group",
    Self::GroupPaused => "its group is paused: the limit is 0",
    Self::GroupLimit => "as many of its group claimed as the limit allows",
    Self::TenantPaused => "its tenant is paused: the limit is 0",
    Self::TenantLimit => "as many of its tenant claimed as the limit allows",
    Self::QueuePaused => "the queue is paused: the limit is 0",
    Self::QueueLimit => "as many claimed as the queue's limit allows",
});

/// What has become of jobs so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub completed: u64,
    /// Jobs that were taken out and were not claimed.
    pub removed: u64,
    /// Claims that ended and gave their job back.
    pub returned: u64,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct JobStatus {
    /// Its tenant.
    pub tenant: Name,
    /// The group that it is in, if any.
    pub group: Option<Name>,
    /// Its unique name; a dead job shows its name too, but no longer holds it.
    pub unique: Option<Name>,
    /// How often it was tried. As [`Taken::attempts`](crate::job_queue::Taken::attempts).
    pub attempts: u32,
    /// Its state.
    pub state: JobState,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum JobState {
    /// It waits, and is due.
    Ready,
    /// It is not due before this time.
    Due(Duration),
    /// It is claimed, with a lease until this time, if any.
    Claimed(Option<Duration>),
    /// It failed too often.
    Dead,
}

says!(JobState {
    Self::Ready => "ready",
    Self::Due(due) => "not due before {due:?}",
    Self::Claimed(None) => "claimed",
    Self::Claimed(Some(until)) => "claimed until {until:?}",
    Self::Dead => "dead: it failed too often",
});

impl<K, J> Job<K, J> {
    /// Its state; `None` while it is being pushed or taken out.
    fn status(&self) -> Option<JobState> {
        let timer = self.rare.as_ref().and_then(|rare| rare.timer);
        let rings = timer.map(|timer| timer.at());
        Some(match self.state {
            State::Ready => JobState::Ready,
            State::Later => JobState::Due(rings?),
            State::Claimed => JobState::Claimed(rings),
            State::Dead => JobState::Dead,
            State::Uncounted => return None,
        })
    }
}

/// One tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TenantStatus {
    /// Its name.
    pub name: Name,
    /// How many of its jobs are claimed in a row, while it has any to run.
    pub weight: u32,
    /// How many of its jobs may be claimed at once.
    pub limit: Limit,
    /// Its jobs that are claimed.
    pub claimed: u32,
    /// Its jobs that could be claimed, if the queue's limit has room.
    pub eligible: u64,
    /// Its jobs, in any state.
    pub jobs: usize,
    /// Its groups, by name.
    pub groups: Vec<GroupStatus>,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GroupStatus {
    /// Its name.
    pub name: Name,
    /// How many of its jobs may be claimed at once.
    pub limit: Limit,
    /// Its jobs that are claimed.
    pub claimed: u32,
    /// Its jobs that wait and are due.
    pub ready: u32,
    /// Its jobs that could be claimed, if tenant and queue have room.
    pub eligible: u32,
    /// Its jobs, in any state.
    pub jobs: usize,
}

impl<K: Ord, J> Jobs<K, J> {
    /// What keeps this job from running; `None` if there is no such job.
    ///
    /// Runs the user's `Ord`. If that panics, nothing has changed.
    pub fn why(&mut self, id: Key) -> Option<Why> {
        Some(match self.jobs.get(id)?.status()? {
            JobState::Ready => {
                self.update_orders();
                self.why_ready(id.index())
            }
            JobState::Due(due) => Why::Due(due),
            JobState::Claimed(until) => Why::Claimed(until),
            JobState::Dead => Why::Dead,
        })
    }

    fn why_ready(&self, at: u32) -> Why {
        let group = &self.groups[self.jobs[at].group];
        let tenant = &self.tenants[group.tenant];
        let full = |limit: Limit, running, [paused, full]: [Why; 2]| match limit.room(running) {
            0 if limit == Limit::AtMost(0) => Some(paused),
            0 => Some(full),
            _ => None,
        };
        let of_group = [Why::GroupPaused, Why::GroupLimit];
        let behind = || {
            let before = self.before(group, at);
            (before >= group.limit.room(group.running)).then_some(Why::Behind(before))
        };
        let of_tenant = [Why::TenantPaused, Why::TenantLimit];
        let of_queue = [Why::QueuePaused, Why::QueueLimit];
        full(group.limit, group.running, of_group)
            .or_else(behind)
            .or_else(|| full(tenant.limit, tenant.running, of_tenant))
            .or_else(|| full(self.limit, self.running, of_queue))
            .unwrap_or(Why::Ready)
    }

    /// How many jobs of its group come before this one, which is ready.
    fn before(&self, group: &Group, at: u32) -> u32 {
        if group.front == at {
            return 0;
        }
        let rank = self.jobs[at].rank();
        let order = (group.order).before(&self.jobs, |other| rank.compare(other));
        u32::from(group.front != NO_INDEX) + order as u32
    }
}

impl<K, J> Jobs<K, J> {
    /// The tenants with their groups, by name.
    pub fn tenants(&self) -> impl Iterator<Item = TenantStatus> {
        let all = self.names.values().map(|&at| &self.tenants[at]);
        all.filter(|tenant| !self.is_unused(tenant)).map(|tenant| {
            let groups = tenant.groups.values();
            let groups: Vec<_> = groups.map(|at| self.status(at.index())).collect();
            let own = self.groups[tenant.own.index()].members as usize;
            TenantStatus {
                name: tenant.name.clone(),
                weight: tenant.link.weight,
                limit: tenant.limit,
                claimed: tenant.running,
                eligible: tenant.counted,
                jobs: own + groups.iter().map(|group| group.jobs).sum::<usize>(),
                groups,
            }
        })
    }

    /// What is known of a job.
    pub fn status_of(&self, id: Key) -> Option<JobStatus> {
        let job = self.jobs.get(id)?;
        let group = &self.groups[job.group];
        Some(JobStatus {
            tenant: self.tenants[group.tenant].name.clone(),
            group: group.is_named.then(|| group.name.clone()),
            unique: job.rare.as_ref().and_then(|rare| rare.unique.clone()),
            attempts: job.attempts,
            state: job.status()?,
        })
    }

    /// A job's key.
    pub fn key(&self, id: Key) -> Option<&K> {
        self.jobs.get(id).map(|job| &job.key)
    }

    fn status(&self, at: u32) -> GroupStatus {
        let group = &self.groups[at];
        GroupStatus {
            name: group.name.clone(),
            limit: group.limit,
            claimed: group.running,
            ready: group.ready,
            eligible: group.counted,
            jobs: group.members as usize,
        }
    }

    /// The bytes of heap memory of the slabs, without names and what
    /// the jobs own.
    #[cfg(test)]
    pub fn heap_bytes(&self) -> usize {
        self.jobs.heap_bytes() + self.groups.heap_bytes() + self.tenants.heap_bytes()
    }
}
