//! What was done without the lock that decides, for its next holder to take in.
//!
//! A policy lock is held for long, and every thread that claims work wants it.
//! Whoever only has something to report posts a token instead: it appends to a
//! list under a lock that is held for that one append, and goes on. Whoever
//! holds the policy lock takes the list in first, in its order; so what the
//! policy lock guards is, for everybody who asks, what it would be had every
//! post been done under it.
//!
//! State: the list, whether anybody sleeps who must hear of a post, and whether
//! posts are refused, all under one mutex.
//!
//! Protocol: the policy lock may be held when this one is taken, never the
//! other way round. Before its holder lets the policy lock go while somebody
//! sleeps, it says so by [`rest`](Tokens::rest); if something has been posted
//! since it took the list in, it takes that in first. A poster that is told to
//! [look](Posted::Look) takes the policy lock, takes the list in and wakes who
//! is due; one that is told that the list is [full](Posted::Full) does so if
//! nobody holds that lock, and otherwise leaves it to the next holder.
//!
//! Invariants:
//! 1. If somebody sleeps, `sleepers` is set, or a post that was told to look
//!    has not looked yet: list and flag change under one lock, so that a
//!    wake-up cannot be lost between them. It may be set longer than needed.
//! 2. After [`close`](Desk::close) nothing is posted that asks whether it may,
//!    and whoever posts what does not ask is told to look, so that nothing
//!    stays here for ever.
//! 3. The list stays short while the policy lock is free for a moment now and
//!    then: each [`FULL`](Tokens::FULL) of posts somebody is told. So two lists
//!    that are swapped keep their blocks, and hardly a post allocates but while
//!    they grow for the first time.
//!
//! Cost: one mutex, held for one append: 12 ns alone. Messages go into the list
//! themselves. An inbox for each group, with a list of the groups that have
//! something, lets two senders of different groups pass each other, but costs
//! whoever takes in a cold line a message: two senders and one taker, in ns a
//! message (`cargo bench --bench inbox`, two shared cores, quiet, 2026-11-21):
//!
//! | groups | one list | inboxes and tokens | lock-free mailboxes |
//! |---|---|---|---|
//! | 64 | 41 | 109 | 56 |
//! | 10,000 | 39 | 266 | 56 |
//! | 1,000,000 | 41 | 280 | 268 |

use crate::sync::{Mutex, MutexGuard, model_size};

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub(crate) struct Tokens<P> {
    state: Mutex<State<P>>,
}

struct State<P> {
    posted: Vec<P>,
    /// Somebody sleeps who must hear of a post.
    sleepers: bool,
    /// See invariant 2.
    closed: bool,
}

/// What the poster is to do now.
#[must_use = "somebody may sleep who must hear of it"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    /// Nothing: whoever takes the policy lock next finds it.
    Kept,
    /// As for [`Look`](Self::Look), if nobody holds the policy lock.
    Full,
    /// Take the policy lock and look.
    Look,
}

impl<P> Tokens<P> {
    /// A list of so many is full: 4 KiB of them, and no fewer than 16.
    pub(crate) const FULL: usize = {
        let fit = 4 * 1024 / (size_of::<P>() + 1);
        model_size(if fit < 16 { 16 } else { fit }, 4)
    };

    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                posted: Vec::new(),
                sleepers: false,
                closed: false,
            }),
        }
    }

    /// Keeps everybody from posting, until it is used or dropped.
    pub(crate) fn lock(&self) -> Desk<'_, P> {
        Desk(self.state.lock())
    }

    /// Swaps the list for `empty`, which is.
    pub(crate) fn take(&self, empty: &mut Vec<P>) {
        debug_assert!(empty.is_empty());
        let mut state = self.state.lock();
        if !state.posted.is_empty() {
            std::mem::swap(&mut state.posted, empty);
        }
    }

    /// Says whether anybody sleeps. False, and nothing said, if somebody does
    /// and there is something to take in.
    pub(crate) fn rest(&self, sleepers: bool) -> bool {
        let mut state = self.state.lock();
        if sleepers && !state.posted.is_empty() {
            return false;
        }
        state.sleepers = sleepers;
        true
    }
}

/// The right to post, or to see that nothing is posted meanwhile.
pub(crate) struct Desk<'a, P>(MutexGuard<'a, State<P>>);

impl<P> Desk<'_, P> {
    /// Whether posts that ask are refused.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.closed
    }

    /// Refuses posts that ask from now on.
    pub(crate) fn close(mut self) {
        self.0.closed = true;
    }

    /// Posts a token.
    pub(crate) fn post(self, token: P) -> Posted {
        self.post_all([token])
    }

    /// Posts tokens, with nothing of others in between. To make them runs no
    /// code of the user's.
    pub(crate) fn post_all(mut self, tokens: impl IntoIterator<Item = P>) -> Posted {
        let State {
            posted,
            sleepers,
            closed,
        } = &mut *self.0;
        let before = posted.len() / Tokens::<P>::FULL;
        posted.extend(tokens);
        if *sleepers || *closed {
            Posted::Look
        } else if posted.len() / Tokens::<P>::FULL > before {
            Posted::Full
        } else {
            Posted::Kept
        }
    }
}
