//! Turns and deliveries: what a receive gives.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::backlog::Claim;
use crate::dispatch::{Blocked, GroupKey};
use crate::sync::Arc;

use super::hand::{Hand, Play};
use super::handles::GroupId;
use super::posts::Post;
use super::shared::{Books, Shared};

/// The exclusive right to receive from one group, until it is dropped.
///
/// It begins with its first delivery already taken, so that every limit is
/// exact; [`next`](Self::next) hands that one out first. Dropping the turn lets
/// the next receive go on: a group that has work and room stands in line again,
/// behind those of its level that were ready before. What has not been handed
/// out goes back, its attempt not counted.
///
/// To overlap the work of one group (of a limit above 1) drop the turn before
/// the work begins: take the turn, `next`, drop the turn, work, complete.
#[must_use = "dropping a turn gives back what it has not handed out"]
pub struct Turn<T> {
    hand: Arc<Hand<T>>,
    /// Taken with the turn and not handed out yet.
    first: Option<Claim<T>>,
    /// How many more it may take.
    left: u32,
}

impl<T> Turn<T> {
    /// Begins the next turn; made under the lock.
    pub(super) fn begin(shared: &Arc<Shared<T>>, books: &mut Books<T>) -> Option<Self> {
        let first = books.backlog.claim(true)?;
        Some(Self::with(shared, books, first))
    }

    /// Begins a turn of this group; made under the lock.
    pub(super) fn begin_of(
        shared: &Arc<Shared<T>>,
        books: &mut Books<T>,
        group: GroupKey,
    ) -> Result<Self, Blocked> {
        let first = books.backlog.claim_of(group)?;
        Ok(Self::with(shared, books, first))
    }

    fn with(shared: &Arc<Shared<T>>, books: &mut Books<T>, first: Claim<T>) -> Self {
        let hand = Hand::new(shared, first.group, books.room.hold(2));
        let left = shared.quantum - 1;
        books.deal(&hand, left);
        Self {
            hand,
            first: Some(first),
            left,
        }
    }

    /// Whose turn it is.
    #[must_use]
    pub fn group(&self) -> GroupId {
        GroupId::new(&self.hand.shared, self.hand.group)
    }

    /// The group's next message, if the turn may have it now.
    ///
    /// Nothing if the quantum is used up, the group is empty, no unit of its
    /// limit is free (in a serial group: the last delivery of this turn has not
    /// been completed or given back), or its lane's cap or tier forbids. Only
    /// the first of these is for good.
    ///
    /// Cost: a lock that nobody else wants, for what was there when the turn
    /// last asked, and as long as nothing came since for its group or another
    /// in 64; else the policy lock. Always the latter, but for the first
    /// message, with a capacity, in a capped lane, with tiers, in a closed
    /// queue, and while somebody waits for any group by name.
    #[allow(
        clippy::should_implement_trait,
        reason = "after nothing there may be something again"
    )]
    pub fn next(&mut self) -> Option<Delivery<T>> {
        if let Some(claim) = self.first.take() {
            return Some(Delivery::new(&self.hand, claim));
        }
        let left = self.left.checked_sub(1)?;
        let hand = &self.hand;
        let delivery = match hand.play() {
            Play::Message(claim) => Delivery::new(hand, claim),
            Play::Nothing => return None,
            Play::Ask => hand.shared.brief(|books| {
                books.call_in_one(hand);
                let claim = books.backlog.take(hand.group).ok();
                let taken = claim.map(|claim| {
                    books.room.hold_more(hand.holder);
                    Delivery::new(hand, claim)
                });
                books.deal(hand, left + u32::from(taken.is_none()));
                taken
            })?,
        };
        self.left = left;
        Some(delivery)
    }
}

impl<T> Drop for Turn<T> {
    fn drop(&mut self) {
        let Self { hand, first, .. } = self;
        let first = first.take();
        if first.is_none() && !hand.shared.bounded {
            return Hand::end(hand);
        }
        let unwanted = hand.shared.event(|books| {
            books
                .room
                .let_go(hand.holder, 1 + u32::from(first.is_some()));
            let unwanted = first.and_then(|claim| books.give_back(claim));
            books.backlog.end_turn(hand.group);
            unwanted
        });
        drop(unwanted);
    }
}

impl<T> fmt::Debug for Turn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("group", &self.group())
            .field("left", &(self.left + u32::from(self.first.is_some())))
            .finish_non_exhaustive()
    }
}

/// A message in hand, with one unit of its group's limit and of its lane's cap.
///
/// It is done when [`complete`](Self::complete) is called, and only then. If it
/// is dropped instead, on purpose or because its handler panics, it goes back
/// to its place in its conversation and is delivered again, as the next
/// attempt, after a back-off if the queue has one; after the last attempt its
/// group is [poisoned](super::Queue::poisoned). With a limit above 1, messages sent after it may have been
/// delivered in between.
///
/// It may outlive the turn that it came from, and the queue.
#[must_use = "dropping a delivery gives it back"]
pub struct Delivery<T> {
    hand: Arc<Hand<T>>,
    /// `None` only in the call that consumes it.
    claim: Option<Claim<T>>,
}

impl<T> Delivery<T> {
    fn new(hand: &Arc<Hand<T>>, claim: Claim<T>) -> Self {
        Self {
            hand: hand.clone(),
            claim: Some(claim),
        }
    }

    /// The group it came from.
    #[must_use]
    pub fn group(&self) -> GroupId {
        GroupId::new(&self.hand.shared, self.hand.group)
    }

    /// Which delivery of this message it is: 1 is the first.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.claim().attempt.saturating_add(1)
    }

    /// The message's tier.
    #[must_use]
    pub fn tier(&self) -> u32 {
        self.claim().tier
    }

    /// It is done: frees its unit and hands the message out.
    ///
    /// # Panics
    ///
    /// If the waker of a receive that this wakes panics; the message is done
    /// all the same, and dropped.
    pub fn complete(mut self) -> T {
        let claim = self.claim.take().expect(IN_HAND);
        let (hand, group, tier) = (&self.hand, claim.group, claim.tier);
        if hand.shared.bounded {
            hand.shared.event(|books| {
                books.room.let_go(hand.holder, 1);
                books.backlog.complete(group, tier);
            });
        } else if !hand.done() {
            hand.shared.post(Post::Done(group, tier));
        }
        claim.item
    }

    /// It is not done: puts it back to its place, to be delivered again as the
    /// next attempt. The same as dropping it.
    pub fn give_back(self) {}

    fn claim(&self) -> &Claim<T> {
        self.claim.as_ref().expect(IN_HAND)
    }
}

const IN_HAND: &str = "a delivery holds its message until it is consumed";

impl<T> Deref for Delivery<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.claim().item
    }
}

impl<T> DerefMut for Delivery<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.claim.as_mut().expect(IN_HAND).item
    }
}

impl<T> Drop for Delivery<T> {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            drop(self.hand.shared.event(|books| {
                books.room.let_go(self.hand.holder, 1);
                books.fail(claim)
            }));
        }
    }
}

/// Without the message, so that every delivery has it.
impl<T> fmt::Debug for Delivery<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("group", &self.group())
            .field("tier", &self.tier())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}
