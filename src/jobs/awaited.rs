//! Parts that somebody waits for, and in which of them more may run than when they were
//! looked at.
//!
//! Each change notes the parts of its job, its group's and its tenant's, if they are waited
//! for; where a tenant with a limit has more room, those of all its groups. Where the queue's
//! limit has more, that is said of all parts at once.

use crate::limit::Limit;
use crate::slab::Slab;

use super::records::Group;
use super::{Jobs, PINNED, Pinned};

#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// How many parts are waited for.
    parts: usize,
    /// Those of which more may run since they were looked at, each once.
    risen: Vec<Pinned>,
    /// The queue's room when all were looked at.
    room: u32,
}

impl Awaited {
    #[inline(always)]
    pub(super) fn is_any(&self) -> bool {
        self.parts > 0
    }

    fn note(&mut self, groups: &mut Slab<Group>, at: u32) {
        let (key, group) = groups.entry_at(at).expect(PINNED);
        if group.awaited && !std::mem::replace(&mut group.risen, true) {
            self.risen.push(Pinned(key));
        }
    }
}

impl<K, J> Jobs<K, J> {
    /// Somebody waits for this part from now on, or nobody any more.
    pub fn set_awaited(&mut self, of: Pinned, awaited: bool) {
        match awaited {
            true => self.awaited.parts += 1,
            false => self.awaited.parts -= 1,
        }
        // Gone where only a wait that was forgotten still asks for it.
        let Some(group) = self.groups.get_mut(of.0) else {
            return;
        };
        group.awaited = awaited;
        if group.is_named {
            let groups = &mut self
                .tenants
                .by_index_mut(group.tenant)
                .expect(PINNED)
                .awaited;
            match awaited {
                true => groups.insert(of.at()),
                false => groups.remove(&of.at()),
            };
        }
    }

    /// Fewer than before know of what of this part may run.
    pub fn look_again(&mut self, of: Pinned) {
        if self.groups.get(of.0).is_some() {
            self.awaited.note(&mut self.groups, of.at());
        }
    }

    /// A part of which more may run, perhaps, since it was looked at.
    pub fn risen(&self) -> Option<Pinned> {
        self.awaited.risen.last().copied()
    }

    /// The [`risen`](Self::risen) one was looked at.
    pub fn looked_at_risen(&mut self) {
        let part = self.awaited.risen.pop();
        if let Some(group) = part.and_then(|part| self.groups.get_mut(part.0)) {
            group.risen = false;
        }
    }

    /// Whether of any part more may run, perhaps, since the queue's limit has more room.
    pub fn have_all_risen(&self) -> bool {
        let before = self.awaited.room;
        // Where nobody was short of that room, more of it changes nothing.
        self.limit.room(self.running) > before && self.open > u64::from(before)
    }

    /// All parts were looked at that [may have more](Self::have_all_risen) by that limit.
    pub fn looked_at_all(&mut self) {
        self.awaited.room = self.limit.room(self.running);
    }

    /// A job of this group has come, gone or changed; its tenant has more room, perhaps.
    #[cold]
    pub(super) fn rise(&mut self, at: u32, has_more: bool) {
        let tenant = self.group(at).tenant;
        self.awaited.note(&mut self.groups, at);
        let own = self.tenant(tenant).own;
        self.awaited.note(&mut self.groups, own);
        if has_more && self.tenant(tenant).limit != Limit::Unlimited {
            self.rise_groups(tenant);
        }
    }

    /// All groups of a tenant may have more.
    #[cold]
    pub(super) fn rise_groups(&mut self, tenant: u32) {
        for &at in &self.tenants.by_index(tenant).expect(PINNED).awaited {
            // Another may have the slot of one that is gone.
            if self.groups.by_index(at).is_some() {
                self.awaited.note(&mut self.groups, at);
            }
        }
    }
}
