//! A naive job queue of one thread, written from the docs alone.

use std::collections::BTreeMap;
use std::time::Duration;

use conversant::job_queue::{JobId, Name};
use conversant::limit::Limit;

/// A tenant, or a group of it.
pub(crate) type PartName = (Name, Option<Name>);

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum State {
    Waits(Duration),
    Claimed {
        claim: u64,
        until: Option<Duration>,
    },
    /// Those of one event whose leases ended together died in an order that no text tells.
    Dead {
        order: (u64, Duration),
        told: bool,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) id: JobId,
    pub(crate) key: u8,
    pub(crate) value: u32,
    pub(crate) pushed: u64,
    pub(crate) tenant: Name,
    pub(crate) group: Option<Name>,
    pub(crate) unique: Option<Name>,
    pub(crate) most: Option<Limit>,
    pub(crate) attempts: u32,
    pub(crate) state: State,
}

/// A tenant in the ring; those of one `tie` joined at once, in an order that no text tells.
#[derive(Debug)]
struct Seat {
    tenant: Name,
    left: u32,
    tie: u64,
}

#[derive(Default, Debug)]
pub(crate) struct Totals {
    pub(crate) pushed: u64,
    pub(crate) completed: u64,
    pub(crate) removed: u64,
    pub(crate) returned: u64,
    pub(crate) dropped: u64,
}

/// How a claim gives its job back.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Back(Option<Duration>),
    Snooze(Duration),
    Fail(Option<Duration>),
    ForGood,
}

#[derive(Debug)]
pub(crate) struct Naive {
    pub(crate) now: Duration,
    pub(crate) closed: bool,
    pub(crate) group_limit: Limit,
    pub(crate) attempts: Limit,
    pub(crate) back_off: (Duration, Duration),
    pub(crate) lease: Option<Duration>,
    pub(crate) jobs: Vec<Job>,
    pub(crate) limits: BTreeMap<PartName, Limit>,
    pub(crate) queue_limit: Limit,
    pub(crate) weights: BTreeMap<Name, u32>,
    pub(crate) handles: BTreeMap<PartName, u32>,
    pub(crate) names: BTreeMap<PartName, u64>,
    pub(crate) totals: Totals,
    ring: Vec<Seat>,
    events: u64,
}

fn allows(limit: Limit) -> usize {
    match limit {
        Limit::AtMost(n) => n as usize,
        Limit::Unlimited => usize::MAX,
    }
}

