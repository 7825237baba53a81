//! The names of groups.

use std::fmt;

use crate::group::GroupKey;
use crate::shown::pad;

/// The name of a group: copyable, and pins nothing. It never names another group, of this queue
/// or of any other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GroupId {
    pub(super) queue: u64,
    pub(super) key: GroupKey,
}

/// The queue's number, and a name in it.
impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        pad(f, format_args!("{}.{:?}", self.queue, self.key.0))
    }
}

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupId({self})")
    }
}
