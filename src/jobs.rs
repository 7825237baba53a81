//! Which job is next: the policy of the job queue.
//!
//! A plain data structure without locks, threads or clocks. It is not built on `backlog`: there a
//! group is one queue in order of arrival, with a rank and a turn. Here every job has a position of
//! its own, a group may have several units, and the order is the user's `Ord`, which may panic.
//!
//! # State
//!
//! Jobs, groups and tenants are in slabs. Each job belongs to one `Group`: a tenant's jobs without
//! a group belong to one without a name, which has no limit. A job that waits and is due is in one
//! order (`by_key`), whose links are in the job. The order is its tenant's line (`claimable`) or
//! its group's `order`. The line has the ungrouped jobs, and the first job of each group that has
//! room (its `front`). The ring has the tenants that have work and room.
//!
//! # Protocol
//!
//! `Home::count` and `Jobs::count` count a job's change of state. Where little changes, one step
//! does it (`Home::count_claim`, `count_gone`, a push behind others). The counting compares no
//! keys. A job that should be in an order and is not yet, and a group that should have a front and
//! has none, are marked as dirty; the next claim inserts them (`update_orders`). So the user's
//! `Ord` runs in `push`, `update_orders` and `why`, and when a claim asks for the first job of a
//! line. It runs before anything has changed, or between two whole changes.
//!
//! # Invariants
//!
//! 1. A line has only jobs that could be claimed if the limits of its tenant and of the queue had
//!    room. A blocked job is in no line.
//! 2. A group's front comes before all jobs in its order. A group that has room, jobs in its order
//!    and no front is dirty, and so is a ready job that is in no order.
//! 3. A group's `counted` is min(its room, its ready jobs). A tenant's `units` is the sum of its
//!    groups' `counted`, and its `counted` is min(its room, its units). `open` is the sum of the
//!    tenants' `counted`.
//! 4. A tenant is in the ring exactly if it has `counted` above 0.
//! 5. No value of the user's is dropped in here: keys and jobs come in and leave by value.
//! 6. A name is kept while a job has it (a dead one too), a handle keeps it, or a setting of it is
//!    not the default. The default tenant's is kept once it was used.
//! 7. What belongs to a state lives as long as the state: the timer of a job that is not due or is
//!    leased, and the entry in `dead` of a dead job.
//! 8. A tenant's unique names are those of its jobs that are not dead.
//! 9. A part of which more waiting claims should be notified is marked (`awaited`).
//!
//! # Cost
//!
//! Inserting a job takes O(log d) comparisons. d is the number of jobs that come behind it
//! in its group and among the claimable jobs of its tenant; blocked jobs of other groups are in
//! neither. A claim compares once if jobs came late. The rest is O(1), except for names, dates,
//! `why`, lists and snapshots.

use std::collections::BTreeMap;

use crate::by_key::Position;
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
pub use push::{Entering, Taken};
pub use records::Waits;
pub use refuse::{JobId, PushReason, Refused};
pub use status::{GroupStatus, JobState, JobStatus, TenantStatus, Totals, Why};

use awaited::Awaited;
use home::{Home, InOrder};
use records::{Dirty, Group, Job, Rank, State, Tenant, compare};

/// Jobs, and which of them is next.
#[derive(Debug)]
pub struct Jobs<K, J> {
    jobs: Slab<Job<K, J>>,
    groups: Slab<Group>,
    tenants: Slab<Tenant>,
    /// The slots of the tenants, by name.
    names: BTreeMap<Name, u32>,
    ring: Ring,
    timers: Timers<Key>,
    /// Updated from first to last, because jobs that come in order are inserted at less cost.
    dirty: Vec<Dirty>,
    /// How many entries of `dirty` are updated already.
    updated: usize,
    /// The dead jobs, by the number of the death: in the order in which they died.
    dead: BTreeMap<u64, Key>,
    /// The last death that a wait has returned.
    reported: u64,
    /// How many of the dead jobs no wait has returned yet.
    unreported: usize,
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
    /// Without jobs. Groups begin with the limit `group_limit`; a job that fails is retried as
    /// `retry` says, or is dead.
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
            reported: 0,
            unreported: 0,
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

    /// How many jobs there are, in any state.
    pub fn total(&self) -> usize {
        self.jobs.len()
    }

    /// What has become of the jobs that left or came back.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// How many jobs wait, due or not.
    pub fn waiting(&self) -> usize {
        self.total() - self.running as usize - self.dead.len()
    }

    /// How many jobs wait and are not due.
    pub fn later(&self) -> usize {
        self.later
    }

    /// How many jobs are claimed.
    pub fn running(&self) -> u32 {
        self.running
    }

