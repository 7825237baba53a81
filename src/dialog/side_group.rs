//! The group of a side of a dialog.

use std::fmt;

use crate::queue::{Conversation, Group, Lane};

use super::refuse::Refused;
use super::side::{Endpoint, EndpointRef, Received};

/// The group of a side of a dialog: a new one of a lane, or an existing one.
///
/// Made from a `&Lane`, a `&Group`, an `&Endpoint` or an `&EndpointRef`. A new group is serial, of
/// the default level 100; for another limit or level make the group first. Sides that share a group
/// share its limit, its level, its bumps and its order: in a serial group their events are handled
/// one at a time.
pub enum SideGroup<'a, M: Send + 'static> {
    /// A new group of this lane, for this side alone.
    Own(&'a Lane<Received<M>>),
    /// This group.
    In(&'a Group<Received<M>>),
    /// The group of this endpoint.
    With(&'a EndpointRef<M>),
}

impl<M: Send + 'static> Clone for SideGroup<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Send + 'static> Copy for SideGroup<'_, M> {}

impl<M: Send + 'static> fmt::Debug for SideGroup<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(lane) => f.debug_tuple("Own").field(lane).finish(),
            Self::In(group) => f.debug_tuple("In").field(group).finish(),
            Self::With(endpoint) => f.debug_tuple("With").field(endpoint).finish(),
        }
    }
}

impl<'a, M: Send + 'static> From<&'a Lane<Received<M>>> for SideGroup<'a, M> {
    fn from(lane: &'a Lane<Received<M>>) -> Self {
        Self::Own(lane)
    }
}

impl<'a, M: Send + 'static> From<&'a Group<Received<M>>> for SideGroup<'a, M> {
    fn from(group: &'a Group<Received<M>>) -> Self {
        Self::In(group)
    }
}

impl<'a, M: Send + 'static> From<&'a EndpointRef<M>> for SideGroup<'a, M> {
    fn from(endpoint: &'a EndpointRef<M>) -> Self {
        Self::With(endpoint)
    }
}

impl<'a, M: Send + 'static> From<&'a Endpoint<M>> for SideGroup<'a, M> {
    fn from(endpoint: &'a Endpoint<M>) -> Self {
        Self::With(endpoint)
    }
}

impl<M: Send + 'static> SideGroup<'_, M> {
    pub(super) fn conversation(&self) -> Result<Conversation<Received<M>>, Refused> {
        Ok(match self {
            Self::Own(lane) => lane.conversation()?,
            Self::In(group) => group.conversation()?,
            Self::With(endpoint) => endpoint.queue().beside()?.ok_or(Refused::Ended)?,
        })
    }
}
