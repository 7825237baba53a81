//! The names of tenants and groups.

use std::fmt;

use crate::shown::says;
use crate::slab::Key;

/// The name of a tenant, or of a group of a tenant: a number or a text.
///
/// A concrete type, so that a look-up runs no user code. The default name is the number 0. Cost: a
/// number is copied, a text is allocated once for each name made.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Name(Form);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(untagged))]
enum Form {
    Number(u64),
    Text(Box<str>),
}

impl Default for Name {
    fn default() -> Self {
        Self(Form::Number(0))
    }
}

impl From<u64> for Name {
    fn from(number: u64) -> Self {
        Self(Form::Number(number))
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(Form::Text(text.into()))
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self(Form::Text(text.into()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Number(number) => number.fmt(f),
            Form::Text(text) => text.fmt(f),
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Number(number) => number.fmt(f),
            Form::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// A tenant or a group that is kept until it is unpinned. A group is known by its own `Group`, a
/// tenant by the `Group` of its jobs without a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pinned(pub(super) Key);

impl Pinned {
    /// The slot of its group.
    #[inline]
    pub(super) fn at(self) -> u32 {
        self.0.index()
    }
}

/// What a limit applies to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All jobs.
    Queue,
    /// The jobs of a tenant.
    Tenant(Name),
    /// The jobs of a group of a tenant.
    Group {
        /// The tenant of the group.
        tenant: Name,
        /// The name of the group within the tenant.
        group: Name,
    },
}

impl Scope {
    /// The tenant of this name.
    #[must_use]
    pub fn tenant(tenant: impl Into<Name>) -> Self {
        Self::Tenant(tenant.into())
    }

    /// The group of this name, of the default tenant.
    #[must_use]
    pub fn group(group: impl Into<Name>) -> Self {
        Self::group_of(Name::default(), group)
    }

    /// The group of this name, of this tenant.
    #[must_use]
    pub fn group_of(tenant: impl Into<Name>, group: impl Into<Name>) -> Self {
        Self::Group {
            tenant: tenant.into(),
            group: group.into(),
        }
    }
}

says!(Scope {
    Self::Queue => "the queue",
    Self::Tenant(tenant) => "tenant {tenant}",
    Self::Group { tenant, group } => "group {group} of tenant {tenant}",
});
