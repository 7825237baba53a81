//! Deliveries: messages taken out of their group, until they are completed or given back.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::group::{BARE, CAPPED, Phase, Taken};
use crate::shown::shows;

use super::Pinned;
use super::holders::Holder;
use super::id::GroupId;
use super::special::{self, Live, Owner};
use super::submissions::Posted;
use super::suspended::Failure;

/// A message taken out of its group, borrowed from its turn.
///
/// [`complete`](Self::complete) marks the message as done and returns it. On drop, also by a
/// panic or with an aborted task, the message is given back: it returns to its old place, and
/// the attempt counts. After the last [attempt](super::Builder::attempts) its group is
/// poisoned. [`Builder::on_dropped`](super::Builder::on_dropped) finds forgotten calls of
/// `complete`.
#[must_use = "dropping a delivery gives it back"]
pub struct Delivery<'t, T> {
    shared: &'t Owner<'t, T>,
    live: &'t mut Live<T>,
}

impl<'t, T> Delivery<'t, T> {
    #[inline]
    pub(super) fn new(shared: &'t Owner<'t, T>, live: &'t mut Live<T>) -> Self {
        Self { shared, live }
    }

    /// The group of the message.
    #[must_use]
    pub fn group_id(&self) -> GroupId {
        self.shared.id(self.live.group().key())
    }

    /// One more than how many deliveries of this message have failed.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.taken().attempts.saturating_add(1)
    }

    /// The message's tier.
    #[must_use]
    pub fn tier(&self) -> u32 {
        self.taken().tier
    }

    /// Marks the message as done and returns it. What happened before is visible to the group's
    /// next turn.
    #[inline(always)]
    pub fn complete(self) -> T {
        // Nothing is given back on drop.
        let mut this = ManuallyDrop::new(self);
        let Self { shared, live } = &mut *this;
        let taken = live.taken.take().expect(TAKEN_OUT);
        if live.is_counted() {
            special::completed(shared, live, taken.tier, 1);
        }
        taken.message
    }

    /// Gives the message back and counts the attempt, like a drop.
    pub fn give_back(self) {
        ManuallyDrop::new(self).fail(Failure::ByRule);
    }

    /// As [`give_back`](Self::give_back), but its group pauses for this long, whatever the
    /// [back-off](super::Builder::back_off). For a receiver that says when to come again. As for a
    /// back-off, something must keep the time. If the group has a limit above 1 and another message
    /// of it poisons it, before or meanwhile, the pause ends with that.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use conversant::prelude::*;
    /// let queue = Queue::new();
    /// let anna = queue.lane(1, Limit::Unlimited)?.conversation()?;
    /// anna.send_all(["to a busy server", "behind it"])?;
    /// let mut turn = queue.receive().wait()?;
    /// turn.next().expect("the first").give_back_after(Duration::from_secs(120));
    /// drop(turn);
    /// assert_eq!(queue.advance(Duration::ZERO), Some(Duration::from_secs(120)));
    /// assert!(queue.try_receive().is_err());
    /// queue.advance(Duration::from_secs(120));
    /// queue.try_receive()?.next().expect("the first").fail_for_good();
    /// assert_eq!(queue.take_failed(anna.group_id())?, Some("to a busy server"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn give_back_after(self, pause: Duration) {
        ManuallyDrop::new(self).fail(Failure::Pause(pause));
    }

    /// As [`give_back`](Self::give_back), but this was the last attempt: the group is poisoned. If
    /// another message has poisoned it already, this one just comes again.
    pub fn fail_for_good(self) {
        ManuallyDrop::new(self).fail(Failure::ForGood);
    }

    /// Detaches the delivery from its turn. It keeps the turn's units of the group's limit and
    /// of the lane's cap until it is completed or given back; the turn takes others for its
    /// next message.
    ///
    /// To drop the turn after this, detach in the same statement. In the body of
    /// `if let Some(delivery) = turn.next()` the turn is borrowed to the end.
    ///
    /// ```
    /// # use conversant::prelude::*;
    /// # let queue = Queue::new();
    /// # let order = queue.lane(1, Limit::Unlimited)?.conversation()?;
    /// # order.send("an order")?;
    /// let mut turn = queue.receive().wait()?;
    /// let detached = turn.next().map(|delivery| delivery.detach());
    /// drop(turn);
    /// assert_eq!(detached.map(|order| order.complete()), Some("an order"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn detach(self) -> Detached<T> {
        let mut this = ManuallyDrop::new(self);
        let Self { shared, live } = &mut *this;
        let taken = live.taken.take().expect(TAKEN_OUT);
        (live.unit, live.counted, live.plain) = (false, false, false);
        let group = live.group();
        let mut mailbox = group.lock();
        mailbox.change_room(|rare| {
            rare.detached += 1;
            rare.swept = false;
        });
        mailbox.flags |= BARE;
        let pin = group.pin(&mut mailbox);
        drop(mailbox);
        let pin = pin.unwrap_or_else(|| special::pin(shared, group));
        Detached {
            held: Some((pin, taken)),
            holder: shared.capacity.hold(),
        }
    }

    fn fail(&mut self, how: Failure) {
        special::fail(self.shared, self.live, Vec::new(), how);
    }

    fn taken(&self) -> &Taken<T> {
        self.live.taken.as_ref().expect(TAKEN_OUT)
    }
}

