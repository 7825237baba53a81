//! A first-in-first-out line whose members may leave from the middle.
//!
//! State: an array of tokens (sequence number, member), oldest first, and a
//! tree for the few that come with an older number than the array's last.
//!
//! Protocol: leaving costs nothing here. The member's owner forgets that it
//! stands in line, and its token is recognised as stale by the predicate that
//! every reading call takes: `stands(member, sequence)` says whether that
//! member still stands in this line under that number. Only the token at the
//! front of the array goes with its member.
//!
//! Invariants:
//! 1. `live` is the number of members for which `stands` is true.
//! 2. Each of them has a token here; at most one in the array and one in the
//!    tree, since equal numbers are not appended twice in a row and the tree
//!    is a set.
//! 3. Tokens in the array do not decrease.
//! 4. There are at most `4 * live + SLACK` tokens after any call, so a storm
//!    of leaving and coming back costs amortised O(1) each (O(log n) in the
//!    tree) and no memory.

use std::collections::{BTreeSet, VecDeque};

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// Stale tokens that are not worth a sweep, and places kept by an empty line.
const SLACK: usize = 16;

/// One line of members, by increasing sequence number.
#[derive(Debug, Default)]
pub struct Fifo {
    tokens: VecDeque<(u64, u32)>,
    late: BTreeSet<(u64, u32)>,
    live: u32,
}

impl Fifo {
    /// How many stand in line.
    #[inline]
    pub fn len(&self) -> usize {
        self.live as usize
    }

    /// Whether nobody stands in line.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// `member`, which does not stand here, joins under `seq`.
    #[inline]
    pub fn insert(&mut self, seq: u64, member: u32) {
        self.live += 1;
        match self.tokens.back() {
            Some(&(newest, _)) if seq > newest => self.tokens.push_back((seq, member)),
            Some(&last) if last == (seq, member) => {}
            Some(_) => _ = self.late.insert((seq, member)),
            None => {
                self.tokens.reserve_exact(1);
                self.tokens.push_back((seq, member));
            }
        }
    }

    /// `member`, which stood under `seq`, left; `stands` already says so.
    #[inline]
    pub fn leave(&mut self, seq: u64, member: u32, stands: impl Fn(u32, u64) -> bool) {
        self.live -= 1;
        if self.live == 0 {
            return self.clear();
        }
        if self.tokens.front() == Some(&(seq, member)) {
            self.tokens.pop_front();
        }
        let (tokens, capacity) = (self.tokens(), self.tokens.capacity());
        if tokens > 4 * self.len() + SLACK || capacity > 8 * self.tokens.len() + SLACK {
            self.sweep(stands);
        }
    }

    /// Keeps invariant 4, and the array's block in proportion.
    #[inline(never)]
    fn sweep(&mut self, stands: impl Fn(u32, u64) -> bool) {
        if self.tokens() > 4 * self.len() + SLACK {
            self.tokens.retain(|&(seq, member)| stands(member, seq));
            self.late.retain(|&(seq, member)| stands(member, seq));
        }
        self.tokens.shrink_to(2 * self.tokens.len());
    }

    /// The member that has the lowest number.
    #[inline]
    pub fn front(&mut self, mut stands: impl FnMut(u32, u64) -> bool) -> Option<(u64, u32)> {
        if self.live == 0 {
            return None;
        }
        while let Some(&(seq, member)) = self.tokens.front()
            && !stands(member, seq)
        {
            self.tokens.pop_front();
        }
        if self.late.is_empty() {
            return self.tokens.front().copied();
        }
        self.front_of_both(stands)
    }

    /// As [`front`](Self::front), where some came late; the array's first stands.
    #[inline(never)]
    fn front_of_both(&mut self, mut stands: impl FnMut(u32, u64) -> bool) -> Option<(u64, u32)> {
        while let Some(&(seq, member)) = self.late.first()
            && !stands(member, seq)
        {
            self.late.pop_first();
        }
        match (self.tokens.front().copied(), self.late.first().copied()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Nobody stands in line any more.
    fn clear(&mut self) {
        self.tokens.clear();
        if !self.late.is_empty() {
            self.late.clear();
        }
        if self.tokens.capacity() > SLACK {
            self.tokens = VecDeque::new();
        }
    }

    /// Tokens held, stale ones included.
    #[inline]
    pub fn tokens(&self) -> usize {
        self.tokens.len() + self.late.len()
    }
}
