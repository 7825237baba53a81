//! Receiving: a turn, or many at once; now, or by a wait.

use std::fmt;
use std::ops::Deref;
use std::task::{Context, Poll};

use crate::error::Closed;
use crate::sync::Arc;
use crate::wait::{Op, Ticket, Wait, look_twice, sealed};

use super::Queue;
use super::refuse::TryReceive;
use super::shared::{Books, Shared};
use super::turn::Turn;

impl<T> Queue<T> {
    /// Waits for the next turn: that of the first group in line.
    ///
    /// Who waits longest is woken first; one that comes just then may be
    /// faster, and the woken one keeps its place in line.
    ///
    /// Cancel safe: a wait that is dropped has received nothing, and if it had
    /// been woken, the next is.
    ///
    /// # Errors
    ///
    /// [`Closed`] if the queue is closed, nothing waits
    /// but in poisoned groups, and nothing is in flight. While something is paused or capped for good
    /// it waits: until that is resumed or [shut down](Self::shutdown).
    pub fn receive(&self) -> Wait<Receive<'_, T>> {
        Wait::new(ReceiveFrom::new(self, OneTurn))
    }

    /// As [`receive`](Self::receive), for a wait that keeps the queue alive.
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    pub fn receive_owned(queue: &Arc<Self>) -> Wait<ReceiveOwned<T>> {
        Wait::new(ReceiveFrom::new(queue.clone(), OneTurn))
    }

    /// The next turn if one can begin now. It may go ahead of waiting receives
    /// that have been woken and have not looked yet.
    ///
    /// # Errors
    ///
    /// [`TryReceive`] if nothing is eligible, or nothing will ever come.
    pub fn try_receive(&self) -> Result<Turn<T>, TryReceive> {
        self.try_take(OneTurn)
    }

    /// Waits for at least one turn, and begins up to `n` that can begin then,
    /// under one lock. An `n` of 0 is taken as 1.
    ///
    /// They are the turns that as many receives, one after the other, would
    /// give, in that order, and all have begun now: each keeps its group until
    /// it is dropped, and its first message takes a unit of every limit. So
    /// whatever comes to the front of the line later, bumped or of a higher
    /// level, may wait for up to `n` turns of each reader; and other readers
    /// find less than there is. Those that are dropped untouched, by an early
    /// return or a panic, have used up their bumps and are the youngest of
    /// their lanes.
    ///
    /// Cost: the lock is held for all of them, O(1) each as one by one, and one
    /// allocation more.
    ///
    /// Cancel safe, and woken, as [`receive`](Self::receive).
    ///
    /// ```
    /// use conversant::limit::Limit;
    /// use conversant::queue::Queue;
    ///
    /// let queue = Queue::new();
    /// let lane = queue.lane(1, Limit::Unlimited)?;
    /// let conversations: Vec<_> = (0..3).map(|_| lane.conversation()).collect::<Result<_, _>>()?;
    /// for (number, conversation) in conversations.iter().enumerate() {
    ///     conversation.send(number)?;
    /// }
    /// let mut served = Vec::new();
    /// for mut turn in queue.receive_many(2).wait()? {
    ///     while let Some(delivery) = turn.next() {
    ///         served.push(delivery.complete());
    ///     }
    /// }
    /// assert_eq!(served, [0, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    pub fn receive_many(&self, n: usize) -> Wait<ReceiveMany<'_, T>> {
        Wait::new(ReceiveFrom::new(self, ManyTurns(n)))
    }

    /// As [`receive_many`](Self::receive_many), for a wait that keeps the queue
    /// alive.
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    pub fn receive_many_owned(queue: &Arc<Self>, n: usize) -> Wait<ReceiveManyOwned<T>> {
        Wait::new(ReceiveFrom::new(queue.clone(), ManyTurns(n)))
    }

    /// As [`receive_many`](Self::receive_many), of the turns that can begin
    /// now: at least one.
    ///
    /// # Errors
    ///
    /// As [`try_receive`](Self::try_receive).
    pub fn try_receive_many(&self, n: usize) -> Result<Vec<Turn<T>>, TryReceive> {
        self.try_take(ManyTurns(n))
    }

    fn try_take<N: Wants<T>>(&self, wants: N) -> Result<N::Received, TryReceive> {
        let shared = &self.shared;
        let taken = shared.brief(|books| take(shared, books, wants));
        Ok(taken.ok_or(TryReceive::Empty)??)
    }
}

