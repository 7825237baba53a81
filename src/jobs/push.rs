//! Jobs come in, move and leave.

use std::time::Duration;

use crate::limit::Limit;
use crate::retry::Retry;
use crate::slab::{Key, NO_INDEX, Slab};

use super::home::{Home, InOrder};
use super::records::{Dirty, Group, Job, Rank, Rare, State, Tenant};
use super::{DIRTY_KEPT, JobId, Jobs, Name, ONCE, PINNED, Place, PushReason, Refused, Scope};

/// A job that is being pushed, with its key (`None` once it is in), and its place.
pub type Entering<K, J> = (Option<(K, J)>, Place);

/// A job that was taken out, by value.
#[derive(Debug, PartialEq, Eq)]
pub struct Taken<K, J> {
    /// Its key.
    pub key: K,
    /// The job.
    pub job: J,
    /// How often it was tried: claims that came back, without snoozes, since the last requeue. What
    /// [`Place::tried`] said counts.
    pub attempts: u32,
}

impl<K, J> Job<K, J> {
    /// What is left of a job that is out.
    #[inline(always)]
    pub(super) fn into_taken(self) -> Taken<K, J> {
        Taken {
            key: self.key,
            job: self.data,
            attempts: self.attempts,
        }
    }
}

impl<K: Ord, J> Jobs<K, J> {
    /// Pushes a job, unless a check or `admit` refuses it. `admit` comes last, and may be asked
    /// twice. A job that `replaces` the waiting one with its unique name needs no `admit`; the
    /// caller must then [take the old one out](Self::take_replaced). Runs the user's `Ord`; if that
    /// panics, nothing has changed.
    #[inline(always)]
    pub fn push(
        &mut self,
        ((job, place), queue): (&mut Entering<K, J>, u64),
        replaces: bool,
        mut admit: impl FnMut() -> Result<(), PushReason>,
    ) -> Result<(Key, Option<Key>), PushReason> {
        let group = self.home_of(&place.home, queue)?;
        let entering = Entered { jobs: self, group };
        let jobs = &mut *entering.jobs;
        let home = jobs.groups.get_mut(group).ok_or(PushReason::Stale)?;
        let (mut old, mut due, mut tried) = (None, None, 0);
        if let Some(rare) = &place.rare {
            let tenant = home.tenant;
            old = jobs.replaced(tenant, rare, (replaces, queue))?;
            (due, tried) = (rare.due, rare.tried);
        } else {
            admit()?;
            let home = (group.index(), home);
            if let Some(id) = push_behind(home, &mut jobs.jobs, &mut jobs.last, job) {
                std::mem::forget(entering);
                return Ok((id, None));
            }
        }
        if old.is_none() {
            admit()?;
        }
        let (key, _) = job.as_ref().expect(ONCE);
        let is_due = due.is_none_or(|due| due <= jobs.timers.now());
        // A date that has passed is not remembered.
        place.rare.take_if(|rare| is_due && rare.is_over());
        let sequence = jobs.last + 1;
        let in_order = is_due.then(|| jobs.in_order(Rank { key, sequence }, group.index()));
        let job = (job.take().expect(ONCE), place.rare.take());
        let due = due.unwrap_or_default();
        let id = jobs.insert(job, (group.index(), in_order), (due, tried));
        std::mem::forget(entering);
        Ok((id, old))
    }

    /// Takes out a job that another one has replaced.
    pub fn take_replaced(&mut self, old: Key) -> Taken<K, J> {
        // The unique name belongs to the new job by now.
        self.jobs[old.index()].rare.as_mut().expect(ONCE).unique = None;
        self.take_out(old)
    }

    /// The job that a new one replaces, if any, or why the new one is refused.
    #[cold]
    fn replaced(
        &self,
        tenant: u32,
        rare: &Rare,
        (replaces, queue): (bool, u64),
    ) -> Result<Option<Key>, PushReason> {
        if rare.attempts == Some(Limit::AtMost(0)) {
            return Err(PushReason::OutOfRange(Retry::NO_ATTEMPT));
        }
        match self.named(tenant, rare) {
            Some(key) if !replaces || self.unclaimed(key).is_err() => {
                Err(PushReason::Duplicate(JobId { queue, key }))
            }
            old => Ok(old),
        }
    }
}

