//! One group: its messages and its phase, under a lock of its own.
//!
//! State: the phase, the flags of everything rare, and the messages. Messages sent in the plain way
//! have consecutive numbers and are in a `fifo`: the first one in the group itself if it is small,
//! the rest in blocks. The other messages are *odd*: they are in a tree, each with its number, tier
//! and attempts.
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
//! A Ready group is in its lane's ready queue, is on its way there, or was claimed by a reader that
//! is about to begin its turn.
//!
//! Invariants, under the group's lock:
//! 1. If there is a plain message, the fifo has the first; their numbers begin at `next`.
//! 2. [`ODD`] is set exactly if an odd message waits.
//! 3. `waiting` is the number of messages that wait.
//! 4. Flags other than [`ODD`], [`BUMPED`], [`BARE`], `FULL` and `FAR` are set and cleared only
//!    while the queue's policy lock is held as well.
//!
//! Memory ordering: the lock publishes all of this. `waiting` is also read without the lock, as a
//! hint.

mod block;
mod bounds;
mod fifo;
mod flags;
mod lock;
mod magazines;
#[cfg(all(test, loom))]
mod model;
mod odd;
mod pinned;
mod prefetch;
mod rare;
mod reference;
mod tail;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod tests;

use crate::lanes::{LaneKey, LaneLevel};
use crate::limit::Limit;
use crate::ready::Position;
use crate::slab::Key;

use fifo::Fifo;
use odd::FRONT;
use rare::Rare;

pub(crate) use bounds::{Admitted, GROUP, LANE, bound, of_bound};
pub(crate) use flags::*;
#[cfg(any(loom, shuttle))]
pub(crate) use lock::model::{Guard, Lock};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use lock::{Guard, Lock};
pub(crate) use odd::{Head, Reach, Taken, ordinal};
pub(crate) use pinned::{KeepsGroups, Pin, Pinned};
pub(crate) use reference::{GroupRef, Groups, Names};

/// The phase of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing waits, and no turn is live.
    Idle,
    /// It is in its lane's ready queue, or a reader is about to begin its turn.
    Ready,
    /// A turn is live, or its first message is being peeked at.
    Held,
    /// Something waits, and a limit or a flag keeps the group out of the ready queue.
    Blocked,
    /// It is gone. Only code that keeps groups by key can still see it.
    Ended,
}

/// A group's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub(crate) struct GroupKey(pub(crate) Key);

/// A group: one cache line, if its messages are small.
#[repr(align(64))]
pub(crate) struct Group<T> {
    /// The lock is marked if the queue has a capacity. Its note is how many wait: invariant 3.
    mailbox: Lock<Mailbox<T>>,
}

/// What a group's lock protects. Its small parts fill the cache line behind the fifo.
#[repr(C)]
pub(crate) struct Mailbox<T> {
    plain: Fifo<T>,
    pub(crate) phase: Phase,
    pub(crate) flags: Flags,
    pub(crate) lane: LaneLevel,
    /// Counted references.
    refs: u32,
    /// The number of the first plain message, its lower half. The first message of all has number
    /// 1.
    next: u32,
    /// When the group became ready.
    pub(crate) ticket: u64,
    rare: Option<Box<Rare<T>>>,
}

impl<T> Group<T> {
    /// `limited`: whether its queue has a capacity.
    pub(crate) fn new(mailbox: Mailbox<T>, limited: bool) -> Self {
        let mailbox = Lock::marked(mailbox, limited);
        Self { mailbox }
    }

    /// Whether its queue has a capacity.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.mailbox.mark()
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, Mailbox<T>> {
        self.mailbox.lock()
    }

    /// How many messages wait. Exact under the lock, else a hint.
    #[inline]
    pub(crate) fn waiting(&self) -> u32 {
        self.mailbox.note()
    }

    /// How many messages wait, exactly.
    pub(crate) fn waiting_exactly(&self) -> usize {
        let _mailbox = self.lock();
        self.waiting() as usize
    }

    /// Counts `more` messages that are sent. The caller holds the lock.
    ///
    /// # Panics
    ///
    /// If the count would reach 2^31; then nothing has changed. So what comes back has room.
    #[inline]
    pub(crate) fn add_sent(&self, more: usize) {
        let waiting = self.waiting();
        let fits = more <= Limit::MAX.saturating_sub(waiting) as usize;
        assert!(fits, "fewer than 2^31 messages wait in a group");
        self.mailbox.set_note(waiting + more as u32);
    }

