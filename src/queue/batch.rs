//! Several deliveries of a turn as one.

use std::iter::{Chain, FusedIterator};
use std::{option, vec};

use crate::group::{BOUNDED, CAPPED, TIERED, Taken};
use crate::shown::shows;
use crate::sync::Arc;

use super::bounds;
use super::shared::Shared;
use super::special::{self, Live};
use super::suspended::Failure;

const FIRST: &str = "a batch has a first message until it ends";

/// Several messages taken out, borrowed from their turn. See
/// [`Turn::next_batch`](super::Turn::next_batch).
///
/// On drop, messages that were not completed go back to their places. Only the first of them
/// counts an attempt: the reader failed at it. If a batch is forgotten (`mem::forget`), all but
/// the first message are lost and keep their room of a capacity.
///
/// If a bulk write fails, it may not tell at which message; yet the failure counts for the first.
/// So when a batch comes [again](Self::attempt), do its messages one by one. Otherwise the group
/// may be poisoned by a message that is fine.
///
/// ```
/// # use conversant::prelude::*;
/// # use conversant::queue::NoMore;
/// # use std::iter::once;
/// # fn write<'a>(mut rows: impl Iterator<Item = &'a i32>) -> bool {
/// #     rows.all(|&row| row > 0)
/// # }
/// let queue = Queue::builder().attempts(3).build()?;
/// let rows = queue.lane(1, Limit::Unlimited)?.conversation()?;
/// rows.send_all([1, 2, -3, 4])?;
/// queue.close();
/// while let Ok(mut turn) = queue.receive().wait() {
///     while let Some(batch) = turn.next_batch(100) {
///         let done = match batch.attempt() {
///             1 if write(batch.iter()) => batch.len(),
///             1 => 0,
///             _ => batch.iter().take_while(|&row| write(once(row))).count(),
///         };
///         batch.complete_up_to(done);
///     }
/// }
/// let poisoned = queue.poisoned().remove(0);
/// assert_eq!(queue.take_failed(poisoned.group)?, Some(-3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping a batch gives it back"]
pub struct Batch<'t, T> {
    shared: &'t Arc<Shared<T>>,
    live: &'t mut Live<T>,
    /// The messages behind the one in `live`, in order, without a gap, none of which has failed.
    rest: Vec<T>,
}

impl<'t, T> Batch<'t, T> {
    /// The first message is already taken out.
    #[inline(always)]
    pub(super) fn take(shared: &'t Arc<Shared<T>>, live: &'t mut Live<T>, most: u32) -> Self {
        let rest = match most > 1 && live.group().waiting() > 0 {
            true => Self::take_rest(shared, live, most - 1),
            false => Vec::new(),
        };
        live.quota -= 1 + rest.len() as u32;
        Self { shared, live, rest }
    }

    #[inline(never)]
    fn take_rest(shared: &Shared<T>, live: &Live<T>, most: u32) -> Vec<T> {
        let (group, first) = (live.group(), live.taken.as_ref().expect(FIRST));
        let mut mailbox = group.lock();
        if mailbox.flags & CAPPED != 0 && shared.epoch() != live.epoch {
            let lane = mailbox.lane.index();
            drop(mailbox);
            if !shared.with_state(|state| state.lanes.lane(lane).is_within_cap()) {
                return Vec::new();
            }
            mailbox = group.lock();
        }
        // With tiers each message must be checked whether it may start.
        if mailbox.flags & TIERED != 0 || !mailbox.may_take() {
            return Vec::new();
        }
        let rest = group.take_behind(&mut mailbox, first, most);
        if mailbox.flags & BOUNDED != 0 {
            bounds::count_taken(group, mailbox);
        }
        rest
    }

    /// How many messages the batch has; at least 1.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        usize::from(self.live.taken.is_some()) + self.rest.len()
    }

    /// Which delivery of its first message this is, from 1. None of the others has failed.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        let first = self.live.taken.as_ref().expect(FIRST);
        first.attempts.saturating_add(1)
    }

    /// The messages, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let first = self.live.taken.iter().map(|taken| &taken.message);
        first.chain(&self.rest)
    }

    /// Completes all messages.
    #[inline]
    pub fn complete(mut self) -> Completed<T> {
        let rest = std::mem::take(&mut self.rest);
        self.completed(rest)
    }

    /// Completes the first `n` messages. The others are given back, and the first of them has
    /// failed.
    pub fn complete_up_to(mut self, n: usize) -> Completed<T> {
        let mut rest = std::mem::take(&mut self.rest);
        let back = rest.split_off(n.saturating_sub(1).min(rest.len()));
        let back = self.placed(rest.len(), back);
        let completed = match n {
            0 => Completed(None.into_iter().chain(rest)),
            _ => self.completed(rest),
        };
        special::fail(self.shared, self.live, back, Failure::ByRule);
        completed
    }

    /// The message in `live` and those of `rest` are done.
    #[inline]
    fn completed(&mut self, rest: Vec<T>) -> Completed<T> {
        let first = self.live.taken.take();
        if let Some(first) = &first
            && self.live.is_counted()
        {
            special::completed(self.shared, self.live, first.tier, 1 + rest.len());
        }
        let first = first.map(|taken| taken.message);
        Completed(first.into_iter().chain(rest))
    }
}

/// The messages of a [`Batch`] that were completed, in order.
pub struct Completed<T>(Chain<option::IntoIter<T>, vec::IntoIter<T>>);

impl<T> Iterator for Completed<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T> ExactSizeIterator for Completed<T> {}
impl<T> FusedIterator for Completed<T> {}

shows!([T] Completed<T>, |completed| left: completed.len());

impl<T> Drop for Batch<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.len() > 0 {
            let rest = std::mem::take(&mut self.rest);
            let rest = self.placed(0, rest);
            self.shared.dropped(self.live.group().key(), || {
                special::fail(self.shared, self.live, rest, Failure::ByRule);
            });
        }
    }
}

impl<T> Batch<'_, T> {
    /// Messages of the batch with their places, from the one with `before` others between it and
    /// the first.
    #[cold]
    fn placed(&self, before: usize, messages: Vec<T>) -> Vec<Taken<T>> {
        let first = self.live.taken.as_ref().expect(FIRST);
        let messages = (before..).zip(messages);
        messages
            .map(|(n, message)| first.behind(n, message))
            .collect()
    }
}

shows!([T] Batch<'_, T>, |batch| len: batch.len());