/// A group that a job is entering. If the job is refused, or a comparison panics, the names that
/// were made for it are forgotten.
struct Entered<'a, K, J> {
    jobs: &'a mut Jobs<K, J>,
    group: Key,
}

impl<K, J> Drop for Entered<'_, K, J> {
    #[cold]
    fn drop(&mut self) {
        if self.jobs.groups.get(self.group).is_some() {
            self.jobs.reap(self.group.index());
        }
    }
}

/// Pushes a due job behind the others of its group, if the group's room is used up by them: then no
/// more could be claimed, and nothing else changes.
#[inline(always)]
fn push_behind<K: Ord, J>(
    (at, group): (u32, &mut Group),
    jobs: &mut Slab<Job<K, J>>,
    last: &mut u64,
    job: &mut Option<(K, J)>,
) -> Option<Key> {
    if !group.is_named || group.limit.room(group.running) > group.ready {
        return None;
    }
    let (key, _) = job.as_ref().expect(ONCE);
    let sequence = *last + 1;
    let before = group.order.last_of(jobs)?;
    if (Rank { key, sequence }).compare(before).is_lt() {
        return None;
    }
    let mut job = Job::new(job.take().expect(ONCE), (at, sequence), 0, None);
    (job.links, job.state) = (group.order.next_links(), State::Ready);
    let id = jobs.insert(job);
    group.order.push(jobs, id.index());
    (group.ready, group.members) = (group.ready + 1, group.members + 1);
    *last = sequence;
    Some(id)
}

impl<K, J> Jobs<K, J> {
    /// Inserts a job, at its position if it is due.
    #[inline(always)]
    fn insert(
        &mut self,
        (entering, rare): ((K, J), Option<Box<Rare>>),
        (at, in_order): (u32, Option<InOrder>),
        (due, tried): (Duration, u32),
    ) -> Key {
        self.last += 1;
        let mut job = Job::new(entering, (at, self.last), tried, rare);
        job.state = in_order.map_or(State::Uncounted, |_| State::Ready);
        let is_rare = job.rare.is_some();
        let id = self.jobs.insert(job);
        let Some(in_order) = in_order else {
            self.wait_until(id, due);
            return id;
        };
        if is_rare {
            self.set_unique(id, true);
        }
        let mut home = Home::of(at, &mut self.groups, &mut self.tenants);
        home.insert(&self.jobs, id.index(), in_order);
        let states = (State::Uncounted, State::Ready);
        let balance = home.count(&self.jobs, &mut self.dirty, states);
        let home = (at, home.group.tenant);
        self.count(home, balance, states);
        id
    }

    /// Makes a job ready, or lets it wait until it is due.
    pub(super) fn wait_until(&mut self, id: Key, due: Duration) {
        if due <= self.timers.now() {
            self.set_state(id.index(), State::Ready);
        } else {
            self.set_state(id.index(), State::Later);
            let job = &mut self.jobs[id.index()];
            job.set_timer(id, due, &mut self.timers);
        }
    }

    /// Removes stale entries from a long dirty list, which would stay if nobody claims.
    pub(super) fn purge_dirty(&mut self) {
        if self.dirty.len() <= DIRTY_KEPT + 4 * self.jobs.len() {
            return;
        }
        let (jobs, groups) = (&self.jobs, &self.groups);
        self.dirty.drain(..std::mem::take(&mut self.updated));
        self.dirty.sort_unstable();
        self.dirty.dedup();
        self.dirty.retain(|dirty| match *dirty {
            Dirty::Job(job) => jobs.by_index(job).is_some_and(|job| job.dirty),
            Dirty::Group(group) => groups.by_index(group).is_some_and(|group| group.dirty),
        });
    }

    #[cold]
    pub(super) fn add_tenant(&mut self, name: Name) -> u32 {
        let own = Group::new(None, NO_INDEX, Limit::Unlimited);
        let own = self.groups.insert(own);
        let at = self.tenants.insert(Tenant::new(name.clone(), own)).index();
        self.groups[own.index()].tenant = at;
        self.names.insert(name, at);
        at
    }