impl Naive {
    pub(crate) fn new() -> Self {
        Self {
            now: Duration::ZERO,
            closed: false,
            group_limit: Limit::SERIAL,
            attempts: Limit::AtMost(5),
            back_off: (Duration::ZERO, Duration::ZERO),
            lease: None,
            jobs: Vec::new(),
            limits: BTreeMap::new(),
            queue_limit: Limit::Unlimited,
            weights: BTreeMap::new(),
            handles: BTreeMap::new(),
            names: BTreeMap::new(),
            totals: Totals::default(),
            ring: Vec::new(),
            events: 0,
        }
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    pub(crate) fn find(&self, id: JobId) -> Option<usize> {
        self.jobs.iter().position(|job| job.id == id)
    }

    pub(crate) fn limit(&self, part: &PartName) -> Limit {
        let default = if part.1.is_some() {
            self.group_limit
        } else {
            Limit::Unlimited
        };
        self.limits.get(part).copied().unwrap_or(default)
    }

    pub(crate) fn weight(&self, tenant: &Name) -> u32 {
        self.weights.get(tenant).copied().unwrap_or(1)
    }

    pub(crate) fn count(&self, part: Option<&PartName>, which: impl Fn(&Job) -> bool) -> usize {
        let in_part = |job: &&Job| part.is_none_or(|part| in_part(job, part));
        self.jobs
            .iter()
            .filter(in_part)
            .filter(|job| which(job))
            .count()
    }

    pub(crate) fn is_ready(&self, job: &Job) -> bool {
        matches!(job.state, State::Waits(due) if due <= self.now)
    }

    pub(crate) fn room(&self, part: Option<&PartName>) -> usize {
        let limit = part.map_or(self.queue_limit, |part| self.limit(part));
        let claimed = self.count(part, is_claimed);
        allows(limit).saturating_sub(claimed)
    }

    /// How many of these could be claimed, if what is around them had room.
    pub(crate) fn eligible(&self, part: Option<&PartName>) -> usize {
        let inside = match part {
            None => {
                let tenants = self.names.keys().filter(|part| part.1.is_none());
                tenants
                    .map(|part| self.eligible(Some(part)))
                    .fold(0, usize::saturating_add)
            }
            Some((tenant, None)) => {
                let groups = self.names.keys();
                let groups = groups.filter(|part| part.0 == *tenant && part.1.is_some());
                let grouped: usize = groups.map(|part| self.eligible(Some(part))).sum();
                let alone = |job: &Job| job.group.is_none() && self.is_ready(job);
                grouped + self.count(part, alone)
            }
            Some(_) => self.count(part, |job| self.is_ready(job)),
        };
        inside.min(self.room(part))
    }

    /// How many a claim of this part could have now, under all limits.
    pub(crate) fn claimable(&self, part: Option<&PartName>) -> usize {
        let Some(part) = part else {
            return self.eligible(None);
        };
        let tenant = (part.0.clone(), None);
        self.eligible(Some(part))
            .min(self.room(Some(&tenant)))
            .min(self.room(None))
    }

    /// The first that may run of a part.
    fn first(&self, part: &PartName) -> Option<usize> {
        if self.room(Some(&(part.0.clone(), None))) == 0 {
            return None;
        }
        let may = |job: &Job| {
            let group = job
                .group
                .clone()
                .map(|group| (job.tenant.clone(), Some(group)));
            in_part(job, part)
                && self.is_ready(job)
                && group.is_none_or(|group| self.room(Some(&group)) > 0)
        };
        let those = (0..self.jobs.len()).filter(|&at| may(&self.jobs[at]));
        those.min_by_key(|&at| (self.jobs[at].key, self.jobs[at].pushed))
    }

    /// Names that are in use, and tenants that have something to run.
    pub(crate) fn settle(&mut self) {
        let mut used: Vec<PartName> = self.limits.keys().cloned().collect();
        used.extend(self.weights.keys().map(|tenant| (tenant.clone(), None)));
        used.extend(
            self.handles
                .iter()
                .filter(|it| *it.1 > 0)
                .map(|it| it.0.clone()),
        );
        used.extend(
            self.jobs
                .iter()
                .map(|job| (job.tenant.clone(), job.group.clone())),
        );
        let tenants: Vec<PartName> = used.iter().map(|part| (part.0.clone(), None)).collect();
        used.extend(tenants);
        self.names.retain(|part, _| used.contains(part));
        for part in used {
            if !self.names.contains_key(&part) {
                // The default tenant is always the same one.
                let always = part == (Name::default(), None);
                let number = if always { 0 } else { self.next_number() };
                self.names.insert(part, number);
            }
        }
        let tie = self.next_number();
        let tenants: Vec<Name> = self
            .names
            .keys()
            .filter(|part| part.1.is_none())
            .map(|part| part.0.clone())
            .collect();
        self.ring.retain(|seat| tenants.contains(&seat.tenant));
        for tenant in tenants {
            let runs = self.first(&(tenant.clone(), None)).is_some();
            let at = self.ring.iter().position(|seat| seat.tenant == tenant);
            match (runs, at) {
                (false, Some(at)) => drop(self.ring.remove(at)),
                (true, None) => {
                    let left = self.weight(&tenant);
                    self.ring.push(Seat { tenant, left, tie });
                }
                _ => {}
            }
        }
    }

    /// The real queue claimed this job: whether it was next.
    pub(crate) fn claim(&mut self, id: JobId, part: Option<&PartName>) -> (usize, u64) {
        assert!(self.claimable(part) > 0, "claimed {id} above the limits");
        let at = self.find(id).expect("claimed a job that is gone");
        let tenant = self.jobs[at].tenant.clone();
        let expected = match part {
            Some(part) => self.first(part),
            None => {
                let seat = self.ring.iter().position(|seat| seat.tenant == tenant);
                let seat = seat.unwrap_or_else(|| panic!("{tenant} has no turn"));
                assert_eq!(
                    self.ring[seat].tie, self.ring[0].tie,
                    "turn {self:#?} {tenant}"
                );
                let mut seat = self.ring.remove(seat);
                (seat.left, seat.tie) = (seat.left - 1, self.next_number());
                if seat.left == 0 {
                    seat.left = self.weight(&tenant);
                    self.ring.push(seat);
                } else {
                    self.ring.insert(0, seat);
                }
                self.first(&(tenant, None))
            }
        };
        assert_eq!(Some(at), expected, "not the first: {self:#?}");
        let claim = self.next_number();
        let until = self.lease.map(|lease| self.now + lease);
        self.jobs[at].state = State::Claimed { claim, until };
        self.settle();
        (at, claim)
    }

    /// A claim ends without completion; the lease may have ended earlier than now.
    pub(crate) fn unclaim(&mut self, at: usize, how: How, when: Duration, order: u64) -> bool {
        let (now, back_off, default) = (self.now, self.back_off, self.attempts);
        let job = &mut self.jobs[at];
        self.totals.returned += 1;
        if !matches!(how, How::Snooze(_)) {
            job.attempts += 1;
        }
        let last = job.attempts as usize >= allows(job.most.unwrap_or(default));
        let twice = 2u32.saturating_pow(job.attempts.saturating_sub(1));
        let delay = back_off.0.saturating_mul(twice).min(back_off.1);
        let dead = State::Dead {
            order: (order, when),
            told: false,
        };
        job.state = match how {
            How::ForGood => dead,
            How::Fail(_) if last => dead,
            How::Fail(due) => State::Waits(due.unwrap_or(when + delay)),
            How::Back(due) => State::Waits(due.unwrap_or(now)),
            How::Snooze(due) => State::Waits(due),
        };
        matches!(job.state, State::Dead { .. })
    }

    pub(crate) fn advance(&mut self, now: Duration) -> Option<Duration> {
        // A lease that ends in the past ends even if this time is earlier than the last.
        self.now = self.now.max(now);
        let order = self.next_number();
        for at in 0..self.jobs.len() {
            if let State::Claimed {
                until: Some(until), ..
            } = self.jobs[at].state
                && until <= self.now
            {
                self.unclaim(at, How::Fail(None), until, order);
            }
        }
        self.settle();
        let date = |job: &Job| match job.state {
            State::Waits(due) if due > self.now => Some(due),
            State::Claimed { until, .. } => until,
            _ => None,
        };
        self.jobs.iter().filter_map(date).min()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.closed
            && self
                .jobs
                .iter()
                .all(|job| matches!(job.state, State::Dead { .. }))
    }

    /// The job that has this unique name.
    pub(crate) fn named(&self, tenant: &Name, unique: Option<&Name>) -> Option<usize> {
        let unique = unique?;
        self.jobs.iter().position(|job| {
            let dead = matches!(job.state, State::Dead { .. });
            !dead && job.tenant == *tenant && job.unique.as_ref() == Some(unique)
        })
    }
}

pub(crate) fn is_claimed(job: &Job) -> bool {
    matches!(job.state, State::Claimed { .. })
}

pub(crate) fn in_part(job: &Job, part: &PartName) -> bool {
    job.tenant == part.0 && (part.1.is_none() || job.group == part.1)
}
