//! What one owner holds of one resource, as the owner sees it.
//!
//! State: the grants by name, and how many of the owner's other holds rest on this one. `holds`
//! knows what a change of this one means for the others.

use super::entries::NodeId;
use super::grants::Grants;
use crate::modes::{Mode, joined};

/// The slot of a hold.
pub(super) type HoldId = u32;

pub(super) struct Hold<K> {
    pub(super) hash: u64,
    /// None in a slot without a hold.
    pub(super) key: Option<K>,
    pub(super) depth: u32,
    pub(super) kind: HoldKind,
    pub(super) grants: Grants,
    pub(super) intents: Counts,
    pub(super) covers: Counts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HoldKind {
    Real {
        node: NodeId,
        mode: Mode,
        parent: Option<HoldId>,
    },
    Covered {
        by: HoldId,
    },
}

/// How many holds need the weaker and the stronger of two modes. Memory bounds both counts.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    weak: u32,
    strong: u32,
}

impl<K> Hold<K> {
    #[inline]
    pub(super) fn is_of(&self, key: &K) -> bool
    where
        K: Eq,
    {
        self.key.as_ref().is_some_and(|own| own == key)
    }

    /// The mode that was granted and not given up.
    pub(super) fn own(&self) -> Option<Mode> {
        self.grants.mode()
    }

    pub(super) fn is_real(&self) -> bool {
        matches!(self.kind, HoldKind::Real { .. })
    }

    /// Whether this is a root whose intent is kept, and of which its owner holds nothing.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.own().is_none() && !self.intents.any()
    }

    /// The mode that the owner has: in the table, or covered.
    pub(super) fn mode(&self) -> Option<Mode> {
        match self.kind {
            HoldKind::Real { mode, .. } if !self.is_idle() => Some(mode),
            _ => self.own(),
        }
    }

    /// Its entry in the table, and the mode there.
    pub(super) fn real(&self) -> Option<(NodeId, Mode)> {
        match self.kind {
            HoldKind::Real { node, mode, .. } => Some((node, mode)),
            HoldKind::Covered { .. } => None,
        }
    }

    /// Counts one more real child, or one less, in this mode.
    #[inline(always)]
    pub(super) fn count_child(&mut self, mode: Mode, more: bool) {
        self.intents.count(mode.parent_needs() == Mode::Ix, more);
    }

    pub(super) fn own_and_intents(&self) -> Option<Mode> {
        self.own_and(self.intents)
    }

    /// The own mode joined with these intents.
    #[inline(always)]
    pub(super) fn own_and(&self, intents: Counts) -> Option<Mode> {
        joined(self.own(), intents.map(Mode::Is, Mode::Ix))
    }
}

impl Counts {
    /// Counts one more, or one less.
    #[inline]
    pub(super) fn count(&mut self, strong: bool, more: bool) {
        let count = if strong {
            &mut self.strong
        } else {
            &mut self.weak
        };
        *count = if more { *count + 1 } else { *count - 1 };
    }

    #[inline]
    pub(super) fn any(self) -> bool {
        (self.weak, self.strong) != (0, 0)
    }

    /// The stronger of the modes that are needed.
    #[inline]
    pub(super) fn map(self, weak: Mode, strong: Mode) -> Option<Mode> {
        match self {
            Self { strong: 1.., .. } => Some(strong),
            Self { weak: 1.., .. } => Some(weak),
            _ => None,
        }
    }
}
