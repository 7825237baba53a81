//! What the policy knows of a job, a group and a tenant.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};
use std::time::Duration;

use crate::by_key::{self, Items, Order, Position};
use crate::limit::Limit;
use crate::ring::{Link, Links};
use crate::slab::{Key, NO_INDEX, Slab};
use crate::timers::{Timer, Timers};

use super::{Name, PINNED};

#[derive(Debug)]
pub(super) struct Job<K, J> {
    pub(super) key: K,
    /// Among equal keys the earlier push is first.
    pub(super) sequence: u64,
    /// The slot of its [`Group`].
    pub(super) group: u32,
    /// How often it came back without being complete.
    pub(super) attempts: u32,
    /// In its tenant's line, or in its group's order.
    pub(super) links: by_key::Links,
    balance: by_key::Balance,
    pub(super) state: State,
    pub(super) dirty: bool,
    pub(super) rare: Option<Box<Rare>>,
    pub(super) data: J,
}

/// What few jobs have, kept apart so that a job is small.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rare {
    /// Its own number of attempts, if it was set.
    pub(super) attempts: Option<Limit>,
    /// The name that no other job of its tenant has, unless this one is dead.
    pub(super) unique: Option<Name>,
    /// When it is due, in a place that sets this.
    pub(super) due: Option<Duration>,
    /// How often it was tried before, in a place that sets this.
    pub(super) tried: u32,
    /// The number of its last claim since this record exists, or of its death.
    pub(super) number: u64,
    /// Rings when it is due, or when its lease ends.
    pub(super) timer: Option<Timer>,
}

impl Rare {
    /// Whether a place sets nothing in it that is needed once the job is due.
    pub(super) fn is_over(&self) -> bool {
        self.attempts.is_none() && self.unique.is_none()
    }
}

/// What jobs are ordered by.
pub(super) struct Rank<'a, K> {
    pub(super) key: &'a K,
    pub(super) sequence: u64,
}

impl<K, J> Job<K, J> {
    /// A job that is being pushed, of this group and with this number.
    #[inline(always)]
    pub(super) fn new(
        (key, data): (K, J),
        (group, sequence): (u32, u64),
        attempts: u32,
        rare: Option<Box<Rare>>,
    ) -> Self {
        Self {
            key,
            sequence,
            group,
            attempts,
            links: by_key::Links::out(),
            balance: by_key::Balance::default(),
            state: State::Uncounted,
            dirty: false,
            rare,
            data,
        }
    }

    /// Sets its timer to this time, and cancels the old one.
    pub(super) fn set_timer(
        &mut self,
        id: Key,
        at: Duration,
        timers: &mut Timers<Key>,
    ) -> &mut Rare {
        let rare = self.rare.get_or_insert_default();
        if let Some(old) = rare.timer.replace(timers.set(at, id)) {
            timers.cancel(old);
        }
        rare
    }

    #[inline]
    pub(super) fn rank(&self) -> Rank<'_, K> {
        Rank {
            key: &self.key,
            sequence: self.sequence,
        }
    }
}

/// How one job compares to another.
#[inline(always)]
pub(super) fn compare<K: Ord, J>(one: &Job<K, J>, other: &Job<K, J>) -> Ordering {
    one.rank().compare(other)
}

impl<K: Ord> Rank<'_, K> {
    /// Here the user's `Ord` runs, and nowhere else.
    #[inline(always)]
    pub(super) fn compare<J>(&self, other: &Job<K, J>) -> Ordering {
        let by_key = self.key.cmp(&other.key);
        by_key.then_with(|| self.sequence.cmp(&other.sequence))
    }

    /// Its position in an order.
    #[inline(always)]
    pub(super) fn position<J>(&self, jobs: &Slab<Job<K, J>>, order: &Order) -> Position {
        order.position(jobs, |other| self.compare(other))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It waits, and is due.
    Ready,
    /// It waits until its timer rings.
    Later,
    /// It is claimed; with a lease it has a timer.
    Claimed,
    /// It failed too often.
    Dead,
    /// It is being pushed or taken out.
    Uncounted,
}

impl State {
    /// Whether a job in this state has its unique name for itself.
    pub(super) fn keeps_unique(self) -> bool {
        !matches!(self, Self::Dead | Self::Uncounted)
    }
}

/// What the next claim puts in order, by the number of its slot. Another job or group may have that
/// slot by then; it is left as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dirty {
    /// A group with room and without a front.
    Group(u32),
    /// A ready job that is in no order.
    Job(u32),
}

/// The claims that wait for a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    pub asleep: u32,
    pub notified: u32,
}

