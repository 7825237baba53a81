//! The waiters, under one lock: their order and claims, who is notified, and what was granted.
//!
//! State: `waiters` holds the claims by age. `order` is empty while they are served in that order.
//! `granted` holds what was handed over to waiters that have not been polled since; these have left
//! the queue.
//!
//! ```text
//!             enqueue            notify
//!   (claim) ----------> waiting <------> notified
//!                          |     rewait     |
//!                          +---- grant -----+--> granted
//!                          |                |       |
//!                          +-- remove ------+       | collect
//!                          v                        v
//!                        (gone) <-------------------+
//! ```
//!
//! A plain value: the primitive decides what may be taken, and who is notified.
//!
//! Invariants:
//! 1. `asked` and `notified` are the sums that their comments say.
//! 2. A ticket is in at most one of `waiters` and `granted`. If `order` is not empty, it has every
//!    ticket of `waiters`, and its first ticket is one of them. It has at most `FEW` more tickets
//!    that have left than tickets of `waiters`.
//! 3. A collection that has become empty has given its memory back.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use super::{Claim, SumOf, Turnstile};
use crate::wait::{Removed, Ticket, WaitCounts, WaiterState, Waiters, WakeBatch};

/// How many more tickets `order` may have of waiters that have left than of those in the queue.
const FEW: usize = 8;

/// What the lock of a turnstile protects.
pub(crate) struct WaitQueue<T: Turnstile> {
    /// What else the primitive keeps there.
    pub(crate) state: T::State,
    waiters: Waiters<T::Claim>,
    order: VecDeque<Ticket>,
    /// The sum of all claims in `waiters`.
    asked: SumOf<T>,
    /// The sum of the claims that have been notified.
    notified: SumOf<T>,
    /// No ticket younger than this one has ever been notified.
    last_notified: Option<Ticket>,
    granted: BTreeMap<Ticket, (T::Claim, T::Grant)>,
}

impl<T: Turnstile> WaitQueue<T> {
    pub(crate) const fn new(state: T::State) -> Self {
        Self {
            state,
            waiters: Waiters::new(),
            order: VecDeque::new(),
            asked: T::Claim::NOTHING,
            notified: T::Claim::NOTHING,
            last_notified: None,
            granted: BTreeMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiters.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// The sum of all claims in the queue.
    pub(crate) fn asked(&self) -> SumOf<T> {
        self.asked
    }

    /// The sum of the claims that have been notified.
    pub(crate) fn notified(&self) -> SumOf<T> {
        self.notified
    }

    pub(crate) fn get(&self, ticket: Ticket) -> Option<T::Claim> {
        self.waiters.get(ticket).copied()
    }

    /// The claim of a waiter that nobody else takes out of the queue.
    pub(crate) fn claim(&self, ticket: Ticket) -> T::Claim {
        self.get(ticket).expect("one in the queue")
    }

    /// All claims in the queue, in the order in which they are served.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ticket, T::Claim)> {
        let (mut by_age, mut by_order) = (self.waiters.iter(), self.order.iter());
        let is_by_age = self.order.is_empty();
        std::iter::from_fn(move || match is_by_age {
            true => by_age.next().map(|(ticket, &claim)| (ticket, claim)),
            false => by_order.find_map(|&ticket| Some((ticket, self.get(ticket)?))),
        })
    }

    pub(crate) fn front(&self) -> Option<(Ticket, T::Claim)> {
        match self.order.front() {
            Some(&ticket) => Some((ticket, self.claim(ticket))),
            None => self.waiters.front().map(|(ticket, &claim)| (ticket, claim)),
        }
    }

    /// An upper bound, found without a walk, of the sum of the claims ahead of this one.
    /// If every waiter that is not notified is behind this one, it is the sum of the other claims
    /// that are notified, otherwise of all other claims.
    pub(crate) fn most_ahead(&self, ticket: Ticket) -> SumOf<T> {
        let first = self.first_unnotified();
        let known = self.order.is_empty() && first.is_none_or(|(first, _)| first > ticket);
        let mut most = if known { self.notified } else { self.asked };
        self.claim(ticket).take_from(&mut most);
        most
    }

    /// The claims ahead of this one.
    pub(crate) fn ahead_of(&self, ticket: Ticket) -> impl Iterator<Item = T::Claim> {
        let ahead = self.iter().take_while(move |&(other, _)| other != ticket);
        ahead.map(|(_, claim)| claim)
    }

    pub(crate) fn is_notified(&self, ticket: Ticket) -> bool {
        self.waiters.is_notified(ticket)
    }

    pub(crate) fn all_notified(&self) -> bool {
        self.waiters.waiting() == 0
    }

    /// The oldest waiter that is not notified; for a queue that is served by age.
    pub(crate) fn first_unnotified(&self) -> Option<(Ticket, T::Claim)> {
        self.unnotified().next()
    }

    /// The sum of the claims ahead of [that waiter](Self::first_unnotified).
    /// `None`, as finding it takes a walk, if a younger waiter has been notified, which happens
    /// only after this one retried without success.
    pub(crate) fn sum_ahead_of_unnotified(&self, ticket: Ticket) -> Option<SumOf<T>> {
        let in_order = self.last_notified.is_none_or(|last| last < ticket);
        in_order.then_some(self.notified)
    }

    /// The sum of the claims that are notified, if it is known without a walk.
    /// All of them must be ahead of the [others](Self::unnotified).
    pub(crate) fn notified_ahead(&self) -> Option<SumOf<T>> {
        if !self.order.is_empty() {
            return None;
        }
        match self.first_unnotified() {
            Some((ticket, _)) => self.sum_ahead_of_unnotified(ticket),
            None => Some(self.notified),
        }
    }

    /// The waiters that are not notified, by age.
    pub(crate) fn unnotified(&self) -> impl Iterator<Item = (Ticket, T::Claim)> {
        let unnotified = self.waiters.iter_waiting();
        unnotified.map(|(ticket, &claim)| (ticket, claim))
    }

    /// Puts a claim at the end.
    pub(crate) fn enqueue(&mut self, claim: T::Claim, waker: Waker) -> Ticket {
        claim.add_to(&mut self.asked);
        let ticket = self.waiters.register(claim, waker);
        if !self.order.is_empty() {
            self.order.push_back(ticket);
        }
        ticket
    }

    /// Moves the claims from position `at` on that are to `come` ahead of the others there.
    /// They keep their order. `come` is called for the last claim first.
    pub(crate) fn move_ahead(&mut self, at: usize, mut come: impl FnMut(T::Claim) -> bool) {
        self.order = self.iter().map(|(ticket, _)| ticket).collect();
        let mut moved = Vec::new();
        for i in (at..self.order.len()).rev() {
            if come(self.claim(self.order[i])) {
                moved.extend(self.order.remove(i));
            }
        }
        for ticket in moved {
            self.order.insert(at, ticket);
        }
    }

    /// Notifies a waiter: it is to retry.
    pub(crate) fn notify(&mut self, ticket: Ticket, claim: T::Claim, wakes: &mut WakeBatch) {
        if self.waiters.notify(ticket, wakes) {
            claim.add_to(&mut self.notified);
            self.last_notified = self.last_notified.max(Some(ticket));
        }
    }

    /// Makes a waiter that retried without success sleep again.
    /// The next release has to take the lock after this, and notifies it.
    pub(super) fn rewait(&mut self, ticket: Ticket, waker: Waker) -> Option<Waker> {
        if self.is_notified(ticket) {
            self.claim(ticket).take_from(&mut self.notified);
        }
        self.waiters.rewait(ticket, waker)
    }

    /// Takes a waiter out of the queue, for any reason.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Removed<T::Claim>> {
        let removed = self.waiters.remove(ticket)?;
        removed.data.take_from(&mut self.asked);
        if removed.was_notified {
            removed.data.take_from(&mut self.notified);
        }
        if !self.order.is_empty() {
            self.tidy_order();
        }
        Some(removed)
    }

