//! A wait queue: the waiters in the order in which they came.
//!
//! State: each waiter has a ticket, a number that only rises. The queue is in the order of the
//! tickets. A waiter that is notified has given its waker to a batch; it keeps its place until it
//! is removed. A waiter removed from the middle leaves an empty place.
//!
//! ```text
//!   register -> waiting --notify--> notified --rewait--> waiting
//!                  |                    |
//!                  +------ remove ------+
//! ```
//!
//! Protocol: the queue is protected by its owner's mutex, which also protects what is waited for. A
//! waiter registers under the lock under which it found nothing. A thread that makes something
//! available notifies under the same lock. A notified waiter that again finds nothing calls
//! `rewait` before it unlocks: otherwise a sleeper would count as notified. If a notified waiter
//! leaves without having taken anything, its owner notifies the next one.
//!
//! Invariants:
//! 1. Each ticket is given out once, and tickets rise along the queue.
//! 2. A waiter that has left has no waker. `len` counts the waiters that have not left; `waiting`
//!    counts those that have a waker.
//! 3. No place before `notified` has a waker; the place at `notified`, if there is one, has one.
//! 4. The first place is not empty; at most half of the places, and a few more, are. A queue that
//!    becomes empty frees a large block, and one that becomes short most of it.
//! 5. No waker is cloned, woken or dropped in this module: wakers come in as values, and leave into
//!    a batch or as return values.
//!
//! Cost: O(1), except O(log n) to find a waiter by its ticket after empty places were removed. A
//! search for the next waiter to notify skips the waiters notified since the last time that one
//! before them called `rewait`.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::task::Waker;

use super::session::WakeBatch;
use crate::shown::says;
use crate::slab::less_room;

/// A place in the queue: a lower one came earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(NonZeroU64);

/// What is left of a waiter that was removed.
#[derive(Debug)]
#[must_use = "the waker must be dropped outside the lock"]
pub(crate) struct Removed<D> {
    /// It was notified, and has not looked since.
    pub(crate) was_notified: bool,
    pub(crate) waker: Option<Waker>,
    pub(crate) data: D,
}

/// What a waiter has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum WaiterState {
    /// Nothing: what it asks for is not available, or not available to it yet.
    Waiting,
    /// That it is available. The waiter has not looked since; others may be quicker.
    Notified,
    /// It has been given what it asks for, and has not collected it.
    Granted,
}

says!(WaiterState {
    Self::Waiting => "waiting",
    Self::Notified => "notified",
    Self::Granted => "granted",
});

/// How many waiters one thing has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct WaitCounts {
    /// Waiters that sleep.
    pub waiting: usize,
    /// Waiters that were woken and have not looked yet, such as a task that is not polled. Each of
    /// them keeps at most one grant from the others.
    pub notified: usize,
}

impl WaitCounts {
    /// One queue of those that this is the sum of has changed.
    pub(crate) fn change(&mut self, from: Self, to: Self) {
        self.waiting = self.waiting + to.waiting - from.waiting;
        self.notified = self.notified + to.notified - from.notified;
    }

    /// The sum over all these queues.
    pub(crate) fn sum<'a, D: 'a>(all: impl Iterator<Item = &'a Waiters<D>>) -> Self {
        all.fold(Self::default(), |sum, waiters| Self {
            waiting: sum.waiting + waiters.waiting(),
            notified: sum.notified + waiters.notified(),
        })
    }
}

/// How many places an empty queue keeps at most, and how many may be empty.
const FEW: usize = 8;
/// A queue that becomes shorter keeps twice as many places at least.
const MANY: usize = 32;

#[derive(Debug)]
struct Waiter<D> {
    ticket: Ticket,
    /// `None`: the waiter is notified.
    waker: Option<Waker>,
    /// `None`: the waiter has left.
    data: Option<D>,
}

/// The waiters of one thing, first come first.
#[derive(Debug)]
pub(crate) struct Waiters<D> {
    waiters: VecDeque<Waiter<D>>,
    notified: usize,
    next: Ticket,
    len: usize,
    waiting: usize,
}

impl<D> Waiters<D> {
    pub(crate) const fn new() -> Self {
        Self {
            waiters: VecDeque::new(),
            notified: 0,
            next: Ticket(NonZeroU64::MIN),
            len: 0,
            waiting: 0,
        }
    }

    /// Puts a waiter at the end of the queue.
    pub(crate) fn register(&mut self, data: D, waker: Waker) -> Ticket {
        let ticket = self.next;
        // One ticket a nanosecond lasts for 500 years.
        self.next = Ticket(ticket.0.checked_add(1).expect("a number is left"));
        self.waiters.push_back(Waiter {
            ticket,
            waker: Some(waker),
            data: Some(data),
        });
        self.len += 1;
        self.waiting += 1;
        ticket
    }

    /// A waiter was polled again: it waits with this waker, at its old place, and no longer counts
    /// as notified. Returns the waker that is not needed: the old one, or `waker` if both wake the
    /// same task.
    ///
    /// # Panics
    ///
    /// If the ticket has been removed.
    pub(crate) fn rewait(&mut self, ticket: Ticket, waker: Waker) -> Option<Waker> {
        let at = self.find(ticket).expect("one that was not removed");
        match &self.waiters[at].waker {
            Some(own) if own.will_wake(&waker) => return Some(waker),
            Some(_) => {}
            None => {
                self.waiting += 1;
                self.notified = self.notified.min(at);
            }
        }
        self.waiters[at].waker.replace(waker)
    }