const TAKEN_OUT: &str = "a delivery holds its message until it is consumed";

impl<T> Deref for Delivery<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.taken().message
    }
}

impl<T> DerefMut for Delivery<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.live.taken.as_mut().expect(TAKEN_OUT).message
    }
}

impl<T> Drop for Delivery<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.live.taken.is_some() {
            let (shared, group) = (self.shared, self.live.group().key());
            shared.dropped(group, || self.fail(Failure::ByRule));
        }
    }
}

shows! {
    [T] Delivery<'_, T>, |one|
    group: one.group_id(), tier: one.tier(), attempt: one.attempt()
}

/// A delivery that may outlive its turn. It keeps one unit of its group's limit and of its
/// lane's cap until it is completed or given back.
#[must_use = "dropping a delivery gives it back"]
pub struct Detached<T> {
    /// `None` once it is consumed.
    held: Option<(Pinned<T>, Taken<T>)>,
    holder: Holder,
}

impl<T> Detached<T> {
    /// The group of the message.
    #[must_use]
    pub fn group_id(&self) -> GroupId {
        let (pin, _) = self.held();
        pin.queue().id(pin.key())
    }

    /// One more than how many deliveries of this message have failed.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.taken().attempts.saturating_add(1)
    }

    /// The message's tier.
    #[must_use]
    pub fn tier(&self) -> u32 {
        self.taken().tier
    }

    /// Marks the message as done, frees its units and returns it.
    pub fn complete(self) -> T {
        let mut this = ManuallyDrop::new(self);
        let (pin, taken) = this.held.take().expect(TAKEN_OUT);
        pin.queue().capacity.let_go(&mut this.holder);
        let (posted, pin) = pin.end_if(|shared, group, mailbox| {
            if !mailbox.is_plain_but(BARE) {
                return (None, false);
            }
            mailbox.change_room(|rare| rare.detached -= 1);
            let unit = mailbox.flags & CAPPED != 0;
            let posted = if mailbox.phase == Phase::Blocked {
                shared.submit(group, mailbox, unit)
            } else {
                shared.return_unit(mailbox, unit)
            };
            let ends = posted == Posted::Kept && !shared.capacity.is_limited();
            (Some(posted), ends)
        });
        if let Some(pin) = pin {
            let shared = pin.queue();
            // First, because a waker in what follows may send.
            shared.capacity.release(1);
            match posted {
                Some(posted) => shared.posted(posted),
                None => special::end_detached(shared, &pin, taken.tier, None),
            }
        }
        taken.message
    }

    /// Gives the message back and counts the attempt, like a drop.
    pub fn give_back(self) {
        ManuallyDrop::new(self).fail(Failure::ByRule);
    }

    /// As [`give_back`](Self::give_back), but its group pauses for this long, whatever the
    /// [back-off](super::Builder::back_off): see [`Delivery::give_back_after`].
    pub fn give_back_after(self, pause: Duration) {
        ManuallyDrop::new(self).fail(Failure::Pause(pause));
    }

    /// As [`give_back`](Self::give_back), but this was the last attempt: the group is poisoned. If
    /// another message has poisoned it already, this one just comes again.
    pub fn fail_for_good(self) {
        ManuallyDrop::new(self).fail(Failure::ForGood);
    }

    fn fail(&mut self, how: Failure) {
        let (pin, taken) = self.held.take().expect(TAKEN_OUT);
        self.put_back(&pin, taken, how);
    }

    fn put_back(&mut self, pin: &Pinned<T>, taken: Taken<T>, how: Failure) {
        pin.queue().capacity.let_go(&mut self.holder);
        special::end_detached(pin.queue(), pin, taken.tier, Some((taken, how)));
    }

    fn held(&self) -> &(Pinned<T>, Taken<T>) {
        self.held.as_ref().expect(TAKEN_OUT)
    }

    fn taken(&self) -> &Taken<T> {
        &self.held().1
    }
}

impl<T> Deref for Detached<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.taken().message
    }
}

impl<T> DerefMut for Detached<T> {
    fn deref_mut(&mut self) -> &mut T {
        let (_, taken) = self.held.as_mut().expect(TAKEN_OUT);
        &mut taken.message
    }
}

impl<T> Drop for Detached<T> {
    fn drop(&mut self) {
        if let Some((pin, taken)) = self.held.take() {
            let give_back = || self.put_back(&pin, taken, Failure::ByRule);
            pin.queue().dropped(pin.key(), give_back);
        }
    }
}

shows!([T] Detached<T>, |one| group: one.group_id(), tier: one.tier(), attempt: one.attempt());
