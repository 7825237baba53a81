//! What is submitted to the policy: tokens of groups that became ready, units of caps that came
//! back, and moves of groups that were bumped in line.
//!
//! State: a list of tokens and a list of moves, the number of the next token, and whether
//! somebody sleeps, all under a leaf lock that is held for an append or a swap; and a flag that
//! makes claims look here before they take from the line.
//!
//! Protocol: an operation that makes a group ready posts its token with the group locked. The
//! token's number is the group's *ticket*: the time at which it became ready. A claim swaps the
//! list out under the policy lock. A receive that is about to sleep notes it here; a later post
//! must then look for whom to wake. A bump wakes nobody: it makes nothing eligible.
//!
//! A move has a group's old place in line, or the group itself, and its new place. Moves are
//! made after the tokens that were swapped out with them, since a place in line does not depend
//! on the order of insertion. A group that was claimed meanwhile is not found, since no number
//! is used twice.
//!
//! Invariants:
//! 1. The numbers of the tokens in the list ascend, and are less than `next`.
//! 2. When it is noted that somebody sleeps, the list is empty, so that nothing posted before is
//!    overlooked. Later tokens may stay in the list: the post of each looks for whom to wake.
//! 3. [`MOVED`] is set exactly if there is a move.
//!
//! Memory ordering: by the lock. A claim that looks without the lock sees what was posted
//! before it.

use crate::group::{BUMPED, Lock, Mailbox, Phase};
use crate::ready::{Entry, Position};
use crate::sync::{Apart, AtomicU8, Ordering, model_size};

/// A list of this capacity is not worth freeing.
pub(super) const FEW: usize = 64;

use super::GroupRef;
use super::units::Units;

/// One entry of the list: a group that became ready, a unit of its lane's cap that came back,
/// or both. It gets its ticket when it is appended.
pub(super) type Token<T> = Entry<GroupRef<T>>;

impl<T> Token<T> {
    /// A group goes into line with its standing level, or a unit of its lane comes back alone.
    #[inline]
    pub(super) fn of(group: Option<GroupRef<T>>, mailbox: &Mailbox<T>, unit: bool) -> Self {
        Self {
            ticket: 0,
            group,
            link: mailbox.lane.index(),
            level: mailbox.lane.level(),
            units: unit.into(),
        }
    }
}

/// A group takes a place in line because of its bump.
#[derive(Debug)]
pub(super) struct Move<T> {
    pub(super) lane: u32,
    pub(super) ticket: u64,
    /// The group, if it was not in line before.
    pub(super) group: Option<GroupRef<T>>,
    pub(super) from: Position,
    pub(super) to: Position,
}

impl<T> Move<T> {
    /// A move from `from` to where the group now belongs.
    fn new(mailbox: &Mailbox<T>, group: Option<GroupRef<T>>, from: Position) -> Self {
        Self {
            lane: mailbox.lane.index(),
            ticket: mailbox.ticket,
            group,
            from,
            to: mailbox.position(),
        }
    }
}

/// Claims must look here first, since a token may overtake what is in line: there are, or were,
/// several lanes or levels, or tiers.
pub(super) const MIXED: u8 = 1;
/// There is a move.
pub(super) const MOVED: u8 = 1 << 1;

/// What must be done after a post, with no group locked. A greater value includes the lesser
/// ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub(crate) enum Posted {
    /// Nothing.
    Kept,
    /// The list is long: take it in, if nobody has the policy lock.
    Long,
    /// Somebody sleeps: look for whom to wake.
    Look,
}

/// What each post uses comes first, on the line of the lock.
#[repr(C)]
struct List<T> {
    tokens: Vec<Token<T>>,
    next: u64,
    /// At this length the list asks for something: [`ASLEEP`] if somebody sleeps, else the next
    /// multiple of [`LONG`](Submissions::LONG).
    alarm: usize,
    moves: Vec<Move<T>>,
}

/// The first token wakes.
const ASLEEP: usize = 1;

impl<T> List<T> {
    #[inline(always)]
    fn append(&mut self, mut token: Token<T>) -> u64 {
        let ticket = self.number();
        token.ticket = ticket;
        self.tokens.push(token);
        ticket
    }

    fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.moves.is_empty()
    }

    #[inline(always)]
    fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
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

/// See the [module](self).
pub(super) struct Submissions<T> {
    /// Its note is the number of tokens. All senders change it.
    list: Apart<Lock<List<T>>>,
    /// Units that come back many at a time.
    pub(super) units: Units,
    /// Why claims look here first.
    urgent: Apart<AtomicU8>,
}

impl<T> Submissions<T> {
    /// From how many tokens a list is long.
    pub(super) const LONG: usize = model_size(4096, 4);

    pub(super) fn new() -> Self {
        let list = List {
            tokens: Vec::new(),
            next: 1,
            alarm: Self::LONG,
            moves: Vec::new(),
        };
        Self {
            list: Apart(Lock::new(list)),
            units: Units::default(),
            urgent: Apart(AtomicU8::new(0)),
        }
    }

