//! Who waits, in the order they came.
//!
//! State: a waiter stands in a slot under a number that only rises; its ticket
//! names both. Two chains run through the slots in the order of the numbers:
//! all who are in the queue, and those who have a waker. One that is notified
//! has given its waker to a batch and left the second chain; its place in the
//! first it keeps until it is removed.
//!
//! ```text
//!   register -> waiting --notify--> notified --rewait--> waiting
//!                  |                    |
//!                  +------ remove ------+
//! ```
//!
//! Protocol: the list stands under its owner's mutex, beside what is waited for.
//! A waiter registers under the lock under which it found nothing; who makes
//! something available notifies under it. A notified waiter that looks in vain
//! calls `rewait` before it unlocks: a mark left standing counts a sleeper among
//! the awake. One that leaves notified, without having taken anything, passes
//! that on: its owner notifies the next.
//!
//! Invariants:
//! 1. A ticket's number is given out once, and opens its slot only while that
//!    number stands there.
//! 2. A waiter is in the chain of those who wait if and only if it has a waker;
//!    `waiting` counts them. A free slot is in neither chain.
//! 3. Both chains rise by number: `rewait` puts a waiter back before everybody
//!    who came later.
//! 4. A list that becomes empty gives a large block of slots back.
//! 5. No waker is cloned, woken or dropped in here: they come in as values, and
//!    leave into a batch or as return values.
//!
//! Cost: O(1), but for the growth of the slots, and for `rewait`, which looks
//! both ways for the nearest that waits: n log n at most when all of n are
//! notified and look in vain, in whatever order.

use std::num::NonZeroU64;
use std::task::Waker;

use super::session::WakeBatch;

/// A place in the queue: a lower one came earlier.
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

/// How many wait for one thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitCounts {
    /// Those that sleep.
    pub waiting: usize,
    /// Those that were told to look, and have not looked since, such as a task that
    /// is not polled: each keeps from the others what it was told of, and no more.
    pub notified: usize,
}

impl WaitCounts {
    /// Of all these.
    pub(crate) fn sum<'a, D: 'a>(all: impl Iterator<Item = &'a Waiters<D>>) -> Self {
        all.fold(Self::default(), |sum, waiters| Self {
            waiting: sum.waiting + waiters.waiting(),
            notified: sum.notified + waiters.notified(),
        })
    }
}

/// No slot: before the first and behind the last of a chain.
const NONE: u32 = u32::MAX;

/// How many slots an empty list keeps at most.
const KEPT: usize = 8;

/// The chain of all who are in the queue.
const ALL: usize = 0;
/// The chain of those who have not been notified.
const WAITING: usize = 1;

#[derive(Clone, Copy, Debug)]
struct Links {
    prev: u32,
    next: u32,
}

const UNLINKED: Links = Links {
    prev: NONE,
    next: NONE,
};

#[derive(Debug)]
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
#[derive(Debug)]
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
                self.free = free.links[ALL].next;
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
        for chain in [ALL, WAITING] {
            self.link(chain, self.links(chain, NONE).prev, slot);
        }
        Ticket { number, slot }
    }

    /// A waiter was polled again: it waits with this waker, at its old place,
    /// and its mark is cleared. Returns the waker that is not needed: the old
    /// one, or `waker` if both wake the same task.
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
        self.link(WAITING, before, ticket.slot);
        self.waiting += 1;
        None
    }

    /// One that found nothing registers with `data`, or waits on. False if it
    /// needs a `spare` waker to leave here; one not needed is put in its place.
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

    /// Tells the longest waiting, until so many have been told or all; false if
    /// the batch is full before.
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

    /// Tells this waiter to look again; false if it has been told, or is gone.
    pub(crate) fn notify(&mut self, ticket: Ticket, wakes: &mut WakeBatch) -> bool {
        let waker = self.slot_mut(ticket).and_then(|own| own.waker.take());
        let Some(waker) = waker else {
            return false;
        };
        wakes.push(waker);
        self.unlink(WAITING, ticket.slot);
        self.waiting -= 1;
        true
    }

    /// Takes a waiter out of the queue.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Removed<D>> {
        let slot = self.slot_mut(ticket)?;
        let (waker, data) = (slot.waker.take(), slot.data.take()?);
        let was_notified = waker.is_none();
        if !was_notified {
            self.unlink(WAITING, ticket.slot);
            self.waiting -= 1;
        }
        self.unlink(ALL, ticket.slot);
        self.links_mut(ALL, ticket.slot).next = self.free;
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

    /// Takes out who has a ticket. Its waker is to be dropped outside the lock.
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
        self.along(ALL)
    }

    /// The un-notified ones by ticket.
    pub(crate) fn iter_waiting(&self) -> impl Iterator<Item = (Ticket, &D)> {
        self.along(WAITING)
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

    pub(crate) fn counts(&self) -> WaitCounts {
        WaitCounts {
            waiting: self.waiting(),
            notified: self.notified(),
        }
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

    fn along(&self, chain: usize) -> impl Iterator<Item = (Ticket, &D)> {
        let mut slot = NONE;
        std::iter::from_fn(move || {
            slot = self.links(chain, slot).next;
            let own = self.slots.get(slot as usize)?;
            let number = own.number;
            Some((Ticket { number, slot }, own.data.as_ref()?))
        })
    }

    /// The last of those who wait and came before the one in this slot, who is
    /// not linked among them yet.
    fn waiting_before(&self, slot: u32) -> u32 {
        let waits = |slot| slot == NONE || self.slots[slot as usize].waker.is_some();
        let (mut back, mut forth) = (slot, slot);
        loop {
            back = self.links(ALL, back).prev;
            if waits(back) {
                return back;
            }
            forth = self.links(ALL, forth).next;
            if waits(forth) {
                return self.links(WAITING, forth).prev;
            }
        }
    }

    /// Links a slot in behind `prev`, or in front of all if that is [`NONE`].
    fn link(&mut self, chain: usize, prev: u32, slot: u32) {
        let next = self.links(chain, prev).next;
        *self.links_mut(chain, slot) = Links { prev, next };
        self.links_mut(chain, prev).next = slot;
        self.links_mut(chain, next).prev = slot;
    }

    fn unlink(&mut self, chain: usize, slot: u32) {
        let Links { prev, next } = self.links(chain, slot);
        self.links_mut(chain, prev).next = next;
        self.links_mut(chain, next).prev = prev;
    }

    #[inline]
    fn links(&self, chain: usize, slot: u32) -> Links {
        match slot {
            NONE => self.ends[chain],
            slot => self.slots[slot as usize].links[chain],
        }
    }

    #[inline]
    fn links_mut(&mut self, chain: usize, slot: u32) -> &mut Links {
        match slot {
            NONE => &mut self.ends[chain],
            slot => &mut self.slots[slot as usize].links[chain],
        }
    }
}

impl<D> Default for Waiters<D> {
    fn default() -> Self {
        Self::new()
    }
}
