//! Which parts claims wait for, and which of these wait queues must be looked at.
//!
//! Protocol: each change marks the group and the tenant of its job, and whoever changes the wait
//! queue of a part marks that part. At the end of each event the marked parts are looked at, in a
//! circle of the tenants, and in each of the parts. As many claims are notified as there is room:
//! a claim that is notified counts against the limits of its tenant and of the queue until it looks.
//! A part that lacks only such room stays marked.
//!
//! Invariants:
//! 1. A part of which more claims should be notified is marked. Its tenant is among the `open` ones,
//!    unless the claims that are notified fill the tenant's room.
//! 2. `notified` is the sum over all tenants, and in each tenant over its parts. A part counts as
//!    long as its group is there: only a forgotten wait (`mem::forget`) outlives that.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use crate::limit::Limit;

use super::{Jobs, PINNED, Pinned};

#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// How many parts claims wait for.
    pub(super) parts: usize,
    /// How many of these claims are notified and have not looked since.
    pub(super) notified: u64,
    /// By the tenant's slot.
    pub(super) tenants: BTreeMap<u32, Parts>,
    /// The tenants with marked parts, and perhaps with room for them.
    pub(super) open: BTreeSet<u32>,
    /// The tenant that was looked at last.
    last: Option<u32>,
}

/// What is awaited of a tenant.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) marked: BTreeSet<Pinned>,
    pub(super) notified: u64,
    /// The part that was looked at last.
    last: Option<Pinned>,
}

/// A part to look at.
pub struct Look {
    pub of: Pinned,
    tenant: u32,
    /// How many of its jobs could be claimed if the limits of its tenant and of the queue had room.
    pub wanted: usize,
    /// For how many more claims these have room.
    pub room: usize,
}

impl Awaited {
    #[inline(always)]
    pub(super) fn is_any(&self) -> bool {
        self.parts > 0
    }

    /// A tenant may have room, or marked parts.
    fn reopen(&mut self, tenant: u32) {
        if let Some(parts) = self.tenants.get(&tenant) {
            match parts.marked.is_empty() {
                false => self.open.insert(tenant),
                true => self.open.remove(&tenant),
            };
            self.tidy(tenant);
        }
    }

    /// Forgets of a tenant what says nothing.
    fn tidy(&mut self, tenant: u32) {
        let parts = self.tenants.get(&tenant);
        if parts.is_some_and(|parts| parts.marked.is_empty() && parts.notified == 0) {
            self.tenants.remove(&tenant);
        }
    }

    /// A group is gone, for which a forgotten claim may wait.
    pub(super) fn group_gone(&mut self, was_awaited: bool) {
        self.parts -= usize::from(was_awaited);
    }

    /// Forgets a tenant that is gone.
    pub(super) fn forget(&mut self, tenant: u32) {
        if let Some(parts) = self.tenants.remove(&tenant) {
            self.notified -= parts.notified;
            self.open.remove(&tenant);
        }
    }
}

/// The next one, in a circle.
fn next_in<T: Copy + Ord>(all: &BTreeSet<T>, last: Option<T>) -> Option<T> {
    let behind = last.map_or(Unbounded, Excluded);
    let next = all.range((behind, Unbounded)).next();
    next.or_else(|| all.first()).copied()
}

impl<K, J> Jobs<K, J> {
    /// The claims that wait for a part have changed: whether there are any, and how many were and
    /// are notified.
    pub fn waits_changed(&mut self, of: Pinned, is_any: bool, (old, notified): (usize, usize)) {
        let Some(group) = self.groups.get_mut(of.0) else {
            return;
        };
        let was_any = std::mem::replace(&mut group.awaited, is_any);
        let all = &mut self.awaited;
        all.parts = all.parts + usize::from(is_any) - usize::from(was_any);
        let own = &mut self.tenants[group.tenant].awaited;
        *own = *own + u32::from(is_any) - u32::from(was_any);
        let parts = all.tenants.entry(group.tenant).or_default();
        for sum in [&mut all.notified, &mut parts.notified] {
            *sum = *sum + notified as u64 - old as u64;
        }
        match is_any {
            true => parts.marked.insert(of),
            false => parts.marked.remove(&of),
        };
        all.reopen(group.tenant);
    }

    /// A part that must be looked at, and for which there is room; then
    /// [`looked_at`](Self::looked_at) is called. If `all` are wanted, there is room.
    pub fn next_look(&mut self, all: bool) -> Option<Look> {
        let awaited = &mut self.awaited;
        let room = |limit: Limit, running, notified| match all {
            true => u64::MAX,
            false => u64::from(limit.room(running)).saturating_sub(notified),
        };
        let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let shared = room(self.limit, self.running, awaited.notified);
        if shared == 0 {
            return None;
        }
        loop {
            let at = next_in(&awaited.open, awaited.last)?;
            let parts = awaited.tenants.get_mut(&at).expect(PINNED);
            let tenant = &self.tenants[at];
            let own = room(tenant.limit, tenant.running, parts.notified);
            if own > 0
                && let Some(of) = next_in(&parts.marked, parts.last)
            {
                let wanted = match self.groups.get(of.0) {
                    _ if all => u64::MAX,
                    Some(group) if group.is_named => u64::from(group.counted),
                    Some(_) => tenant.units,
                    None => 0,
                };
                return Some(Look {
                    of,
                    tenant: at,
                    wanted: count(wanted),
                    room: count(shared.min(own)),
                });
            }
            awaited.open.remove(&at);
            awaited.tidy(at);
        }
    }

    /// The part was looked at; it `lacks` room for more claims, or not.
    pub fn looked_at(&mut self, Look { of, tenant, .. }: Look, lacks: bool) {
        let all = &mut self.awaited;
        all.last = Some(tenant);
        if let Some(parts) = all.tenants.get_mut(&tenant) {
            parts.last = Some(of);
            if !lacks {
                parts.marked.remove(&of);
                all.reopen(tenant);
            }
        }
    }

    /// Marks a group whose jobs have changed, and its tenant, which may have more room.
    #[cold]
    pub(super) fn rise(&mut self, at: u32) {
        let tenant = self.groups[at].tenant;
        let of = &self.tenants[tenant];
        if of.awaited == 0 {
            return;
        }
        for at in [at, of.own.index()] {
            let (key, group) = self.groups.entry_at(at).expect(PINNED);
            if group.awaited {
                let parts = self.awaited.tenants.entry(tenant).or_default();
                parts.marked.insert(Pinned(key));
            }
        }
        self.awaited.reopen(tenant);
    }
}
