//! The places of a queue with a capacity: how many are free, who waits for
//! some, and which threads hold what only they can finish.
//!
//! State: the line of sends that wait, each with the places it asks for, and
//! their sums; and by thread how many turns and deliveries it has received that
//! are still live. All of it under the queue's lock.
//!
//! ```text
//!            stand          tell
//!   (send) --------> waiting -----> told ----> (sent)
//!      |                |             |
//!      +-- room at once +-- refuse, leave --> (gone)
//! ```
//!
//! Protocol: a send that finds no room stands in line. Every event ends with
//! [`notify`](Room::notify), which tells the first in line, and so on, as long
//! as there is room for all that have been told. What has been told of is
//! promised: nobody else takes it. In a queue with a capacity whatever takes or
//! frees a place is an event.
//!
//! Invariants:
//! 1. `asked` is the sum of all places in line, `told` of those in line that
//!    have been told; who is refused asks for none.
//! 2. Until the queue is closed, what is held and `told` together are no more
//!    than the capacity, but for what dialogs put past it (`sides`).
//! 3. Those who have been told and not refused stand before all others: so one
//!    in line may go on if and only if it has been told.
//! 4. A send that is not in line takes only what nobody in line asks for.
//! 5. `holders` has no zero, and is empty if the queue has no capacity; emptied,
//!    it gives its block back.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::task::Waker;

use crate::limit::Limit;
use crate::sync::{per_thread, unique};
use crate::wait::{Session, Ticket, Waiters, WakeBatch};

use super::refuse::SendReason;
use super::state::State;

/// One send in line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asks {
    pub(super) places: u64,
    /// The conversation that it is sent on, if it may end.
    pub(super) sender: Option<SenderId>,
}

/// A conversation: the address of what cannot move while one of its sends waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SenderId(usize);

impl SenderId {
    pub(super) fn of<S>(pinned: &S) -> Self {
        Self(std::ptr::from_ref(pinned).addr())
    }
}

/// A thread that received something; `None` where that is not counted.
pub(super) type Holder = Option<NonZeroU64>;

#[derive(Debug)]
pub(super) struct Room {
    capacity: Limit,
    /// Places in use: of messages that wait or are in flight.
    held: u64,
    line: Waiters<Asks>,
    asked: u64,
    told: u64,
    holders: BTreeMap<NonZeroU64, u32>,
}

impl Room {
    pub(super) fn new(capacity: Limit) -> Self {
        Self {
            capacity,
            held: 0,
            line: Waiters::new(),
            asked: 0,
            told: 0,
            holders: BTreeMap::new(),
        }
    }

    /// Whether there is a capacity.
    #[inline]
    pub(super) fn is_limited(&self) -> bool {
        self.capacity != Limit::Unlimited
    }

    /// Whether so many never fit.
    pub(super) fn is_beyond(&self, places: u64) -> bool {
        matches!(self.capacity, Limit::AtMost(most) if places > u64::from(most))
    }

    /// Whether there is room for so many beside what is held, and what those
    /// in line ask for.
    fn fits(&self, places: u64) -> bool {
        match self.capacity {
            Limit::AtMost(most) => {
                places == 0 || self.held + self.asked + places <= u64::from(most)
            }
            Limit::Unlimited => true,
        }
    }

    /// Whether a send in line may go on.
    pub(super) fn is_told(&self, ticket: Ticket) -> bool {
        self.line.is_notified(ticket)
    }

    /// As `Waiters::stand_with`.
    pub(super) fn stand(
        &mut self,
        ticket: &mut Option<Ticket>,
        asks: Asks,
        current: &Waker,
        spare: &mut Option<Waker>,
    ) -> bool {
        let new = ticket.is_none();
        let stands = self.line.stand_with(asks, ticket, current, spare);
        if new && stands {
            self.asked += asks.places;
        }
        stands
    }

