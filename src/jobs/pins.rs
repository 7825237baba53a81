//! Tenants and groups by handle: found without a look at their names, and kept.

use crate::slab::Key;

use super::{Jobs, Name, NotPushed, PINNED, Place, Scope, To};

/// A tenant, or a group of one, that is kept until it is unpinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pinned {
    pub(super) tenant: Key,
    pub(super) group: Option<Key>,
}

/// A tenant, and a group of it, as far as they are there.
pub(super) type Known = (Option<u32>, Option<u32>);

impl Pinned {
    /// Where its tenant is, and its group if it is one.
    #[inline]
    pub(super) fn home(self) -> (u32, Option<u32>) {
        (self.tenant.index(), self.group.map(Key::index))
    }
}

impl<K, J> Jobs<K, J> {
    /// The tenant of this name, made if need be, and kept.
    pub fn pin(&mut self, tenant: Name) -> Pinned {
        let at = self.tenant_named(tenant);
        self.tenant_mut(at).pins += 1;
        let tenant = self.tenants.key_at(at).expect(PINNED);
        let group = None;
        Pinned { tenant, group }
    }

    /// The group of this name, made if need be, and kept.
    pub fn pin_group(&mut self, of: Pinned, group: Name) -> Pinned {
        let at = self.group_named(of.tenant.index(), group);
        self.group_mut(at).pins += 1;
        let group = self.groups.key_at(at);
        Pinned { group, ..of }
    }

    /// A handle is gone, and its name if nobody else needs it.
    pub fn unpin(&mut self, pinned: Pinned) {
        let (tenant, group) = pinned.home();
        match group {
            Some(group) => self.group_mut(group).pins -= 1,
            None => self.tenant_mut(tenant).pins -= 1,
        }
        self.reap(tenant, group);
    }

    /// Its names.
    pub fn scope_of(&self, pinned: Pinned) -> Scope {
        let (tenant, group) = pinned.home();
        let tenant = self.tenant(tenant).name.clone();
        match group {
            None => Scope::Tenant(tenant),
            Some(group) => Scope::group_of(tenant, self.group(group).name.clone()),
        }
    }

    /// What is there for this place: by handle, as long as its name is kept.
    #[inline]
    pub(super) fn known(&self, place: &Place, queue: u64) -> Result<Known, NotPushed> {
        match &place.home {
            To::Named { tenant, group } => Ok(self.find_names(Some(tenant), group.as_ref())),
            &To::Pinned { queue: of, at } => {
                let is_kept = match at.group {
                    Some(group) => self.groups.get(group).is_some(),
                    None => self.tenants.get(at.tenant).is_some(),
                };
                let (tenant, group) = at.home();
                let is_there = of == queue && is_kept;
                let known = is_there.then_some((Some(tenant), group));
                known.ok_or(NotPushed::Stale)
            }
        }
    }

    /// The same, where what is not there is made.
    #[inline]
    pub(super) fn home(&mut self, known: Known, to: To) -> (u32, Option<u32>) {
        match (known, to) {
            ((Some(tenant), group), To::Pinned { .. }) => (tenant, group),
            (
                (tenant, group),
                To::Named {
                    tenant: of,
                    group: name,
                },
            ) => {
                let tenant = tenant.unwrap_or_else(|| self.add_tenant(of));
                let add_group = |name| self.add_group(tenant, name);
                (tenant, group.or_else(|| name.map(add_group)))
            }
            ((None, _), To::Pinned { .. }) => unreachable!("a handle keeps its tenant"),
        }
    }

    /// The job of a tenant that has this unique name.
    pub(super) fn named(&self, tenant: Option<u32>, name: &Name) -> Option<Key> {
        self.tenant(tenant?).unique.get(name).copied()
    }

    pub(super) fn find_names(&self, tenant: Option<&Name>, group: Option<&Name>) -> Known {
        let tenant = tenant.and_then(|name| self.names.get(name).copied());
        let groups = tenant.map(|tenant| &self.tenant(tenant).groups);
        let group = groups.and_then(|groups| groups.get(group?).copied());
        (tenant, group)
    }

    /// How many jobs of this tenant or group, or of all, could be claimed now.
    pub fn eligible_of(&self, of: Option<Pinned>) -> u64 {
        let open = match of {
            None => self.open,
            Some(Pinned { tenant, group }) => {
                // Gone where only a wait that was forgotten still asks for it.
                let tenant = self.tenants.get(tenant).map_or(0, |tenant| tenant.counted);
                let counted = |group| self.groups.get(group).map_or(0, |group| group.counted);
                group.map_or(tenant, |group| tenant.min(u64::from(counted(group))))
            }
        };
        open.min(u64::from(self.limit.room(self.running)))
    }
}
