//! Which job is next: the policy of the job queue.
//!
//! A plain data structure without locks, threads or clocks. It is not
//! built on `backlog`: there a group is one line in order of arrival, with a rank
//! and a turn; here every job has a position of its own, a group may have several
//! units, and the order is the user's `Ord`, which may panic.
//!
//! # State
//!
//! Jobs, groups and tenants in slabs. A job that is due and waits is in one order
//! (`by_key`), whose links stand in the job: in its tenant's line, or in its group's
//! order. In the line are the ungrouped ones, and the first of each group that has
//! room (its `front`). The ring holds the tenants that have work and room.
//!
//! # Protocol
//!
//! A job's change of state is counted by `Home::count` and `Jobs::count`, which compare no
//! keys. A job that should be in an order and is not
//! yet, and a group that should have a front and has none, are noted as dirty; the
//! next claim inserts them (`update_lines`). So the user's `Ord` runs in `push`,
//! `update_lines` and `why`, and where a claim asks for the first of a line: before anything
//! has changed, or in between two whole changes.
//!
//! # Invariants
//!
//! 1. A line holds only what could be claimed if the limits of its tenant and
//!    of the queue had room; what is blocked is in no line.
//! 2. A group's front comes before all of its order. One that has room, jobs in its
//!    order and no front is dirty, and so is a job that is ready and in no order.
//! 3. A group's `counted` is min(its room, its ready jobs); a tenant's `units`
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
//! O(log d) comparisons expected where a job is inserted, d being how many come behind
//! it, in its group and among those that could be claimed in its tenant: blocked jobs of
//! other groups are not in either. A claim compares once where jobs came late. The rest is
//! O(1), but for names, dates, `why`, lists and snapshots.

use std::collections::{BTreeMap, VecDeque};

use crate::by_key::{Order, Position};
use crate::limit::Limit;
use crate::retry::Retry;
use crate::ring::Ring;
use crate::slab::{Key, Slab};
use crate::timers::Timers;

mod claims;
mod home;
mod names;
mod pins;
mod push;
mod records;
mod settings;
mod status;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub use claims::{Expired, Pick, Unclaim};
use names::To;
pub use names::{Name, Place, Scope, Terms};
use pins::Known;
pub use pins::Pinned;
pub use push::{Entering, NotPushed, Taken};
pub use settings::Refused;
pub use status::{GroupStatus, TenantStatus, Why};

