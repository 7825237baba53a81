//! The wait for a turn.

use std::fmt;
use std::ops::Deref;
use std::task::{Context, Poll};

use crate::error::Closed;
use crate::sync::Arc;
use crate::wait::{Op, Ticket, look_twice, sealed};

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

    /// Where nothing is found nothing is eligible, so that this event wakes
    /// nobody and cannot unwind with a new place in line.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { queue, ticket } = self;
        let shared = &queue.shared;
        look_twice(cx, |current, spare| {
            shared.brief(|books| {
                if let Some(found) = take(shared, books) {
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
