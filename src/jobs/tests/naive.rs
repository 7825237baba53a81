//! The policy without any regard for cost: a list of jobs, scanned by key for the first that may
//! run.

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Is {
    Ready,
    Later,
    Claimed(u64),
    Dead(u64),
}

/// A tenant, or a group of a tenant.
pub(super) type Part = (u64, Option<u64>);

fn is_in((tenant, group): Part, job: &NaiveJob) -> bool {
    job.tenant == tenant && (group.is_none() || job.group == group)
}

#[derive(Clone, Debug)]
pub(super) struct NaiveJob {
    pub(super) number: u32,
    pub(super) key: u8,
    pub(super) tenant: u64,
    pub(super) group: Option<u64>,
    pub(super) is: Is,
    pub(super) attempts: u32,
    /// How many attempts it has, if that was set.
    pub(super) most: Option<u32>,
    pub(super) unique: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Naive {
    /// The jobs in the order in which they were pushed.
    pub(super) jobs: Vec<NaiveJob>,
    pub(super) limits: Vec<(Scope, Limit)>,
    pub(super) weights: [u32; 3],
    /// Tenants with the rest of their turn.
    ring: Vec<(u64, u32)>,
    /// The time, the order of setting, and the job.
    timers: Vec<(Duration, u64, u32)>,
    now: Duration,
    last: u64,
    attempts: u32,
    /// Seconds after a first failure, and at most.
    pause: (u32, u64),
}

impl Naive {
    pub(super) fn new(attempts: u32, pause: (u32, u64)) -> Self {
        Self {
            jobs: Vec::new(),
            limits: Vec::new(),
            weights: [1; 3],
            ring: Vec::new(),
            timers: Vec::new(),
            now: Duration::ZERO,
            last: 0,
            attempts,
            pause,
        }
    }

    fn limit(&self, scope: &Scope) -> Limit {
        let set = self.limits.iter().rev().find(|(of, _)| of == scope);
        match (set, scope) {
            (Some(&(_, limit)), _) => limit,
            (None, Scope::Group { .. }) => Limit::SERIAL,
            (None, _) => Limit::Unlimited,
        }
    }

    fn room(&self, scope: &Scope, of: impl Fn(&NaiveJob) -> bool) -> u32 {
        let claimed = |job: &&NaiveJob| matches!(job.is, Is::Claimed(_)) && of(job);
        let running = self.jobs.iter().filter(claimed).count();
        self.limit(scope).room(running as u32)
    }

    /// Whether all of its limits except the queue's let it run.
    fn may_run(&self, job: &NaiveJob) -> bool {
        let tenant = |other: &NaiveJob| other.tenant == job.tenant;
        if job.is != Is::Ready || self.room(&Scope::tenant(job.tenant), tenant) == 0 {
            return false;
        }
        let Some(group) = job.group else { return true };
        let same = |other: &NaiveJob| tenant(other) && other.group == job.group;
        let room = self.room(&Scope::group_of(job.tenant, group), same);
        let place = |job: &NaiveJob| (job.key, job.number);
        let before = |o: &&NaiveJob| same(o) && o.is == Is::Ready && place(o) < place(job);
        (self.jobs.iter().filter(before).count() as u32) < room
    }

    /// How many ready jobs of its group come before this ready one, if they take all room.
    pub(super) fn behind(&self, job: &NaiveJob) -> Option<u32> {
        let group = job.group.filter(|_| job.is == Is::Ready)?;
        let same = |o: &NaiveJob| o.tenant == job.tenant && o.group == job.group;
        let room = self.room(&Scope::group_of(job.tenant, group), same);
        let place = |job: &NaiveJob| (job.key, job.number);
        let before = |o: &&NaiveJob| same(o) && o.is == Is::Ready && place(o) < place(job);
        let before = self.jobs.iter().filter(before).count() as u32;
        (room > 0 && before >= room).then_some(before)
    }

    fn queue_room(&self) -> u32 {
        self.room(&Scope::Queue, |_| true)
    }

    pub(super) fn eligible(&self) -> u64 {
        let sum: u64 = (0..3).map(|tenant| self.eligible_of((tenant, None))).sum();
        sum.min(u64::from(self.queue_room()))
    }

    pub(super) fn eligible_of(&self, of: Part) -> u64 {
        let room = self.room(&Scope::tenant(of.0), |job| job.tenant == of.0);
        let can = |job: &&NaiveJob| is_in(of, job) && self.may_run(job);
        let can = self.jobs.iter().filter(can).count() as u64;
        can.min(u64::from(room)).min(u64::from(self.queue_room()))
    }

