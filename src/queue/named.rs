//! Receives from a group that is asked for by name.
//!
//! While somebody waits for a group by name the group is reserved: it stands in
//! no line, so that other receives neither take it nor are woken for it. The
//! last named receive that leaves gives the reservation back.
//!
//! Invariants, under the queue's lock:
//! 1. A group is reserved exactly while it exists and `lines` has an entry for it.
//! 2. No entry of `lines` is empty, and an emptied map gives its block back.
//! 3. The waking rule: at the end of every event, one named receive of each
//!    group whose turn could begin is notified, and all of a group from which
//!    nothing will ever come.
//!
//! Cost: every event looks at each group that somebody waits for by name.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::task::{Context, Poll, Waker};

use crate::dispatch::{Aside, Blocked, GroupKey};
use crate::sync::Arc;
use crate::wait::{Op, Ticket, Waiters, WakeBatch, look_twice, sealed};

use super::Queue;
use super::handles::GroupId;
use super::refuse::{NoTurn, TryReceiveFrom};
use super::shared::{Books, Shared};
use super::turn::Turn;

/// Who waits for which group.
#[derive(Debug, Default)]
pub(super) struct Named {
    lines: BTreeMap<GroupKey, Waiters<()>>,
}

impl Named {
    /// Whether nobody waits by name.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Receives that sleep, and those that were woken and have not looked since.
    pub(super) fn counts(&self) -> (usize, usize) {
        let counts = self.lines.values().map(|l| (l.waiting(), l.notified()));
        counts.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }
}

impl<T> Books<T> {
    /// Notifies who is due by invariant 3; false if the batch is full and more are.
    pub(super) fn notify_named(&mut self, wakes: &mut WakeBatch) -> bool {
        if self.named.is_empty() {
            return true;
        }
        let mut lines = std::mem::take(&mut self.named.lines);
        let done = lines.iter_mut().all(|(&key, line)| {
            let due = match self.ended(key) {
                Some(_) => line.len(),
                None => usize::from(self.backlog.why(key) == Blocked::InLine),
            };
            line.notify_up_to(due, wakes)
        });
        self.named.lines = lines;
        done
    }

    /// Why nothing will ever come from a group.
    fn ended(&self, key: GroupKey) -> Option<NoTurn> {
        let Self { backlog, .. } = self;
        if !backlog.contains(key) {
            return Some(NoTurn::Stale);
        }
        let poisoned = backlog.aside(key) == Some(Aside::Poisoned);
        let nothing = poisoned || backlog.waiting_in(key) == 0;
        let over = self.closed && nothing && backlog.in_flight_in(key) == 0;
        over.then_some(NoTurn::Closed)
    }

    /// As `Waiters::stand`, in the line of a group.
    fn stand(
        &mut self,
        key: GroupKey,
        ticket: &mut Option<Ticket>,
        current: &Waker,
        spare: &mut Option<Waker>,
    ) -> bool {
        if ticket.is_none() {
            if spare.is_none() {
                return false;
            }
            self.backlog.reserve(key, true);
        }
        let line = self.named.lines.entry(key).or_default();
        line.stand(ticket, current, spare)
    }

    /// Takes a named receive out of its line; the waker is to be discarded.
    fn leave(&mut self, key: GroupKey, ticket: Ticket) -> Option<Waker> {
        let line = self.named.lines.get_mut(&key)?;
        let removed = line.remove(ticket);
        if line.is_empty() {
            self.named.lines.remove(&key);
            self.backlog.reserve(key, false);
        }
        if self.named.lines.is_empty() {
            self.named = Named::default();
        }
        removed?.waker
    }
}

/// A turn of the group if it can begin, or what keeps it.
pub(super) fn take<T>(
    shared: &Arc<Shared<T>>,
    books: &mut Books<T>,
    key: GroupKey,
) -> Result<Turn<T>, TryReceiveFrom> {
    if let Some(ended) = books.ended(key) {
        return Err(TryReceiveFrom::Never(ended));
    }
    let claimed = Turn::begin_of(shared, books, key);
    claimed.map_err(|blocked| match blocked {
        Blocked::Empty => TryReceiveFrom::Empty,
        Blocked::Held => TryReceiveFrom::Held,
        blocked => TryReceiveFrom::Blocked(blocked.into()),
    })
}

/// The wait of [`Queue::receive_from`].
pub type ReceiveGroup<'a, T> = ReceiveByName<&'a Queue<T>>;

/// The wait of [`Queue::receive_from_owned`].
pub type ReceiveGroupOwned<T> = ReceiveByName<Arc<Queue<T>>>;

/// A wait for a turn of one group of the queue that `Q` leads to:
/// [`ReceiveGroup`] or [`ReceiveGroupOwned`].
pub struct ReceiveByName<Q> {
    queue: Q,
    /// `None` if it is a name of another queue's.
    key: Option<GroupKey>,
    ticket: Option<Ticket>,
}

impl<T, Q: Deref<Target = Queue<T>>> ReceiveByName<Q> {
    pub(super) fn new(queue: Q, group: GroupId) -> Self {
        Self {
            key: group.key_in(&queue.shared),
            queue,
            ticket: None,
        }
    }
}

impl<Q> sealed::Sealed for ReceiveByName<Q> {}

impl<T, Q: Deref<Target = Queue<T>> + Unpin> Op for ReceiveByName<Q> {
    type Output = Result<Turn<T>, NoTurn>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { queue, key, ticket } = self;
        let Some(key) = *key else {
            return Poll::Ready(Err(NoTurn::Stale));
        };
        let shared = &queue.shared;
        look_twice(cx, |current, spare| {
            shared.event(|books| {
                let found = match take(shared, books, key) {
                    Ok(turn) => Some(Ok(turn)),
                    Err(TryReceiveFrom::Never(why)) => Some(Err(why)),
                    Err(_) => None,
                };
                if let Some(found) = found {
                    let waker = ticket.take().and_then(|old| books.leave(key, old));
                    books.discard_waker(waker);
                    return Some(Poll::Ready(found));
                }
                let stands = books.stand(key, ticket, current, spare);
                stands.then_some(Poll::Pending)
            })
        })
    }

    fn cancel(&mut self) {
        if let (Some(key), Some(ticket)) = (self.key, self.ticket.take()) {
            self.queue.shared.event(|books| {
                // If it had been notified, the waking rules pass that on.
                let waker = books.leave(key, ticket);
                books.discard_waker(waker);
            });
        }
    }
}

impl<Q> fmt::Debug for ReceiveByName<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveGroup")
            .field("in_line", &self.ticket.is_some())
            .finish_non_exhaustive()
    }
}
