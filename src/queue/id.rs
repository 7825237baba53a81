//! The names of groups.

use crate::group::GroupKey;
use crate::shown::id_says;

/// The name of a group: copyable, and pins nothing. It never names another group, of this queue
/// or of any other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GroupId {
    pub(super) queue: u64,
    pub(super) key: GroupKey,
}

id_says!(
    /// The queue's number, and a name in it.
    GroupId { Self { queue, key: GroupKey(key) } => "{queue}.{key:?}" }
);
