//! Which job is next: the policy of the job queue.
//!
//! A plain data structure without locks, threads or clocks. It is not
//! built on `backlog`: there a group is one line in order of arrival, with a rank
//! and a turn; here every job has a position of its own, a group may have several
//! units, and the order is the user's `Ord`, which may panic.
//!
//! # State
//!
//! Jobs, groups and tenants in slabs. The jobs of a group are in its order from
//! push to end, those that are due and wait marked (`by_key`); the links of both
//! orders stand in the job. A tenant's line
//! holds, in key order, the first marked job of each of its groups that
//! has room, and its ungrouped jobs that are due and wait. The ring holds the
//! tenants that have work and room.
//!
//! # Protocol
//!
//! Every change of a job's state goes through `set_state`, which keeps
//! all counts exact and compares no keys. A job that should be in a
//! line and is not yet is noted as dirty; the next claim inserts it
//! (`update_lines`). So the user's `Ord` runs in `find_position`, `rekey_position`
//! and `claim` alone, and there before anything has changed or in between two
//! whole changes.
//!
//! # Invariants
//!
//! 1. A line holds only what could be claimed if the limits of its tenant and
//!    of the queue had room; what is blocked is in no line.
//! 2. What should be in line and is not, or is behind its position, is dirty.
//! 3. A group's `counted` is min(its room, its marked jobs); a tenant's `units`
//!    is the sum of these and of its ungrouped jobs that are due and wait;
//!    its `counted` is min(its room, its units), and `open` is the sum of those.
//! 4. A tenant is in the ring exactly if it has `counted` above 0.
//! 5. Nothing of the user's is dropped in here: keys and jobs come in and leave
//!    by value.
//! 6. A name is kept while a job is in it, dead ones included, a handle keeps it,
//!    or a setting that is not the default.
//! 7. A tenant's unique names are those of its jobs.
//!
//! # Cost
//!
//! O(log n) a job for everything but snapshots and `drain`, n being the size of
//! the trees concerned: those of the job's group, and of those that could be
//! claimed in its tenant. Blocked jobs of other groups are not in either.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::limit::Limit;
use crate::retry::Retry;
use crate::ring::Ring;
use crate::slab::{Key, Slab};
use crate::timers::Timers;

mod claims;
mod names;
mod pins;
mod push;
mod records;
mod settings;
mod status;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub use claims::{Expired, Pick, Unclaim};
pub use names::{Name, Place, Scope, Terms};
pub use pins::Pinned;
pub use push::{JobPosition, Taken};
pub use settings::Refused;
pub use status::{GroupStatus, TenantStatus, Why};

use records::{Dirty, Group, Job, State, Tenant};

/// Jobs, and which of them is next.
#[derive(Debug)]
pub struct Jobs<K, J> {
    jobs: Slab<Job<K, J>>,
    groups: Slab<Group>,
    tenants: Slab<Tenant>,
    /// The tenants by name, as numbers of their slots.
    names: BTreeMap<Name, u32>,
    ring: Ring,
    timers: Timers<Key>,
    dirty: Vec<Dirty>,
    /// In the order in which they died.
    dead: BTreeMap<u64, Key>,
    /// Up to which death somebody was told.
    told: u64,
    limit: Limit,
    group_limit: Limit,
    retry: Retry,
    /// The sum of the tenants' `counted`.
    open: u64,
    running: u32,
    waiting: usize,
    later: usize,
    /// The last number given to a job, a claim or a death.
    last: u64,
}

impl<K, J> Jobs<K, J> {
    /// No job yet. Groups begin with the limit `group_limit`; what fails is tried
    /// again as `retry` says, or is dead.
    pub fn new(group_limit: Limit, retry: Retry) -> Self {
        Self {
            jobs: Slab::new(),
            groups: Slab::new(),
            tenants: Slab::new(),
            names: BTreeMap::new(),
            ring: Ring::default(),
            timers: Timers::new(),
            dirty: Vec::new(),
            dead: BTreeMap::new(),
            told: 0,
            limit: Limit::Unlimited,
            group_limit,
            retry,
            open: 0,
            running: 0,
            waiting: 0,
            later: 0,
            last: 0,
        }
    }

    /// How many jobs could be claimed now: exact after every call.
    pub fn eligible(&self) -> u64 {
        self.eligible_of(None)
    }

    /// How many jobs there are, in whatever state.
    pub fn total(&self) -> usize {
        self.jobs.len()
    }

