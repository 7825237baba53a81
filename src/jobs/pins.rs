//! Tenants and groups by handle: kept, and found without a look-up of their names.

use crate::slab::Key;

use super::records::Group;
use super::{Jobs, Name, PINNED, Pinned, Place, PushReason, Rare, Scope, To};

/// The tenant and the group of a place, if they exist.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// `None` for a place by handle: the group says the tenant.
    pub(super) tenant: Option<u32>,
    /// For a place by handle, the group may be gone.
    pub(super) group: Option<Key>,
}

impl<K, J> Jobs<K, J> {
    /// The tenant of this name, made if there is none, and kept.
    pub fn pin(&mut self, tenant: Name) -> Pinned {
        let tenant = self.tenant_named(tenant);
        self.keep(self.tenant(tenant).own)
    }

    /// The group of this name of the tenant of `of`, made if there is none, and kept.
    pub fn pin_group(&mut self, of: Pinned, group: Name) -> Pinned {
        let group = self.group_named(self.group(of.at()).tenant, group);
        self.keep(group)
    }

    fn keep(&mut self, group: u32) -> Pinned {
        self.group_mut(group).pins += 1;
        Pinned(self.groups.key_at(group).expect(PINNED))
    }

    /// Unpins a part, and forgets its name if nothing else needs it.
    pub fn unpin(&mut self, pinned: Pinned) {
        self.group_mut(pinned.at()).pins -= 1;
        self.reap(pinned.at());
    }

    /// The names of a part.
    pub fn scope_of(&self, pinned: Pinned) -> Scope {
        let group = self.group(pinned.at());
        let tenant = self.tenant(group.tenant).name.clone();
        match group.is_named {
            false => Scope::Tenant(tenant),
            true => Scope::group_of(tenant, group.name.clone()),
        }
    }

    /// The tenant and the group of this place, if they exist.
    #[inline(always)]
    pub(super) fn known(&self, place: &Place, queue: u64) -> Result<Known, PushReason> {
        match &place.home {
            To::Named { tenant, group } => Ok(self.find(tenant, group.as_ref())),
            &To::Pinned { queue: of, at } => {
                let own = (of == queue).then_some(at.0).ok_or(PushReason::Stale)?;
                let (tenant, group) = (None, Some(own));
                Ok(Known { tenant, group })
            }
        }
    }

    /// Makes the group of this place, which does not exist yet.
    #[cold]
    pub(super) fn make_home(&mut self, to: To) -> u32 {
        let To::Named { tenant, group } = to else {
            unreachable!("a handle keeps its group")
        };
        let tenant = self.tenant_named(tenant);
        match group {
            Some(group) => self.add_group(tenant, group),
            None => self.tenant(tenant).own,
        }
    }

    /// The job of a tenant that has the unique name in `rare`, if there is one.
    #[cold]
    pub(super) fn named(&self, tenant: Option<u32>, rare: &Rare) -> Option<Key> {
        let unique = &self.tenant(tenant?).unique;
        unique.get(rare.unique.as_ref()?).copied()
    }

    /// The tenant and the group of these names, or of a tenant's jobs without a group.
    pub(super) fn find(&self, tenant: &Name, group: Option<&Name>) -> Known {
        let tenant = self.names.get(tenant).copied();
        let of = tenant.map(|at| self.tenant(at));
        let group = of.and_then(|of| match group {
            None => self.groups.key_at(of.own),
            Some(name) => of.groups.get(name).copied(),
        });
        Known { tenant, group }
    }

    /// How many jobs of this tenant or group, or of all, could be claimed now.
    #[inline]
    pub fn eligible_of(&self, of: Option<Pinned>) -> u64 {
        // The group is gone if only a forgotten wait (`mem::forget`) still names it.
        let of = of.map(|Pinned(of)| self.groups.get(of));
        let open = of.map_or(self.open, |part| part.map_or(0, |part| self.open_of(part)));
        open.min(u64::from(self.limit.room(self.running)))
    }

    fn open_of(&self, part: &Group) -> u64 {
        let tenant = self.tenant(part.tenant).counted;
        match part.is_named {
            true => tenant.min(u64::from(part.counted)),
            false => tenant,
        }
    }
}
