//! Flags: one bit for each thing that is rare about a group.

/// A set of flags, one bit each.
pub(crate) type Flags = u16;

/// An odd message waits.
pub(crate) const ODD: Flags = 1;
/// The next turn is bumped.
pub(crate) const BUMPED: Flags = 1 << 1;
/// The lane counts units for its cap.
pub(crate) const CAPPED: Flags = 1 << 2;
/// Tiers are in use in the lane.
pub(crate) const TIERED: Flags = 1 << 3;
/// Its messages have passed number 2^32.
pub(super) const FAR: Flags = 1 << 4;
/// The queue is closed.
pub(crate) const CLOSED: Flags = 1 << 5;
/// It has work, in a closed queue, and is counted there.
pub(crate) const COUNTED: Flags = 1 << 6;
/// A message failed too often: it waits to be resumed.
pub(crate) const POISONED: Flags = 1 << 7;
/// A message failed: it waits for its next attempt.
pub(crate) const BACKING_OFF: Flags = 1 << 8;
/// A receive waits for the group by name.
pub(crate) const NAMED: Flags = 1 << 9;
/// Its first message is being peeked at, and still counts as waiting.
pub(crate) const PEEKED: Flags = 1 << 10;
/// It has no pin: it ends when nothing of it is left.
pub(crate) const UNPINNED: Flags = 1 << 11;
/// Its live turn has given its unit to a detached delivery.
pub(crate) const BARE: Flags = 1 << 12;
/// It was claimed in a lane with tiers: its first message has started.
pub(crate) const STARTED: Flags = 1 << 13;
/// It or its lane has a capacity: what waits is counted.
pub(crate) const BOUNDED: Flags = 1 << 14;
/// Detached deliveries have all units of its limit.
pub(super) const FULL: Flags = 1 << 15;

/// Sends are not plain, whatever the phase.
pub(crate) const SEND_SPECIAL: Flags = TIERED | CLOSED | BOUNDED;
/// Suspended after a failure.
pub(crate) const SUSPENDED: Flags = POISONED | BACKING_OFF;
/// These flags do not prevent a plain step. A plain step may put a message back: what waits is then
/// counted, for [`BOUNDED`].
pub(super) const HARMLESS: Flags = CAPPED | UNPINNED | ODD | FULL | FAR | BOUNDED;