    #[cold]
    pub(super) fn add_group(&mut self, tenant: u32, name: Name) -> Key {
        let group = Group::new(Some(name.clone()), tenant, self.group_limit);
        let group = self.groups.insert(group);
        self.tenants[tenant].groups.insert(name, group);
        group
    }

    /// Gives a job another key, and the place of that key. The old key is left in `key`.
    pub fn rekey(&mut self, id: Key, key: &mut K) -> Result<(), Refused> {
        let job = self.jobs.get_mut(id).ok_or(Refused::Stale)?;
        std::mem::swap(&mut job.key, key);
        if job.links.is_in() {
            let mut home = Home::of(job.group, &mut self.groups, &mut self.tenants);
            home.remove(&self.jobs, id.index());
            home.balance_group(&self.jobs, &mut self.dirty);
            self.mark_dirty(id.index());
        }
        Ok(())
    }

    /// The job of this name.
    pub fn get_mut(&mut self, id: Key) -> Option<&mut J> {
        self.jobs.get_mut(id).map(|job| &mut job.data)
    }

    /// Takes out a job that is not claimed.
    pub fn remove(&mut self, id: Key) -> Result<Taken<K, J>, Refused> {
        self.unclaimed(id)?;
        Ok(self.take_out(id))
    }

    /// The same, but as if the job had never been pushed.
    pub fn unpush(&mut self, id: Key) -> Taken<K, J> {
        let taken = self.take_out(id);
        self.totals.removed -= 1;
        taken
    }

    pub(super) fn unclaimed(&self, id: Key) -> Result<(), Refused> {
        match self.jobs.get(id).ok_or(Refused::Stale)?.state {
            State::Claimed => Err(Refused::Claimed),
            _ => Ok(()),
        }
    }

    /// The jobs of this scope, in the order in which they were pushed.
    pub fn list(&self, scope: &Scope) -> Vec<Key> {
        self.list_if(scope, |_| true)
    }

    fn list_if(&self, scope: &Scope, is_meant: impl Fn(State) -> bool) -> Vec<Key> {
        let is_in = |job: &Job<K, J>| {
            let own = &self.groups[job.group];
            let is_of = |tenant: &Name| self.tenants[own.tenant].name == *tenant;
            match scope {
                Scope::Queue => true,
                Scope::Tenant(tenant) => is_of(tenant),
                Scope::Group { tenant, group } => {
                    own.is_named && own.name == *group && is_of(tenant)
                }
            }
        };
        let jobs = self.jobs.iter();
        let jobs = jobs.filter(|(_, job)| is_meant(job.state) && is_in(job));
        let mut found: Vec<_> = jobs.map(|(id, job)| (job.sequence, id)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    }

    /// Takes out all jobs of this scope that wait, in the order in which they were
    /// pushed.
    pub fn drain(&mut self, scope: &Scope) -> Vec<Taken<K, J>> {
        let waits = |state| matches!(state, State::Ready | State::Later);
        let waiting = self.list_if(scope, waits).into_iter();
        waiting.map(|id| self.take_out(id)).collect()
    }

    /// Takes out all dead jobs.
    pub fn drain_dead(&mut self) -> Vec<Taken<K, J>> {
        let dead: Vec<_> = self.dead().collect();
        dead.into_iter().map(|id| self.take_out(id)).collect()
    }

    /// Takes out a job, which is not claimed.
    fn take_out(&mut self, id: Key) -> Taken<K, J> {
        self.set_state(id.index(), State::Uncounted);
        let job = self.jobs.remove(id).expect(PINNED);
        self.totals.removed += 1;
        self.reap(job.group);
        job.into_taken()
    }

    /// Registers a job's unique name, or frees it for other jobs.
    #[cold]
    pub(super) fn set_unique(&mut self, id: Key, is_kept: bool) {
        let job = &self.jobs[id.index()];
        if let Some(name) = job.rare.as_ref().and_then(|rare| rare.unique.clone()) {
            let tenant = self.groups[job.group].tenant;
            let unique = &mut self.tenants[tenant].unique;
            match is_kept {
                true => unique.insert(name, id),
                false => unique.remove(&name),
            };
        }
    }
}