/// The wait of [`Queue::receive`].
pub type Receive<'a, T> = ReceiveFrom<&'a Queue<T>, OneTurn>;

/// The wait of [`Queue::receive_owned`].
pub type ReceiveOwned<T> = ReceiveFrom<Arc<Queue<T>>, OneTurn>;

/// The wait of [`Queue::receive_many`].
pub type ReceiveMany<'a, T> = ReceiveFrom<&'a Queue<T>, ManyTurns>;

/// The wait of [`Queue::receive_many_owned`].
pub type ReceiveManyOwned<T> = ReceiveFrom<Arc<Queue<T>>, ManyTurns>;

/// A wait for `N` turns of the queue that `Q` leads to: [`Receive`],
/// [`ReceiveMany`] or an owned form of these.
pub struct ReceiveFrom<Q, N> {
    queue: Q,
    wants: N,
    ticket: Option<Ticket>,
}

/// One turn.
#[derive(Clone, Copy, Debug)]
pub struct OneTurn;

/// As many turns as can begin, up to a number.
#[derive(Clone, Copy, Debug)]
pub struct ManyTurns(usize);

/// More turns than this at once are not provided for.
const USUAL: usize = 31;

/// How many turns are wanted: [`OneTurn`] or [`ManyTurns`].
pub trait Wants<T>: sealed::Sealed + Copy + Unpin {
    /// What is received.
    type Received;

    /// Begins them; `None` if none can begin.
    #[doc(hidden)]
    fn begin(self, begin: impl FnMut() -> Option<Turn<T>>) -> Option<Self::Received>;
}

impl sealed::Sealed for OneTurn {}
impl sealed::Sealed for ManyTurns {}

impl<T> Wants<T> for OneTurn {
    type Received = Turn<T>;

    fn begin(self, mut begin: impl FnMut() -> Option<Turn<T>>) -> Option<Turn<T>> {
        begin()
    }
}

impl<T> Wants<T> for ManyTurns {
    type Received = Vec<Turn<T>>;

    fn begin(self, mut begin: impl FnMut() -> Option<Turn<T>>) -> Option<Vec<Turn<T>>> {
        let first = begin()?;
        let more = self.0.saturating_sub(1);
        let mut turns = Vec::with_capacity(1 + more.min(USUAL));
        turns.push(first);
        turns.extend(std::iter::from_fn(begin).take(more));
        Some(turns)
    }
}

impl<Q, N> ReceiveFrom<Q, N> {
    pub(super) fn new(queue: Q, wants: N) -> Self {
        Self {
            queue,
            wants,
            ticket: None,
        }
    }
}

impl<Q, N> sealed::Sealed for ReceiveFrom<Q, N> {}

impl<T, Q, N> Op for ReceiveFrom<Q, N>
where
    Q: Deref<Target = Queue<T>> + Unpin,
    N: Wants<T>,
{
    type Output = Result<N::Received, Closed>;

    /// Where nothing is found nothing is eligible, so that this event wakes
    /// nobody and cannot unwind with a new place in line.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            queue,
            wants,
            ticket,
        } = self;
        let shared = &queue.shared;
        look_twice(cx, |current, spare| {
            shared.brief(|books| {
                if let Some(found) = take(shared, books, *wants) {
                    let removed = ticket.take().and_then(|old| books.receives.remove(old));
                    books.discard_waker(removed.and_then(|removed| removed.waker));
                    return Some(Poll::Ready(found));
                }
                let stands = books.receives.stand(ticket, current, spare);
                stands.then_some(Poll::Pending)
            })
        })
    }

    fn cancel(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.queue.shared.brief(|books| {
                // If it had been notified, the waking rule passes that on.
                let removed = books.receives.remove(ticket);
                books.discard_waker(removed.and_then(|removed| removed.waker));
            });
        }
    }
}

/// What is wanted if it can begin, or word that nothing ever will.
pub(super) fn take<T, N: Wants<T>>(
    shared: &Arc<Shared<T>>,
    books: &mut Books<T>,
    wants: N,
) -> Option<Result<N::Received, Closed>> {
    let begun = wants.begin(|| Turn::begin(shared, books)).map(Ok);
    begun.or_else(|| books.finished().then_some(Err(Closed)))
}

impl<Q, N> fmt::Debug for ReceiveFrom<Q, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveFrom")
            .field("in_line", &self.ticket.is_some())
            .finish_non_exhaustive()
    }
}
