//! Which parts claims wait for, and of which of these more jobs may run than at their last check.
//!
//! Each change notes the group and the tenant of its job, if claims wait for them. If a tenant with
//! a limit has more room, the change notes those of its groups that claims wait for. If the queue's
//! limit has more room, all parts have risen at once.

use std::collections::BTreeSet;

use crate::limit::Limit;
use crate::slab::Slab;

use super::records::Group;
use super::{Jobs, PINNED, Pinned};

#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// How many parts claims wait for.
    parts: usize,
    /// The parts of which more jobs may run since their last check.
    risen: BTreeSet<Pinned>,
    /// The room of the queue's limit when all parts were last checked.
    room: u32,
}

impl Awaited {
    #[inline(always)]
    pub(super) fn is_any(&self) -> bool {
        self.parts > 0
    }

    fn note(&mut self, groups: &mut Slab<Group>, at: u32) {
        let (key, group) = groups.entry_at(at).expect(PINNED);
        if group.awaited {
            self.risen.insert(Pinned(key));
        }
    }
}

impl<K, J> Jobs<K, J> {
    /// Claims wait for this part from now on, or no claim does any more.
    pub fn set_awaited(&mut self, of: Pinned, awaited: bool) {
        match awaited {
            true => self.awaited.parts += 1,
            false => self.awaited.parts -= 1,
        }
        // The group is gone if only a forgotten wait (`mem::forget`) still names it.
        let Some(group) = self.groups.get_mut(of.0) else {
            return;
        };
        group.awaited = awaited;
        if group.is_named {
            let groups = &mut self.tenants[group.tenant].awaited;
            match awaited {
                true => groups.insert(of.at()),
                false => groups.remove(&of.at()),
            };
        }
    }

    /// Notes a part for another check, since its waiting claims have changed.
    pub fn look_again(&mut self, of: Pinned) {
        if self.groups.get(of.0).is_some() {
            self.awaited.note(&mut self.groups, of.at());
        }
    }

    /// A part of which more jobs may run, perhaps, since its last check.
    pub fn risen(&self) -> Option<Pinned> {
        self.awaited.risen.last().copied()
    }

    /// The part that [`risen`](Self::risen) returns has been checked.
    pub fn looked_at_risen(&mut self) {
        self.awaited.risen.pop_last();
    }

    /// Whether more jobs of any part may run, perhaps, because the queue's limit has more room.
    pub fn have_all_risen(&self) -> bool {
        let before = self.awaited.room;
        // If no part was short of that room, more of it changes nothing.
        self.limit.room(self.running) > before && self.open > u64::from(before)
    }

    /// All parts that [may have risen](Self::have_all_risen) by that limit have been checked.
    pub fn looked_at_all(&mut self) {
        self.awaited.room = self.limit.room(self.running);
    }

    /// Notes a group whose jobs have changed, and its tenant, which may have more room.
    #[cold]
    pub(super) fn rise(&mut self, at: u32, has_more: bool) {
        let tenant = self.groups[at].tenant;
        self.awaited.note(&mut self.groups, at);
        let own = self.tenants[tenant].own.index();
        self.awaited.note(&mut self.groups, own);
        if has_more && self.tenants[tenant].limit != Limit::Unlimited {
            self.rise_groups(tenant);
        }
    }

    /// Notes all groups of a tenant that claims wait for.
    #[cold]
    pub(super) fn rise_groups(&mut self, tenant: u32) {
        for &at in &self.tenants[tenant].awaited {
            // The group may be gone, and another one may have its slot.
            if self.groups.by_index(at).is_some() {
                self.awaited.note(&mut self.groups, at);
            }
        }
    }
}
