//! The errors, and the report of a deadlock.

use std::error::Error;
use std::fmt;

use super::owners::OwnerKey;
use super::queue::Cause;
use crate::modes::Mode;
use crate::shown::{error_says, says};
use crate::sync::UnmodelledArc as Arc;

/// Names an owner, also after it is gone. It never names another owner, of this table or of any
/// other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct OwnerId {
    /// The table's number.
    pub(super) table: u64,
    pub(super) key: OwnerKey,
}

/// Why a request was not granted. The owner holds what it held before it asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockError<K> {
    /// The request would have to wait, but must not.
    WouldBlock,
    /// Waiting would have lasted for ever, and this owner was chosen to give up.
    Deadlock(Arc<Deadlock<K>>),
    /// The table is closed.
    Closed,
    /// The resource has more than 64 ancestors.
    TooDeep,
    /// The resource is its own parent, or another ancestor of its own.
    OwnAncestor,
}

/// Why nothing was released or downgraded. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReleaseError {
    /// The owner was not granted this resource, or holds it only as an intent for what is below.
    NotHeld,
    /// Something below rests on this mode: release that first. It does so even if the owner has
    /// since locked another ancestor that covers it, too.
    StillCovers,
    /// The mode granted is not at least as strong as the one asked for; intents for what is below do
    /// not count.
    NotWeaker,
    /// The savepoint is another owner's.
    Foreign,
}

/// A cycle of owners: each waits for the next, and the last for the first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Deadlock<K> {
    /// The owner whose request failed.
    pub victim: OwnerId,
    /// The cycle.
    pub cycle: Vec<Link<K>>,
}

/// One owner in a cycle, and why it waits for the next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Link<K> {
    /// The owner that waits.
    pub owner: OwnerId,
    /// What it waits for: the name that the table has, so that it need not be cloned.
    pub resource: Arc<K>,
    /// The mode that it would hold if it were granted.
    pub asks: Mode,
    /// The mode that it holds already.
    pub holds: Option<Mode>,
    /// The owner that it waits for.
    pub blocked_by: OwnerId,
    /// The conflicting mode of that owner.
    pub in_mode: Mode,
    /// Whether that owner holds this mode or waits ahead for it.
    pub cause: Cause,
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

says!(
    /// Prints the table's number, and the owner's name in it.
    OwnerId { Self { table, key } => "{table}.{key:?}" }
);

impl<K: fmt::Debug> fmt::Display for Deadlock<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deadlock, owner {:?} gives up:", self.victim)?;
        for (n, link) in self.cycle.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            let (owner, asks, resource) = (link.owner, link.asks, &link.resource);
            write!(
                f,
                "{comma} {owner} asks for {asks} on {resource:?} of which "
            )?;
            write!(f, "{} {} {}", link.blocked_by, link.cause, link.in_mode)?;
        }
        Ok(())
    }
}

/// Prints the owners of a cycle, even if the resources cannot be printed.
pub(super) struct Owners<'a, K>(pub(super) &'a [Link<K>]);

impl<K> fmt::Display for Owners<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for link in self.0 {
            write!(f, "{} -> ", link.owner)?;
        }
        self.0.first().map_or(Ok(()), |first| first.owner.fmt(f))
    }
}

impl<K: fmt::Debug> fmt::Display for LockError<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::WouldBlock => "the lock would have to be waited for",
            Self::Deadlock(deadlock) => return fmt::Display::fmt(deadlock, f),
            Self::Closed => "the lock table is closed",
            Self::TooDeep => "the resource has too many ancestors",
            Self::OwnAncestor => "the resource is its own ancestor",
        })
    }
}

error_says!(ReleaseError {
    Self::NotHeld => "the owner was not granted this resource",
    Self::StillCovers => "the lock still covers resources below",
    Self::NotWeaker => "the mode held is not stronger",
    Self::Foreign => "the savepoint is another owner's",
});

impl<K: fmt::Debug> Error for Deadlock<K> {}
impl<K: fmt::Debug> Error for LockError<K> {}
