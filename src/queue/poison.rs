//! Poisoned groups and back-offs: which waits report them, and how a group goes on: resumed,
//! drained, without its failed message, or after its pause.
//!
//! Invariant, under the policy lock: at the end of each event, one waiter for poisoned groups
//! is notified for each group that no wait has reported, or all waiters if they are fewer. Once the
//! queue is finished, all are notified.

use std::task::{Context, Poll};
use std::time::Duration;

use crate::due::{Dates, Timed};
use crate::error::Stale;
use crate::group::{GroupKey, Mailbox, POISONED, SUSPENDED, Taken, ordinal};
use crate::ready::Age;
use crate::shown::says;
use crate::sync::Arc;
use crate::wait::{Op, Ticket, Wait, WakeBatch, look_twice, sealed};

use super::id::GroupId;
use super::refuse::NoMore;
use super::shared::Shared;
use super::state::State;
use super::suspended::Suspended;
use super::{GroupRef, Queue};

/// A group that waits to be resumed, since one of its messages failed too often, or for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Poisoned {
    /// The group's name.
    pub group: GroupId,
    /// The [number](super::Peek::number) of the failed message.
    pub message: u64,
    /// How many deliveries of it failed.
    pub attempts: u32,
    /// How many messages wait in the group, including the failed one.
    pub waiting: usize,
}

says!(Poisoned {
    Self { group, message, attempts, waiting } =>
        "group {group}: message {message} failed {attempts} times, {waiting} wait",
});

impl<T> Queue<T> {
    /// The poisoned groups, in the order in which they were poisoned: those with a message of
    /// which as many deliveries failed as the [`Builder`](super::Builder) allows, or one [for
    /// good](super::Delivery::fail_for_good). O(poisoned groups).
    #[must_use]
    pub fn poisoned(&self) -> Vec<Poisoned> {
        let shared = self.shared();
        shared.with_state(|state| {
            let all = state.suspended.poisoned.values();
            all.filter_map(|&key| poisoned(shared, state, key))
                .collect()
        })
    }

    /// Waits for a poisoned group that no wait has reported yet. One wait reports each group, even
    /// if it was poisoned before the wait began. A group that goes on before that is left out.
    ///
    /// Cancel safe: a wake-up passes to the next wait.
    ///
    /// In a closed queue, readers may get [`NoMore::OnlyPoisoned`] before this wait has handled
    /// the group. They must then go on, as `OnlyPoisoned` says.
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
    /// [`NoMore`] if the queue is closed, nothing that could fail is left, and a wait has reported
    /// each poisoned group.
    pub fn next_poisoned(&self) -> Wait<impl Op<Output = Result<Poisoned, NoMore>>> {
        Wait::new(NextPoisoned {
            shared: self.shared(),
            ticket: None,
        })
    }

    /// Takes out the message that poisoned a group, and lets the group go on, like
    /// [`resume`](Self::resume). `None`, with nothing changed, if the group is not poisoned or
    /// that message is being peeked at.
    ///
    /// Cost: O(log n) under the queue's lock, regardless of what waits behind that message, plus
    /// one step for each message that came back before or has a tier, up to the last that failed.
    ///
    /// # Errors
    ///
    /// [`Stale`] if the group is gone.
    pub fn take_failed(&self, group: GroupId) -> Result<Option<T>, Stale> {
        let shared = self.shared();
        self.by_name(group, |state, group| shared.take_failed(state, group))
    }
}

fn poisoned<T>(shared: &Shared<T>, state: &State<T>, key: GroupKey) -> Option<Poisoned> {
    let poison = state.suspended.poison(key)?;
    let group = state.groups.get(key)?;
    Some(Poisoned {
        group: shared.id(key),
        message: ordinal(poison.place()),
        attempts: poison.attempts,
        waiting: group.waiting() as usize,
    })
}