    /// How many jobs wait, due or not.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many of them are not due.
    pub fn later(&self) -> usize {
        self.later
    }

    /// How many jobs are claimed.
    pub fn running(&self) -> u32 {
        self.running
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn job(&self, at: u32) -> &Job<K, J> {
        self.jobs.by_index(at).expect(PINNED)
    }

    fn job_mut(&mut self, at: u32) -> &mut Job<K, J> {
        self.jobs.by_index_mut(at).expect(PINNED)
    }

    fn group(&self, at: u32) -> &Group {
        self.groups.by_index(at).expect(PINNED)
    }

    fn group_mut(&mut self, at: u32) -> &mut Group {
        self.groups.by_index_mut(at).expect(PINNED)
    }

    fn tenant(&self, at: u32) -> &Tenant {
        self.tenants.by_index(at).expect(PINNED)
    }

    fn tenant_mut(&mut self, at: u32) -> &mut Tenant {
        self.tenants.by_index_mut(at).expect(PINNED)
    }

    /// A job's state changes: the one place where counts do.
    fn set_state(&mut self, at: u32, state: State) {
        let job = self.job_mut(at);
        let (tenant, group, is_in_line) = (job.tenant, job.group, job.in_line.is_in());
        let (was_ready, is_ready) = (job.state == State::Ready, state == State::Ready);
        let old = std::mem::replace(&mut job.state, state);
        if old != State::Uncounted {
            self.count(at, (tenant, group), old, false);
        }
        if state != State::Uncounted {
            self.count(at, (tenant, group), state, true);
        }
        if is_in_line && !is_ready {
            self.remove_from_line(at);
        }
        if was_ready != is_ready {
            match group {
                Some(group) => {
                    let group = self.groups.by_index_mut(group).expect(PINNED);
                    group.ready = group.ready + u32::from(is_ready) - u32::from(was_ready);
                    group.order.mark(&mut self.jobs, at, is_ready);
                }
                None if is_ready => {
                    self.tenant_mut(tenant).units += 1;
                    self.mark_job_dirty(at);
                }
                None => self.tenant_mut(tenant).units -= 1,
            }
        }
        if let Some(group) = group {
            self.balance_group(group);
        }
        self.balance(tenant);
    }

    /// Counts one job into a state, or out of it.
    #[inline]
    fn count(&mut self, at: u32, home: (u32, Option<u32>), state: State, into: bool) {
        let step = |count: &mut usize| *count = if into { *count + 1 } else { *count - 1 };
        match state {
            State::Ready => step(&mut self.waiting),
            State::Later(timer) => {
                step(&mut self.waiting);
                step(&mut self.later);
                if !into {
                    self.timers.cancel(timer);
                }
            }
            State::Claimed { lease, .. } => {
                let step = |count: &mut u32| *count = if into { *count + 1 } else { *count - 1 };
                let (tenant, group) = home;
                step(&mut self.running);
                step(&mut self.tenant_mut(tenant).running);
                if let Some(group) = group {
                    step(&mut self.group_mut(group).running);
                }
                if let (Some(lease), false) = (lease, into) {
                    self.timers.cancel(lease);
                }
            }
            State::Dead(number) if into => {
                let key = self.jobs.key_at(at).expect(PINNED);
                self.dead.insert(number, key);
            }
            State::Dead(number) => _ = self.dead.remove(&number),
            State::Uncounted => {}
        }
    }

    /// What a group could have claimed has changed, perhaps.
    fn balance_group(&mut self, at: u32) {
        let group = self.groups.by_index_mut(at).expect(PINNED);
        let (tenant, in_line, order) = (group.tenant, group.in_line, group.order);
        let is_dirty = group.dirty;
        let counted = group.limit.room(group.running).min(group.ready);
        let old = std::mem::replace(&mut group.counted, counted);
        if old != counted {
            let units = &mut self.tenant_mut(tenant).units;
            *units = *units - u64::from(old) + u64::from(counted);
        }
        if counted > 0 {
            let is_current = |job| order.first(&self.jobs) == Some(job);
            if !is_dirty && !in_line.is_some_and(is_current) {
                self.mark_group_dirty(at);
            }
        } else if let Some(job) = in_line {
            self.remove_from_line(job);
        }
    }

    /// What a tenant could have claimed has changed, perhaps.
    fn balance(&mut self, at: u32) {
        let tenant = self.tenant_mut(at);
        let room = u64::from(tenant.limit.room(tenant.running));
        let counted = tenant.units.min(room);
        let old = std::mem::replace(&mut tenant.counted, counted);
        self.open = self.open - old + counted;
        match (old > 0, counted > 0) {
            (false, true) => self.ring.join(&mut self.tenants, at),
            (true, false) => self.ring.leave(&mut self.tenants, at),
            _ => {}
        }
    }

    /// Takes a job out of its tenant's line, if it is there.
    fn remove_from_line(&mut self, at: u32) {
        let job = self.job_mut(at);
        let (tenant, group) = (job.tenant, job.group);
        if !job.in_line.is_in() {
            return;
        }
        let tenant = self.tenants.by_index_mut(tenant).expect(PINNED);
        tenant.line.remove(&mut self.jobs, at);
        if let Some(group) = group {
            self.group_mut(group).in_line = None;
        }
    }

    fn mark_group_dirty(&mut self, at: u32) {
        let (key, group) = self.groups.entry_at(at).expect(PINNED);
        if !std::mem::replace(&mut group.dirty, true) {
            self.dirty.push(Dirty::Group(key));
        }
    }

    fn mark_job_dirty(&mut self, at: u32) {
        let (key, job) = self.jobs.entry_at(at).expect(PINNED);
        if !job.in_line.is_in() && !std::mem::replace(&mut job.dirty, true) {
            self.dirty.push(Dirty::Job(key));
        }
    }

    /// A job or a handle left: what nobody needs of its names goes.
    fn reap(&mut self, tenant: u32, group: Option<u32>) {
        if let Some(at) = group {
            let idle = self.group(at);
            if idle.members == 0 && idle.pins == 0 && idle.limit == self.group_limit {
                let key = self.groups.key_at(at).expect(PINNED);
                let gone = self.groups.remove(key).expect(PINNED);
                self.tenant_mut(tenant).groups.remove(&gone.name);
            }
        }
        if self.tenant(tenant).is_idle() {
            let key = self.tenants.key_at(tenant).expect(PINNED);
            let gone = self.tenants.remove(key).expect(PINNED);
            self.names.remove(&gone.name);
        }
    }
}

impl<K: Ord, J> Jobs<K, J> {
    /// Seats all that is dirty. The user's `Ord` runs here; if it panics,
    /// the one it ran for stays dirty, and nothing else is lost.
    fn update_lines(&mut self) {
        while let Some(&dirty) = self.dirty.last() {
            match dirty {
                Dirty::Group(key) if self.groups.contains(key) => {
                    self.update_group(key.index());
                }
                Dirty::Job(key) if self.jobs.contains(key) => {
                    let at = key.index();
                    if self.job(at).state == State::Ready && !self.job(at).in_line.is_in() {
                        self.insert_in_line(at);
                    }
                    self.job_mut(at).dirty = false;
                }
                _ => {}
            }
            self.dirty.pop();
        }
        if self.dirty.capacity() > DIRTY_KEPT {
            self.dirty = Vec::new();
        }
    }

