//! Jobs come in, move and leave.

use std::time::Duration;

use crate::by_key::{Links, Position};
use crate::slab::Key;

use super::home::{Home, InOrder};
use super::pins::Known;
use super::records::{Dirty, Group, Job, Rank, State, Tenant};
use super::{DIRTY_KEPT, Jobs, Name, ONCE, PINNED, Place, Refused, Scope, Terms};

/// Why a job cannot be pushed. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPushed {
    /// Its place is by the handle of a name that is gone, or of another queue.
    Stale,
    /// This job of its tenant has its unique name.
    Duplicate(Key),
}

/// A job on its way in, with its key and its place; `None` once it is in.
pub type Entering<K, J> = Option<(K, J, Place)>;

/// A job that was taken out, by value.
#[derive(Debug, PartialEq, Eq)]
pub struct Taken<K, J> {
    /// Its key.
    pub key: K,
    /// The job.
    pub job: J,
    /// How often it was claimed and came back.
    pub attempts: u32,
}

impl<K: Ord, J> Jobs<K, J> {
    /// Puts a job in that is not refused. Runs the user's `Ord`; if that panics, nothing has
    /// changed.
    #[inline(always)]
    pub fn push(&mut self, entering: &mut Entering<K, J>, queue: u64) -> Result<Key, NotPushed> {
        let (key, _, place) = entering.as_ref().expect(ONCE);
        let known = self.known(place, queue)?;
        if let Some(name) = &place.terms.unique
            && let Some(other) = self.named(known.0, name)
        {
            return Err(NotPushed::Duplicate(other));
        }
        let is_due = place.terms.due <= self.timers.now();
        let in_order = is_due.then(|| self.new_in_order(key, place, known));
        let (key, data, place) = entering.take().expect(ONCE);
        let home = self.home(known, place.home);
        Ok(self.insert(key, (home, in_order), place.terms, data))
    }

    /// Where a new job belongs that is due.
    #[inline(always)]
    fn new_in_order(&self, key: &K, place: &Place, known: Known) -> InOrder {
        let is_new = known.1.is_none() && place.has_group();
        if is_new && self.group_limit.room(0) == 0 {
            return InOrder::Group(Position::First);
        }
        let sequence = self.last + 1;
        self.in_order(Rank { key, sequence }, known)
    }
}

impl<K, J> Jobs<K, J> {
    /// Puts a job in, at its position if it is due.
    #[inline(always)]
    fn insert(
        &mut self,
        key: K,
        (home, in_order): ((u32, Option<u32>), Option<InOrder>),
        terms: Terms,
        data: J,
    ) -> Key {
        let (tenant, group) = home;
        let sequence = self.number();
        let id = self.jobs.insert(Job {
            key,
            sequence,
            tenant,
            group,
            state: in_order.map_or(State::Uncounted, |_| State::Ready),
            attempts: 0,
            most_attempts: terms.attempts,
            unique: terms.unique.clone(),
            links: Links::OUT,
            dirty: false,
            data,
        });
        if let Some(name) = terms.unique {
            self.tenant_mut(tenant).unique.insert(*name, id);
        }
        let Some(in_order) = in_order else {
            let state = self.wait_until(id, terms.due);
            self.set_state(id.index(), state);
            return id;
        };
        let mut home = Home::at(home, &mut self.groups, &mut self.tenants);
        home.insert(&mut self.jobs, id.index(), in_order);
        let states = (State::Uncounted, State::Ready);
        let balance = home.count(&mut self.jobs, &mut self.dirty, states);
        self.count(tenant, balance, states);
        if self.dirty.len() > DIRTY_KEPT + 4 * self.jobs.len() {
            self.purge_dirty();
        }
        id
    }

    /// The state of one that waits, and is due then.
    pub(super) fn wait_until(&mut self, id: Key, due: Duration) -> State {
        if due <= self.timers.now() {
            State::Ready
        } else {
            State::Later(self.timers.set(due, id))
        }
    }

