//! The names of groups.

use crate::group::GroupKey;

/// Names a group, for as long as there is one: a copyable name that pins
/// nothing. It never names another group, of this queue or of any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GroupId {
    /// The queue's number.
    pub(super) queue: u64,
    pub(super) key: GroupKey,
}
