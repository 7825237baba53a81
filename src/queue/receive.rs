//! The wait for a turn.

use std::fmt;
use std::ops::Deref;
use std::task::{Context, Poll, Waker};

use crate::error::Closed;
use crate::sync::Arc;
use crate::wait::{Op, Ticket, sealed};

use super::Queue;
use super::shared::{Books, Shared};
use super::turn::Turn;

/// The wait of [`Queue::receive`].
pub type Receive<'a, T> = ReceiveFrom<&'a Queue<T>>;

/// The wait of [`Queue::receive_owned`].
pub type ReceiveOwned<T> = ReceiveFrom<Arc<Queue<T>>>;

/// A wait for a turn of the queue that `Q` leads to: [`Receive`] or
/// [`ReceiveOwned`].
pub struct ReceiveFrom<Q> {
    queue: Q,
    ticket: Option<Ticket>,
}

impl<Q> ReceiveFrom<Q> {
    pub(super) fn new(queue: Q) -> Self {
        let ticket = None;
        Self { queue, ticket }
    }
}

impl<Q> sealed::Sealed for ReceiveFrom<Q> {}

impl<T, Q: Deref<Target = Queue<T>> + Unpin> Op for ReceiveFrom<Q> {
    type Output = Result<Turn<T>, Closed>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Most looks find something, and need no waker.
        match self.look(cx.waker(), None) {
            Looked::NeedsWaker => {}
            Looked::Found(found) => return Poll::Ready(found),
            Looked::Waits => return Poll::Pending,
        }
        // Cloned without the lock.
        match self.look(cx.waker(), Some(cx.waker().clone())) {
            Looked::Found(found) => Poll::Ready(found),
            Looked::NeedsWaker | Looked::Waits => Poll::Pending,
        }
    }

    fn cancel(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.queue.shared.event(|books| {
                // If it had been notified, the waking rule passes that on.
                let removed = books.receives.remove(ticket);
                books.discard_waker(removed.and_then(|removed| removed.waker));
            });
        }
    }
}

/// What a look under the lock gave.
enum Looked<T> {
    Found(Result<Turn<T>, Closed>),
    /// Nothing; it stands in line un-notified, with the right waker.
    Waits,
    /// Nothing; it does not stand in line, or not with this waker.
    NeedsWaker,
}

impl<T, Q: Deref<Target = Queue<T>>> ReceiveFrom<Q> {
    /// Looks for a turn, and with a waker stands in line if there is none: a
    /// new one at the end, an old one at its old place, its mark cleared.
    ///
    /// Where nothing is found nothing is eligible, so that this event wakes
    /// nobody and cannot unwind with a new place in line.
    fn look(&mut self, current: &Waker, mut spare: Option<Waker>) -> Looked<T> {
        let Self { queue, ticket } = self;
        let shared = &queue.shared;
        let spare = &mut spare;
        shared.event(|books| {
            if let Some(found) = take(shared, books) {
                let removed = ticket.take().and_then(|old| books.receives.remove(old));
                books.discard_waker(removed.and_then(|removed| removed.waker));
                return Looked::Found(found);
            }
            match (*ticket, spare.take()) {
                (Some(old), _) if books.receives.waits_with(old, current) => {}
                (_, None) => return Looked::NeedsWaker,
                (Some(old), Some(waker)) => *spare = books.receives.rewait(old, waker),
                (None, Some(waker)) => *ticket = Some(books.receives.register((), waker)),
            }
            Looked::Waits
        })
    }
}

/// A turn if one can begin, or word that none ever will.
pub(super) fn take<T>(
    shared: &Arc<Shared<T>>,
    books: &mut Books<T>,
) -> Option<Result<Turn<T>, Closed>> {
    let turn = Turn::begin(shared, books).map(Ok);
    turn.or_else(|| books.finished().then_some(Err(Closed)))
}

impl<Q> fmt::Debug for ReceiveFrom<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receive")
            .field("in_line", &self.ticket.is_some())
            .finish_non_exhaustive()
    }
}
