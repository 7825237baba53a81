//! Which job is next: the policy of the job queue.
//!
//! A plain data structure without locks, threads or clocks. It is not
//! built on `backlog`: there a group is one line in order of arrival, with a rank
//! and a turn; here every job has a position of its own, a group may have several
//! units, and the order is the user's `Ord`, which may panic.
//!
//! # State
//!
//! Jobs, groups and tenants in slabs. Each job is of one `Group`: those of a tenant that
//! are in no group are of one without a name, which has no limit. A job that is due and
//! waits is in one order (`by_key`), whose links stand in the job: in its tenant's line, or
//! in its group's order. In the line are the ungrouped ones, and the first of each group
//! that has room (its `front`). The ring holds the tenants that have work and room.
//!
//! # Protocol
//!
//! A job's change of state is counted by `Home::count` and `Jobs::count`, or in one step
//! where little changes (`Home::count_claim`, `count_gone`, a push behind others); none compares
//! keys. A job that should be in an order and is not
//! yet, and a group that should have a front and has none, are noted as dirty; the
//! next claim inserts them (`update_orders`). So the user's `Ord` runs in `push`,
//! `update_orders` and `why`, and where a claim asks for the first of a line: before anything
//! has changed, or in between two whole changes.
//!
//! # Invariants
//!
//! 1. A line holds only what could be claimed if the limits of its tenant and
//!    of the queue had room; what is blocked is in no line.
//! 2. A group's front comes before all of its order. One that has room, jobs in its
//!    order and no front is dirty, and so is a job that is ready and in no order.
//! 3. A group's `counted` is min(its room, its ready jobs); a tenant's `units`
//!    is the sum of these, and its `counted` is min(its room, its units); `open` is
//!    the sum of those.
//! 4. A tenant is in the ring exactly if it has `counted` above 0.
//! 5. Nothing of the user's is dropped in here: keys and jobs come in and leave
//!    by value.
//! 6. A name is kept while a job is in it, dead ones included, a handle keeps it,
//!    or a setting that is not the default.
//! 7. What is kept with a state is there as long as that: the timer of a job that waits
//!    until then or is leased, the death of a dead one.
//! 8. A tenant's unique names are those of its jobs that are not dead.
//! 9. A part that is waited for, and of which more may run than when it was looked at, is
//!    among those that have risen, or all have (`awaited`).
//!
//! # Cost
//!
//! O(log d) comparisons expected where a job is inserted, d being how many come behind
//! it, in its group and among those that could be claimed in its tenant: blocked jobs of
//! other groups are not in either. A claim compares once where jobs came late. The rest is
//! O(1), but for names, dates, `why`, lists and snapshots.

use std::collections::BTreeMap;

use crate::by_key::{Order, Position};
use crate::limit::Limit;
use crate::retry::Retry;
use crate::ring::Ring;
use crate::slab::{Key, NO_INDEX, Slab};
use crate::timers::Timers;

mod awaited;
mod claims;
mod home;
mod names;
mod pins;
mod place;
mod push;
mod records;
mod refuse;
mod settings;
mod status;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod tests;

pub use claims::{Expired, Pick, Unclaim};
pub use names::{Name, Pinned, Scope};
pub use place::Place;
use place::To;
pub use push::{Entering, Taken};
pub use refuse::{JobId, PushReason, Refused};
pub use status::{GroupStatus, JobState, JobStatus, TenantStatus, Totals, Why};

