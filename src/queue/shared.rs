//! The one lock of a queue, and what follows from each event.
//!
//! State: the backlog, the receives that wait, and how far the queue is
//! closed, all under one mutex.
//!
//! Protocol: every change is an [`event`](Shared::event): the change, then the
//! waking rule, then, with the lock let go, the wakers and whatever of the
//! user's is to be dropped.
//!
//! Invariants:
//! 1. The waking rule: at the end of every event at least as many receives are
//!    notified as turns could begin, or all that wait if they are fewer; and
//!    all of them once the queue is [`finished`](Books::finished). Those that
//!    wait for a group by name have a rule of their own (`named`), and so have
//!    sends that wait for room (`room`).
//! 2. Nothing of the user's runs under the lock: messages go in and come out
//!    as values, wakers into the batch.
//! 3. What an event takes out of the backlog is in a handle that gives it back
//!    (a turn, a delivery) before the first waker is woken, so that a waker
//!    that panics loses nothing.
//! 4. A backlog that is gone (its queue was dropped) holds no message.

use crate::backlog::{Backlog, Claim};
use crate::error::Closed;
use crate::limit::{Bypass, Limit};
use crate::sync::unique;
use crate::wait::{Guarded, Session, Waiters, WakeBatch};

use super::homes::Homes;
use super::named::Named;
use super::poison::{Asides, Policy};
use super::room::Room;

pub(super) struct Shared<T> {
    books: Guarded<Books<T>>,
    /// The most deliveries of one turn.
    pub(super) quantum: u32,
    /// Told apart from all other queues by this number.
    pub(super) number: u64,
}

pub(super) struct Books<T> {
    pub(super) backlog: Backlog<T>,
    pub(super) receives: Waiters<()>,
    pub(super) named: Named,
    /// Nothing more is sent.
    pub(super) closed: bool,
    /// Who is set aside after a failure.
    pub(super) asides: Asides,
    /// Nobody receives any more.
    pub(super) gone: bool,
    /// Who keeps groups by a key.
    pub(super) homes: Homes,
    /// Who waits for room, if there is a capacity.
    pub(super) room: Room,
}

impl<T> Shared<T> {
    pub(super) fn new(quantum: u32, bypass: Bypass, policy: Policy, capacity: Limit) -> Self {
        let books = Books {
            backlog: Backlog::new(bypass),
            receives: Waiters::new(),
            named: Named::default(),
            closed: false,
            asides: Asides::new(policy),
            gone: false,
            homes: Homes::default(),
            room: Room::new(capacity),
        };
        Self {
            books: Guarded::new(books),
            quantum,
            number: unique(),
        }
    }

    /// One event: `change` under the lock, then the waking rule, then the
    /// wakers it gathered.
    pub(super) fn event<'a, R>(
        &'a self,
        change: impl FnOnce(&mut Session<'a, Books<T>>) -> R,
    ) -> R {
        // Declared before the session, so that it is dropped after it when a
        // waker panics.
        let result;
        let mut session = self.books.lock();
        result = change(&mut session);
        for (home, group) in session.backlog.take_ended() {
            let farewell = session.homes.farewell(home, group);
            session.discard(farewell);
        }
        session.settle(Books::notify_due);
        drop(session);
        result
    }

    /// A look that changes nothing.
    pub(super) fn look<R>(&self, look: impl FnOnce(&Books<T>) -> R) -> R {
        look(&self.books.lock())
    }

    /// As [`look`](Self::look), unless somebody holds the lock.
    pub(super) fn try_look<R>(&self, look: impl FnOnce(&Books<T>) -> R) -> Option<R> {
        self.books.try_lock().map(|session| look(&session))
    }

    /// Refuses all that is sent from now on, and takes out what waits: group
    /// by group, in ascending order of their ids.
    pub(super) fn shut(&self, gone: bool) -> Vec<T> {
        self.event(|books| {
            books.closed = true;
            books.gone |= gone;
            let groups = books.backlog.groups();
            let waiting = groups.filter(|&(_, waiting)| waiting > 0);
            // By ascending slot, which is the order of their ids.
            let keys: Vec<_> = waiting.map(|(picture, _)| picture.group).collect();
            let drained = keys.into_iter().map(|key| books.drain(key));
            drained.flatten().collect()
        })
    }
}

impl<T> Books<T> {
    /// Nothing new is made in a closed queue.
    pub(super) fn open(&self) -> Result<(), Closed> {
        if self.closed { Err(Closed) } else { Ok(()) }
    }

    /// Closed, and nothing is left that could be received: what waits in a
    /// poisoned group cannot, until somebody resumes it.
    pub(super) fn finished(&self) -> bool {
        self.closed
            && self.backlog.waiting() == self.backlog.poisoned()
            && self.backlog.in_flight() == 0
    }

    /// Puts a message back to its place; the message itself if nobody will
    /// ever receive it.
    pub(super) fn give_back(&mut self, claim: Claim<T>) -> Option<T> {
        if !self.gone {
            self.backlog.give_back(claim);
            return None;
        }
        self.backlog.complete(claim.group, claim.tier);
        Some(claim.item)
    }

    /// How many receives must be awake: the waking rule.
    fn due(&self) -> usize {
        let all = self.receives.len();
        if self.finished() {
            return all;
        }
        usize::try_from(self.backlog.eligible()).map_or(all, |turns| turns.min(all))
    }

    /// Notifies who is due; false if the batch is full and more are.
    fn notify_due(&mut self, wakes: &mut WakeBatch) -> bool {
        self.receives.notify_up_to(self.due(), wakes)
            && self.notify_named(wakes)
            && self.notify_room(wakes)
    }
}