impl Waits {
    pub(super) fn is_any(self) -> bool {
        self != Self::default()
    }
}

/// A group, or the jobs of a tenant that are in no group: these have no limit, and all that are
/// ready are in line.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: Name,
    /// Whether it is a group, and not the jobs without one.
    pub(super) is_named: bool,
    pub(super) dirty: bool,
    /// The claims that wait for its jobs or, if it has no name, for those of its tenant.
    pub(super) waits: Waits,
    pub(super) tenant: u32,
    pub(super) limit: Limit,
    pub(super) running: u32,
    /// How many of its jobs wait and are due.
    pub(super) ready: u32,
    /// How many of its jobs could be claimed by its own limit.
    pub(super) counted: u32,
    pub(super) members: u32,
    /// How many handles keep it.
    pub(super) pins: u32,
    /// The first ready job of a group, in the tenant's line while the group has room for it, or
    /// `NO_INDEX`.
    pub(super) front: u32,
    /// The other ready jobs of a group.
    pub(super) order: Order,
}

impl Group {
    pub(super) fn new(name: Option<Name>, tenant: u32, limit: Limit) -> Self {
        Self {
            is_named: name.is_some(),
            name: name.unwrap_or_default(),
            dirty: false,
            waits: Waits::default(),
            tenant,
            limit,
            running: 0,
            ready: 0,
            counted: 0,
            members: 0,
            pins: 0,
            front: NO_INDEX,
            order: Order::EMPTY,
        }
    }

    /// Whether it has neither jobs nor handles.
    pub(super) fn is_idle(&self) -> bool {
        self.members == 0 && self.pins == 0
    }

    /// Whether its first job should be in line, and is not.
    #[inline(always)]
    pub(super) fn lacks_front(&self) -> bool {
        self.counted > 0 && self.front == NO_INDEX && !self.order.is_empty()
    }
}

#[derive(Debug)]
pub(super) struct Tenant {
    pub(super) name: Name,
    pub(super) link: Link,
    pub(super) limit: Limit,
    pub(super) running: u32,
    /// The [`Group`] of its jobs without a group.
    pub(super) own: Key,
    /// How many of its jobs could be claimed by the groups' limits.
    pub(super) units: u64,
    /// How many of these could be claimed by its own limit.
    pub(super) counted: u64,
    pub(super) claimable: Order,
    pub(super) groups: BTreeMap<Name, Key>,
    /// Its jobs with a unique name that are not dead.
    pub(super) unique: BTreeMap<Name, Key>,
    /// For how many of its groups, and of itself, claims wait.
    pub(super) awaited: u32,
}

impl Tenant {
    pub(super) fn new(name: Name, own: Key) -> Self {
        Self {
            name,
            own,
            link: Link::new(1),
            limit: Limit::Unlimited,
            running: 0,
            units: 0,
            counted: 0,
            claimable: Order::EMPTY,
            groups: BTreeMap::new(),
            unique: BTreeMap::new(),
            awaited: 0,
        }
    }

    /// Recounts how many of its jobs can be claimed. Returns the number before and after.
    #[inline(always)]
    pub(super) fn balance(&mut self) -> (u64, u64) {
        let room = self.limit.room(self.running);
        let counted = self.units.min(u64::from(room));
        (std::mem::replace(&mut self.counted, counted), counted)
    }

    /// Whether no group is left, and nothing was set that must be remembered.
    pub(super) fn is_as_made(&self) -> bool {
        self.groups.is_empty() && self.link.weight == 1 && self.limit == Limit::Unlimited
    }
}

/// Jobs, groups and tenants by their slots.
impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, at: u32) -> &T {
        self.by_index(at).expect(PINNED)
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline(always)]
    fn index_mut(&mut self, at: u32) -> &mut T {
        self.by_index_mut(at).expect(PINNED)
    }
}

impl<K, J> Items for Slab<Job<K, J>> {
    type Item = Job<K, J>;

    #[inline(always)]
    fn item(&self, job: u32) -> &Job<K, J> {
        &self[job]
    }

    #[inline(always)]
    fn links_of(job: &Job<K, J>) -> &by_key::Links {
        &job.links
    }

    #[inline(always)]
    fn balance_of(job: &Job<K, J>) -> &by_key::Balance {
        &job.balance
    }
}

impl Links for Slab<Tenant> {
    fn link(&self, tenant: u32) -> &Link {
        &self[tenant].link
    }

    fn link_mut(&mut self, tenant: u32) -> &mut Link {
        &mut self[tenant].link
    }
}
