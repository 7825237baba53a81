//! Which parts claims wait for, and which of these wait queues must be looked at.
//!
//! Protocol: each change recounts the group and the tenant of its job, and whoever changes the wait
//! queue of a part recounts that part: it is marked exactly if more of its claims should be
//! notified. At the end of each event the marked parts are looked at, in a circle of the tenants,
//! and in each of the parts. As many claims are notified as there is room: a claim that is notified
//! counts against the limits of its tenant and of the queue until it looks.
//!
//! Invariants:
//! 1. A part of which more claims should be notified is marked. Its tenant is among the `open` ones
//!    if the tenant has room beside the claims that are notified. A claim alone may leave a part
//!    marked, or a tenant open, for nothing.
//! 2. `notified` is the sum over all tenants, and in each tenant over its parts. A part counts as
//!    long as its group is there: only a forgotten wait (`mem::forget`) outlives that.

use std::collections::{BTreeMap, BTreeSet};

use crate::limit::Limit;
use crate::ring::next_in;

use super::records::{Group, Waits};
use super::{Jobs, PINNED, Pinned};

#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// How many parts claims wait for.
    pub(super) parts: usize,
    /// How many of these claims are notified and have not looked since.
    pub(super) notified: u64,
    /// By the tenant's slot.
    pub(super) tenants: BTreeMap<u32, Parts>,
    /// Nobody waits in vain any more: each claim is notified, whatever has room.
    is_over: bool,
    /// The tenants with marked parts, and with room for them.
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

    /// Forgets of a tenant what says nothing.
    fn tidy(&mut self, tenant: u32) {
        let parts = self.tenants.get(&tenant);
        if parts.is_some_and(|parts| parts.marked.is_empty() && parts.notified == 0) {
            self.tenants.remove(&tenant);
        }
    }

    /// Forgets a tenant that is gone, and for whose jobs a forgotten claim may wait.
    pub(super) fn forget(&mut self, tenant: u32, own: Waits) {
        self.parts -= usize::from(own.is_any());
        if let Some(parts) = self.tenants.remove(&tenant) {
            self.notified -= parts.notified;
            self.open.remove(&tenant);
        }
    }
}

impl<K, J> Jobs<K, J> {
    /// The claims that wait for a part have changed.
    pub fn waits_changed(&mut self, of: Pinned, waits: Waits) {
        if self.groups.get(of.0).is_some() {
            self.set_waits(of.at(), waits);
        }
    }

    /// Counts the claims that wait for a part.
    pub(super) fn set_waits(&mut self, at: u32, waits: Waits) {
        let group = &mut self.groups[at];
        let old = std::mem::replace(&mut group.waits, waits);
        let all = &mut self.awaited;
        all.parts = all.parts + usize::from(waits.is_any()) - usize::from(old.is_any());
        let own = &mut self.tenants[group.tenant].awaited;
        *own = *own + u32::from(waits.is_any()) - u32::from(old.is_any());
        let parts = all.tenants.entry(group.tenant).or_default();
        for sum in [&mut all.notified, &mut parts.notified] {
            *sum = *sum + u64::from(waits.notified) - u64::from(old.notified);
        }
        let tenant = group.tenant;
        self.mark(at);
        self.reopen(tenant);
    }

    /// From now on all claims are notified; false if that was so before.
    pub fn wake_all(&mut self) -> bool {
        !std::mem::replace(&mut self.awaited.is_over, true)
    }

    /// How many jobs of a part could be claimed if its tenant and the queue had room.
    fn wanted(&self, part: &Group) -> u64 {
        match part.is_named {
            _ if self.awaited.is_over => u64::MAX,
            true => u64::from(part.counted),
            false => self.tenants[part.tenant].units,
        }
    }

    /// Marks a part exactly if more of its claims should be notified.
    fn mark(&mut self, at: u32) {
        let of = Pinned(self.groups.key_at(at).expect(PINNED));
        let group = &self.groups[at];
        let Waits { asleep, notified } = group.waits;
        let is_due = asleep > 0 && self.wanted(group) > u64::from(notified);
        let tenants = &mut self.awaited.tenants;
        if is_due {
            tenants.entry(group.tenant).or_default().marked.insert(of);
        } else if let Some(parts) = tenants.get_mut(&group.tenant) {
            parts.marked.remove(&of);
        }
    }

    /// A tenant may have more room or less, or other marked parts.
    fn reopen(&mut self, at: u32) {
        let all = &mut self.awaited;
        if let Some(parts) = all.tenants.get(&at) {
            let tenant = &self.tenants[at];
            let room = u64::from(tenant.limit.room(tenant.running));
            let has_room = all.is_over || room > parts.notified;
            match has_room && !parts.marked.is_empty() {
                true => all.open.insert(at),
                false => all.open.remove(&at),
            };
            all.tidy(at);
        }
    }

    /// A part that must be looked at, and for which there is room; then
    /// [`looked_at`](Self::looked_at) is called.
    pub fn next_look(&mut self) -> Option<Look> {
        let awaited = &mut self.awaited;
        let all = awaited.is_over;
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
                let wanted = self.wanted(&self.groups[of.at()]);
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

    /// The part was looked at: the next one comes after it.
    pub fn looked_at(&mut self, Look { of, tenant, .. }: Look) {
        let all = &mut self.awaited;
        all.last = Some(tenant);
        if let Some(parts) = all.tenants.get_mut(&tenant) {
            parts.last = Some(of);
        }
    }

    /// Recounts a group whose jobs have changed, and its tenant, which may have more room.
    #[cold]
    pub(super) fn rise(&mut self, at: u32) {
        let tenant = self.groups[at].tenant;
        let of = &self.tenants[tenant];
        if of.awaited == 0 {
            return;
        }
        for at in [at, of.own.index()] {
            if self.groups[at].waits.is_any() {
                self.mark(at);
            }
        }
        self.reopen(tenant);
    }
}
