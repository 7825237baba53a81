//! How the capacities of groups and lanes are set.

use crate::error::OutOfRange;
use crate::limit::Limit;

use super::bounds::checked;
use super::handles::{Change, Conversation, Group, Lane};

impl<T> Lane<T> {
    /// How many messages may wait in all groups of this lane together, beside what the
    /// [queue](super::Builder::capacity) may hold; no limit at first. All that is said of
    /// [`Conversation::set_capacity`] holds.
    ///
    /// Cost: O(groups of the queue) for the first capacity and for none, and some 150 bytes
    /// in each group of the lane.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`]; nothing has changed.
    pub fn set_capacity(&self, capacity: impl Into<Limit>) -> Result<(), OutOfRange> {
        let capacity = checked(capacity.into())?;
        self.shared.capacity.use_parts();
        let changed = self
            .shared
            .with_state(|state| state.change_lane(self.key, capacity));
        changed.finish();
        Ok(())
    }
}

impl<T> Group<T> {
    /// As [`Conversation::set_capacity`].
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`]; nothing has changed.
    pub fn set_capacity(&self, capacity: impl Into<Limit>) -> Result<(), OutOfRange> {
        let change = Change::Capacity(checked(capacity.into())?);
        self.pin.queue().change_holding(&self.pin, change, ());
        Ok(())
    }
}

impl<T> Conversation<T> {
    /// How many messages may wait in its group, beside what the
    /// [queue](super::Builder::capacity) and its [lane](Lane::set_capacity) may hold; no
    /// limit at first. So a customer who is not served fills its own group and no more,
    /// and room is left in the queue for all others.
    ///
    /// What waits is what was sent and is not in flight: a message that a turn takes out
    /// makes room, as in a bounded channel, and one that is given back waits again,
    /// whether there is room or not. Those of a poisoned group wait, and so does one that
    /// somebody looks at. A full group refuses what is sent at once, as
    /// [`GroupFull`](super::SendReason::GroupFull), and what waits to be
    /// [sent](Self::send_wait) or [reserved](Self::reserve) has room in its order, first in
    /// the group, then in the lane, then in the queue.
    ///
    /// It may be changed at any time. Lowering it takes nothing out; 0 lets nothing in,
    /// until it is raised. A send that is on its way when the first capacity is set may go
    /// past it.
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
    /// Who holds the turn of a full group and waits for room in it waits for itself, for
    /// ever. In a queue with a capacity of its own [`wait()`](crate::wait::Wait::wait) gives
    /// [`OwnQueue`](super::SendReason::OwnQueue) then.
    ///
    /// # Cost
    ///
    /// O(1) under the queue's lock. From then on a send into the group costs two short locks
    /// and one exchange of a word more, and a message that is taken out an addition.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] above [`Limit::MAX`]; nothing has changed.
    pub fn set_capacity(&self, capacity: impl Into<Limit>) -> Result<(), OutOfRange> {
        let change = Change::Capacity(checked(capacity.into())?);
        self.pin.queue().change_holding(&self.pin, change, ());
        Ok(())
    }
}