    /// Counts `more` waiting messages that come back or are put first. The caller holds the lock.
    ///
    /// # Panics
    ///
    /// If the count would reach 2^32; then nothing has changed. Those that come back take far more
    /// memory than those that are sent.
    #[inline]
    pub(crate) fn add_waiting(&self, more: usize) {
        let (waiting, wraps) = self.waiting().overflowing_add(more as u32);
        let fits = u32::try_from(more).is_ok() && !wraps;
        assert!(fits, "fewer than 2^32 messages wait in a group");
        self.mailbox.set_note(waiting);
    }

    /// Counts `fewer` waiting messages less. The caller holds the lock.
    #[inline]
    pub(crate) fn remove_waiting(&self, fewer: u32) {
        self.mailbox.set_note(self.waiting() - fewer);
    }

    /// Appends a message.
    #[inline]
    pub(crate) fn append(&self, mailbox: &mut Mailbox<T>, message: T) {
        self.add_sent(1);
        mailbox.plain.push(message);
    }

    /// Appends messages.
    ///
    /// # Panics
    ///
    /// As [`add_sent`](Self::add_sent); then nothing has changed.
    pub(crate) fn append_all(&self, mailbox: &mut Mailbox<T>, messages: Vec<T>) {
        self.add_sent(messages.len());
        mailbox.plain.push_all(messages);
    }

    /// Takes the first message out.
    #[inline(always)]
    pub(crate) fn take(&self, mailbox: &mut Mailbox<T>) -> Option<Taken<T>> {
        #[cfg(all(test, not(any(loom, shuttle))))]
        tests::step();
        let taken = match mailbox.flags & ODD {
            0 => mailbox.take_plain(),
            _ => mailbox.take_any(),
        }?;
        self.remove_waiting(1);
        Some(taken)
    }

    /// Takes out up to `most` messages that follow `first` without a gap and have not failed.
    pub(crate) fn take_behind<U>(
        &self,
        mailbox: &mut Mailbox<T>,
        first: &Taken<U>,
        most: u32,
    ) -> Vec<T> {
        if mailbox.flags & ODD != 0 {
            let places = (1..=most).map(|n| first.place() + u64::from(n));
            let taken = places.map_while(|place| self.take_fresh(mailbox, place));
            return taken.collect();
        }
        let number = mailbox.number();
        if first.place() + 1 != FRONT | number {
            return Vec::new();
        }
        let most = most.min(self.waiting());
        let mut out = Vec::with_capacity(most as usize);
        mailbox.plain.pop_many(most as usize, &mut out);
        mailbox.set_number(number + out.len() as u64);
        self.remove_waiting(out.len() as u32);
        out
    }

    /// Puts a message that was taken out back to its place: in front, or in between.
    pub(crate) fn put_back(&self, mailbox: &mut Mailbox<T>, taken: Taken<T>) {
        self.add_waiting(1);
        let before = mailbox.number() - 1;
        let is_next = taken.place() == FRONT | before && mailbox.plain.has_place();
        if is_next && taken.attempts == 0 && taken.tier == 0 && mailbox.flags & ODD == 0 {
            mailbox.set_number(before);
            mailbox.plain.put_first(taken.message);
        } else {
            mailbox.insert_odd(taken);
        }
    }
}

impl<T> Mailbox<T> {
    /// A mailbox with one pin.
    pub(crate) fn new(lane: LaneKey, limit: Limit, level: u8, flags: Flags) -> Self {
        let mut mailbox = Self {
            phase: Phase::Idle,
            flags,
            lane: LaneLevel::new(lane, level),
            refs: 0,
            next: 1,
            ticket: 0,
            plain: Fifo::new(),
            rare: None,
        };
        if limit != Limit::SERIAL {
            mailbox.change_room(|rare| rare.limit = limit);
        }
        mailbox
    }