use home::{Home, InOrder};
use records::{Dirty, Group, Job, Rank, State, Tenant, compare, rank};

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
    dirty: VecDeque<Dirty>,
    /// An empty list, for the next claim.
    picks: Vec<Pick>,
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
            dirty: VecDeque::new(),
            picks: Vec::new(),
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

    /// A job's state changes. If it is ready then, it is inserted later.
    fn set_state(&mut self, at: u32, state: State) {
        let job = self.jobs.by_index_mut(at).expect(PINNED);
        let states = (std::mem::replace(&mut job.state, state), state);
        let (tenant, was_in) = (job.tenant, job.links.is_in());
        let mut home = Home::of(job, &mut self.groups, &mut self.tenants);
        if was_in && !state.is_ready() {
            home.remove(&mut self.jobs, at);
        }
        let balance = home.count(&mut self.jobs, &mut self.dirty, states);
        self.count(tenant, balance, states);
        match state {
            State::Dead(number) => {
                let key = self.jobs.key_at(at).expect(PINNED);
                self.dead.insert(number, key);
            }
            State::Ready if !was_in => self.mark_dirty(at),
            _ => {}
        }
    }

    /// A job of this tenant went from one state to another: what all jobs sum up to. What is
    /// kept with the old one goes: its timer, its death.
    #[inline(always)]
    fn count(&mut self, tenant: u32, balance: (u64, u64), (old, state): (State, State)) {
        self.balanced(tenant, balance);
        self.waiting =
            self.waiting + usize::from(state.is_waiting()) - usize::from(old.is_waiting());
        self.running = self.running + u32::from(state.is_claimed()) - u32::from(old.is_claimed());
        self.later = self.later + usize::from(state.is_later()) - usize::from(old.is_later());
        match old {
            State::Later(timer) => _ = self.timers.cancel(timer),
            State::Claimed {
                lease: Some(lease), ..
            } => _ = self.timers.cancel(lease),
            State::Dead(number) => _ = self.dead.remove(&number),
            State::Ready | State::Claimed { .. } | State::Uncounted => {}
        }
    }

    /// What a group could have claimed has changed, perhaps.
    fn balance_group(&mut self, at: u32) {
        let (key, group) = self.groups.entry_at(at).expect(PINNED);
        let tenant = self.tenants.by_index_mut(group.tenant).expect(PINNED);
        let group = Some((key, group));
        Home { tenant, group }.balance_group(&mut self.jobs, &mut self.dirty);
    }

    /// What a tenant could have claimed has changed, perhaps.
    fn balance(&mut self, at: u32) {
        let balance = self.tenant_mut(at).balance();
        self.balanced(at, balance);
    }

    /// A tenant could have so many claimed that could have had so many.
    #[inline(always)]
    fn balanced(&mut self, at: u32, (old, counted): (u64, u64)) {
        self.open = self.open - old + counted;
        match (old > 0, counted > 0) {
            (false, true) => self.ring.join(&mut self.tenants, at),
            (true, false) => self.ring.leave(&mut self.tenants, at),
            _ => {}
        }
    }

    fn mark_dirty(&mut self, at: u32) {
        let (key, job) = self.jobs.entry_at(at).expect(PINNED);
        if !std::mem::replace(&mut job.dirty, true) {
            self.dirty.push_back(Dirty::Job(key));
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
    /// Inserts all that is dirty. The user's `Ord` runs here; if it panics,
    /// the one it ran for stays dirty, and nothing else is lost.
    #[inline]
    fn update_lines(&mut self) {
        while let Some(&dirty) = self.dirty.front() {
            match dirty {
                Dirty::Group(group) => self.update_group(group),
                Dirty::Job(job) => self.update_job(job),
            }
        }
        if self.dirty.capacity() > DIRTY_KEPT {
            self.dirty = VecDeque::new();
        }
    }

    /// The first dirty one is this group: its first job becomes its front, if it lacks
    /// one.
    #[inline]
    fn update_group(&mut self, key: Key) {
        if let Some(group) = self.groups.get_mut(key) {
            let jobs = &self.jobs;
            let lacks_front = group.lacks_front();
            let first = || group.order.head(|one, other| compare(jobs, one, other));
            if let Some(at) = lacks_front.then(first).flatten() {
                let tenant = self.tenants.by_index_mut(group.tenant).expect(PINNED);
                let position = rank(jobs, at).position(jobs, &tenant.line);
                let group = Some((key, group));
                Home { tenant, group }.come_first(&mut self.jobs, at, position);
            } else {
                group.dirty = false;
            }
        }
        self.dirty.pop_front();
    }

    /// The first dirty one is this job: it is inserted, if it is ready.
    fn update_job(&mut self, key: Key) {
        let at = key.index();
        let job = self.jobs.get(key);
        let waits = job.filter(|job| job.state.is_ready() && !job.links.is_in());
        let in_order = |job: &Job<K, J>| self.in_order(job.rank(), (Some(job.tenant), job.group));
        let position = waits.map(in_order);
        self.dirty.pop_front();
        if let Some(job) = self.jobs.get_mut(key) {
            job.dirty = false;
        }
        if let Some(position) = position {
            let job = self.jobs.by_index(at).expect(PINNED);
            let mut home = Home::of(job, &mut self.groups, &mut self.tenants);
            home.insert(&mut self.jobs, at, position);
            home.balance_group(&mut self.jobs, &mut self.dirty);
        }
    }

    /// Where a job belongs that is ready.
    #[inline(always)]
    fn in_order(&self, rank: Rank<'_, K>, (tenant, group): Known) -> InOrder {
        if let Some(group) = group.map(|group| self.group(group)) {
            let position = rank.position(&self.jobs, &group.order);
            // Behind another of its order it is behind the front too.
            let is_behind = position == Position::Last && !group.order.is_empty();
            let is_first = !is_behind
                && match group.front {
                    Some(front) => rank.compare(&self.jobs, front).is_lt(),
                    None => group.order.is_empty() && group.limit.room(group.running) > 0,
                };
            if !is_first {
                return InOrder::Group(position);
            }
        }
        let line = tenant.map_or(&Order::EMPTY, |tenant| &self.tenant(tenant).line);
        InOrder::Line(rank.position(&self.jobs, line))
    }
}

/// A dirty list that grew beyond this is freed when it is empty, and rid of what has gone when
/// there are fewer jobs.
const DIRTY_KEPT: usize = 256;

const ONCE: &str = "a job enters once";
const PINNED: &str = "jobs pin their names, and lists hold living jobs";