    /// By invariant 2.
    fn tidy_order(&mut self) {
        let waiters = &self.waiters;
        let is_in = |ticket: &Ticket| waiters.get(*ticket).is_some();
        while self.order.front().is_some_and(|first| !is_in(first)) {
            self.order.pop_front();
        }
        if self.order.len() > 2 * waiters.len() + FEW {
            self.order.retain(is_in);
        }
        if self.order.is_empty() {
            self.order = VecDeque::new();
        }
    }

    /// Takes a waiter out of the queue, and wakes it unless it has been notified.
    pub(crate) fn dismiss(&mut self, ticket: Ticket, wakes: &mut WakeBatch) -> Option<T::Claim> {
        let removed = self.remove(ticket)?;
        if let Some(waker) = removed.waker {
            wakes.push(waker);
        }
        Some(removed.data)
    }

    /// [Dismisses](Self::dismiss) a waiter, and keeps what it is granted until it is collected.
    pub(super) fn grant(&mut self, ticket: Ticket, grant: T::Grant, wakes: &mut WakeBatch) {
        let claim = self.dismiss(ticket, wakes);
        self.granted
            .extend(claim.map(|claim| (ticket, (claim, grant))));
    }

    /// Returns what a waiter was handed, once.
    pub(crate) fn collect(&mut self, ticket: Ticket) -> Option<(T::Claim, T::Grant)> {
        if self.granted.is_empty() {
            return None;
        }
        let granted = self.granted.remove(&ticket);
        if self.granted.is_empty() {
            // An empty map would keep its last block.
            self.granted = BTreeMap::new();
        }
        granted
    }

    /// How many wait, and the sum of their claims. Takes a step for each grant not yet collected.
    pub(crate) fn counts(&self) -> (WaitCounts, SumOf<T>) {
        let (mut counts, mut asked) = (self.waiters.counts(), self.asked);
        counts.notified += self.granted.len();
        let granted = self.granted.values();
        granted.for_each(|(claim, _)| claim.add_to(&mut asked));
        (counts, asked)
    }

    /// All waiters, in the order in which they are served.
    pub(crate) fn snapshot<S>(&self, waiter: impl Fn(T::Claim, WaiterState) -> S) -> Vec<S> {
        let granted = self.granted.values();
        let granted = granted.map(|&(claim, _)| (claim, WaiterState::Granted));
        let queued = self
            .iter()
            .map(|(ticket, claim)| match self.is_notified(ticket) {
                true => (claim, WaiterState::Notified),
                false => (claim, WaiterState::Waiting),
            });
        let all = granted.chain(queued);
        all.map(|(claim, state)| waiter(claim, state)).collect()
    }
}
