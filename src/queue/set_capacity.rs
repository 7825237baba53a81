//! Setting the capacities of groups and lanes.

use crate::error::OutOfRange;
use crate::group::of_bound;
use crate::limit::Limit;

use super::handles::{Conversation, Group};
use super::lane::Lane;
use super::observers::own_capacity;

impl<T> Lane<T> {
    /// Sets how many messages may wait in all groups of this lane together, in addition to the
    /// [queue's](super::Builder::capacity) capacity; no limit at first. Otherwise like
    /// [`Conversation::set_capacity`].
    ///
    /// Cost: O(groups of the queue) for the first capacity and for none, and some 150 bytes
    /// in each group of the lane.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`]; nothing has changed.
    pub fn set_capacity(&self, capacity: impl Into<Limit>) -> Result<(), OutOfRange> {
        let capacity = capacity.into().checked("capacity")?;
        self.shared().capacity.use_parts();
        let changed = self
            .shared()
            .with_state(|state| state.change_lane(self.key(), capacity));
        changed.finish();
        Ok(())
    }

    /// How many messages may wait in all groups of this lane together.
    #[must_use]
    pub fn capacity(&self) -> Limit {
        self.shared().with_state(|state| {
            let bound = state.lane_bounds.get(&self.number());
            of_bound(bound.map(|bound| &**bound)).0
        })
    }
}

impl<T> Group<T> {
    /// Like [`Conversation::set_capacity`].
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`]; nothing has changed.
    pub fn set_capacity(&self, capacity: impl Into<Limit>) -> Result<(), OutOfRange> {
        let capacity = capacity.into().checked("capacity")?;
        self.pin.queue().set_capacity(&self.pin, capacity);
        Ok(())
    }

    /// How many messages may wait in the group.
    #[must_use]
    pub fn capacity(&self) -> Limit {
        own_capacity(&self.pin)
    }
}

impl<T> Conversation<T> {
    /// Sets how many messages may wait in the group, in addition to the capacities of the
    /// [queue](super::Builder::capacity) and the [lane](Lane::set_capacity); no limit at first. A
    /// customer who is not served then fills only its own group, and the queue has room for all
    /// others.
    ///
    /// A message waits if it was sent and is not in flight. As in a bounded channel, a message
    /// that a turn takes out makes room; a message that is given back waits again, whether
    /// there is room or not. Messages of a poisoned group wait, and so does one that is being
    /// peeked at. A full group refuses a send at once with
    /// [`GroupFull`](super::SendReason::GroupFull). Waiting [sends](Self::send_wait) and
    /// [reservations](Self::reserve) get room in their order: first in the group, then in the
    /// lane, then in the queue.
    ///
    /// The capacity may be changed at any time. Lowering it takes nothing out; 0 lets nothing
    /// in until it is raised. A send under way when the first capacity is set may exceed it.
    ///
    /// ```
    /// use conversant::prelude::*;
    /// use conversant::queue::SendReason;
    ///
    /// let queue = Queue::builder().capacity(100).build()?;
    /// let customers = queue.lane(1, Limit::Unlimited)?;
    /// let (dead, alive) = (customers.conversation()?, customers.conversation()?);
    /// dead.set_capacity(2)?;
    /// dead.send_all(["one", "two"])?;
    /// let refused = dead.send("three").unwrap_err();
    /// assert_eq!((refused.message, refused.reason), ("three", SendReason::GroupFull));
    /// alive.send("has room")?;
    ///
    /// let mut turn = queue.try_receive()?;
    /// assert_eq!(turn.next().map(|delivery| delivery.complete()), Some("one"));
    /// dead.send("three")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Handlers
    ///
    /// A reader that holds the turn of a full group and waits for room in it waits for itself,
    /// for ever. In a queue with a capacity of its own, [`wait()`](crate::wait::Wait::wait)
    /// then returns [`OwnQueue`](super::SendReason::OwnQueue).
    ///
    /// # Cost
    ///
    /// O(1) under the queue's lock. From then on each send into the group costs two more short
    /// locks and one more read-modify-write, and each message taken out one addition.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`]; nothing has changed.
    pub fn set_capacity(&self, capacity: impl Into<Limit>) -> Result<(), OutOfRange> {
        let capacity = capacity.into().checked("capacity")?;
        self.pin.queue().set_capacity(&self.pin, capacity);
        Ok(())
    }

    /// How many messages may wait in the group.
    #[must_use]
    pub fn capacity(&self) -> Limit {
        own_capacity(&self.pin)
    }
}
