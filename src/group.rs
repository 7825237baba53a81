//! One group: its messages and its phase, under a lock of its own.
//!
//! State: the phase, the flags of everything rare, and the messages. Those that
//! were sent in the plain way follow one another by number: the first stands in
//! the group itself, the rest in an array. The others are *odd*: they stand in
//! a tree, each with its number, tier and attempts.
//!
//! ```text
//!            send                 claim               end of turn
//!   Idle -----------> Ready ------------------> Held ------------> Idle
//!    |                  ^ |                      |                  or
//!    | send      there  | | no room              |                Ready
//!    +---------> Blocked+-+----------------------+                  or
//!                                                                 Blocked
//! ```
//!
//! A Ready group stands in its lane's line, is on its way there, or was claimed
//! by a reader that is about to begin its turn.
//!
//! Invariants, under the group's lock:
//! 1. `first` is there if a plain message is; their numbers begin at `next`.
//! 2. [`ODD`] is set exactly if an odd message waits.
//! 3. `waiting` is the number of messages that wait.
//! 4. Flags other than [`ODD`] are set and cleared under the queue's policy
//!    lock as well.
//!
//! Memory ordering: the lock publishes all of it. `waiting` is also read
//! without the lock, as a hint.

mod odd;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::collections::VecDeque;

use crate::lanes::LaneKey;
use crate::limit::Limit;
use crate::slab::Key;
use crate::sync::{AtomicU32, Mutex, MutexGuard, Ordering};

pub(crate) use odd::{Head, Odd, Taken, ordinal};

/// Capacity for messages that an idle group keeps: the least that an array has.
const KEEP: usize = 4;

/// Where a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing waits, and no turn is live.
    Idle,
    /// It stands in line, or a reader is about to begin its turn.
    Ready,
    /// A turn is live, or somebody looks at its first message.
    Held,
    /// Something waits, and a limit or a flag keeps it out of line.
    Blocked,
    /// It is gone. Only who keeps groups by key can still see it.
    Ended,
}

/// What is rare about a group: one bit each.
pub(crate) type Flags = u16;

/// An odd message waits.
pub(crate) const ODD: Flags = 1;
/// The next turn is bumped.
pub(crate) const BUMPED: Flags = 1 << 1;
/// The lane counts units for its cap.
pub(crate) const CAPPED: Flags = 1 << 2;
/// Tiers are in use in the lane.
pub(crate) const TIERED: Flags = 1 << 3;
/// The queue is closed.
pub(crate) const CLOSED: Flags = 1 << 5;
/// It has work, in a closed queue, and is counted there.
pub(crate) const COUNTED: Flags = 1 << 6;
/// A message failed too often: it waits to be resumed.
pub(crate) const POISONED: Flags = 1 << 7;
/// A message failed: it waits for its next attempt.
pub(crate) const BACKING_OFF: Flags = 1 << 8;
/// Somebody waits for it by name.
pub(crate) const NAMED: Flags = 1 << 9;
/// Somebody looks at its first message, which waits all the same.
pub(crate) const PEEKED: Flags = 1 << 10;
/// Nobody pins it: it ends when nothing of it is left.
pub(crate) const UNPINNED: Flags = 1 << 11;
/// Its live turn has given its unit to a detached delivery.
pub(crate) const BARE: Flags = 1 << 12;
/// It was claimed in a lane with tiers: its first message has started.
pub(crate) const STARTED: Flags = 1 << 13;
/// Tiers came into use while its turn was live, and count one started message.
pub(crate) const SWEPT: Flags = 1 << 14;

/// Sends are not plain, whatever the phase.
pub(crate) const SEND_SPECIAL: Flags = TIERED | CLOSED;
/// Set aside after a failure.
pub(crate) const SUSPENDED: Flags = POISONED | BACKING_OFF;
/// What does not matter to a plain step.
const HARMLESS: Flags = CAPPED | UNPINNED | ODD;

/// A group's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupKey(pub(crate) Key);

/// What hardly a group ever has.
#[derive(Debug)]
pub(crate) struct Rare<T> {
    pub(crate) odd: Odd<T>,
    /// The level it is bumped to, and when.
    pub(crate) bump: (u8, u64),
    /// The tier of the message sent last.
    pub(crate) last_tier: u32,
    /// The tier that it counts in, in a lane with tiers: that of its first
    /// message.
    pub(crate) counted: Option<u32>,
    /// The message that somebody looks at.
    pub(crate) peeked: Option<Head>,
}

/// A group, shared by handles, turns and the policy.
#[derive(Debug)]
pub(crate) struct Group<T> {
    pub(crate) key: GroupKey,
    pub(crate) lane: LaneKey,
    /// See invariant 3.
    waiting: AtomicU32,
    mailbox: Mutex<Mailbox<T>>,
}

/// What a group's lock protects.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    pub(crate) phase: Phase,
    pub(crate) level: u8,
    pub(crate) flags: Flags,
    /// The most units at once; [`NO_LIMIT`] if there is no limit.
    limit: u32,
    /// Units of detached deliveries.
    pub(crate) detached: u32,
    pub(crate) pins: u32,
    /// When it became ready.
    pub(crate) ticket: u64,
    /// The number of the first plain message: the first of all has 1.
    next: u64,
    first: Option<T>,
    /// Boxed, since few groups have more than one message waiting.
    #[allow(clippy::box_collection, reason = "24 bytes less in each group")]
    rest: Option<Box<VecDeque<T>>>,
    rare: Option<Box<Rare<T>>>,
}

