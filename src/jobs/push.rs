//! Jobs come in, move and leave.

use crate::by_key::{Seat, Tree};
use crate::slab::Key;

use super::records::{Group, Job, State, Tenant};
use super::{Jobs, Name, PINNED, Place, Refused};

/// Where a new job will be: all comparisons have been made. Good until the
/// next change.
#[derive(Debug)]
#[must_use]
pub struct Plan {
    tenant: Option<u32>,
    group: Option<u32>,
    /// In the group's order.
    seat: Option<Seat>,
    /// In the tenant's line, if it is to stand there at once.
    stand: Option<Seat>,
}

/// A job that was taken out, by value.
#[derive(Debug, PartialEq, Eq)]
pub struct Taken<K, J> {
    /// Its key.
    pub key: K,
    /// The job.
    pub job: J,
    /// How often it was claimed and came back.
    pub attempts: u32,
    pub(super) sequence: u64,
}

impl<K: Ord, J> Jobs<K, J> {
    /// Finds the place of a new job. Runs the user's `Ord`, changes nothing.
    pub fn plan(&self, key: &K, place: &Place) -> Plan {
        let sequence = self.last + 1;
        let tenant = self.names.get(&place.tenant).copied();
        let group = tenant.and_then(|tenant| {
            let groups = &self.tenant(tenant).groups;
            groups.get(place.group.as_ref()?).copied()
        });
        let order = group.map_or(Tree::EMPTY, |group| self.group(group).order);
        let compare = |other| self.order(key, sequence, other);
        let in_group = |_| self.orders.seat(order, compare);
        let seat = place.group.as_ref().map(in_group);
        let stands = place.due <= self.timers.now()
            && group.is_none_or(|group| {
                let group = self.group(group);
                let first = self.orders.first(order);
                group.limit.room(group.running) > 0
                    && first.is_none_or(|first| compare(first).is_lt())
            })
            && (group.is_some() || place.group.is_none() || self.group_limit.room(0) > 0);
        let line = tenant.map_or(Tree::EMPTY, |tenant| self.tenant(tenant).line);
        let stand = stands.then(|| self.orders.seat(line, compare));
        Plan {
            tenant,
            group,
            seat,
            stand,
        }
    }

    /// Puts a job in where the plan says. Compares nothing.
    pub fn push(&mut self, plan: Plan, key: K, place: Place, data: J) -> Key {
        let Place { tenant, group, due } = place;
        let tenant = plan.tenant.unwrap_or_else(|| self.add_tenant(tenant));
        let group = group.map(|name| plan.group.unwrap_or_else(|| self.add_group(tenant, name)));
        let sequence = self.number();
        let job = Job {
            key,
            sequence,
            tenant,
            group,
            state: State::Apart,
            attempts: 0,
            seat: None,
            stand: None,
            restless: false,
            data,
        };
        let id = self.jobs.insert(job);
        let at = id.index();
        self.tenant_mut(tenant).members += 1;
        if let (Some(group), Some(seat)) = (group, plan.seat) {
            let group = self.groups.by_index_mut(group).expect(PINNED);
            group.members += 1;
            let seat = self.orders.sit(&mut group.order, seat, at, false);
            self.job_mut(at).seat = Some(seat);
        }
        if let Some(seat) = plan.stand {
            let line = &mut self.tenants.by_index_mut(tenant).expect(PINNED).line;
            let stand = self.orders.sit(line, seat, at, true);
            self.job_mut(at).stand = Some(stand);
            if let Some(group) = group {
                if let Some(old) = self.group(group).standing {
                    self.unstand(old);
                }
                self.group_mut(group).standing = Some(at);
            }
        }
        let state = self.wait_until(id, due);
        self.turn(at, state);
        id
    }

    /// Finds the place of a job under another key. Runs the user's `Ord`,
    /// changes nothing.
    pub fn plan_rekey(&self, id: Key, key: &K) -> Result<Option<Seat>, Refused> {
        let job = self.jobs.get(id).ok_or(Refused::Stale)?;
        Ok(job.group.map(|group| {
            let order = self.group(group).order;
            let compare = |other| self.order(key, job.sequence, other);
            self.orders.seat(order, compare)
        }))
    }

    /// Gives a job another key, and the place it has by it; the old key.
    pub fn rekey(&mut self, id: Key, seat: Option<Seat>, key: K) -> K {
        let at = id.index();
        let job = self.job_mut(at);
        let old_key = std::mem::replace(&mut job.key, key);
        let (group, old_seat, state) = (job.group, job.seat, job.state);
        let ready = state == State::Ready;
        if let (Some(group), Some(seat), Some(old_seat)) = (group, seat, old_seat) {
            let order = &mut self.groups.by_index_mut(group).expect(PINNED).order;
            let seat = self.orders.sit(order, seat, at, ready);
            self.orders.leave(order, old_seat);
            self.job_mut(at).seat = Some(seat);
        }
        self.unstand(at);
        match group {
            Some(group) => self.balance_group(group),
            None if ready => self.unsettle_job(at),
            None => {}
        }
        old_key
    }
}

impl<K, J> Jobs<K, J> {
    /// The state of one that waits, and is due then.
    pub(super) fn wait_until(&mut self, id: Key, due: std::time::Duration) -> State {
        if due <= self.timers.now() {
            State::Ready
        } else {
            State::Later(self.timers.set(due, id))
        }
    }

    pub(super) fn add_tenant(&mut self, name: Name) -> u32 {
        let at = self.tenants.insert(Tenant::new(name.clone())).index();
        self.names.insert(name, at);
        at
    }

    pub(super) fn add_group(&mut self, tenant: u32, name: Name) -> u32 {
        let group = Group::new(name.clone(), tenant, self.group_limit);
        let at = self.groups.insert(group).index();
        self.tenant_mut(tenant).groups.insert(name, at);
        at
    }

    /// The job of this name.
    pub fn get(&self, id: Key) -> Option<&J> {
        self.jobs.get(id).map(|job| &job.data)
    }

    /// Takes out a job that nobody has.
    pub fn remove(&mut self, id: Key) -> Result<Taken<K, J>, Refused> {
        let job = self.jobs.get(id).ok_or(Refused::Stale)?;
        if matches!(job.state, State::Claimed { .. }) {
            return Err(Refused::Claimed);
        }
        Ok(self.take_out(id))
    }

    /// Takes out all jobs that wait, in the order in which they were pushed.
    pub fn drain(&mut self) -> Vec<Taken<K, J>> {
        let waits = |job: &Job<K, J>| matches!(job.state, State::Ready | State::Later(_));
        let waiting = self.jobs.iter().filter(|(_, job)| waits(job));
        let waiting: Vec<Key> = waiting.map(|(id, _)| id).collect();
        let mut taken: Vec<_> = waiting.into_iter().map(|id| self.take_out(id)).collect();
        taken.sort_by_key(|taken| taken.sequence);
        taken
    }

    /// A job ends, whatever its state.
    pub(super) fn take_out(&mut self, id: Key) -> Taken<K, J> {
        self.turn(id.index(), State::Apart);
        let job = self.jobs.remove(id).expect(PINNED);
        if let (Some(group), Some(seat)) = (job.group, job.seat) {
            let group = self.groups.by_index_mut(group).expect(PINNED);
            group.members -= 1;
            self.orders.leave(&mut group.order, seat);
        }
        self.tenant_mut(job.tenant).members -= 1;
        self.reap(job.tenant, job.group);
        let Job {
            key,
            data: job,
            attempts,
            sequence,
            ..
        } = job;
        Taken {
            key,
            job,
            attempts,
            sequence,
        }
    }
}
