//! Who waits, in the order they came.
//!
//! State: a ticket per waiter, given out in rising order and never twice; two
//! ordered maps by ticket. A waiter stands in `waiting` with its waker, or in
//! `notified`, its waker having gone into a batch.
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
//! 1. A ticket is in exactly one of the two maps until it is removed, and only
//!    the operation that registered it removes it.
//! 2. Every waiter in `waiting` has a waker; no waiter in `notified` has.
//! 3. A waiter keeps its place: `rewait` puts it back by its ticket, before
//!    everybody who came later.
//! 4. A notification is never lost: who leaves notified without having taken
//!    anything passes it on (`withdraw`).
//! 5. A map that becomes empty gives its last block back.
//! 6. No waker is cloned, woken or dropped in here: they come in as values, and
//!    leave into a batch or as return values.
//!
//! Cost: every operation on a ticket is O(log n); a map that empties and fills
//! again allocates a block each time, which a sleeping waiter dwarfs.

use std::collections::BTreeMap;
use std::fmt;
use std::task::Waker;

use super::batch::WakeBatch;

/// A place in line. A lower one came earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(u64);

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
    next: u64,
    waiting: BTreeMap<Ticket, Waiting<D>>,
    notified: BTreeMap<Ticket, D>,
}

struct Waiting<D> {
    waker: Waker,
    data: D,
}

impl<D> Waiters<D> {
    pub(crate) const fn new() -> Self {
        Self {
            next: 0,
            waiting: BTreeMap::new(),
            notified: BTreeMap::new(),
        }
    }

    /// Puts a waiter at the end of the line.
    pub(crate) fn register(&mut self, data: D, waker: Waker) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.waiting.insert(ticket, Waiting { waker, data });
        ticket
    }

    /// A waiter was polled again: it waits with this waker now, at its old
    /// place, and its mark is cleared. Returns the waker that is not needed
    /// (the old one, or `waker` itself if both wake the same task).
    ///
    /// # Panics
    ///
    /// If the ticket has been removed.
    pub(crate) fn rewait(&mut self, ticket: Ticket, waker: Waker) -> Option<Waker> {
        if let Some(entry) = self.waiting.get_mut(&ticket) {
            if entry.waker.will_wake(&waker) {
                return Some(waker);
            }
            return Some(std::mem::replace(&mut entry.waker, waker));
        }
        let data = take(&mut self.notified, ticket).expect("a waiter that has not been removed");
        self.waiting.insert(ticket, Waiting { waker, data });
        None
    }

    /// Whether the ticket waits un-notified with a waker for the same task, so
    /// that there is no need to clone one for [`rewait`](Self::rewait).
    pub(crate) fn waits_with(&self, ticket: Ticket, waker: &Waker) -> bool {
        let entry = self.waiting.get(&ticket);
        entry.is_some_and(|entry| entry.waker.will_wake(waker))
    }

    /// Tells the longest waiting un-notified waiter to look again.
    pub(crate) fn notify_next(&mut self, wakes: &mut WakeBatch) -> Option<Ticket> {
        let (&ticket, _) = self.waiting.first_key_value()?;
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
        let Some(Waiting { waker, data }) = take(&mut self.waiting, ticket) else {
            return false;
        };
        wakes.push(waker);
        self.notified.insert(ticket, data);
        true
    }

    /// Takes a waiter out of the line: it has what it came for.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Removed<D>> {
        if let Some(Waiting { waker, data }) = take(&mut self.waiting, ticket) {
            return Some(Removed {
                was_notified: false,
                waker: Some(waker),
                data,
            });
        }
        let data = take(&mut self.notified, ticket)?;
        Some(Removed {
            was_notified: true,
            waker: None,
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
        self.notified.contains_key(&ticket)
    }

    pub(crate) fn get(&self, ticket: Ticket) -> Option<&D> {
        let waiting = self.waiting.get(&ticket).map(|entry| &entry.data);
        waiting.or_else(|| self.notified.get(&ticket))
    }

    pub(crate) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut D> {
        let waiting = self.waiting.get_mut(&ticket).map(|entry| &mut entry.data);
        waiting.or_else(|| self.notified.get_mut(&ticket))
    }

    /// The longest waiting of all, notified or not.
    pub(crate) fn front(&self) -> Option<(Ticket, &D)> {
        let waiting = self.waiting.first_key_value();
        let waiting = waiting.map(|(&ticket, entry)| (ticket, &entry.data));
        let notified = self.notified.first_key_value();
        let notified = notified.map(|(&ticket, data)| (ticket, data));
        match (waiting, notified) {
            (Some(a), Some(b)) => Some(if a.0 < b.0 { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    /// All of them by ticket, notified or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ticket, &D)> {
        let mut waiting = self.iter_waiting().peekable();
        let mut notified = self.notified.iter().peekable();
        std::iter::from_fn(move || {
            let first_waits = match (waiting.peek(), notified.peek()) {
                (Some((a, _)), Some((b, _))) => a < *b,
                (one, _) => one.is_some(),
            };
            if first_waits {
                waiting.next()
            } else {
                notified.next().map(|(&ticket, data)| (ticket, data))
            }
        })
    }

    /// The un-notified ones by ticket.
    pub(crate) fn iter_waiting(&self) -> impl Iterator<Item = (Ticket, &D)> {
        let entries = self.waiting.iter();
        entries.map(|(&ticket, entry)| (ticket, &entry.data))
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.notified.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.notified.is_empty()
    }

    /// How many wait un-notified.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many have been told to look and have not looked yet.
    #[inline]
    pub(crate) fn notified(&self) -> usize {
        self.notified.len()
    }
}

impl Waiters<()> {
    /// [`stand_with`](Self::stand_with) nothing to say.
    pub(crate) fn stand(
        &mut self,
        ticket: &mut Option<Ticket>,
        current: &Waker,
        spare: &mut Option<Waker>,
    ) -> bool {
        self.stand_with((), ticket, current, spare)
    }
}

impl<D> Waiters<D> {
    /// One that found nothing stands in line: a new one at the end with `data`,
    /// an old one at its old place, its mark cleared. False if it needs a
    /// `spare` waker to leave here; one that is not needed stays in `spare`.
    pub(crate) fn stand_with(
        &mut self,
        data: D,
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
            None => *ticket = Some(self.register(data, waker)),
        }
        true
    }
}

/// Removes, by invariant 5.
fn take<V>(map: &mut BTreeMap<Ticket, V>, ticket: Ticket) -> Option<V> {
    let value = map.remove(&ticket);
    if map.is_empty() {
        *map = BTreeMap::new();
    }
    value
}

impl<D> Default for Waiters<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D> fmt::Debug for Waiters<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiters")
            .field("waiting", &self.waiting.len())
            .field("notified", &self.notified.len())
            .finish_non_exhaustive()
    }
}