impl<T> State<T> {
    /// Notifies waiters by the invariant; false if the batch is full and more are due.
    #[cold]
    pub(super) fn notify_watchers(&mut self, wakes: &mut WakeBatch) -> bool {
        let due = match self.no_more() {
            Some(_) => usize::MAX,
            None => self.suspended.unreported,
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
        look_twice(cx, |current, cloned| {
            shared.with_state(|state| {
                let found = state.suspended.report();
                let found = found.and_then(|key| poisoned(shared, state, key)).map(Ok);
                let Some(found) = found.or_else(|| state.no_more().map(Err)) else {
                    let waits = state.watchers.enqueue((), ticket, current, cloned);
                    return waits.then_some(Poll::Pending);
                };
                let waker = state.watchers.withdraw(ticket);
                state.discard_waker(waker);
                Some(Poll::Ready(found))
            })
        })
    }

    fn cancel(&mut self) {
        self.shared.with_state(|state| {
            // If it had been notified, the invariant passes that on.
            let waker = state.watchers.withdraw(&mut self.ticket);
            state.discard_waker(waker);
        });
    }
}

impl<T> Queue<T> {
    /// Lets a poisoned group, or one in back-off, go on; false if it is neither. A poisoned
    /// group becomes the youngest, and the attempts of all its waiting messages start at 0
    /// again: O(messages) under the queue's lock.
    ///
    /// # Errors
    ///
    /// [`Stale`] if the group is gone.
    pub fn resume(&self, group: GroupId) -> Result<bool, Stale> {
        let shared = self.shared();
        self.by_name(group, |state, group| shared.go_on(state, group))
    }

    /// Takes out all waiting messages of a group, in order, and lets the group go on. Messages in
    /// flight stay; those that are given back wait again. To stop an actor at once, drop its
    /// conversations and drain its group: these are its dead letters.
    ///
    /// To move a key to another queue, send it a message that says so. The reader of that message
    /// has the group's turn: if no delivery of the group is detached, no other message of it is in
    /// flight. It drains the group. Let nobody send to the key between the drain and the switch of
    /// its senders to the other queue.
    ///
    /// ```
    /// # use conversant::prelude::*;
    /// let [here, there] = [(); 2].map(|()| Queue::new());
    /// let orders = Keyed::new(here.lane(1, Limit::Unlimited)?);
    /// let elsewhere = Keyed::new(there.lane(1, Limit::Unlimited)?);
    /// for order in ["bread", "move", "wine", "salt"] {
    ///     orders.send("anna", order)?;
    /// }
    /// here.close();
    /// while let Ok(mut turn) = here.receive().wait() {
    ///     let anna = turn.group_id();
    ///     while let Some(order) = turn.next() {
    ///         if order.complete() == "move" {
    ///             for order in here.drain(anna)? {
    ///                 elsewhere.send("anna", order)?;
    ///             }
    ///         }
    ///     }
    /// }
    /// assert_eq!(there.try_receive()?.next().map(|order| order.complete()), Some("wine"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Stale`] if the group is gone.
    pub fn drain(&self, group: GroupId) -> Result<Vec<T>, Stale> {
        let shared = self.shared();
        self.by_name(group, |state, group| {
            shared.take_out(state, group, true, |_| true)
        })
    }

