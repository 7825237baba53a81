//! Who waits, in the order they came.
//!
//! State: a waiter stands in a slot under a number that only rises; its ticket
//! names both. Two chains run through the slots in the order of the numbers:
//! all who are in the queue, and those of them who have a waker. One that is
//! notified has given its waker to a batch and left the second chain; its place
//! in the first it keeps until it is removed.
//!
//! ```text
//!   register -> waiting --notify--> notified --rewait--> waiting
//!                  |                    |
//!                  +------ remove ------+
//! ```
//!
//! Protocol: the list is a plain value and stands under its owner's mutex,
//! beside whatever is waited for. A waiter registers under the same lock under
//! which it found nothing. Who makes something available notifies under that
//! lock. A notified waiter that is polled calls `rewait` before it unlocks
//! without what it came for: a mark that is left standing counts a sleeper
//! among the awake. One that leaves notified, without having taken anything,
//! passes that on: its owner notifies the next.
//!
//! Invariants:
//! 1. A ticket's number is given out once. It opens the ticket's slot only while
//!    that number stands there, and only the operation that registered it
//!    removes it.
//! 2. A waiter is in the chain of those who wait if and only if it has a waker;
//!    `waiting` counts them. A free slot is in neither chain.
//! 3. Both chains rise by number: `rewait` puts a waiter back before everybody
//!    who came later.
//! 4. A list that becomes empty gives a large block of slots back.
//! 5. No waker is cloned, woken or dropped in here: they come in as values, and
//!    leave into a batch or as return values.
//!
//! Cost: every operation is O(1), but for the growth of the slots, and for
//! `rewait`, which looks both ways for the nearest that waits. When all of n are
//! notified and all look in vain, in whatever order, this is n log n at most.

use std::fmt;
use std::num::NonZeroU64;
use std::task::Waker;

use super::session::WakeBatch;

/// A place in the queue. A lower one came earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket {
    // Compared first: no two are the same.
    number: NonZeroU64,
    slot: u32,
}

/// What a waiter left behind.
#[derive(Debug)]
#[must_use = "the waker must be dropped outside the lock"]
pub(crate) struct Removed<D> {
    /// It had been told to look, and had not looked since.
    pub(crate) was_notified: bool,
    pub(crate) waker: Option<Waker>,
    pub(crate) data: D,
}

/// No slot: before the first and behind the last of a chain.
const NONE: u32 = u32::MAX;

/// How many slots an empty list keeps at most.
const KEPT: usize = 8;

#[derive(Clone, Copy)]
enum Chain {
    /// All who are in the queue.
    All,
    /// Those who have not been notified.
    Waiting,
}

#[derive(Clone, Copy)]
struct Links {
    prev: u32,
    next: u32,
}

const UNLINKED: Links = Links {
    prev: NONE,
    next: NONE,
};

struct Slot<D> {
    number: NonZeroU64,
    /// `None`: it is notified.
    waker: Option<Waker>,
    /// `None`: the slot is free.
    data: Option<D>,
    /// By chain. A free slot has the next free one in the first.
    links: [Links; 2],
}

/// The waiters of one thing, first come first.
pub(crate) struct Waiters<D> {
    slots: Vec<Slot<D>>,
    /// Of each chain, `next` is its first and `prev` its last slot.
    ends: [Links; 2],
    free: u32,
    next: NonZeroU64,
    len: usize,
    waiting: usize,
}

