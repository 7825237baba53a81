//! Who waits, in the order they came.
//!
//! State: a waiter has a ticket, a number that only rises, and the waiters stand in a
//! line in the order of their tickets. One that is notified has given its waker to a
//! batch; it keeps its place until it is removed. In the middle it leaves an empty place.
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
//! 1. Tickets are given out once, and rise along the line.
//! 2. Who has left has no waker. `len` counts who has not, `waiting` who has one.
//! 3. Nobody before `told` has a waker; who stands there has one.
//! 4. The first place is not empty, and at most half are, but for a few. A line
//!    that becomes empty gives a large block back.
//! 5. No waker is cloned, woken or dropped in here: they come in as values, and
//!    leave into a batch or as return values.
//!
//! Cost: O(1), but for O(log n) to find who has a ticket after places were closed
//! up. A search for the next to notify passes over those who were told since somebody
//! before them looked in vain.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU64;
use std::task::Waker;

use super::session::WakeBatch;

/// A place in the queue: a lower one came earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(NonZeroU64);

/// What a waiter left behind.
#[derive(Debug)]
#[must_use = "the waker must be dropped outside the lock"]
pub(crate) struct Removed<D> {
    /// It had been told to look, and had not looked since.
    pub(crate) was_notified: bool,
    pub(crate) waker: Option<Waker>,
    pub(crate) data: D,
}

/// What one who waits has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum WaiterState {
    /// Nothing: what it asks for cannot be had, or not by it yet.
    Waiting,
    /// That it can be had, and has not looked since; others may be quicker.
    Notified,
    /// It has been given what it asks for, and has not collected it.
    Granted,
}

impl fmt::Display for WaiterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Waiting => "waiting",
            Self::Notified => "notified",
            Self::Granted => "granted",
        })
    }
}

/// How many wait for one thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct WaitCounts {
    /// Those that sleep.
    pub waiting: usize,
    /// Those that were woken and have not looked yet, such as a task that is not polled.
    /// Each keeps one grant from the others, and no more.
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

/// How many places an empty line keeps at most, and how many may be empty.
const FEW: usize = 8;

#[derive(Debug)]
struct Waiter<D> {
    ticket: Ticket,
    /// `None`: it is notified.
    waker: Option<Waker>,
    /// `None`: it has left.
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
        // One for each nanosecond lasts for 500 years.
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

    /// A waiter was polled again: it waits with this waker, at its old place,
    /// and its mark is cleared. Returns the waker that is not needed: the old
    /// one, or `waker` if both wake the same task.
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

    /// One that found nothing registers with `data`, or waits on. False if it
    /// needs a `cloned` waker to leave here; one not needed is put in its place.
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

    /// Tells the longest waiting un-notified waiter to look again.
    pub(crate) fn notify_next(&mut self, wakes: &mut WakeBatch) -> Option<Ticket> {
        let at = self.notified;
        let ticket = self.waiters.get(at)?.ticket;
        self.tell(at, wakes);
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
        self.find(ticket).is_some_and(|at| self.tell(at, wakes))
    }

    fn tell(&mut self, at: usize, wakes: &mut WakeBatch) -> bool {
        let waker = self.waiters[at].waker.take();
        self.waiting -= usize::from(waker.is_some());
        self.pass_told();
        waker.map(|waker| wakes.push(waker)).is_some()
    }

    /// By invariant 3.
    #[inline]
    fn pass_told(&mut self) {
        while let Some(own) = self.waiters.get(self.notified)
            && own.waker.is_none()
        {
            self.notified += 1;
        }
    }

    /// Takes a waiter out of the queue.
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

    /// By invariant 4.
    fn tidy(&mut self) {
        while self.waiters.front().is_some_and(|own| own.data.is_none()) {
            self.waiters.pop_front();
            self.notified = self.notified.saturating_sub(1);
        }
        if self.waiters.len() > 2 * self.len + FEW {
            self.waiters.retain(|own| own.data.is_some());
            self.notified = 0;
        }
        self.pass_told();
        if self.len == 0 && self.waiters.capacity() > FEW {
            self.waiters = VecDeque::new();
        }
    }

    /// Takes out who has a ticket. Its waker is to be dropped outside the lock.
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

    /// The longest waiting of all, notified or not.
    pub(crate) fn front(&self) -> Option<(Ticket, &D)> {
        self.iter().next()
    }

    /// All of them by ticket, notified or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ticket, &D)> {
        let waiters = self.waiters.iter();
        waiters.filter_map(|own| Some((own.ticket, own.data.as_ref()?)))
    }

    /// The un-notified ones by ticket.
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

    /// Where the one with this ticket stands, if it has not left.
    #[inline]
    fn find(&self, ticket: Ticket) -> Option<usize> {
        let first = self.waiters.front()?.ticket;
        // Where it is unless empty places before it have gone.
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