impl<T> Group<T> {
    pub(crate) fn new(key: GroupKey, lane: LaneKey, mailbox: Mailbox<T>) -> Self {
        Self {
            key,
            lane,
            waiting: AtomicU32::new(0),
            mailbox: Mutex::new(mailbox),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Mailbox<T>> {
        self.mailbox.lock()
    }

    /// How many wait. Exact under the lock, else a hint.
    #[inline]
    pub(crate) fn waiting(&self) -> u32 {
        // Relaxed: who must know holds the lock.
        self.waiting.load(Ordering::Relaxed)
    }

    /// So many more wait. Under the lock.
    #[inline]
    pub(crate) fn add_waiting(&self, more: u32) {
        let now = self.waiting() + more;
        self.waiting.store(now, Ordering::Relaxed);
    }

    /// So many fewer wait. Under the lock.
    #[inline]
    pub(crate) fn remove_waiting(&self, fewer: u32) {
        let now = self.waiting() - fewer;
        self.waiting.store(now, Ordering::Relaxed);
    }

    /// Puts a message last.
    #[inline]
    pub(crate) fn append(&self, mailbox: &mut Mailbox<T>, message: T) {
        self.add_waiting(1);
        mailbox.append(message);
    }

    /// Takes the first message out, where no odd one waits.
    #[inline]
    pub(crate) fn take_plain(&self, mailbox: &mut Mailbox<T>) -> Option<Taken<T>> {
        let taken = mailbox.take_plain()?;
        self.remove_waiting(1);
        Some(taken)
    }

    /// Takes the first message out.
    pub(crate) fn take(&self, mailbox: &mut Mailbox<T>) -> Option<Taken<T>> {
        let taken = match mailbox.flags & ODD {
            0 => mailbox.take_plain(),
            _ => mailbox.take_any(),
        }?;
        self.remove_waiting(1);
        Some(taken)
    }

    /// A message that was taken out goes back to its place.
    pub(crate) fn put_back(&self, mailbox: &mut Mailbox<T>, taken: Taken<T>) {
        self.add_waiting(1);
        mailbox.put_back(taken);
    }
}

/// No number of deliveries reaches it.
const NO_LIMIT: u32 = u32::MAX;

fn number_of(limit: Limit) -> u32 {
    match limit {
        Limit::AtMost(most) => most,
        Limit::Unlimited => NO_LIMIT,
    }
}

impl<T> Mailbox<T> {
    pub(crate) fn new(limit: Limit, level: u8, flags: Flags) -> Self {
        Self {
            phase: Phase::Idle,
            level,
            flags,
            limit: number_of(limit),
            detached: 0,
            pins: 1,
            ticket: 0,
            next: 1,
            first: None,
            rest: None,
            rare: None,
        }
    }

    /// Whether a unit of its limit is free for a turn.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.detached < self.limit
    }

    /// Whether no flag but `these` asks for more than the plain step.
    #[inline]
    pub(crate) fn is_plain_but(&self, these: Flags) -> bool {
        self.flags & !(HARMLESS | these) == 0
    }

    pub(crate) fn limit(&self) -> Limit {
        match self.limit {
            NO_LIMIT => Limit::Unlimited,
            most => Limit::AtMost(most),
        }
    }

    pub(crate) fn set_limit(&mut self, limit: Limit) {
        self.limit = number_of(limit);
    }

    /// Whether its turn may take what waits, but for caps and tiers.
    pub(crate) fn may_take(&self) -> bool {
        self.flags & SUSPENDED == 0 && self.has_room()
    }

    /// Units in use: by its turn and by detached deliveries.
    pub(crate) fn units(&self, claimed: bool) -> u32 {
        let held = self.phase == Phase::Held && self.flags & (BARE | PEEKED) == 0;
        self.detached + u32::from(held || claimed)
    }

    pub(crate) fn rare(&mut self) -> &mut Rare<T> {
        self.rare.get_or_insert_with(|| {
            Box::new(Rare {
                odd: Odd::new(),
                bump: (0, 0),
                last_tier: 0,
                counted: None,
                peeked: None,
            })
        })
    }

    /// The level it is bumped to, and when.
    pub(crate) fn bump(&self) -> Option<(u8, u64)> {
        let rare = self.rare.as_ref()?;
        (self.flags & BUMPED != 0).then_some(rare.bump)
    }

    /// The tier that it counts in.
    pub(crate) fn counted(&self) -> Option<u32> {
        self.rare.as_ref()?.counted
    }

    /// The tier of the message sent last.
    pub(crate) fn last_tier(&self) -> u32 {
        self.rare.as_ref().map_or(0, |rare| rare.last_tier)
    }

    #[inline]
    fn append(&mut self, message: T) {
        if self.first.is_none() {
            self.first = Some(message);
        } else {
            self.rest.get_or_insert_default().push_back(message);
        }
    }

    #[inline]
    fn take_plain(&mut self) -> Option<Taken<T>> {
        let message = self.first.take()?;
        if self.rest.is_some() {
            self.move_up();
        }
        let number = self.next;
        self.next += 1;
        Some(Taken::plain(number, message))
    }

    /// Nothing waits, and its turn is over: gives back what a burst has left.
    #[inline]
    pub(crate) fn rest_idle(&mut self) {
        self.phase = Phase::Idle;
        if self.rest.is_some() {
            self.shrink();
        }
    }

    #[inline(never)]
    fn shrink(&mut self) {
        self.rest = self.rest.take().filter(|rest| rest.capacity() <= KEEP);
    }

    /// The second is the first now.
    #[inline(never)]
    fn move_up(&mut self) {
        if let Some(rest) = &mut self.rest {
            self.first = rest.pop_front();
        }
    }

    fn plain_len(&self) -> u64 {
        let rest = self.rest.as_ref().map_or(0, |rest| rest.len());
        u64::from(self.first.is_some()) + rest as u64
    }
}