use awaited::Awaited;
use home::{Home, InOrder};
use records::{Dirty, Group, Job, Rank, Rare, State, Tenant, compare};

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
    /// What came in order is put in order at less cost: the first is updated first.
    dirty: Vec<Dirty>,
    /// How many of these are updated already.
    updated: usize,
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
    later: usize,
    /// The last number given to a job, a claim or a death.
    last: u64,
    awaited: Awaited,
    totals: Totals,
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
            updated: 0,
            dead: BTreeMap::new(),
            told: 0,
            limit: Limit::Unlimited,
            group_limit,
            retry,
            open: 0,
            running: 0,
            later: 0,
            last: 0,
            awaited: Awaited::default(),
            totals: Totals::default(),
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

    /// What has become of those that were there.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// How many jobs wait, due or not.
    pub fn waiting(&self) -> usize {
        self.total() - self.running as usize - self.dead.len()
    }

    /// How many of them are not due.
    pub fn later(&self) -> usize {
        self.later
    }

    /// How many jobs are claimed.
    pub fn running(&self) -> u32 {
        self.running
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

    /// A job's state changes, and what is kept with the old one goes: its timer, its death.
    /// If it is ready then, it is inserted later.
    fn set_state(&mut self, at: u32, state: State) {
        let (key, job) = self.jobs.entry_at(at).expect(PINNED);
        let states = (std::mem::replace(&mut job.state, state), state);
        let was_in = job.links.is_in();
        if let Some(rare) = &mut job.rare {
            if let Some(timer) = rare.timer.take() {
                self.timers.cancel(timer);
            }
            if states.0 == State::Dead {
                self.dead.remove(&rare.number);
            }
        }
        if state == State::Dead {
            self.last += 1;
            job.rare.get_or_insert_default().number = self.last;
            self.dead.insert(self.last, key);
        }
        let mut home = Home::of(job.group, &mut self.groups, &mut self.tenants);
        if was_in && state != State::Ready {
            home.remove(&self.jobs, at);
        }
        let balance = home.count(&self.jobs, &mut self.dirty, states);
        let home = (home.at, home.group.tenant);
        self.count(home, balance, states);
        match states {
            (State::Dead, _) => self.keep_unique(key),
            (_, State::Dead) => self.free_unique(key),
            _ => {}
        }
        if state == State::Ready && !was_in {
            self.mark_dirty(at);
        }
    }

    /// A job of this group and tenant went from one state to another: what all jobs sum up to.
    #[inline(always)]
    fn count(&mut self, home: (u32, u32), balance: (u64, u64), (old, state): (State, State)) {
        self.balanced(home, balance);
        let is = |of| (old == of, state == of);
        let ((ran, runs), (was_later, is_later)) = (is(State::Claimed), is(State::Later));
        self.running = self.running + u32::from(runs) - u32::from(ran);
        self.later = self.later + usize::from(is_later) - usize::from(was_later);
    }

    /// What a group and its tenant could have claimed has changed, perhaps.
    fn balance(&mut self, group: u32) {
        let mut home = Home::of(group, &mut self.groups, &mut self.tenants);
        home.balance_group(&self.jobs, &mut self.dirty);
        let (home, balance) = ((group, home.group.tenant), home.tenant.balance());
        self.balanced(home, balance);
    }

    /// A tenant could have so many claimed that could have had so many, by a change in this
    /// group of it.
    #[inline(always)]
    fn balanced(&mut self, (group, at): (u32, u32), (old, counted): (u64, u64)) {
        self.open = self.open - old + counted;
        match (old > 0, counted > 0) {
            (false, true) => self.ring.join(&mut self.tenants, at),
            (true, false) => self.ring.leave(&mut self.tenants, at),
            _ => {}
        }
        if self.awaited.is_any() {
            self.rise(group, counted > old);
        }
    }

    fn mark_dirty(&mut self, at: u32) {
        if !std::mem::replace(&mut self.job_mut(at).dirty, true) {
            self.purge_dirty();
            self.dirty.push(Dirty::Job(at));
        }
    }

    /// A job or a handle left: what nobody needs of its names goes.
    fn reap(&mut self, group: u32) {
        let idle = self.group(group);
        let tenant = idle.tenant;
        if idle.is_named && idle.is_idle() && idle.limit == self.group_limit {
            let key = self.groups.key_at(group).expect(PINNED);
            let gone = self.groups.remove(key).expect(PINNED);
            self.tenant_mut(tenant).groups.remove(&gone.name);
            self.purge_dirty();
        }
        let of = self.tenant(tenant);
        if of.is_as_made() && self.group(of.own).is_idle() {
            let own = self.groups.key_at(of.own).expect(PINNED);
            let key = self.tenants.key_at(tenant).expect(PINNED);
            let gone = self.tenants.remove(key).expect(PINNED);
            self.groups.remove(own);
            self.names.remove(&gone.name);
        }
    }
}

