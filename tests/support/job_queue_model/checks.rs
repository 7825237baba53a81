//! Everything that both queues show, compared.

use conversant::job_queue::JobId;
use conversant::limit::Limit;

use super::driver::{Driver, Kind};
use super::naive::{Job, PartName, State, is_claimed};
use super::views::{agrees, scope};

impl Driver {
    pub(crate) fn check(&mut self) {
        self.naive.settle();
        self.notify();
        for one in &self.sleepers {
            let woken = one.count.get() > one.seen;
            let kind = match &one.kind {
                Kind::Claim(part, n) => format!("claim {part:?} {n}"),
                Kind::Push(_) => "push".into(),
                Kind::Dead => "dead".into(),
            };
            assert_eq!(woken, one.notified, "woken? {kind} {:#?}", self.naive);
        }
        if self.random.below(2) == 0 {
            self.check_counts();
        }
        if self.random.below(8) == 0 {
            self.check_snapshot();
            self.check_jobs();
        }
    }

    fn check_counts(&mut self) {
        let (real, naive) = (self.real.counts(), &self.naive);
        let waits = |job: &Job| matches!(job.state, State::Waits(_)) && !naive.is_ready(job);
        let dead = |job: &Job| matches!(job.state, State::Dead { .. });
        assert_eq!(
            real.ready,
            naive.count(None, |job| naive.is_ready(job)),
            "ready"
        );
        assert_eq!(real.later, naive.count(None, waits), "later");
        assert_eq!(real.eligible as usize, naive.eligible(None), "eligible");
        assert_eq!(
            real.claimed as usize,
            naive.count(None, is_claimed),
            "claimed"
        );
        assert_eq!(real.dead, naive.count(None, dead), "dead");
        let totals = &naive.totals;
        assert_eq!(
            (
                real.pushed,
                real.completed,
                real.removed,
                real.returned,
                real.dropped
            ),
            (
                totals.pushed,
                totals.completed,
                totals.removed,
                totals.returned,
                totals.dropped
            )
        );
        let claims = self
            .sleepers
            .iter()
            .filter(|it| matches!(it.kind, Kind::Claim(..)));
        let (told, untold): (Vec<_>, Vec<_>) = claims.partition(|it| it.notified);
        assert_eq!(
            (real.claims.waiting, real.claims.notified),
            (untold.len(), told.len())
        );
        let room = match self.capacity {
            Limit::AtMost(n) => Some(i64::from(n) - (naive.jobs.len() + self.reserved()) as i64),
            Limit::Unlimited => None,
        };
        let pushes = self
            .sleepers
            .iter()
            .any(|it| matches!(it.kind, Kind::Push(_)));
        if !(naive.closed && pushes) {
            assert_eq!(self.real.room(), room);
        }
    }

    fn check_snapshot(&mut self) {
        let (real, naive) = (self.real.snapshot(), &self.naive);
        assert_eq!((real.closed, real.limit), (naive.closed, naive.queue_limit));
        let mut shown: Vec<PartName> = Vec::new();
        for tenant in &real.tenants {
            let part = (tenant.name.clone(), None);
            let of = |part: &PartName| {
                let claimed = naive.count(Some(part), is_claimed);
                (
                    naive.limit(part),
                    claimed,
                    naive.eligible(Some(part)),
                    naive.count(Some(part), |_| true),
                )
            };
            let all = (
                tenant.limit,
                tenant.claimed as usize,
                tenant.eligible as usize,
                tenant.jobs,
            );
            assert_eq!(
                (all, tenant.weight),
                (of(&part), naive.weight(&tenant.name)),
                "{part:?}"
            );
            shown.push(part);
            for group in &tenant.groups {
                let part = (tenant.name.clone(), Some(group.name.clone()));
                let all = (
                    group.limit,
                    group.claimed as usize,
                    group.eligible as usize,
                    group.jobs,
                );
                assert_eq!(all, of(&part), "{part:?}");
                let ready = naive.count(Some(&part), |job| naive.is_ready(job));
                assert_eq!(group.ready as usize, ready);
                shown.push(part);
            }
        }
        let names: Vec<PartName> = naive.names.keys().cloned().collect();
        assert_eq!(shown, names);
    }

    fn check_jobs(&mut self) {
        let part = self.some_part(true);
        let listed = self.naive.listed(part.as_ref());
        assert_eq!(self.real.list(&scope(part.as_ref())), listed);
        for (id, status) in self.real.statuses(&scope(part.as_ref())) {
            let known = self.naive.status(id).unwrap();
            assert!(agrees(&status, &known), "{status:?} {known:?}");
        }
        for id in self.some_ids(4) {
            assert_eq!(self.real.why(id), self.naive.why(id));
            let at = self.naive.find(id);
            assert_eq!(self.real.key(id), at.map(|at| self.naive.jobs[at].key));
            assert_eq!(self.real.status(id).is_some(), at.is_some());
            let free = at.filter(|&at| {
                !matches!(
                    self.naive.jobs[at].state,
                    State::Claimed { until: None, .. }
                )
            });
            assert_eq!(self.real.get(id), free.map(|at| self.naive.jobs[at].value));
        }
        let order = |id: &JobId| match self.naive.jobs[self.naive.find(*id).unwrap()].state {
            State::Dead { order, .. } => order,
            _ => panic!("{id} is not dead"),
        };
        let real = self.real.dead();
        assert!(
            real.is_sorted_by_key(order),
            "{real:?} {:#?}",
            self.naive.jobs
        );
        let dead = |job: &Job| matches!(job.state, State::Dead { .. });
        assert_eq!(real.len(), self.naive.count(None, dead));
    }
}
