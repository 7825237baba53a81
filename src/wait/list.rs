//! Who waits, in the order they came.
//!
//! State: a ticket per waiter, with a number that only rises; the waiters in
//! slots, linked in that order (`slots`). A waiter keeps its slot and its link
//! until it is removed, so its place is never lost. While it waits it has its
//! waker, and stands in a second chain, of those who wait. One that is notified
//! has given its waker to a batch, and leaves that chain.
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
//! lock. A notified waiter that is polled calls `rewait` first, and only then
//! looks for what it came for: a mark that is left standing after a failed
//! look would count a sleeper among the awake, and wake nobody.
//!
//! Invariants:
//! 1. A ticket's number is given out once. It opens the ticket's slot only while
//!    that number stands there, and only the operation that registered it
//!    removes it.
//! 2. A waiter stands in the chain of those who wait if and only if it has a
//!    waker; `waiting` counts them.
//! 3. Both chains rise by number: `rewait` puts a waiter back before everybody
//!    who came later.
//! 4. A notification is never lost: who leaves notified without having taken
//!    anything passes it on (`withdraw`).
//! 5. A list that becomes empty gives a large block of slots back.
//! 6. No waker is cloned, woken or dropped in here: they come in as values, and
//!    leave into a batch or as return values.
//!
//! Cost: every operation is O(1), but for the growth of the slots, and for a
//! `rewait` of one who has people waiting on both sides: that looks both ways
//! for the nearest of them, past those who are notified. When all of n are
//! notified and all look in vain, in whatever order, this is n log n at most.

use std::fmt;
use std::num::NonZeroU64;
use std::task::Waker;

use super::batch::WakeBatch;
use super::slots::{Chain, NONE, Slots};

/// A place in line. A lower one came earlier.
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

/// The waiters of one thing, first come first.
pub(crate) struct Waiters<D> {
    slots: Slots<Waiter<D>>,
    next: NonZeroU64,
    waiting: usize,
}

struct Waiter<D> {
    number: NonZeroU64,
    /// `None`: it is notified.
    waker: Option<Waker>,
    data: D,
}