impl<K: Ord, J> Jobs<K, J> {
    /// Inserts all that is dirty. The user's `Ord` runs here; if it panics,
    /// the one it ran for stays dirty, and nothing else is lost.
    #[inline(always)]
    fn update_orders(&mut self) {
        if self.dirty.is_empty() {
            return;
        }
        while let Some(&dirty) = self.dirty.get(self.updated) {
            match dirty {
                Dirty::Group(group) => self.update_groups(group),
                Dirty::Job(job) => self.update_job(job),
            }
        }
        self.updated = 0;
        self.dirty.clear();
        if self.dirty.capacity() > DIRTY_KEPT {
            self.dirty = Vec::new();
        }
    }

    /// The next dirty one is this group, and others of its tenant follow, perhaps: the first
    /// job of each becomes its front, if it lacks one.
    #[inline(always)]
    fn update_groups(&mut self, first: u32) {
        let Some(&Group { tenant, .. }) = self.groups.by_index(first) else {
            self.updated += 1;
            return;
        };
        let claimable = &mut self.tenants.by_index_mut(tenant).expect(PINNED).claimable;
        let mut claimable = claimable.passing(&self.jobs);
        while let Some(&Dirty::Group(at)) = self.dirty.get(self.updated) {
            if let Some(group) = self.groups.by_index_mut(at) {
                if group.tenant != tenant {
                    break;
                }
                if group.lacks_front()
                    && let Some(first) = group.order.head(&self.jobs, compare)
                {
                    claimable.pass(&mut group.order, first, compare);
                    group.front = first;
                }
                group.dirty = false;
            }
            self.updated += 1;
        }
    }

    /// The next dirty one is this job: it is inserted, if it is ready.
    fn update_job(&mut self, at: u32) {
        let job = self.jobs.by_index(at);
        let waits = job.filter(|job| job.state == State::Ready && !job.links.is_in());
        let position = waits.map(|job| {
            let home = (None, Some(job.group));
            (job.group, self.in_order(job.rank(), home))
        });
        self.updated += 1;
        if let Some(job) = self.jobs.by_index_mut(at) {
            job.dirty = false;
        }
        if let Some((group, position)) = position {
            let mut home = Home::of(group, &mut self.groups, &mut self.tenants);
            home.insert(&self.jobs, at, position);
            home.balance_group(&self.jobs, &mut self.dirty);
        }
    }

    /// Where a job belongs that is ready: of this tenant or group, as far as they are there.
    #[inline(always)]
    fn in_order(&self, rank: Rank<'_, K>, (tenant, group): (Option<u32>, Option<u32>)) -> InOrder {
        let group = group.map(|at| self.group(at));
        let tenant = group.map(|group| group.tenant).or(tenant);
        if let Some(group) = group.filter(|group| group.is_named) {
            let position = rank.position(&self.jobs, &group.order);
            // Behind another of its order it is behind the front too.
            let is_behind = position == Position::Last && !group.order.is_empty();
            let is_first = !is_behind
                && match group.front {
                    NO_INDEX => group.order.is_empty() && group.limit.room(group.running) > 0,
                    front => rank.compare(self.job(front)).is_lt(),
                };
            if !is_first {
                return InOrder::Group(position);
            }
        }
        let claimable = tenant.map_or(&Order::EMPTY, |tenant| &self.tenant(tenant).claimable);
        InOrder::Tenant(rank.position(&self.jobs, claimable))
    }
}

/// A dirty list that grew beyond this is freed when it is empty, and rid of what has gone when
/// there are fewer jobs.
const DIRTY_KEPT: usize = 256;

const ONCE: &str = "a job enters once";
const PINNED: &str = "jobs pin their names, and lists hold living jobs";