impl<D> Waiters<D> {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            ends: [UNLINKED; 2],
            free: NONE,
            next: NonZeroU64::MIN,
            len: 0,
            waiting: 0,
        }
    }

    /// Puts a waiter at the end of the queue.
    pub(crate) fn register(&mut self, data: D, waker: Waker) -> Ticket {
        let number = self.next;
        // One for each nanosecond lasts for 500 years.
        self.next = number.checked_add(1).expect("a number is left");
        let new = Slot {
            number,
            waker: Some(waker),
            data: Some(data),
            links: [UNLINKED; 2],
        };
        let mut slot = self.free;
        match self.slots.get_mut(slot as usize) {
            Some(free) => {
                self.free = free.links[Chain::All as usize].next;
                *free = new;
            }
            None => {
                slot = self.slots.len() as u32;
                assert!(slot < NONE, "too many wait in one queue");
                self.slots.push(new);
            }
        }
        self.len += 1;
        self.waiting += 1;
        for chain in [Chain::All, Chain::Waiting] {
            self.link(chain, self.links(chain, NONE).prev, slot);
        }
        Ticket { number, slot }
    }

    /// A waiter was polled again: it waits with this waker now, at its old
    /// place, and its mark is cleared. Returns the waker that is not needed
    /// (the old one, or `waker` itself if both wake the same task).
    ///
    /// # Panics
    ///
    /// If the ticket has been removed.
    pub(crate) fn rewait(&mut self, ticket: Ticket, waker: Waker) -> Option<Waker> {
        let slot = self.slot_mut(ticket).expect("one that was not removed");
        if let Some(old) = &mut slot.waker {
            if old.will_wake(&waker) {
                return Some(waker);
            }
            return Some(std::mem::replace(old, waker));
        }
        slot.waker = Some(waker);
        let before = self.waiting_before(ticket.slot);
        self.link(Chain::Waiting, before, ticket.slot);
        self.waiting += 1;
        None
    }

    /// One that found nothing waits: a new one at the end with `data`, an old
    /// one at its old place, its mark cleared. False if it needs a `spare` waker
    /// to leave here; one that is not needed stays in `spare`.
    pub(crate) fn enqueue(
        &mut self,
        data: D,
        ticket: &mut Option<Ticket>,
        current: &Waker,
        spare: &mut Option<Waker>,
    ) -> bool {
        let own = ticket.and_then(|old| self.slot(old)?.waker.as_ref());
        if own.is_some_and(|own| own.will_wake(current)) {
            return true;
        }
        let Some(waker) = spare.take() else {
            return false;
        };
        match *ticket {
            Some(old) => *spare = self.rewait(old, waker),
            None => *ticket = Some(self.register(data, waker)),
        }
        true
    }

    /// Tells the longest waiting un-notified waiter to look again.
    pub(crate) fn notify_next(&mut self, wakes: &mut WakeBatch) -> Option<Ticket> {
        let (ticket, _) = self.iter_waiting().next()?;
        self.notify(ticket, wakes);
        Some(ticket)
    }

    /// Tells them to look again, the longest waiting first, until so many have
    /// been told or all; false if the batch is full before.
    pub(crate) fn notify_up_to(&mut self, due: usize, wakes: &mut WakeBatch) -> bool {
        let due = due.min(self.len());
        while self.notified() < due {
            if wakes.is_full() {
                return false;
            }
            self.notify_next(wakes);
        }
        true
    }

    /// Tells this waiter to look again. False if it has been told already, or
    /// is gone.
    pub(crate) fn notify(&mut self, ticket: Ticket, wakes: &mut WakeBatch) -> bool {
        let waker = self.slot_mut(ticket).and_then(|own| own.waker.take());
        let Some(waker) = waker else {
            return false;
        };
        wakes.push(waker);
        self.unlink(Chain::Waiting, ticket.slot);
        self.waiting -= 1;
        true
    }

    /// Takes a waiter out of the queue, whatever for.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Removed<D>> {
        let slot = self.slot_mut(ticket)?;
        let (waker, data) = (slot.waker.take(), slot.data.take()?);
        let was_notified = waker.is_none();
        if !was_notified {
            self.unlink(Chain::Waiting, ticket.slot);
            self.waiting -= 1;
        }
        self.unlink(Chain::All, ticket.slot);
        self.links_mut(Chain::All, ticket.slot).next = self.free;
        self.free = ticket.slot;
        self.len -= 1;
        if self.len == 0 && self.slots.capacity() > KEPT {
            (self.slots, self.free) = (Vec::new(), NONE);
        }
        Some(Removed {
            was_notified,
            waker,
            data,
        })
    }

    /// An operation that is over takes its ticket out of the queue, if it has
    /// one. The waker is to be dropped outside the lock.
    pub(crate) fn withdraw(&mut self, ticket: &mut Option<Ticket>) -> Option<Waker> {
        self.remove(ticket.take()?)?.waker
    }

    pub(crate) fn is_notified(&self, ticket: Ticket) -> bool {
        self.slot(ticket).is_some_and(|own| own.waker.is_none())
    }

    pub(crate) fn get(&self, ticket: Ticket) -> Option<&D> {
        self.slot(ticket)?.data.as_ref()
    }

    /// The longest waiting of all, notified or not.
    pub(crate) fn front(&self) -> Option<(Ticket, &D)> {
        self.iter().next()
    }

    /// All of them by ticket, notified or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ticket, &D)> {
        self.along(Chain::All)
    }

    /// The un-notified ones by ticket.
    pub(crate) fn iter_waiting(&self) -> impl Iterator<Item = (Ticket, &D)> {
        self.along(Chain::Waiting)
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many wait un-notified.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many have been told to look and have not looked yet.
    #[inline]
    pub(crate) fn notified(&self) -> usize {
        self.len - self.waiting
    }

    /// Its slot, by invariant 1.
    fn slot(&self, ticket: Ticket) -> Option<&Slot<D>> {
        let found = self.slots.get(ticket.slot as usize);
        found.filter(|slot| slot.number == ticket.number && slot.data.is_some())
    }

    fn slot_mut(&mut self, ticket: Ticket) -> Option<&mut Slot<D>> {
        let found = self.slots.get_mut(ticket.slot as usize);
        found.filter(|slot| slot.number == ticket.number && slot.data.is_some())
    }

    fn along(&self, chain: Chain) -> impl Iterator<Item = (Ticket, &D)> {
        let mut slot = NONE;
        std::iter::from_fn(move || {
            slot = self.links(chain, slot).next;
            let Slot { number, data, .. } = self.slots.get(slot as usize)?;
            let number = *number;
            Some((Ticket { number, slot }, data.as_ref()?))
        })
    }

    /// The slot of the last of those who wait and came before the one in this
    /// slot, who is not yet linked among them.
    fn waiting_before(&self, slot: u32) -> u32 {
        let waits = |slot| slot == NONE || self.slots[slot as usize].waker.is_some();
        let (mut back, mut forth) = (slot, slot);
        loop {
            back = self.links(Chain::All, back).prev;
            if waits(back) {
                return back;
            }
            forth = self.links(Chain::All, forth).next;
            if waits(forth) {
                return self.links(Chain::Waiting, forth).prev;
            }
        }
    }

    /// Links a slot in behind `prev`, or in front of all if that is [`NONE`].
    fn link(&mut self, chain: Chain, prev: u32, slot: u32) {
        let next = self.links(chain, prev).next;
        *self.links_mut(chain, slot) = Links { prev, next };
        self.links_mut(chain, prev).next = slot;
        self.links_mut(chain, next).prev = slot;
    }

    fn unlink(&mut self, chain: Chain, slot: u32) {
        let Links { prev, next } = self.links(chain, slot);
        self.links_mut(chain, prev).next = next;
        self.links_mut(chain, next).prev = prev;
    }

    #[inline]
    fn links(&self, chain: Chain, slot: u32) -> Links {
        match slot {
            NONE => self.ends[chain as usize],
            slot => self.slots[slot as usize].links[chain as usize],
        }
    }

    #[inline]
    fn links_mut(&mut self, chain: Chain, slot: u32) -> &mut Links {
        match slot {
            NONE => &mut self.ends[chain as usize],
            slot => &mut self.slots[slot as usize].links[chain as usize],
        }
    }
}

impl<D> Default for Waiters<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D> fmt::Debug for Waiters<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiters")
            .field("waiting", &self.waiting())
            .field("notified", &self.notified())
            .finish_non_exhaustive()
    }
}