    /// Where nobody claims, what was dirty and has gone would stay.
    #[cold]
    fn purge_dirty(&mut self) {
        let (jobs, groups) = (&self.jobs, &self.groups);
        self.dirty.retain(|dirty| match *dirty {
            Dirty::Job(job) => jobs.get(job).is_some(),
            Dirty::Group(group) => groups.get(group).is_some(),
        });
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

    /// Gives a job another key, and the place it has by it; the two are exchanged.
    pub fn rekey(&mut self, id: Key, key: &mut K) -> Result<(), Refused> {
        let job = self.jobs.get_mut(id).ok_or(Refused::Stale)?;
        std::mem::swap(&mut job.key, key);
        if job.links.is_in() {
            let mut home = Home::of(job, &mut self.groups, &mut self.tenants);
            home.remove(&mut self.jobs, id.index());
            home.balance_group(&mut self.jobs, &mut self.dirty);
            self.mark_dirty(id.index());
        }
        Ok(())
    }

    /// The job of this name.
    pub fn get_mut(&mut self, id: Key) -> Option<&mut J> {
        self.jobs.get_mut(id).map(|job| &mut job.data)
    }

    /// Takes out a job that nobody has.
    pub fn remove(&mut self, id: Key) -> Result<Taken<K, J>, Refused> {
        self.unclaimed(id)?;
        Ok(self.take_out(id))
    }

    pub(super) fn unclaimed(&self, id: Key) -> Result<(), Refused> {
        match self.jobs.get(id).ok_or(Refused::Stale)?.state {
            State::Claimed { .. } => Err(Refused::Claimed),
            _ => Ok(()),
        }
    }

    /// The jobs of this scope, in the order in which they were pushed.
    pub fn list(&self, scope: &Scope) -> Vec<Key> {
        self.list_if(scope, |_| true)
    }

    fn list_if(&self, scope: &Scope, is_meant: impl Fn(State) -> bool) -> Vec<Key> {
        let (tenant, group) = match scope {
            Scope::Queue => (None, None),
            Scope::Tenant(name) => (Some(name), None),
            Scope::Group { tenant, group } => (Some(tenant), Some(group)),
        };
        let (tenant_at, group_at) = self.find_names(tenant, group);
        let is_known =
            tenant.is_some() == tenant_at.is_some() && group.is_some() == group_at.is_some();
        let is_in = |job: &Job<K, J>| {
            is_known
                && tenant_at.is_none_or(|at| job.tenant == at)
                && (group_at.is_none() || job.group == group_at)
                && is_meant(job.state)
        };
        let jobs = self.jobs.iter().filter(|(_, job)| is_in(job));
        let mut found: Vec<_> = jobs.map(|(id, job)| (job.sequence, id)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    }

    /// Takes out all jobs of this scope that wait, in the order in which they were
    /// pushed.
    pub fn drain(&mut self, scope: &Scope) -> Vec<Taken<K, J>> {
        let waits = |state| matches!(state, State::Ready | State::Later(_));
        let waiting = self.list_if(scope, waits).into_iter();
        waiting.map(|id| self.take_out(id)).collect()
    }

    /// A job that nobody has ends.
    fn take_out(&mut self, id: Key) -> Taken<K, J> {
        let job = self.jobs.by_index(id.index()).expect(PINNED);
        let state = job.state;
        if job.links.is_in() {
            let mut home = Home::of(job, &mut self.groups, &mut self.tenants);
            home.remove(&mut self.jobs, id.index());
        }
        self.end(id, state)
    }

    /// A job ends that has this state, and is in no order.
    #[inline(always)]
    pub(super) fn end(&mut self, id: Key, state: State) -> Taken<K, J> {
        let job = self.jobs.remove(id).expect(PINNED);
        debug_assert_eq!(job.state, state, "the state that is left");
        let states = (state, State::Uncounted);
        let mut home = Home::of(&job, &mut self.groups, &mut self.tenants);
        let balance = home.count(&mut self.jobs, &mut self.dirty, states);
        let is_last = home.is_last();
        self.count(job.tenant, balance, states);
        if let Some(name) = &job.unique {
            self.tenant_mut(job.tenant).unique.remove(&**name);
        }
        if is_last {
            self.reap(job.tenant, job.group);
        }
        Taken {
            key: job.key,
            job: job.data,
            attempts: job.attempts,
        }
    }
}
