//! What the word does not say: the other tiers, the waiters, and counts that are too large for it.
//!
//! The invariants that are cited here are those of `gate.rs`.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::task::Waker;

use super::word::Word;
use super::{Shared, State, Ticket, TierGate};
use crate::sync::MutexGuard;
use crate::tiers::Tiers;
use crate::wait::{Session, Waiters, WakeBatch};

impl Shared {
    /// Joins a ticket to a tier that need not be the open one.
    #[cold]
    pub(super) fn join_locked(&self, tier: u32) {
        let mut state = self.state.lock_plain();
        if self.word.is_unaffected_by(tier) {
            // The open tier cannot change meanwhile, and nothing in the word has to.
            state.read(&self.word);
            state.tiers.arrive(tier);
            return;
        }
        state.change(&self.word, |tiers| tiers.arrive(tier));
        self.notify(state);
    }

    /// A ticket that is inside leaves; then one of tier `next` enters, if that is possible.
    #[cold]
    pub(super) fn leave_locked(&self, tier: u32, next: Option<u32>) -> bool {
        let mut state = self.state.lock_plain();
        let entered = state.pass_on(&self.word, next).unwrap_or_else(|| {
            state.change(&self.word, |tiers| {
                tiers.finish(tier);
                next.is_some_and(|next| start(tiers, next))
            })
        });
        self.notify(state);
        entered
    }

    /// A ticket that is outside is dropped.
    #[cold]
    pub(super) fn cancel_locked(&self, tier: u32) {
        let mut state = self.state.lock_plain();
        state.change(&self.word, |tiers| tiers.leave(tier));
        self.notify(state);
    }

    /// Notifies the waiters that can go on; does nothing more if nobody waits.
    fn notify(&self, state: MutexGuard<'_, State>) {
        if !state.waits.is_empty() {
            Session::over(state).repeat(|state, wakes| state.admit(&self.word, wakes));
        }
    }
}

impl<G: Borrow<TierGate>> Ticket<G> {
    /// Enters, under the lock: the answer is exact. If that fails and there is a waker, waits.
    /// Entering lets nobody else in.
    #[cold]
    pub(super) fn enter_locked(&mut self, waker: Option<Waker>) {
        let shared = &self.gate.borrow().shared;
        let mut session = shared.state.lock();
        if session.change(&shared.word, |tiers| start(tiers, self.tier)) {
            self.entered = true;
            session.stop_waiting(self.tier, &mut self.position);
            session.discard_waker(waker);
        } else if let Some(waker) = waker {
            let waiters = session.waits.entry(self.tier).or_default();
            let old = match self.position {
                Some(position) => waiters.rewait(position, waker),
                None => {
                    self.position = Some(waiters.register((), waker));
                    None
                }
            };
            session.discard_waker(old);
        }
    }
}

/// Enters a ticket, if its tier takes one.
fn start(tiers: &mut Tiers, tier: u32) -> bool {
    let startable = tiers.startable(tier);
    if startable {
        tiers.start(tier);
    }
    startable
}

impl State {
    /// Changes the state with the current counts in it, by invariants 4 and 5.
    pub(super) fn change<R>(&mut self, word: &Word, f: impl FnOnce(&mut Tiers) -> R) -> R {
        word.take(&mut self.tiers);
        let result = f(&mut self.tiers);
        word.give(&self.tiers);
        result
    }

    /// [`change`](Self::change) for the most frequent case: nobody need be kept off the word.
    /// The last ticket of the open tier leaves, and the next tier opens by one compare-and-swap.
    /// Returns whether a ticket of tier `enters` is inside then, or `None` if this is another case.
    fn pass_on(&mut self, word: &Word, enters: Option<u32>) -> Option<bool> {
        let mut others = self.tiers.others();
        let (tier, count) = others.next()?;
        let more = others.next().is_some();
        drop(others);
        let enters = enters == Some(tier);
        let before = word.pass_on(tier, count, more, enters)?;
        // Other threads go on by what the word says; the state follows.
        before.update(&mut self.tiers);
        self.tiers.finish(before.tier());
        Some(enters)
    }

    /// Updates the counts in the state.
    pub(super) fn read(&mut self, word: &Word) {
        word.load().update(&mut self.tiers);
    }

    /// Notifies the waiters of the open tier, by invariant 1; false if the batch is full first.
    fn admit(&mut self, word: &Word, wakes: &mut WakeBatch) -> bool {
        self.read(word);
        let Some(tier) = self.tiers.open().filter(|_| !self.tiers.draining()) else {
            return true;
        };
        let Some(waiters) = self.waits.get_mut(&tier) else {
            return true;
        };
        while waiters.waiting() > 0 {
            if wakes.is_full() {
                return false;
            }
            waiters.notify_next(wakes);
        }
        true
    }

    fn drop_empty(&mut self, tier: u32) {
        if self.waits.get(&tier).is_some_and(Waiters::is_empty) {
            self.waits.remove(&tier);
        }
        if self.waits.is_empty() {
            // An emptied map would keep its last node.
            self.waits = BTreeMap::new();
        }
    }
}

impl Session<'_, State> {
    /// Takes a waiter out of its queue; nobody else needs its notification.
    pub(super) fn stop_waiting(&mut self, tier: u32, position: &mut Option<crate::wait::Ticket>) {
        let waiters = self.waits.get_mut(&tier);
        let waker = waiters.and_then(|waiters| waiters.withdraw(position));
        self.drop_empty(tier);
        self.discard_waker(waker);
    }
}
