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
    Told,
    /// It has been given what it asks for, and has not collected it.
    Granted,
}

impl fmt::Display for WaiterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Waiting => "waiting",
            Self::Told => "told",
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
    line: VecDeque<Waiter<D>>,
    told: usize,
    next: Ticket,
    len: usize,
    waiting: usize,
}

impl<D> Waiters<D> {
    pub(crate) const fn new() -> Self {
        Self {
            line: VecDeque::new(),
            told: 0,
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
        self.line.push_back(Waiter {
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
        match &self.line[at].waker {
            Some(own) if own.will_wake(&waker) => return Some(waker),
            Some(_) => {}
            None => {
                self.waiting += 1;
                self.told = self.told.min(at);
            }
        }
        self.line[at].waker.replace(waker)
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
        let own = ticket.and_then(|old| self.line[self.find(old)?].waker.as_ref());
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
        let at = self.told;
        let ticket = self.line.get(at)?.ticket;
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
        let waker = self.line[at].waker.take();
        self.waiting -= usize::from(waker.is_some());
        self.pass_told();
        waker.map(|waker| wakes.push(waker)).is_some()
    }

    /// By invariant 3.
    #[inline]
    fn pass_told(&mut self) {
        while let Some(own) = self.line.get(self.told)
            && own.waker.is_none()
        {
            self.told += 1;
        }
    }

    /// Takes a waiter out of the queue.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Removed<D>> {
        let at = self.find(ticket)?;
        let own = &mut self.line[at];
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
        while self.line.front().is_some_and(|own| own.data.is_none()) {
            self.line.pop_front();
            self.told = self.told.saturating_sub(1);
        }
        if self.line.len() > 2 * self.len + FEW {
            self.line.retain(|own| own.data.is_some());
            self.told = 0;
        }
        self.pass_told();
        if self.len == 0 && self.line.capacity() > FEW {
            self.line = VecDeque::new();
        }
    }

    /// Takes out who has a ticket. Its waker is to be dropped outside the lock.
    pub(crate) fn withdraw(&mut self, ticket: &mut Option<Ticket>) -> Option<Waker> {
        self.remove(ticket.take()?)?.waker
    }

    pub(crate) fn is_notified(&self, ticket: Ticket) -> bool {
        let at = self.find(ticket);
        at.is_some_and(|at| self.line[at].waker.is_none())
    }

    pub(crate) fn get(&self, ticket: Ticket) -> Option<&D> {
        self.line[self.find(ticket)?].data.as_ref()
    }

    /// The longest waiting of all, notified or not.
    pub(crate) fn front(&self) -> Option<(Ticket, &D)> {
        self.iter().next()
    }

    /// All of them by ticket, notified or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ticket, &D)> {
        let line = self.line.iter();
        line.filter_map(|own| Some((own.ticket, own.data.as_ref()?)))
    }

    /// The un-notified ones by ticket.
    pub(crate) fn iter_waiting(&self) -> impl Iterator<Item = (Ticket, &D)> {
        let line = self.line.range(self.told..);
        let waiting = line.filter(|own| own.waker.is_some());
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
        let first = self.line.front()?.ticket;
        // Where it is unless empty places before it have gone.
        let near = ticket.0.get().checked_sub(first.0.get())? as usize;
        let at = match self.line.get(near) {
            Some(own) if own.ticket == ticket => near,
            _ => self
                .line
                .binary_search_by_key(&ticket, |own| own.ticket)
                .ok()?,
        };
        self.line[at].data.is_some().then_some(at)
    }
}

impl<D> Default for Waiters<D> {
    fn default() -> Self {
        Self::new()
    }
}
