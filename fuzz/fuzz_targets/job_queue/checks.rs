//! What must hold between any two operations, and at the end.

use std::time::Duration;

use conversant::job_queue::{JobId, JobState, Name, TenantStatus};
use conversant::limit::Limit;

use crate::End;
use crate::model::{Job, Part, Totals};
use crate::run::Run;

impl Run {
    pub(crate) fn check(&mut self) {
        self.list(Part::Queue);
        self.check_counts();
        self.check_tenants();
        self.check_claims();
        self.check_dead();
        let few = self.ids.len() <= 24;
        for (number, &id) in self.ids.iter().enumerate() {
            // With many jobs, each time other ones.
            if few || (number + self.model.deaths as usize).is_multiple_of(8) {
                self.check_job(number, id);
            }
        }
    }

    fn check_job(&self, number: usize, id: JobId) {
        let job = self.model.jobs.get(&number);
        assert_eq!(self.queue.key(id), job.map(|job| job.key));
        let why = job.map(|_| self.model.why(number));
        assert_eq!(self.queue.why(id), why);
        // A claim without a lease has it.
        let shown = job.filter(|job| job.state != JobState::Claimed(None));
        assert_eq!(self.queue.get(id), shown.map(|job| job.content));
        assert_eq!(self.queue.status(id).is_some(), job.is_some());
    }

    fn check_counts(&self) {
        let (counts, model) = (self.queue.counts(), &self.model);
        let count = |is: fn(&Job) -> bool| model.count(Part::Queue, is);
        assert_eq!(counts.ready, count(|job| job.state == JobState::Ready));
        assert_eq!(
            counts.later,
            count(|job| matches!(job.state, JobState::Due(_)))
        );
        assert_eq!(counts.eligible, model.eligible() as u64);
        assert_eq!(counts.claimed as usize, count(Job::is_claimed));
        assert_eq!(counts.dead, count(|job| job.state == JobState::Dead));
        let totals = Totals {
            pushed: counts.pushed,
            completed: counts.completed,
            removed: counts.removed,
            returned: counts.returned,
            dropped: counts.dropped,
        };
        assert_eq!(totals, model.totals);
        assert_eq!(counts.claims, Default::default());
        assert_eq!(self.queue.now(), model.now);
        assert_eq!(self.queue.is_closed(), model.closed);
        let room = model.capacity.map(|most| (most - model.jobs.len()) as i64);
        assert_eq!(self.queue.room(), room);
    }

    fn check_tenants(&self) {
        let snapshot = self.queue.snapshot();
        assert_eq!(snapshot.counts, self.queue.counts());
        assert_eq!(snapshot.closed, self.model.closed);
        assert_eq!(snapshot.limit, self.model.limit(Part::Queue));
        for tenant in 0..3 {
            let name = Name::from(tenant);
            let status = snapshot.tenants.iter().find(|status| status.name == name);
            match status {
                Some(status) => self.check_tenant(tenant, status),
                None => assert_eq!(self.model.count(Part::Tenant(tenant), |_| true), 0),
            }
        }
    }

    fn check_tenant(&self, tenant: u64, status: &TenantStatus) {
        let (model, part) = (&self.model, Part::Tenant(tenant));
        assert_eq!(status.weight, model.weights[tenant as usize]);
        assert_eq!(status.limit, model.limit(part));
        assert_eq!(status.claimed as usize, model.count(part, Job::is_claimed));
        assert_eq!(status.eligible, model.line(part).len() as u64);
        assert_eq!(status.jobs, model.count(part, |_| true));
        for group in 0..4 {
            let part = Part::Group(tenant, group);
            assert_eq!(self.queue.limit(&part.scope()), model.limit(part));
            let name = Name::from(group);
            let status = status.groups.iter().find(|status| status.name == name);
            let Some(status) = status else {
                assert_eq!(model.count(part, |_| true), 0);
                continue;
            };
            let ready = model.count(part, |job| job.state == JobState::Ready);
            assert_eq!(status.limit, model.limit(part));
            assert_eq!(status.claimed as usize, model.count(part, Job::is_claimed));
            assert_eq!(status.ready as usize, ready);
            assert_eq!(status.eligible as usize, ready.min(model.room(part)));
            assert_eq!(status.jobs, model.count(part, |_| true));
        }
    }

    fn check_claims(&self) {
        for held in &self.held {
            let (claim, holds) = (&held.claim, self.holds(held));
            assert_eq!(claim.holds(), holds);
            assert_eq!((**claim, claim.attempt()), (held.content, held.attempt));
            assert_eq!(claim.id(), self.ids[held.job]);
            let job = self.model.jobs.get(&held.job).filter(|_| holds);
            assert_eq!(claim.key().ok(), job.map(|job| job.key));
            assert_eq!(claim.tenant().ok(), job.map(|job| job.tenant.into()));
            let group = job.map(|job| job.group.map(Into::into));
            assert_eq!(claim.group().ok(), group);
        }
    }

    /// Those that died at once are in any order.
    fn check_dead(&self) {
        let dead = self.queue.dead();
        let died = |id: &JobId| {
            let job = self.model.jobs.values().find(|job| job.id == *id);
            let job = job.expect("it is in");
            assert_eq!(job.state, JobState::Dead);
            job.death
        };
        assert!(dead.iter().map(died).is_sorted());
        let all = self
            .model
            .count(Part::Queue, |job| job.state == JobState::Dead);
        assert_eq!(dead.len(), all);
    }

    /// Lifts everything that blocks a job, and claims all.
    pub(crate) fn finish(mut self) {
        while !self.held.is_empty() {
            self.model.deaths += 1;
            self.end(0, End::Drop);
        }
        self.lift();
        for number in 0..self.ids.len() {
            let job = self.model.jobs.get(&number);
            if job.is_some_and(|job| job.state == JobState::Dead) {
                self.requeue_any(number);
            }
        }
        self.model.advance(Duration::MAX);
        assert_eq!(self.queue.advance(Duration::MAX), None);
        self.check();
        let left = self.model.jobs.len();
        let claims = self.queue.try_claim(left + 1).into_iter();
        let claims: Vec<_> = claims.map(|claim| claim.into_owned()).collect();
        assert_eq!(claims.len(), left);
        self.claimed(Part::Queue, left + 1, claims);
        self.complete_all(left);
        self.check();
        assert!(self.model.jobs.is_empty());
        let Totals {
            pushed,
            completed,
            removed,
            ..
        } = self.model.totals;
        assert_eq!(completed + removed, pushed);
    }

    fn lift(&mut self) {
        let tenants = (0..3).map(Part::Tenant);
        let groups = (0..12).map(|at| Part::Group(at / 4, at % 4));
        for part in tenants.chain(groups).chain([Part::Queue]) {
            let set = self.queue.set_limit(part.scope(), Limit::Unlimited);
            set.expect("in range");
            self.model.limits.insert(part, Limit::Unlimited);
        }
    }

    /// Requeues a dead job, or takes it out if that is refused.
    fn requeue_any(&mut self, number: usize) {
        self.requeue_this(number);
        let job = self.model.jobs.get(&number);
        if job.is_some_and(|job| job.state == JobState::Dead) {
            self.remove_this(number);
        }
    }
}