    /// Sets the time, since an origin of your choice, and ends each
    /// [back-off](super::Builder::back_off) that is over. Returns the time of the next call, if
    /// one is needed. A time before the last one counts as the last one.
    ///
    /// A [`Ticker`](crate::ticker::Ticker) calls this for you.
    ///
    /// Cost: O(log n) of `n` groups for each back-off that is over. All these end under one hold of
    /// the policy lock, which other operations may wait for.
    ///
    /// ```
    /// use conversant::limit::Limit;
    /// use conversant::queue::Queue;
    /// use std::time::Duration;
    ///
    /// let at = Duration::from_secs;
    /// let queue = Queue::builder().back_off(at(1), at(60)).build()?;
    /// queue.lane(1, Limit::Unlimited)?.conversation()?.send("created")?;
    /// assert_eq!(queue.advance(at(10)), None);
    /// // The first attempt fails.
    /// drop(queue.try_receive()?.next());
    /// assert!(queue.try_receive().is_err());
    /// assert_eq!(queue.advance(at(10)), Some(at(11)));
    /// assert_eq!(queue.advance(at(11)), None);
    /// assert_eq!(queue.try_receive()?.next().map(|again| again.complete()), Some("created"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance(&self, now: Duration) -> Option<Duration> {
        let shared = self.shared();
        shared.with_state(|state| {
            state.suspended.timers.advance(now);
            while let Some((_, key)) = state.suspended.timers.due() {
                if let Some(group) = state.groups.get(key) {
                    shared.go_on(state, &group);
                }
            }
            state.suspended.timers.next()
        })
    }
}

impl<T> sealed::Sealed for Queue<T> {}

impl<T> Timed for Queue<T> {
    fn advance(&self, now: Duration) -> Option<Duration> {
        Self::advance(self, now)
    }

    fn with_dates(&self, f: &mut dyn FnMut(Option<Duration>, &mut Dates)) {
        self.shared().with_state(|state| {
            let Suspended { timers, dates, .. } = &mut state.suspended;
            f(timers.next(), dates);
        });
    }
}

impl<T> Shared<T> {
    fn take_failed(&self, state: &mut State<T>, group: &GroupRef<T>) -> Option<T> {
        let place = state.suspended.poison(group.key())?.place();
        self.change_group(state, group, |state, mailbox| {
            let Some(failed) = group.take_failed(mailbox, place) else {
                return (None, Age::Same);
            };
            self.free(state, 1);
            let (_, age) = state.go_on(group, mailbox);
            (Some(failed.message), age)
        })
    }

    fn go_on(&self, state: &mut State<T>, group: &GroupRef<T>) -> bool {
        self.change_group(state, group, |state, mailbox| state.go_on(group, mailbox))
    }

    pub(super) fn drain_all(&self, state: &mut State<T>) -> Vec<T> {
        let groups = state.groups.all().into_iter();
        groups
            .flat_map(|group| self.take_out(state, &group, true, |_| true))
            .collect()
    }

    /// Takes out waiting messages of a group that `fits` selects, except one that is being
    /// peeked at. The group goes on if `resumes` is true, if the message that poisoned it was
    /// taken out, or if nothing waits any more.
    pub(super) fn take_out(
        &self,
        state: &mut State<T>,
        group: &GroupRef<T>,
        mut resumes: bool,
        fits: impl FnMut(&Taken<T>) -> bool,
    ) -> Vec<T> {
        self.change_group(state, group, |state, mailbox| {
            let out = group.take_fitting(mailbox, fits);
            if let Some(poison) = state.suspended.poison(group.key()) {
                resumes |= out.iter().any(|taken| taken.place() == poison.place());
            }
            let out: Vec<T> = out.into_iter().map(|taken| taken.message).collect();
            self.free(state, out.len());
            if resumes || group.waiting() == 0 {
                let (_, age) = state.go_on(group, mailbox);
                return (out, age);
            }
            (out, Age::Same)
        })
    }
}

impl<T> State<T> {
    /// Lets a locked, suspended group go on; false if it is not suspended. A poisoned group
    /// becomes the youngest, with its attempts reset.
    pub(super) fn go_on(&mut self, group: &GroupRef<T>, mailbox: &mut Mailbox<T>) -> (bool, Age) {
        let was = self.suspended.forget(group.key());
        let poisoned = mailbox.flags & POISONED != 0;
        mailbox.flags &= !SUSPENDED;
        if poisoned {
            mailbox.reset_attempts();
        }
        (was, if poisoned { Age::New } else { Age::Same })
    }
}
