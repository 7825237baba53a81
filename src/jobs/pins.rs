//! Tenants and groups by handle: kept, and found without a look-up of their names.

use crate::slab::Key;

use super::place::To;
use super::records::{Group, Rare};
use super::{Jobs, Name, Pinned, PushReason, Scope};

impl<K, J> Jobs<K, J> {
    /// The tenant of this name, made if there is none, and kept.
    pub fn pin(&mut self, tenant: &Name) -> Pinned {
        let tenant = self.tenant_named(tenant);
        self.keep(self.tenants[tenant].own)
    }

    /// The group of this name of the tenant of `of`, made if there is none, and kept.
    pub fn pin_group(&mut self, of: Pinned, group: &Name) -> Pinned {
        let group = self.group_named(self.groups[of.at()].tenant, group);
        self.keep(group)
    }

    fn keep(&mut self, group: Key) -> Pinned {
        self.groups[group.index()].pins += 1;
        Pinned(group)
    }

    /// Unpins a part, and forgets its name if nothing else needs it.
    pub fn unpin(&mut self, pinned: Pinned) {
        self.groups[pinned.at()].pins -= 1;
        self.reap(pinned.at());
    }

    /// The names of a part.
    pub fn scope_of(&self, pinned: Pinned) -> Scope {
        let group = &self.groups[pinned.at()];
        let tenant = self.tenants[group.tenant].name.clone();
        match group.is_named {
            false => Scope::Tenant(tenant),
            true => Scope::group_of(tenant, group.name.clone()),
        }
    }

    /// The group of this place. One that is named is made if there is none; that of a handle may be
    /// gone.
    #[inline(always)]
    pub(super) fn home_of(&mut self, place: &To, queue: u64) -> Result<Key, PushReason> {
        match place {
            To::Named { tenant, group } => {
                let tenant = self.tenant_named(tenant);
                Ok(match group {
                    Some(group) => self.group_named(tenant, group),
                    None => self.tenants[tenant].own,
                })
            }
            &To::Pinned { queue: of, at } => (of == queue).then_some(at.0).ok_or(PushReason::Stale),
        }
    }

    /// The job of a tenant that has the unique name in `rare`, if there is one.
    #[cold]
    pub(super) fn named(&self, tenant: u32, rare: &Rare) -> Option<Key> {
        let unique = &self.tenants[tenant].unique;
        unique.get(rare.unique.as_ref()?).copied()
    }

    /// How many jobs of this tenant or group, or of all, could be claimed now.
    #[inline]
    pub fn eligible_of(&self, of: Option<Pinned>) -> u64 {
        let open = of.map_or(self.open, |of| self.open_of(&self.groups[of.at()]));
        open.min(u64::from(self.limit.room(self.running)))
    }

    fn open_of(&self, part: &Group) -> u64 {
        let tenant = self.tenants[part.tenant].counted;
        match part.is_named {
            true => tenant.min(u64::from(part.counted)),
            false => tenant,
        }
    }
}