    /// Takes a send out of the line; the waker is to be discarded.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Waker> {
        let removed = self.line.remove(ticket)?;
        self.asked -= removed.data.places;
        if removed.was_notified {
            self.told -= removed.data.places;
        }
        removed.waker
    }

    /// Has all sends of a conversation look once more, for nothing.
    pub(super) fn refuse(&mut self, sender: SenderId, wakes: &mut WakeBatch) {
        let of_it = self
            .line
            .iter()
            .filter(|(_, asks)| asks.sender == Some(sender));
        let tickets: Vec<Ticket> = of_it.map(|(ticket, _)| ticket).collect();
        for ticket in tickets {
            let told = self.line.is_notified(ticket);
            let asks = self.line.get_mut(ticket).expect("found in line above");
            let places = std::mem::take(&mut asks.places);
            self.asked -= places;
            if told {
                self.told -= places;
            } else {
                self.line.notify(ticket, wakes);
            }
        }
    }

    /// Who stands first of those that have not been told, and asks for what.
    fn first_untold(&self) -> Option<(Ticket, u64)> {
        let (ticket, asks) = self.line.iter_waiting().next()?;
        Some((ticket, asks.places))
    }

    /// Sends that sleep, those that were told and have not looked since, and
    /// the places that all of them ask for.
    pub(super) fn counts(&self) -> (usize, usize, u64) {
        (self.line.waiting(), self.line.notified(), self.asked)
    }

    /// So many places are taken, whether or not they are free.
    #[inline]
    pub(super) fn take(&mut self, places: u64) {
        if self.is_limited() {
            self.held += places;
        }
    }

    /// So many places are free again.
    #[inline]
    pub(super) fn give(&mut self, places: u64) {
        if self.is_limited() {
            self.held -= places;
        }
    }

    /// The calling thread has received something.
    pub(super) fn hold(&mut self) -> Holder {
        if !self.is_limited() {
            return None;
        }
        let me = this_thread()?;
        *self.holders.entry(me).or_default() += 1;
        Some(me)
    }

    /// What a thread received is finished or given back.
    pub(super) fn let_go(&mut self, holder: Holder) {
        let Some(holder) = holder else {
            return;
        };
        let count = self.holders.entry(holder).or_default();
        *count -= 1;
        if *count == 0 {
            self.holders.remove(&holder);
        }
        if self.holders.is_empty() {
            self.holders = BTreeMap::new();
        }
    }

    /// Whether something that the calling thread received is live.
    pub(super) fn is_own(&self) -> bool {
        !self.holders.is_empty() && this_thread().is_some_and(|me| self.holders.contains_key(&me))
    }

    /// Tells those in line for whom there is room, and all once the queue is
    /// closed; false if the batch is full and more are due.
    pub(super) fn notify(&mut self, closed: bool, wakes: &mut WakeBatch) -> bool {
        let Limit::AtMost(most) = self.capacity else {
            return true;
        };
        while let Some((ticket, places)) = self.first_untold() {
            let told = self.told + places;
            if !closed && self.held + told > u64::from(most) {
                break;
            }
            if wakes.is_full() {
                return false;
            }
            self.told = told;
            self.line.notify(ticket, wakes);
        }
        true
    }
}

impl<T> State<T> {
    /// Why so many messages cannot be sent by one who is not in line.
    pub(super) fn refusal(&self, more: usize) -> Option<SendReason> {
        let more = more as u64;
        if self.closed {
            Some(SendReason::Closed)
        } else if self.room.is_beyond(more) {
            Some(SendReason::AboveCapacity)
        } else if self.room.fits(more) {
            None
        } else {
            Some(SendReason::Full)
        }
    }
}

/// Whether a send may go on or is refused for good, given what is said to one who
/// is not in line; either way it is in line no more. `None` if it has to wait.
pub(super) fn admit<T>(
    state: &mut Session<'_, State<T>>,
    ticket: &mut Option<Ticket>,
    refusal: Option<SendReason>,
) -> Option<Result<(), SendReason>> {
    let told = ticket.is_some_and(|old| state.room.is_told(old));
    let refused = match refusal {
        Some(SendReason::Full) if told => None,
        Some(SendReason::Full) => return None,
        // The room is just coming: it is about to be told.
        None if ticket.is_some() && !told => return None,
        refused => refused,
    };
    leave(state, ticket);
    Some(refused.map_or(Ok(()), Err))
}

/// Takes a send out of the line. If it had been told, the event tells the next.
pub(super) fn leave<T>(state: &mut Session<'_, State<T>>, ticket: &mut Option<Ticket>) {
    if let Some(ticket) = ticket.take() {
        let waker = state.room.leave(ticket);
        state.discard_waker(waker);
    }
}

/// The rule of handlers, for a thread that is about to wait without a deadline.
pub(super) fn refuse_own<T>(
    state: &mut Session<'_, State<T>>,
    ticket: &mut Option<Ticket>,
) -> Option<SendReason> {
    let own = state.room.is_own();
    own.then(|| {
        leave(state, ticket);
        SendReason::OwnQueue
    })
}

/// The calling thread's number; `None` while its locals are destroyed.
fn this_thread() -> Option<NonZeroU64> {
    per_thread! {
        static ME: Cell<u64> = const { Cell::new(0) };
    }
    let known = ME.try_with(Cell::get).ok()?;
    if known > 0 {
        return NonZeroU64::new(known);
    }
    let new = unique() + 1;
    ME.try_with(|me| me.set(new)).ok()?;
    NonZeroU64::new(new)
}