    /// After every change: a tenant with work joins the ring, one without work leaves.
    pub(super) fn update_orders(&mut self) {
        for tenant in 0..3 {
            let can = |job: &NaiveJob| job.tenant == tenant && self.may_run(job);
            let can = self.jobs.iter().any(can);
            let there = self.ring.iter().any(|&(other, _)| other == tenant);
            if can && !there {
                self.ring.push((tenant, self.weights[tenant as usize]));
            } else if !can {
                self.ring.retain(|&(other, _)| other != tenant);
            }
        }
    }

    pub(super) fn job(&mut self, number: u32) -> Option<&mut NaiveJob> {
        self.jobs.iter_mut().find(|job| job.number == number)
    }

    /// The job of this tenant that has this unique name.
    pub(super) fn named(&self, tenant: u64, unique: u64) -> Option<&NaiveJob> {
        let has = |job: &&NaiveJob| job.tenant == tenant && job.unique == Some(unique);
        let mut all = self.jobs.iter().filter(has);
        all.find(|job| !matches!(job.is, Is::Dead(_)))
    }

    pub(super) fn set_timer(&mut self, at: Duration, number: u32) {
        self.last += 1;
        self.timers.push((at, self.last, number));
    }

    pub(super) fn forget_timer(&mut self, number: u32) {
        self.timers.retain(|&(_, _, other)| other != number);
    }

    pub(super) fn wait(&mut self, number: u32, due: Duration) {
        let later = due > self.now;
        if later {
            self.set_timer(due, number);
        }
        let is = if later { Is::Later } else { Is::Ready };
        self.job(number).unwrap().is = is;
    }

    pub(super) fn push(&mut self, job: NaiveJob, due: Duration) {
        let number = job.number;
        self.jobs.push(job);
        self.wait(number, due);
        self.update_orders();
    }

    /// The numbers of the jobs and claims.
    pub(super) fn claim(
        &mut self,
        part: Option<Part>,
        n: usize,
        lease: Option<Duration>,
    ) -> Vec<(u32, u64)> {
        let mut claims = Vec::new();
        while claims.len() < n && self.queue_room() > 0 && !self.ring.is_empty() {
            let tenant = self.ring[0].0;
            let of = part.unwrap_or((tenant, None));
            let can = |job: &&NaiveJob| is_in(of, job) && self.may_run(job);
            let first = self.jobs.iter().filter(can);
            let Some(first) = first.min_by_key(|job| (job.key, job.number)) else {
                break;
            };
            let number = first.number;
            self.last += 1;
            let claim = self.last;
            self.job(number).unwrap().is = Is::Claimed(claim);
            claims.push((number, claim));
            if let Some(until) = lease {
                self.set_timer(until, number);
            }
            if part.is_none() {
                self.ring[0].1 -= 1;
                if self.ring[0].1 == 0 {
                    self.ring.remove(0);
                    self.ring.push((tenant, self.weights[tenant as usize]));
                }
            }
            self.update_orders();
        }
        claims
    }

    pub(super) fn holds(&self, (number, claim): (u32, u64)) -> bool {
        let holds = |job: &NaiveJob| job.number == number && job.is == Is::Claimed(claim);
        self.jobs.iter().any(holds)
    }

    pub(super) fn complete(&mut self, number: u32) {
        self.forget_timer(number);
        self.jobs.retain(|job| job.number != number);
        self.update_orders();
    }

    pub(super) fn give_back(&mut self, number: u32, how: Unclaim) {
        self.give_back_since(number, how, self.now);
    }

    fn give_back_since(&mut self, number: u32, how: Unclaim, failed: Duration) {
        self.forget_timer(number);
        let (most, (first, longest)) = (self.attempts, self.pause);
        self.last += 1;
        let last = self.last;
        let job = self.job(number).unwrap();
        job.attempts += u32::from(!matches!(how, Unclaim::Snoozed(_)));
        let used_up = job.attempts >= job.most.unwrap_or(most);
        let pause = at(longest.min(u64::from(first) << (job.attempts.max(1) - 1)));
        match how {
            Unclaim::Failed | Unclaim::FailedUntil(_) if used_up => job.is = Is::Dead(last),
            Unclaim::FailedForGood => job.is = Is::Dead(last),
            Unclaim::At(due) | Unclaim::Snoozed(due) | Unclaim::FailedUntil(due) => {
                self.wait(number, due);
            }
            Unclaim::Failed => self.wait(number, failed + pause),
        }
        self.update_orders();
    }

    pub(super) fn advance(&mut self, now: Duration) -> Option<Duration> {
        self.now = self.now.max(now);
        loop {
            self.timers.sort();
            let &(at, _, number) = self.timers.first()?;
            if at > self.now {
                return Some(at);
            }
            self.timers.remove(0);
            let is = self.job(number).unwrap().is;
            if is == Is::Later {
                self.job(number).unwrap().is = Is::Ready;
                self.update_orders();
            } else {
                self.give_back_since(number, Unclaim::Failed, at);
            }
        }
    }
}
