//! Limits, weights, changes of waiting jobs, and dead jobs.

use std::time::Duration;

use crate::error::OutOfRange;
use crate::limit::Limit;
use crate::ring::MAX_WEIGHT;
use crate::slab::Key;

use super::records::State;
use super::{JobId, Jobs, Name, Refused, Scope};

impl<K, J> Jobs<K, J> {
    /// Sets a limit. Jobs that run above it run on, and are a debt.
    pub fn set_limit(&mut self, scope: Scope, limit: Limit) -> Result<(), OutOfRange> {
        let limit = limit.checked("limit")?;
        let part = match scope {
            Scope::Queue => {
                self.limit = limit;
                return Ok(());
            }
            Scope::Tenant(name) => {
                let tenant = self.tenant_named(&name);
                self.tenants[tenant].limit = limit;
                self.tenants[tenant].own.index()
            }
            Scope::Group { tenant, group } => {
                let tenant = self.tenant_named(&tenant);
                let group = self.group_named(tenant, &group).index();
                self.groups[group].limit = limit;
                group
            }
        };
        self.balance(part);
        self.reap(part);
        Ok(())
    }

    /// The limit that applies to this scope.
    pub fn limit(&self, scope: &Scope) -> Limit {
        let of = |name| self.names.get(name).map(|&at| &self.tenants[at]);
        match scope {
            Scope::Queue => self.limit,
            Scope::Tenant(name) => of(name).map_or(Limit::Unlimited, |tenant| tenant.limit),
            Scope::Group { tenant, group } => {
                let group = of(tenant).and_then(|tenant| tenant.groups.get(group));
                group.map_or(self.group_limit, |at| self.groups[at.index()].limit)
            }
        }
    }

    /// Sets how many jobs in a row are claimed from this tenant in its turn.
    pub fn set_weight(&mut self, tenant: Name, weight: u32) -> Result<(), OutOfRange> {
        OutOfRange::check("weight", weight, 1, MAX_WEIGHT)?;
        let tenant = self.tenant_named(&tenant);
        self.tenants[tenant].link.weight = weight;
        self.reap(self.tenants[tenant].own.index());
        Ok(())
    }

    /// The tenant of this name, made if there is none.
    pub(super) fn tenant_named(&mut self, name: &Name) -> u32 {
        let known = self.names.get(name).copied();
        known.unwrap_or_else(|| self.add_tenant(name.clone()))
    }

    /// The group of this name, made if there is none.
    pub(super) fn group_named(&mut self, tenant: u32, name: &Name) -> Key {
        let known = self.tenants[tenant].groups.get(name).copied();
        known.unwrap_or_else(|| self.add_group(tenant, name.clone()))
    }

    /// Changes when a waiting job is due.
    pub fn set_due(&mut self, id: Key, due: Duration) -> Result<(), Refused> {
        self.waits(id)?;
        self.wait_until(id, due);
        Ok(())
    }

    /// Exchanges a waiting job for another one, in the same place.
    pub fn replace(&mut self, id: Key, job: &mut J) -> Result<(), Refused> {
        self.waits(id)?;
        std::mem::swap(&mut self.jobs[id.index()].data, job);
        Ok(())
    }

    /// The dead jobs, in the order in which they died.
    pub fn dead(&self) -> impl ExactSizeIterator<Item = Key> {
        self.dead.values().copied()
    }

    /// The last number that was given to a job, a claim or a death.
    pub fn last_number(&self) -> u64 {
        self.last
    }

    /// The jobs that died after this number was given, with their attempts.
    pub fn died_since(&self, number: u64) -> Vec<(Key, u32)> {
        let died = self.dead.range(number + 1..);
        died.map(|(_, &id)| (id, self.jobs[id.index()].attempts))
            .collect()
    }

    /// How many dead jobs no wait has returned yet.
    pub fn unreported(&self) -> usize {
        self.unreported
    }

    /// Takes the first of [them](Self::unreported), for a wait to return.
    pub fn report_dead(&mut self) -> Option<Key> {
        let (&death, &job) = self.dead.range(self.reported + 1..).next()?;
        self.reported = death;
        self.unreported -= 1;
        Some(job)
    }

    /// Whether a job waits, due or not.
    fn waits(&self, id: Key) -> Result<(), Refused> {
        match self.jobs.get(id).ok_or(Refused::Stale)?.state {
            State::Claimed => Err(Refused::Claimed),
            State::Dead => Err(Refused::Dead),
            State::Ready | State::Later | State::Uncounted => Ok(()),
        }
    }

    /// Lets a dead job of this queue wait again, at its place, with all its attempts and its unique
    /// name.
    pub fn requeue(&mut self, id: JobId) -> Result<(), Refused> {
        let JobId { queue, key } = id;
        let job = self.jobs.get(key).ok_or(Refused::Stale)?;
        if job.state != State::Dead {
            return Err(Refused::Alive);
        }
        let tenant = self.groups[job.group].tenant;
        let rare = job.rare.as_deref();
        if let Some(key) = rare.and_then(|rare| self.named(tenant, rare)) {
            return Err(Refused::Duplicate(JobId { queue, key }));
        }
        self.jobs[key.index()].attempts = 0;
        self.set_state(key.index(), State::Ready);
        Ok(())
    }
}