impl<D> Waiters<D> {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Slots::new(),
            next: NonZeroU64::MIN,
            waiting: 0,
        }
    }

    /// Puts a waiter at the end of the line.
    pub(crate) fn register(&mut self, data: D, waker: Waker) -> Ticket {
        let number = self.next;
        // One for each nanosecond lasts for 500 years.
        self.next = number.checked_add(1).expect("a number is left");
        let slot = self.slots.insert(Waiter {
            number,
            waker: Some(waker),
            data,
        });
        for chain in [Chain::Line, Chain::Waiting] {
            let last = self.slots.prev(chain, NONE);
            self.slots.link(chain, last, slot);
        }
        self.waiting += 1;
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
        let waiter = self
            .waiter_mut(ticket)
            .expect("a waiter that has not been removed");
        if let Some(old) = &mut waiter.waker {
            if old.will_wake(&waker) {
                return Some(waker);
            }
            return Some(std::mem::replace(old, waker));
        }
        waiter.waker = Some(waker);
        let before = self.waiting_before(ticket);
        self.slots.link(Chain::Waiting, before, ticket.slot);
        self.waiting += 1;
        None
    }

    /// Whether the ticket waits un-notified with a waker for the same task, so
    /// that there is no need to clone one for [`rewait`](Self::rewait).
    pub(crate) fn waits_with(&self, ticket: Ticket, waker: &Waker) -> bool {
        let own = self.waiter(ticket).and_then(|own| own.waker.as_ref());
        own.is_some_and(|own| own.will_wake(waker))
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
        let waker = self.waiter_mut(ticket).and_then(|own| own.waker.take());
        let Some(waker) = waker else {
            return false;
        };
        wakes.push(waker);
        self.slots.unlink(Chain::Waiting, ticket.slot);
        self.waiting -= 1;
        true
    }

    /// Takes a waiter out of the line: it has what it came for.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Removed<D>> {
        let waits = self.waiter(ticket)?.waker.is_some();
        if waits {
            self.slots.unlink(Chain::Waiting, ticket.slot);
            self.waiting -= 1;
        }
        self.slots.unlink(Chain::Line, ticket.slot);
        let Waiter { waker, data, .. } = self.slots.remove(ticket.slot)?;
        Some(Removed {
            was_notified: !waits,
            waker,
            data,
        })
    }

    /// Takes a waiter out of the line that gives up, and passes a notification
    /// it has not used on to the next. As the lists of the crate do by their
    /// waking rules; alone it is what the models of waiting use.
    #[cfg(all(test, not(shuttle)))]
    pub(crate) fn withdraw(&mut self, ticket: Ticket, wakes: &mut WakeBatch) -> Option<Removed<D>> {
        let removed = self.remove(ticket)?;
        if removed.was_notified {
            self.notify_next(wakes);
        }
        Some(removed)
    }

    pub(crate) fn is_notified(&self, ticket: Ticket) -> bool {
        self.waiter(ticket).is_some_and(|own| own.waker.is_none())
    }

    pub(crate) fn get(&self, ticket: Ticket) -> Option<&D> {
        self.waiter(ticket).map(|own| &own.data)
    }

    /// The longest waiting of all, notified or not.
    pub(crate) fn front(&self) -> Option<(Ticket, &D)> {
        self.iter().next()
    }

    /// All of them by ticket, notified or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ticket, &D)> {
        self.along(Chain::Line)
    }

    /// The un-notified ones by ticket.
    pub(crate) fn iter_waiting(&self) -> impl Iterator<Item = (Ticket, &D)> {
        self.along(Chain::Waiting)
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.len() == 0
    }

    /// How many wait un-notified.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many have been told to look and have not looked yet.
    #[inline]
    pub(crate) fn notified(&self) -> usize {
        self.slots.len() - self.waiting
    }

    /// Its waiter, by invariant 1.
    fn waiter(&self, ticket: Ticket) -> Option<&Waiter<D>> {
        let found = self.slots.get(ticket.slot);
        found.filter(|found| found.number == ticket.number)
    }

    fn waiter_mut(&mut self, ticket: Ticket) -> Option<&mut Waiter<D>> {
        let found = self.slots.get_mut(ticket.slot);
        found.filter(|found| found.number == ticket.number)
    }

    fn along(&self, chain: Chain) -> impl Iterator<Item = (Ticket, &D)> {
        self.slots.chain(chain).filter_map(|slot| {
            let Waiter { number, data, .. } = self.slots.get(slot)?;
            let ticket = Ticket {
                number: *number,
                slot,
            };
            Some((ticket, data))
        })
    }

    /// The slot of the last of those who wait and came before this one, who is
    /// in line and not yet among them.
    fn waiting_before(&self, ticket: Ticket) -> u32 {
        let slots = &self.slots;
        let later = |slot| {
            let other = slots.get(slot);
            other.is_none_or(|other| other.number > ticket.number)
        };
        if later(slots.next(Chain::Waiting, NONE)) {
            return NONE;
        }
        let last = slots.prev(Chain::Waiting, NONE);
        if !later(last) {
            return last;
        }
        // Somebody waits on either side: both searches would end.
        let waits = |slot| slots.get(slot).is_some_and(|other| other.waker.is_some());
        let (mut back, mut forth) = (ticket.slot, ticket.slot);
        loop {
            back = slots.prev(Chain::Line, back);
            if waits(back) {
                return back;
            }
            forth = slots.next(Chain::Line, forth);
            if waits(forth) {
                return slots.prev(Chain::Waiting, forth);
            }
        }
    }
}

impl Waiters<()> {
    /// One that found nothing stands in line: a new one at the end, an
    /// old one at its old place, its mark cleared. False if it needs a `spare`
    /// waker to leave here; one that is not needed stays in `spare`.
    pub(crate) fn stand(
        &mut self,
        ticket: &mut Option<Ticket>,
        current: &Waker,
        spare: &mut Option<Waker>,
    ) -> bool {
        if ticket.is_some_and(|old| self.waits_with(old, current)) {
            return true;
        }
        let Some(waker) = spare.take() else {
            return false;
        };
        match *ticket {
            Some(old) => *spare = self.rewait(old, waker),
            None => *ticket = Some(self.register((), waker)),
        }
        true
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