    /// Inserts the group's first job in line, if the group has room for it.
    fn update_group(&mut self, at: u32) {
        let group = self.group(at);
        let in_line = group.in_line;
        let first = group.order.first(&self.jobs);
        if let Some(job) = first.filter(|_| group.counted > 0 && in_line != first) {
            self.insert_in_line(job);
            if let Some(old) = in_line {
                self.remove_from_line(old);
            }
            self.group_mut(at).in_line = first;
        }
        self.group_mut(at).dirty = false;
    }

    /// Inserts a job in its tenant's line.
    fn insert_in_line(&mut self, at: u32) {
        let job = self.job(at);
        let tenant = self.tenant(job.tenant);
        let compare = |other| self.order(&job.key, job.sequence, other);
        let position = tenant.line.position(&self.jobs, compare);
        let tenant = job.tenant;
        let line = &mut self.tenants.by_index_mut(tenant).expect(PINNED).line;
        line.insert(&mut self.jobs, position, at, false);
    }

    /// How a place compares to that of a job.
    fn order(&self, key: &K, sequence: u64, other: u32) -> Ordering {
        let other = self.job(other);
        key.cmp(&other.key)
            .then_with(|| sequence.cmp(&other.sequence))
    }
}

/// A dirty list that grew beyond this is freed when it is empty.
const DIRTY_KEPT: usize = 64;

const PINNED: &str = "jobs pin their names, and lists hold living jobs";
