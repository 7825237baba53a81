//! Poisoned groups: which there are, who is told of them, and how one goes on
//! without the message that failed.
//!
//! Invariant, under the policy lock: at the end of every event as many of those who
//! wait for a poisoned group are notified as there are groups that nobody was told
//! of, or all that wait if they are fewer; and all of them once the queue is finished.

use std::task::{Context, Poll};

use crate::error::Stale;
use crate::group::{GroupKey, ordinal};
use crate::sync::Arc;
use crate::wait::{Op, Ticket, Wait, WakeBatch, look_twice, sealed};

use super::Queue;
use super::id::GroupId;
use super::refuse::NoMore;
use super::shared::Shared;
use super::state::State;

/// A group that waits to be resumed, since a message of it failed too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poisoned {
    /// Its name.
    pub group: GroupId,
    /// The [number](super::Peek::number) of that message.
    pub message: u64,
    /// How often it was delivered in vain.
    pub attempts: u32,
    /// How many messages wait in the group, that one counted.
    pub waiting: usize,
}

impl<T> Queue<T> {
    /// The groups a message of which was delivered in vain as often as the
    /// [`Builder`](super::Builder) allows, in the order in which they were poisoned.
    /// O(poisoned groups).
    #[must_use]
    pub fn poisoned(&self) -> Vec<Poisoned> {
        let shared = self.shared();
        shared.with_state(|state| {
            let all = state.suspended.poisoned.values();
            all.filter_map(|&key| poisoned(shared, state, key))
                .collect()
        })
    }

    /// Waits for a poisoned group that nobody was told of. Each is told once, to one
    /// wait, even if it was poisoned before there was one. A group that goes on before
    /// anybody was told of it is left out.
    ///
    /// Cancel safe: what a wait was woken for goes to the next.
    ///
    /// ```
    /// use conversant::limit::Limit;
    /// use conversant::queue::{NoMore, Queue};
    ///
    /// let queue = Queue::builder().attempts(1).build()?;
    /// let orders = queue.lane(1, Limit::Unlimited)?.conversation()?;
    /// orders.send_all(["bad", "good"])?;
    /// queue.close();
    /// queue.receive().wait()?.next().expect("the first").give_back();
    ///
    /// let poisoned = queue.next_poisoned().wait()?;
    /// assert_eq!(queue.take_failed(poisoned.group)?, Some("bad"));
    /// let good = queue.receive().wait()?.next().map(|delivery| delivery.complete());
    /// assert_eq!(good, Some("good"));
    /// assert_eq!(queue.next_poisoned().wait(), Err(NoMore::Drained));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NoMore`] if the queue is closed, nothing that could fail is left, and
    /// somebody was told of each poisoned group.
    pub fn next_poisoned(&self) -> Wait<NextPoisoned<'_, T>> {
        Wait::new(NextPoisoned {
            shared: self.shared(),
            ticket: None,
        })
    }

    /// Takes out the message that poisoned a group, and lets the group go on, as
    /// [`resume`](Self::resume) does. `None` if the group is not poisoned, or
    /// somebody looks at that message: then nothing has changed.
    ///
    /// Cost: O(messages) of the group under the queue's lock.
    ///
    /// # Errors
    ///
    /// [`Stale`] if there is no such group any more.
    pub fn take_failed(&self, group: GroupId) -> Result<Option<T>, Stale> {
        let shared = self.shared();
        self.by_name(group, |state, group| {
            let place = state.suspended.poison(group.key())?.place;
            let out = shared.take_out(state, group, false, |taken| taken.place() == place);
            out.into_iter().next()
        })
    }
}

fn poisoned<T>(shared: &Shared<T>, state: &State<T>, key: GroupKey) -> Option<Poisoned> {
    let poison = state.suspended.poison(key)?;
    let group = state.groups.get(key)?;
    Some(Poisoned {
        group: shared.id(key),
        message: ordinal(poison.place),
        attempts: poison.attempts,
        waiting: group.waiting() as usize,
    })
}

impl<T> State<T> {
    /// Notifies who is due; false if the batch is full and more are.
    #[cold]
    pub(super) fn notify_watchers(&mut self, wakes: &mut WakeBatch) -> bool {
        let all = self.watchers.len();
        let due = match self.no_more() {
            Some(_) => all,
            None => self.suspended.untold().take(all).count(),
        };
        self.watchers.notify_up_to(due, wakes)
    }
}

/// The wait of [`Queue::next_poisoned`].
pub struct NextPoisoned<'q, T> {
    shared: &'q Arc<Shared<T>>,
    ticket: Option<Ticket>,
}

impl<T> sealed::Sealed for NextPoisoned<'_, T> {}

impl<T> Op for NextPoisoned<'_, T> {
    type Output = Result<Poisoned, NoMore>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shared, ticket } = self;
        look_twice(cx, |current, spare| {
            shared.with_state(|state| {
                let told = state.suspended.tell();
                let told = told.and_then(|key| poisoned(shared, state, key)).map(Ok);
                let Some(told) = told.or_else(|| state.no_more().map(Err)) else {
                    let waits = state.watchers.enqueue((), ticket, current, spare);
                    return waits.then_some(Poll::Pending);
                };
                let waker = state.watchers.withdraw(ticket);
                state.discard_waker(waker);
                Some(Poll::Ready(told))
            })
        })
    }

    fn cancel(&mut self) {
        self.shared.with_state(|state| {
            // If it had been notified, the rule passes that on.
            let waker = state.watchers.withdraw(&mut self.ticket);
            state.discard_waker(waker);
        });
    }
}