    /// Whether a claim must take in what is here before it takes from the line.
    #[inline]
    pub(super) fn is_urgent(&self) -> bool {
        // Relaxed: what was posted before the claim is seen.
        self.urgent.0.load(Ordering::Relaxed) != 0
    }

    /// Whether a token may overtake what is in line.
    #[inline]
    pub(super) fn is_mixed(&self) -> bool {
        // Relaxed: set under the policy lock.
        self.urgent.0.load(Ordering::Relaxed) & MIXED != 0
    }

    /// From now on tokens may overtake. Under the policy lock.
    pub(super) fn mix(&self) {
        // Relaxed: as it is read.
        self.urgent.0.fetch_or(MIXED, Ordering::Relaxed);
    }

    /// Appends a token. Returns its ticket, and what must be done.
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

    /// A ticket without a token.
    pub(super) fn number(&self) -> u64 {
        self.list.0.lock().number()
    }

    /// Like [`post`](Self::post) for a bumped group; stores its ticket. What matters for the
    /// order of lanes still goes by a token.
    pub(super) fn post_bumped(&self, token: Token<T>, mailbox: &mut Mailbox<T>) -> Posted {
        let mut list = self.list.0.lock();
        if !self.is_mixed() && token.units == 0 {
            mailbox.ticket = list.number();
            let moved = Move::new(mailbox, token.group, mailbox.position());
            return match self.moved(&mut list, moved) {
                _ if list.alarm == ASLEEP => Posted::Look,
                posted => posted,
            };
        }
        mailbox.ticket = list.append(token);
        let standing = Position::new(mailbox.lane.level(), mailbox.ticket, None);
        let moved = self.moved(&mut list, Move::new(mailbox, None, standing));
        moved.max(self.appended(&mut list))
    }

    /// Bumps a locked group. A ready group moves in line, if it is there.
    pub(super) fn bump(&self, mailbox: &mut Mailbox<T>, level: u8) -> Posted {
        let from = mailbox.position();
        mailbox.flags |= BUMPED;
        let bump = &mut mailbox.rare().bump;
        let mut list = self.list.0.lock();
        *bump = (level, list.number());
        match mailbox.phase {
            Phase::Ready => self.moved(&mut list, Move::new(mailbox, None, from)),
            _ => Posted::Kept,
        }
    }

    fn moved(&self, list: &mut List<T>, moved: Move<T>) -> Posted {
        if list.moves.is_empty() {
            // Relaxed: ordered by the lock.
            self.urgent.0.fetch_or(MOVED, Ordering::Relaxed);
            self.list.0.set_note(list.tokens.len() as u32 + 1);
        }
        list.moves.push(moved);
        match list.moves.len().is_multiple_of(Self::LONG) {
            true => Posted::Long,
            false => Posted::Kept,
        }
    }

    /// Whether there may be a token, or a move.
    #[inline]
    pub(super) fn has_some(&self) -> bool {
        self.list.0.note() > 0
    }

    /// How many tokens there are, if there is no move. Under the policy lock.
    pub(super) fn tokens(&self) -> Option<usize> {
        // Relaxed: a look sees what was posted before it.
        let moved = self.urgent.0.load(Ordering::Relaxed) & MOVED != 0;
        (!moved).then(|| self.list.0.note() as usize)
    }

    /// Swaps tokens and moves out for empty lists. Returns whether tokens may overtake, and
    /// whether there was a move.
    #[inline]
    pub(super) fn take(&self, empty: &mut Vec<Token<T>>, no_moves: &mut Vec<Move<T>>) -> u8 {
        debug_assert!(empty.is_empty());
        let mut list = self.list.0.lock();
        std::mem::swap(&mut list.tokens, empty);
        self.list.0.set_note(0);
        list.alarm = list.alarm.min(Self::LONG);
        // Relaxed: ordered by the lock.
        let urgent = self.urgent.0.load(Ordering::Relaxed);
        if urgent & MOVED != 0 {
            std::mem::swap(&mut list.moves, no_moves);
            self.urgent.0.fetch_and(!MOVED, Ordering::Relaxed);
        }
        urgent
    }

    /// A number after all tickets so far; `None` if the list is not empty.
    pub(super) fn mint(&self) -> Option<u64> {
        let mut list = self.list.0.lock();
        list.is_empty().then(|| list.number())
    }

    /// Frees what a long list has left.
    pub(super) fn shrink(&self) {
        let mut list = self.list.0.lock();
        if list.tokens.is_empty() && list.tokens.capacity() > FEW {
            list.tokens = Vec::new();
        }
    }

    /// Notes whether somebody sleeps. False if tokens must be taken first.
    pub(super) fn sleep(&self, asleep: bool) -> bool {
        let mut list = self.list.0.lock();
        if asleep && !list.is_empty() {
            return false;
        }
        list.alarm = if asleep { ASLEEP } else { Self::LONG };
        true
    }
}
