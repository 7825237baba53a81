//! Those who wait, under one lock: who has been told that permits are free, who
//! has been given some, and who is turned away.
//!
//! State: `waiters` is the line, with what each asks for. Told is a waiter that
//! the list has notified. `granted` holds what was handed over to waiters that
//! have not been polled since; they are out of the line.
//!
//! ```text
//!            take_or_wait             told, by the line
//!   (taker) -------------> waiting <-------------------> told
//!                             |     looked in vain         |
//!                             +------- handed over --------+--> granted
//!                             |                            |       |
//!                             +--- turned away, cancelled, +       |
//!                             |    or took by itself       |       |
//!                             v                            v       v
//!                           (gone) <------ polled, or cancelled ---+
//! ```
//!
//! A plain value: who takes and who waits is decided in `enter`, who is told,
//! handed over to or turned away in `service`.
//!
//! Invariants:
//! 1. `asked` and `told` are the sums that they say.
//! 2. A ticket is in one of `waiters` and `granted` at most.
//! 3. What has become empty has given its memory back, but for a few slots of
//!    the list.

use std::collections::BTreeMap;
use std::panic::Location;
use std::task::Waker;

use super::snapshot::{Standing, WaiterState};
use crate::wait::{Removed, Ticket, Waiters, WakeBatch};

/// One request in line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) count: u32,
    pub(super) made_at: &'static Location<'static>,
}

/// What stands under the lock.
pub(super) struct Line {
    pub(super) limit: u32,
    pub(super) waiters: Waiters<Claim>,
    /// The sum of all counts in `waiters`.
    pub(super) asked: u64,
    /// The sum of those that have been told.
    told: u64,
    /// Nobody behind this place has ever been told.
    last_told: Option<Ticket>,
    pub(super) granted: BTreeMap<Ticket, Claim>,
}

impl Line {
    pub(super) const fn new(limit: u32) -> Self {
        Self {
            limit,
            waiters: Waiters::new(),
            asked: 0,
            told: 0,
            last_told: None,
            granted: BTreeMap::new(),
        }
    }

    /// The longest waiting that has not been told.
    pub(super) fn first_untold(&self) -> Option<(Ticket, Claim)> {
        let (ticket, claim) = self.waiters.iter_waiting().next()?;
        Some((ticket, *claim))
    }

    /// What those before this one ask for, unless that is more than `available`.
    pub(super) fn ahead_of(&self, ticket: Ticket, available: i64) -> Option<u64> {
        let mut sum = 0u64;
        for (earlier, claim) in self.waiters.iter() {
            if earlier >= ticket {
                break;
            }
            sum += u64::from(claim.count);
            if i64::try_from(sum).is_ok_and(|sum| sum > available) {
                return None;
            }
        }
        Some(sum)
    }

    /// [`ahead_of`](Self::ahead_of) the first that has not been told: all before
    /// it have been. Without a walk unless somebody behind it has been, too,
    /// which takes one that looked in vain.
    pub(super) fn ahead_of_untold(&self, ticket: Ticket, available: i64) -> Option<u64> {
        if self.last_told.is_none_or(|last| last < ticket) {
            Some(self.told)
        } else {
            self.ahead_of(ticket, available)
        }
    }

    pub(super) fn tell(&mut self, ticket: Ticket, claim: Claim, wakes: &mut WakeBatch) {
        let told = self.waiters.notify(ticket, wakes);
        debug_assert!(told);
        self.told += u64::from(claim.count);
        self.last_told = self.last_told.max(Some(ticket));
    }

    /// Takes a waiter out of the line, whatever for.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Removed<Claim>> {
        let removed = self.waiters.remove(ticket)?;
        let count = u64::from(removed.data.count);
        self.asked -= count;
        if removed.was_notified {
            self.told -= count;
        }
        Some(removed)
    }

    /// Takes a waiter out of the line and wakes it if it does not know that
    /// there is something to see.
    pub(super) fn dismiss(&mut self, ticket: Ticket, wakes: &mut WakeBatch) -> Option<Claim> {
        let removed = self.leave(ticket)?;
        if let Some(waker) = removed.waker {
            wakes.push(waker);
        }
        Some(removed.data)
    }

    /// One that looked in vain is among the sleepers again, so that the next
    /// give-back, which waits for the lock, tells it.
    pub(super) fn wait_again(&mut self, ticket: Ticket, waker: Waker) -> Option<Waker> {
        if self.waiters.is_notified(ticket) {
            let count = self.waiters.get(ticket).map_or(0, |claim| claim.count);
            self.told -= u64::from(count);
        }
        self.waiters.rewait(ticket, waker)
    }

    pub(super) fn collect_grant(&mut self, ticket: Ticket) -> Option<Claim> {
        let claim = self.granted.remove(&ticket);
        if self.granted.is_empty() {
            // An empty map keeps its last block otherwise.
            self.granted = BTreeMap::new();
        }
        claim
    }

    /// All that wait, first come first.
    pub(super) fn standing(&self) -> Vec<Standing> {
        let standing = |claim: &Claim, state| Standing {
            count: claim.count,
            state,
            made_at: claim.made_at,
        };
        let granted = self.granted.iter();
        let granted =
            granted.map(|(&ticket, claim)| (ticket, standing(claim, WaiterState::Granted)));
        let in_line = self.waiters.iter().map(|(ticket, claim)| {
            let state = match self.waiters.is_notified(ticket) {
                true => WaiterState::Told,
                false => WaiterState::Waiting,
            };
            (ticket, standing(claim, state))
        });
        let mut all: Vec<_> = granted.chain(in_line).collect();
        all.sort_unstable_by_key(|&(ticket, _)| ticket);
        all.into_iter().map(|(_, standing)| standing).collect()
    }
}