    /// Whether a unit of the group's limit is free for a turn.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.flags & FULL == 0
    }

    /// Whether the group, if it has work, is in the ready queue at its own level. Flags that are
    /// not harmless are not looked at.
    #[inline]
    pub(crate) fn enqueues_plainly(&self) -> bool {
        self.flags & (FULL | BUMPED) == 0
    }

    /// Whether no flag but `these` and harmless ones is set: the plain step may be taken.
    #[inline]
    pub(crate) fn is_plain_but(&self, these: Flags) -> bool {
        self.flags & !(HARMLESS | these) == 0
    }

    pub(crate) fn limit(&self) -> Limit {
        self.rare.as_ref().map_or(Limit::SERIAL, |rare| rare.limit)
    }

    /// Units in use by detached deliveries.
    pub(crate) fn detached(&self) -> u32 {
        self.rare.as_ref().map_or(0, |rare| rare.detached)
    }

    /// Changes the limit, or the units of detached deliveries.
    #[inline]
    pub(crate) fn change_room(&mut self, change: impl FnOnce(&mut Rare<T>)) {
        let rare = self.rare();
        change(rare);
        let full = rare.limit.room(rare.detached) == 0;
        self.flags = self.flags & !FULL | if full { FULL } else { 0 };
    }

    /// Whether its turn may take what waits, apart from caps and tiers.
    pub(crate) fn may_take(&self) -> bool {
        self.flags & SUSPENDED == 0 && self.has_room()
    }

    /// Units in use, by its turn and by detached deliveries.
    pub(crate) fn units(&self, claimed: bool) -> u32 {
        let held = self.phase == Phase::Held && self.flags & (BARE | PEEKED) == 0;
        self.detached() + u32::from(held || claimed)
    }

    pub(crate) fn rare(&mut self) -> &mut Rare<T> {
        self.rare.get_or_insert_with(|| Box::new(Rare::NONE))
    }

    /// The embedder's tag for it, 0 if it has none.
    pub(crate) fn tag(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.tag)
    }

    /// The level that the group is bumped to, and when.
    pub(crate) fn bump(&self) -> Option<(u8, u64)> {
        let rare = self.rare.as_ref()?;
        (self.flags & BUMPED != 0).then_some(rare.bump)
    }

    /// Whether a bump to this level changes anything.
    pub(crate) fn takes_bump(&self, level: u8) -> bool {
        self.phase != Phase::Ended && self.bump().is_none_or(|(old, _)| old != level)
    }

    /// Its position in the ready queue, if it is there.
    pub(crate) fn position(&self) -> Position {
        Position::new(self.lane.level(), self.ticket, self.bump())
    }

    /// The tier in which the group counts.
    pub(crate) fn counted(&self) -> Option<u32> {
        self.rare.as_ref()?.counted
    }

    /// The tier of the message sent last.
    pub(crate) fn last_tier(&self) -> u32 {
        self.rare.as_ref().map_or(0, |rare| rare.last_tier)
    }

    /// The number of the first plain message.
    #[inline]
    fn number(&self) -> u64 {
        let next = u64::from(self.next);
        if self.flags & FAR == 0 {
            return next;
        }
        let high = self.rare.as_ref().map_or(0, |rare| rare.high);
        u64::from(high) << 32 | next
    }

    fn set_number(&mut self, number: u64) {
        self.next = number as u32;
        let high = (number >> 32) as u32;
        if self.flags & FAR != 0 || high > 0 {
            self.flags |= FAR;
            self.rare().high = high;
        }
    }

    #[inline(always)]
    fn take_plain(&mut self) -> Option<Taken<T>> {
        let far = self.flags & FAR != 0;
        let message = self.plain.pop()?;
        let mut number = self.next.into();
        self.next = self.next.wrapping_add(1);
        if far || self.next == 0 {
            number = self.take_far_number();
        }
        Some(Taken::plain(number, message))
    }

    /// The number of the first plain message, after the lower half was advanced.
    #[cold]
    #[inline(never)]
    fn take_far_number(&mut self) -> u64 {
        self.next = self.next.wrapping_sub(1);
        let number = self.number();
        self.set_number(number + 1);
        number
    }

    /// Nothing waits, and the group's turn is over: gives back memory that a burst has left.
    #[inline]
    pub(crate) fn rest_idle(&mut self) {
        self.phase = Phase::Idle;
        self.plain.shrink();
    }

    /// Whether it has no block of rare state, which [`close_up`](Self::close_up) gives up.
    #[inline]
    pub(crate) fn is_closed_up(&self) -> bool {
        self.rare.is_none()
    }
}
