//! The policy lock of a queue, and what follows from each event.
//!
//! State: the backlog, the receives that wait, and how far the queue is
//! closed, all under one mutex; and beside it what was posted since (`posts`).
//!
//! Protocol: every change is an [`event`](Shared::event): what was posted is
//! taken in, then the change, then the waking rule, then, with the lock let go,
//! the wakers and whatever of the user's is to be dropped. Sends, completions
//! and ends of turns are posted without the lock; an event follows at once if
//! somebody sleeps.
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
//! 5. `flagged` is what the tokens were last told of sleepers, and at the end
//!    of every event it is set if a receive sleeps.

use crate::backlog::{Backlog, Claim};
use crate::error::Closed;
use crate::limit::{Bypass, Limit};
use crate::sync::unique;
use crate::tokens::{Posted, Tokens};
use crate::wait::{Guarded, Session, Waiters, WakeBatch};

use super::arrivals::{Arrivals, TakenIn};
use super::hand::Hands;
use super::homes::Homes;
use super::named::Named;
use super::poison::{Asides, Policy};
use super::posts::Post;
use super::room::Room;

pub(super) struct Shared<T> {
    books: Guarded<Books<T>>,
    pub(super) tokens: Tokens<Post<T>>,
    /// The messages that were posted.
    pub(super) arrivals: Arrivals,
    /// The most deliveries of one turn.
    pub(super) quantum: u32,
    /// It has a capacity: all that takes or frees room is an event, and nothing
    /// is posted.
    pub(super) bounded: bool,
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
    /// Whether somebody may still receive this message, where not all are
    /// wanted to the end (`sides`). Of this crate, never the user's.
    pub(super) wanted: Option<fn(&T) -> bool>,
    /// The messages that were posted and taken in.
    pub(super) taken_in: TakenIn,
    /// The tokens' other list, empty between events.
    spare: Vec<Post<T>>,
    /// The live hands.
    pub(super) hands: Hands<T>,
    flagged: bool,
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
            wanted: None,
            taken_in: TakenIn::new(),
            spare: Vec::new(),
            hands: Hands::new(),
            flagged: false,
            room: Room::new(capacity),
        };
        Self {
            books: Guarded::new(books),
            tokens: Tokens::new(),
            arrivals: Arrivals::new(),
            quantum,
            bounded: capacity != Limit::Unlimited,
            number: unique(),
        }
    }

    /// One event: `change` under the lock, then the waking rule, then the
    /// wakers it gathered.
    pub(super) fn event<'a, R>(
        &'a self,
        change: impl FnOnce(&mut Session<'a, Books<T>>) -> R,
    ) -> R {
        self.brief(|books| {
            if !books.hands.is_empty() {
                books.call_in();
                // What was posted before the last hand was called in is older
                // than what was done with it.
                self.take_in(books);
            }
            change(books)
        })
    }

    /// An event that asks nothing about what waits or is in flight in groups
    /// that are held: hands stay with their turns.
    pub(super) fn brief<'a, R>(
        &'a self,
        change: impl FnOnce(&mut Session<'a, Books<T>>) -> R,
    ) -> R {
        self.within(self.books.lock(), change)
    }

    fn within<'a, R>(
        &'a self,
        session: Session<'a, Books<T>>,
        change: impl FnOnce(&mut Session<'a, Books<T>>) -> R,
    ) -> R {
        // Declared before the session, so that it is dropped after it when a
        // waker panics.
        let result;
        let mut session = session;
        self.take_in(&mut session);
        result = change(&mut session);
        loop {
            for (home, group) in session.backlog.take_ended() {
                let farewell = session.homes.farewell(home, group);
                session.discard(farewell);
            }
            session.settle(Books::notify_due);
            if self.rest(&mut session) {
                break;
            }
            self.take_in(&mut session);
        }
        drop(session);
        result
    }

    /// Posts a token, and looks if somebody must hear of it.
    pub(super) fn post(&self, token: Post<T>) {
        let posted = self.tokens.lock().post(token);
        self.posted(posted);
    }

    /// What a post asks for.
    pub(super) fn posted(&self, posted: Posted) {
        let session = match posted {
            Posted::Kept => None,
            Posted::Full => self.books.try_lock(),
            Posted::Look => Some(self.books.lock()),
        };
        if let Some(session) = session {
            self.within(session, |_| ());
        }
    }

    /// Takes in what was posted, in its order.
    fn take_in(&self, books: &mut Books<T>) {
        if self.bounded {
            return;
        }
        self.tokens.take(&mut books.spare);
        if books.spare.is_empty() {
            return;
        }
        let mut posts = std::mem::take(&mut books.spare);
        for post in posts.drain(..) {
            books.apply(post);
        }
        posts.shrink_to(Tokens::<Post<T>>::FULL);
        books.spare = posts;
    }

    /// Keeps invariant 5; false if there is something to take in first.
    fn rest(&self, books: &mut Books<T>) -> bool {
        let sleepers = books.receives.waiting() > 0 || !books.named.is_empty();
        // What was posted under a flag is followed by an event of its own.
        if sleepers != books.flagged && !self.bounded {
            if !self.tokens.rest(sleepers) {
                return false;
            }
            books.flagged = sleepers;
        }
        true
    }

    /// A look that changes nothing but what was posted.
    pub(super) fn look<R>(&self, look: impl FnOnce(&Books<T>) -> R) -> R {
        self.event(|books| look(books))
    }

    /// As [`look`](Self::look), unless somebody holds the lock.
    pub(super) fn try_look<R>(&self, look: impl FnOnce(&Books<T>) -> R) -> Option<R> {
        let mut session = self.books.try_lock()?;
        session.call_in();
        self.take_in(&mut session);
        Some(look(&session))
    }

    /// Refuses all that is sent from now on.
    pub(super) fn close(&self, books: &mut Books<T>) {
        if !books.closed {
            self.tokens.lock().close();
            // What was posted before that still counts.
            self.take_in(books);
            books.closed = true;
        }
    }

    /// Refuses all that is sent from now on, and takes out what waits: group
    /// by group, in ascending order of their ids.
    pub(super) fn shut(&self, gone: bool) -> Vec<T> {
        self.event(|books| {
            self.close(books);
            if gone && !books.gone {
                books.gone = true;
                let farewells = books.homes.all_gone();
                books.discard(farewells);
            }
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

    /// Whether anybody will ever receive this message.
    pub(super) fn wants(&self, message: &T) -> bool {
        !self.gone && self.wanted.is_none_or(|wanted| wanted(message))
    }

    /// Puts a message back to its place; the message itself if nobody will
    /// ever receive it.
    pub(super) fn give_back(&mut self, claim: Claim<T>) -> Option<T> {
        if self.wants(&claim.item) {
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
    #[inline]
    fn notify_due(&mut self, wakes: &mut WakeBatch) -> bool {
        let nobody = self.receives.is_empty() && self.named.is_empty() && !self.room.is_limited();
        nobody || self.notify_waiting(wakes)
    }

    fn notify_waiting(&mut self, wakes: &mut WakeBatch) -> bool {
        self.receives.notify_up_to(self.due(), wakes)
            && self.notify_named(wakes)
            && self.notify_room(wakes)
    }
}
