//! What is on its way to the policy: tokens of groups that became ready, and
//! units of caps that came back.
//!
//! State: a list of tokens, the running number of the next, and whether
//! somebody sleeps, all under a leaf lock that is held for an append or a swap.
//!
//! Protocol: whoever makes a group ready posts its token with the group locked.
//! The token's number is the group's *ticket*: its ready time. Who claims work
//! swaps the list out, under the policy lock. A receive that is about to sleep
//! says so here; whoever posts after that has to look whom to wake.
//!
//! Invariants:
//! 1. Tokens in the list have the numbers before `next`, one after the other.
//! 2. `asleep` is set only while the list is empty, so that nothing that was
//!    posted before is overlooked.
//!
//! Memory ordering: the lock orders all of it. `some` is a hint.

use std::ops::Range;

use crate::sync::{Arc, AtomicBool, Mutex, Ordering, model_size};

use super::GroupRef;

/// One step on the list. Without a group only its number is wanted, or the unit
/// that came back with it.
pub(super) struct Token<T> {
    pub(super) level: u8,
    /// A unit of the lane's cap came back with it.
    pub(super) unit: bool,
    pub(super) lane: u32,
    /// Stands in line with its standing level.
    pub(super) group: Option<GroupRef<T>>,
}

impl<T> Token<T> {
    #[inline]
    pub(super) fn ready(group: &GroupRef<T>, level: u8, unit: bool) -> Self {
        Self {
            level,
            unit,
            lane: group.lane.index(),
            group: Some(Arc::clone(group)),
        }
    }

    pub(super) fn bare(lane: u32, unit: bool) -> Self {
        Self {
            level: 0,
            unit,
            lane,
            group: None,
        }
    }
}

/// What whoever posted is to do, with no group locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub(crate) enum Posted {
    /// Nothing.
    #[default]
    Kept,
    /// The list is long: take it in, if nobody else does.
    Long,
    /// Somebody sleeps: look whom to wake.
    Look,
}

struct List<T> {
    tokens: Vec<Token<T>>,
    next: u64,
    asleep: bool,
}

pub(super) struct Submissions<T> {
    list: Mutex<List<T>>,
    some: AtomicBool,
}

impl<T> Submissions<T> {
    /// So many tokens are a long list.
    pub(super) const LONG: usize = model_size(4096, 4);

    pub(super) fn new() -> Self {
        let list = List {
            tokens: Vec::new(),
            next: 1,
            asleep: false,
        };
        Self {
            list: Mutex::new(list),
            some: AtomicBool::new(false),
        }
    }

    /// Appends a token: its ticket, and what is to be done.
    #[inline]
    pub(super) fn post(&self, token: Token<T>) -> (u64, Posted) {
        let mut list = self.list.lock();
        list.tokens.push(token);
        // Relaxed: a hint, on the line of the lock.
        self.some.store(true, Ordering::Relaxed);
        let ticket = list.next;
        list.next += 1;
        let posted = if list.asleep {
            Posted::Look
        } else if list.tokens.len().is_multiple_of(Self::LONG) {
            Posted::Long
        } else {
            Posted::Kept
        };
        (ticket, posted)
    }

    /// Appends tokens, one after the other: their tickets, and what is to be done.
    pub(super) fn post_many(&self, mut tokens: Vec<Token<T>>) -> (Range<u64>, Posted) {
        if tokens.is_empty() {
            return (0..0, Posted::Kept);
        }
        let mut list = self.list.lock();
        let (first, before) = (list.next, list.tokens.len());
        list.next += tokens.len() as u64;
        list.tokens.append(&mut tokens);
        // Relaxed: a hint, on the line of the lock.
        self.some.store(true, Ordering::Relaxed);
        let posted = if list.asleep {
            Posted::Look
        } else if before / Self::LONG < list.tokens.len() / Self::LONG {
            Posted::Long
        } else {
            Posted::Kept
        };
        (first..list.next, posted)
    }

    /// Whether there may be a token.
    #[inline]
    pub(super) fn has_some(&self) -> bool {
        self.some.load(Ordering::Relaxed)
    }

    /// Swaps the tokens out into `empty`, and gives the ticket of the first.
    #[inline]
    pub(super) fn take(&self, empty: &mut Vec<Token<T>>) -> u64 {
        debug_assert!(empty.is_empty());
        let mut list = self.list.lock();
        std::mem::swap(&mut list.tokens, empty);
        self.some.store(false, Ordering::Relaxed);
        list.next - empty.len() as u64
    }

    /// A number after all tickets so far. What is in the list must have been
    /// taken; `None` if something came meanwhile.
    pub(super) fn mint(&self) -> Option<u64> {
        let mut list = self.list.lock();
        list.tokens.is_empty().then(|| {
            list.next += 1;
            list.next - 1
        })
    }

    /// Notes whether somebody sleeps. False if there is a token to be taken
    /// first.
    pub(super) fn sleep(&self, asleep: bool) -> bool {
        let mut list = self.list.lock();
        if asleep && !list.tokens.is_empty() {
            return false;
        }
        if asleep && list.tokens.capacity() > Self::LONG {
            list.tokens = Vec::new();
        }
        list.asleep = asleep;
        true
    }
}
