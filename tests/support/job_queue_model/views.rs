//! What the naive queue shows of its jobs.

use conversant::job_queue::{JobId, JobState, JobStatus, Name, Scope, Why};
use conversant::limit::Limit;

use super::naive::{Job, Naive, PartName, State, in_part};

impl Naive {
    pub(crate) fn status(&self, id: JobId) -> Option<(PartName, Option<Name>, u32, JobState)> {
        let job = &self.jobs[self.find(id)?];
        let state = match job.state {
            State::Waits(due) if due <= self.now => JobState::Ready,
            State::Waits(due) => JobState::Due(due),
            State::Claimed { until, .. } => JobState::Claimed(until),
            State::Dead { .. } => JobState::Dead,
        };
        Some((
            (job.tenant.clone(), job.group.clone()),
            job.unique.clone(),
            job.attempts,
            state,
        ))
    }

    pub(crate) fn why(&self, id: JobId) -> Option<Why> {
        let job = &self.jobs[self.find(id)?];
        match self.status(id)?.3 {
            JobState::Due(due) => return Some(Why::Due(due)),
            JobState::Claimed(until) => return Some(Why::Claimed(until)),
            JobState::Dead => return Some(Why::Dead),
            JobState::Ready => {}
        }
        let full = |part: Option<&PartName>, paused: Why, full: Why| {
            let limit = part.map_or(self.queue_limit, |part| self.limit(part));
            let why = if limit == Limit::AtMost(0) {
                paused
            } else {
                full
            };
            (self.room(part) == 0).then_some(why)
        };
        if job.group.is_some() {
            let group = (job.tenant.clone(), job.group.clone());
            if let Some(why) = full(Some(&group), Why::GroupPaused, Why::GroupLimit) {
                return Some(why);
            }
            let place = |job: &Job| (job.key, job.pushed);
            let before = |other: &Job| self.is_ready(other) && place(other) < place(job);
            let behind = self.count(Some(&group), before);
            if behind >= self.room(Some(&group)) {
                return Some(Why::Behind(behind as u32));
            }
        }
        let tenant = (job.tenant.clone(), None);
        full(Some(&tenant), Why::TenantPaused, Why::TenantLimit)
            .or_else(|| full(None, Why::QueuePaused, Why::QueueLimit))
            .or(Some(Why::Ready))
    }

    pub(crate) fn listed(&self, part: Option<&PartName>) -> Vec<JobId> {
        let mut those: Vec<&Job> = self
            .jobs
            .iter()
            .filter(|job| part.is_none_or(|part| in_part(job, part)))
            .collect();
        those.sort_by_key(|job| job.pushed);
        those.iter().map(|job| job.id).collect()
    }
}

pub(crate) fn scope(part: Option<&PartName>) -> Scope {
    match part {
        None => Scope::Queue,
        Some((tenant, None)) => Scope::tenant(tenant.clone()),
        Some((tenant, Some(group))) => Scope::group_of(tenant.clone(), group.clone()),
    }
}

pub(crate) fn agrees(real: &JobStatus, naive: &(PartName, Option<Name>, u32, JobState)) -> bool {
    (&real.tenant, &real.group) == (&naive.0.0, &naive.0.1)
        && (&real.unique, &real.attempts, &real.state) == (&naive.1, &naive.2, &naive.3)
}
