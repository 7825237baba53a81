//! What a job queue holds, as its docs say. It is plain and slow.

use std::collections::BTreeMap;
use std::time::Duration;

use conversant::job_queue::{JobId, JobState, Scope, Why};
use conversant::limit::Limit;

pub(crate) struct Job {
    pub(crate) id: JobId,
    pub(crate) key: u8,
    pub(crate) content: u32,
    pub(crate) tenant: u64,
    pub(crate) group: Option<u64>,
    pub(crate) unique: Option<u64>,
    /// Its own number, if it has one.
    pub(crate) most: Option<u32>,
    pub(crate) attempts: u32,
    pub(crate) state: JobState,
    /// The number of its last claim.
    pub(crate) claim: u64,
    /// When it died: the dead jobs are ordered by it. Jobs that die at once have the same.
    pub(crate) death: u64,
    /// Whether a wait has returned it as dead.
    pub(crate) reported: bool,
}

impl Job {
    pub(crate) fn waits(&self) -> bool {
        matches!(self.state, JobState::Ready | JobState::Due(_))
    }

    pub(crate) fn is_claimed(&self) -> bool {
        matches!(self.state, JobState::Claimed(_))
    }

    pub(crate) fn is_of(&self, scope: Part) -> bool {
        match scope {
            Part::Queue => true,
            Part::Tenant(tenant) => self.tenant == tenant,
            Part::Group(tenant, group) => (self.tenant, self.group) == (tenant, Some(group)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Queue,
    Tenant(u64),
    Group(u64, u64),
}

impl Part {
    pub(crate) fn scope(self) -> Scope {
        match self {
            Self::Queue => Scope::Queue,
            Self::Tenant(tenant) => Scope::tenant(tenant),
            Self::Group(tenant, group) => Scope::group_of(tenant, group),
        }
    }
}

/// What has happened so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) pushed: u64,
    pub(crate) completed: u64,
    pub(crate) removed: u64,
    pub(crate) returned: u64,
    pub(crate) dropped: u64,
}

pub(crate) struct Model {
    pub(crate) now: Duration,
    /// By the number of the push.
    pub(crate) jobs: BTreeMap<usize, Job>,
    pub(crate) limits: BTreeMap<Part, Limit>,
    pub(crate) weights: [u32; 3],
    /// A weight changed: for a while the old one may count.
    pub(crate) reweighted: bool,
    pub(crate) group_limit: Limit,
    pub(crate) attempts: u32,
    pub(crate) back_off: (Duration, Duration),
    pub(crate) lease: Option<Duration>,
    pub(crate) capacity: Option<usize>,
    pub(crate) closed: bool,
    pub(crate) claims: u64,
    pub(crate) deaths: u64,
    pub(crate) totals: Totals,
}

/// How a claim gives its job back.
#[derive(Clone, Copy)]
pub(crate) enum Back {
    At(Duration),
    Snoozed(Duration),
    Failed,
    /// Its lease ended then: that is when it failed.
    Expired(Duration),
    FailedAt(Duration),
    FailedForGood,
}

impl Model {
    pub(crate) fn limit(&self, part: Part) -> Limit {
        let default = match part {
            Part::Group(..) => self.group_limit,
            Part::Queue | Part::Tenant(_) => Limit::Unlimited,
        };
        *self.limits.get(&part).unwrap_or(&default)
    }

    pub(crate) fn count(&self, part: Part, is: impl Fn(&Job) -> bool) -> usize {
        let of = self.jobs.values().filter(|job| job.is_of(part));
        of.filter(|job| is(job)).count()
    }

    /// How many more jobs of this part its own limit allows.
    pub(crate) fn room(&self, part: Part) -> usize {
        match self.limit(part) {
            Limit::AtMost(most) => {
                (most as usize).saturating_sub(self.count(part, Job::is_claimed))
            }
            Limit::Unlimited => usize::MAX,
        }
    }

    /// The numbers of the jobs of a tenant or group that may run, in order of their keys, if the
    /// queue has room.
    pub(crate) fn line(&self, part: Part) -> Vec<usize> {
        let ready = |job: &Job| job.is_of(part) && job.state == JobState::Ready;
        let ready = self.jobs.iter().filter(|(_, job)| ready(job));
        let mut ready: Vec<_> = ready.map(|(&number, job)| (job.key, number)).collect();
        ready.sort_unstable();
        let mut taken = BTreeMap::<_, usize>::new();
        ready.retain(|(_, number)| {
            let job = &self.jobs[number];
            let Some(group) = job.group else { return true };
            let of = Part::Group(job.tenant, group);
            let taken = taken.entry(of).or_default();
            *taken += 1;
            *taken <= self.room(of)
        });
        if let Part::Tenant(tenant) | Part::Group(tenant, _) = part {
            ready.truncate(self.room(Part::Tenant(tenant)));
        }
        ready.into_iter().map(|(_, number)| number).collect()
    }

    /// How many jobs may run now.
    pub(crate) fn eligible(&self) -> usize {
        let lines = (0..3).map(|tenant| self.line(Part::Tenant(tenant)).len());
        self.room(Part::Queue).min(lines.sum())
    }

    pub(crate) fn why(&self, number: usize) -> Why {
        let job = &self.jobs[&number];
        match job.state {
            JobState::Ready => {}
            JobState::Due(due) => return Why::Due(due),
            JobState::Claimed(until) => return Why::Claimed(until),
            JobState::Dead => return Why::Dead,
        }
        let full = |part, paused, full| {
            let why = match self.limit(part) {
                Limit::AtMost(0) => paused,
                _ => full,
            };
            (self.room(part) == 0).then_some(why)
        };
        let group = job.group.map(|group| Part::Group(job.tenant, group));
        let of_group = group.and_then(|group| {
            let before = self.jobs.iter().filter(|(other, before)| {
                let earlier = (before.key, **other) < (job.key, number);
                before.is_of(group) && before.state == JobState::Ready && earlier
            });
            let before = before.count();
            let behind = (before >= self.room(group)).then_some(Why::Behind(before as u32));
            full(group, Why::GroupPaused, Why::GroupLimit).or(behind)
        });
        of_group
            .or_else(|| {
                let tenant = Part::Tenant(job.tenant);
                full(tenant, Why::TenantPaused, Why::TenantLimit)
            })
            .or_else(|| full(Part::Queue, Why::QueuePaused, Why::QueueLimit))
            .unwrap_or(Why::Ready)
    }

    /// The job that has this unique name.
    pub(crate) fn named(&self, tenant: u64, unique: Option<u64>) -> Option<(usize, &Job)> {
        let has = |job: &Job| (job.tenant, job.unique) == (tenant, unique);
        let mut alive = self.jobs.iter().map(|(&number, job)| (number, job));
        alive.find(|(_, job)| unique.is_some() && job.state != JobState::Dead && has(job))
    }

    /// The state of a job that waits until then.
    pub(crate) fn until(&self, due: Duration) -> JobState {
        match due > self.now {
            true => JobState::Due(due),
            false => JobState::Ready,
        }
    }

    /// The pause after this attempt failed.
    fn pause(&self, attempt: u32) -> Duration {
        let (first, most) = self.back_off;
        let doubled = 1_u32.checked_shl(attempt - 1);
        let pause = doubled.and_then(|times| first.checked_mul(times));
        match first.is_zero() {
            true => first,
            false => pause.map_or(most, |pause| pause.min(most)),
        }
    }

    /// A claim gives its job back. Returns whether the job is dead.
    pub(crate) fn give_back(&mut self, number: usize, how: Back) -> bool {
        let job = &self.jobs[&number];
        let attempt = job.attempts + 1;
        let is_last = attempt >= job.most.unwrap_or(self.attempts);
        let (state, attempts) = match how {
            Back::Snoozed(due) => (self.until(due), attempt - 1),
            Back::At(due) => (self.until(due), attempt),
            Back::FailedForGood => (JobState::Dead, attempt),
            Back::Failed | Back::FailedAt(_) | Back::Expired(_) if is_last => {
                (JobState::Dead, attempt)
            }
            Back::Failed => (self.until(self.now + self.pause(attempt)), attempt),
            Back::Expired(at) => (self.until(at + self.pause(attempt)), attempt),
            Back::FailedAt(due) => (self.until(due), attempt),
        };
        self.totals.returned += 1;
        let job = self.jobs.get_mut(&number).expect("it is claimed");
        (job.state, job.attempts) = (state, attempts);
        let dead = state == JobState::Dead;
        if dead {
            (job.death, job.reported) = (self.deaths, false);
        }
        dead
    }

    pub(crate) fn advance(&mut self, to: Duration) {
        self.now = self.now.max(to);
        self.deaths += 1;
        let now = self.now;
        for job in self.jobs.values_mut() {
            if matches!(job.state, JobState::Due(due) if due <= now) {
                job.state = JobState::Ready;
            }
        }
        let late = self
            .jobs
            .iter()
            .filter_map(|(&number, job)| match job.state {
                JobState::Claimed(Some(end)) if end <= now => Some((number, end)),
                _ => None,
            });
        for (number, end) in late.collect::<Vec<_>>() {
            self.give_back(number, Back::Expired(end));
        }
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<Duration> {
        let dates = self.jobs.values().filter_map(|job| match job.state {
            JobState::Due(at) | JobState::Claimed(Some(at)) => Some(at),
            _ => None,
        });
        dates.min()
    }

    /// Whether claims that wait end.
    pub(crate) fn finished(&self) -> bool {
        self.closed && self.jobs.values().all(|job| job.state == JobState::Dead)
    }
}