    /// Registers a waiter that found nothing, with `data`, or lets it wait on. Returns false if it
    /// needs a `cloned` waker to store here. A waker that is not needed is put in its place.
    pub(crate) fn enqueue(
        &mut self,
        data: D,
        ticket: &mut Option<Ticket>,
        current: &Waker,
        cloned: &mut Option<Waker>,
    ) -> bool {
        let own = ticket.and_then(|old| self.waiters[self.find(old)?].waker.as_ref());
        if own.is_some_and(|own| own.will_wake(current)) {
            return true;
        }
        let Some(waker) = cloned.take() else {
            return false;
        };
        match *ticket {
            Some(old) => *cloned = self.rewait(old, waker),
            None => *ticket = Some(self.register(data, waker)),
        }
        true
    }

    /// Notifies the waiter that has waited longest among those not notified.
    pub(crate) fn notify_next(&mut self, wakes: &mut WakeBatch) -> Option<Ticket> {
        let at = self.notified;
        let ticket = self.waiters.get(at)?.ticket;
        self.notify_at(at, wakes);
        Some(ticket)
    }

    /// Notifies waiters, longest waiting first, until `due` of them, or all, are notified. Returns
    /// false if the batch is full before that.
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

    /// Notifies this waiter. Returns false if it was notified before, or is gone.
    pub(crate) fn notify(&mut self, ticket: Ticket, wakes: &mut WakeBatch) -> bool {
        self.find(ticket)
            .is_some_and(|at| self.notify_at(at, wakes))
    }

    fn notify_at(&mut self, at: usize, wakes: &mut WakeBatch) -> bool {
        let waker = self.waiters[at].waker.take();
        self.waiting -= usize::from(waker.is_some());
        self.skip_notified();
        waker.map(|waker| wakes.push(waker)).is_some()
    }

    /// Restores invariant 3.
    #[inline]
    fn skip_notified(&mut self) {
        while let Some(own) = self.waiters.get(self.notified)
            && own.waker.is_none()
        {
            self.notified += 1;
        }
    }

    /// Removes a waiter from the queue.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Removed<D>> {
        let at = self.find(ticket)?;
        let own = &mut self.waiters[at];
        let (waker, data) = (own.waker.take(), own.data.take()?);
        let was_notified = waker.is_none();
        self.len -= 1;
        self.waiting -= usize::from(!was_notified);
        self.tidy();
        Some(Removed {
            was_notified,
            waker,
            data,
        })
    }

    /// Restores invariant 4.
    fn tidy(&mut self) {
        while self.waiters.front().is_some_and(|own| own.data.is_none()) {
            self.waiters.pop_front();
            self.notified = self.notified.saturating_sub(1);
        }
        if self.waiters.len() > 2 * self.len + FEW {
            self.waiters.retain(|own| own.data.is_some());
            self.notified = 0;
        }
        self.skip_notified();
        let (len, capacity) = (self.waiters.len(), self.waiters.capacity());
        if self.len == 0 && capacity > FEW {
            self.waiters = VecDeque::new();
        } else if let Some(room) = less_room(len, capacity, MANY) {
            self.waiters.shrink_to(room);
        }
    }

    /// Removes the waiter with this ticket. The caller drops the waker outside the lock.
    pub(crate) fn withdraw(&mut self, ticket: &mut Option<Ticket>) -> Option<Waker> {
        self.remove(ticket.take()?)?.waker
    }

    pub(crate) fn is_notified(&self, ticket: Ticket) -> bool {
        let at = self.find(ticket);
        at.is_some_and(|at| self.waiters[at].waker.is_none())
    }

    pub(crate) fn get(&self, ticket: Ticket) -> Option<&D> {
        self.waiters[self.find(ticket)?].data.as_ref()
    }

    /// The waiter that has waited longest, notified or not.
    pub(crate) fn front(&self) -> Option<(Ticket, &D)> {
        self.iter().next()
    }

    /// All waiters in the order of their tickets, notified or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ticket, &D)> {
        let waiters = self.waiters.iter();
        waiters.filter_map(|own| Some((own.ticket, own.data.as_ref()?)))
    }

    /// The waiters that are not notified, in the order of their tickets.
    pub(crate) fn iter_waiting(&self) -> impl Iterator<Item = (Ticket, &D)> {
        let waiters = self.waiters.range(self.notified..);
        let waiting = waiters.filter(|own| own.waker.is_some());
        waiting.filter_map(|own| Some((own.ticket, own.data.as_ref()?)))
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many waiters are not notified.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many waiters were notified and have not looked yet.
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

    /// The position of the waiter with this ticket, if it has not left.
    #[inline]
    fn find(&self, ticket: Ticket) -> Option<usize> {
        let first = self.waiters.front()?.ticket;
        // Its position if no empty place between the first and it was removed.
        let near = ticket.0.get().checked_sub(first.0.get())? as usize;
        let at = match self.waiters.get(near) {
            Some(own) if own.ticket == ticket => near,
            _ => self
                .waiters
                .binary_search_by_key(&ticket, |own| own.ticket)
                .ok()?,
        };
        self.waiters[at].data.is_some().then_some(at)
    }
}

impl<D> Default for Waiters<D> {
    fn default() -> Self {
        Self::new()
    }
}