    /// Changes a job's state, and ends what belongs to the old one: its timer, its entry in `dead`,
    /// its unique name.
    /// A job that becomes ready and is in no order is marked dirty.
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
                self.unreported -= usize::from(rare.number > self.reported);
            }
        }
        if state == State::Dead {
            self.last += 1;
            job.rare.get_or_insert_default().number = self.last;
            self.dead.insert(self.last, key);
            self.unreported += 1;
        }
        let mut home = Home::of(job.group, &mut self.groups, &mut self.tenants);
        if was_in && state != State::Ready {
            home.remove(&self.jobs, at);
        }
        let balance = home.count(&self.jobs, &mut self.dirty, states);
        let home = (home.at, home.group.tenant);
        self.count(home, balance, states);
        if states.0.keeps_unique() != state.keeps_unique() {
            self.set_unique(key, state.keeps_unique());
        }
        if state == State::Ready && !was_in {
            self.mark_dirty(at);
        }
    }

    /// Adds the change of state of a job, in this group and tenant, to the sums over all jobs.
    #[inline(always)]
    fn count(&mut self, home: (u32, u32), balance: (u64, u64), (old, state): (State, State)) {
        self.balanced(home, balance);
        let is = |of| (old == of, state == of);
        let ((ran, runs), (was_later, is_later)) = (is(State::Claimed), is(State::Later));
        self.running = self.running + u32::from(runs) - u32::from(ran);
        self.later = self.later + usize::from(is_later) - usize::from(was_later);
    }

    /// Recounts a group and its tenant, whose claimable jobs may have changed.
    fn balance(&mut self, group: u32) {
        let mut home = Home::of(group, &mut self.groups, &mut self.tenants);
        home.balance_group(&self.jobs, &mut self.dirty);
        let (home, balance) = ((group, home.group.tenant), home.tenant.balance());
        self.balanced(home, balance);
    }

    /// Applies the change of a tenant's `counted` from `old`, caused by a change in this group of
    /// the tenant.
    #[inline(always)]
    fn balanced(&mut self, (group, at): (u32, u32), (old, counted): (u64, u64)) {
        self.open = self.open - old + counted;
        match (old > 0, counted > 0) {
            (false, true) => self.ring.join(&mut self.tenants, at),
            (true, false) => self.ring.leave(&mut self.tenants, at),
            _ => {}
        }
        if self.awaited.is_any() {
            self.rise(group);
        }
    }

    fn mark_dirty(&mut self, at: u32) {
        if !std::mem::replace(&mut self.jobs[at].dirty, true) {
            self.purge_dirty();
            self.dirty.push(Dirty::Job(at));
        }
    }

    /// Whether nothing needs a tenant.
    fn is_unused(&self, tenant: &Tenant) -> bool {
        tenant.is_as_made() && self.groups[tenant.own.index()].is_idle()
    }

    /// A job or a handle is gone: forgets its group and its tenant if nothing needs them. The
    /// default tenant stays: where jobs come one at a time, it would be made for each.
    fn reap(&mut self, group: u32) {
        let idle = &self.groups[group];
        let tenant = idle.tenant;
        if idle.is_named && idle.is_idle() && idle.limit == self.group_limit {
            if idle.waits.is_any() {
                // Of claims that were forgotten.
                self.set_waits(group, Waits::default());
            }
            let key = self.groups.key_at(group).expect(PINNED);
            let gone = self.groups.remove(key).expect(PINNED);
            self.tenants[tenant].groups.remove(&gone.name);
            self.purge_dirty();
        }
        let of = &self.tenants[tenant];
        if self.is_unused(of) && of.name != Name::default() {
            let own = of.own;
            let key = self.tenants.key_at(tenant).expect(PINNED);
            let gone = self.tenants.remove(key).expect(PINNED);
            let own = self.groups.remove(own).expect(PINNED);
            self.awaited.forget(tenant, own.waits);
            self.names.remove(&gone.name);
        }
    }
}

impl<K: Ord, J> Jobs<K, J> {
    /// Inserts all that is dirty. The user's `Ord` runs here. If it panics, the entry for which it
    /// ran stays dirty, and nothing else is lost.
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

    /// Updates this group, the next dirty entry, and the groups of the same tenant that follow it.
    /// A group that lacks a front gets the first job of its order as its front.
    #[inline(always)]
    fn update_groups(&mut self, first: u32) {
        let Some(&Group { tenant, .. }) = self.groups.by_index(first) else {
            self.updated += 1;
            return;
        };
        let claimable = &mut self.tenants[tenant].claimable;
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

    /// Updates this job, the next dirty entry: inserts it if it is ready.
    fn update_job(&mut self, at: u32) {
        let job = self.jobs.by_index(at);
        let waits = job.filter(|job| job.state == State::Ready && !job.links.is_in());
        let position = waits.map(|job| (job.group, self.in_order(job.rank(), job.group)));
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

    /// Where a ready job of this group is to be inserted.
    #[inline(always)]
    fn in_order(&self, rank: Rank<'_, K>, group: u32) -> InOrder {
        let group = &self.groups[group];
        if group.is_named {
            let position = rank.position(&self.jobs, &group.order);
            // A job behind another of its group's order is behind the front too.
            let is_behind = position == Position::Last && !group.order.is_empty();
            let is_first = !is_behind
                && match group.front {
                    NO_INDEX => group.order.is_empty() && group.limit.room(group.running) > 0,
                    front => rank.compare(&self.jobs[front]).is_lt(),
                };
            if !is_first {
                return InOrder::Group(position);
            }
        }
        let claimable = &self.tenants[group.tenant].claimable;
        InOrder::Tenant(rank.position(&self.jobs, claimable))
    }
}

/// A dirty list that grew beyond this is freed when it is empty, and purged of stale entries when
/// there are fewer jobs.
const DIRTY_KEPT: usize = 256;

const ONCE: &str = "a job enters once";
const PINNED: &str = "jobs pin their names, and lists hold living jobs";
