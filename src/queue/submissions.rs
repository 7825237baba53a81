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
//! 1. The numbers of the tokens in the list ascend, and are less than `next`.
//! 2. Somebody is said to sleep only while the list is empty, so that nothing that was
//!    posted before is overlooked.
//!
//! Memory ordering: the lock orders all of it.

use crate::group::{Lock, Mailbox};
use crate::ready::Entry;
use crate::sync::model_size;

/// Capacity for tokens that is not worth giving back.
pub(super) const FEW: usize = 64;

use super::GroupRef;
use super::units::Units;

/// One step on the list: a group that became ready, a unit of its lane's cap
/// that came back, or both. Its ticket is given to it there.
pub(super) type Token<T> = Entry<GroupRef<T>>;

impl<T> Token<T> {
    /// A group stands in line with its standing level.
    #[inline]
    pub(super) fn ready(group: GroupRef<T>, mailbox: &Mailbox<T>, unit: bool) -> Self {
        Self {
            ticket: 0,
            group: Some(group),
            link: mailbox.lane.index(),
            level: mailbox.level,
            units: unit.into(),
        }
    }

    /// Without a group; and without a unit only a ticket is wanted.
    pub(super) fn bare(lane: u32, unit: bool) -> Self {
        Self {
            ticket: 0,
            group: None,
            link: lane,
            level: 0,
            units: unit.into(),
        }
    }
}

/// What whoever posted is to do, with no group locked. The greater does what the
/// lesser asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub(crate) enum Posted {
    /// Nothing.
    #[default]
    Kept,
    /// The list is long: take it in, if nobody has the policy lock.
    Long,
    /// Somebody sleeps: look whom to wake.
    Look,
}

struct List<T> {
    tokens: Vec<Token<T>>,
    next: u64,
    /// A list that is as long as this is of interest: [`ASLEEP`] if somebody
    /// sleeps, else the next multiple of [`LONG`](Submissions::LONG).
    alarm: usize,
}

/// The first token is of interest.
const ASLEEP: usize = 1;

impl<T> List<T> {
    #[inline(always)]
    fn append(&mut self, mut token: Token<T>) -> u64 {
        let ticket = self.next;
        self.next += 1;
        token.ticket = ticket;
        if token.group.is_some() {
            self.tokens.push(token);
        } else if token.units > 0 {
            self.append_unit(token);
        }
        ticket
    }

    /// A unit came back, alone: it goes with the last token where that is of the
    /// same lane.
    fn append_unit(&mut self, token: Token<T>) {
        match self.tokens.last_mut() {
            Some(last) if last.link == token.link && last.units < u8::MAX => last.units += 1,
            _ => self.tokens.push(token),
        }
    }

    #[cold]
    fn ring(&mut self) -> Posted {
        if self.alarm == ASLEEP {
            return Posted::Look;
        }
        self.alarm = (self.tokens.len() + 1).next_multiple_of(Submissions::<T>::LONG);
        Posted::Long
    }
}

/// Apart from what stands beside it, as all senders change it.
#[repr(align(128))]
struct Apart<T>(T);

/// See the [module](self).
pub(super) struct Submissions<T> {
    /// Its note is how many tokens there are.
    list: Apart<Lock<List<T>>>,
    /// Units that come back in company.
    pub(super) units: Units,
}

impl<T> Submissions<T> {
    /// So many tokens are a long list.
    pub(super) const LONG: usize = model_size(4096, 4);

    pub(super) fn new() -> Self {
        let list = List {
            tokens: Vec::new(),
            next: 1,
            alarm: Self::LONG,
        };
        Self {
            list: Apart(Lock::new(list)),
            units: Units::default(),
        }
    }

    /// Appends a token: its ticket, and what is to be done.
    #[inline(always)]
    pub(super) fn post(&self, token: Token<T>) -> (u64, Posted) {
        let mut list = self.list.0.lock();
        let ticket = list.append(token);
        (ticket, self.appended(&mut list))
    }

    #[inline(always)]
    fn appended(&self, list: &mut List<T>) -> Posted {
        let waiting = list.tokens.len();
        self.list.0.set_note(waiting as u32);
        if waiting >= list.alarm {
            list.ring()
        } else {
            Posted::Kept
        }
    }

    /// Whether there may be a token.
    #[inline]
    pub(super) fn has_some(&self) -> bool {
        self.list.0.note() > 0
    }

    /// Swaps the tokens out into `empty`.
    #[inline]
    pub(super) fn take(&self, empty: &mut Vec<Token<T>>) {
        debug_assert!(empty.is_empty());
        let mut list = self.list.0.lock();
        std::mem::swap(&mut list.tokens, empty);
        self.list.0.set_note(0);
        list.alarm = list.alarm.min(Self::LONG);
    }

    /// A number after all tickets so far. What is in the list must have been
    /// taken; `None` if something came meanwhile.
    pub(super) fn mint(&self) -> Option<u64> {
        let mut list = self.list.0.lock();
        list.tokens.is_empty().then(|| {
            list.next += 1;
            list.next - 1
        })
    }

    /// Gives back what a long list has left.
    pub(super) fn shrink(&self) {
        let mut list = self.list.0.lock();
        if list.tokens.is_empty() && list.tokens.capacity() > FEW {
            list.tokens = Vec::new();
        }
    }

    /// Notes whether somebody sleeps. False if there is a token to be taken
    /// first.
    pub(super) fn sleep(&self, asleep: bool) -> bool {
        let mut list = self.list.0.lock();
        if asleep && !list.tokens.is_empty() {
            return false;
        }
        list.alarm = if asleep { ASLEEP } else { Self::LONG };
        true
    }
}
