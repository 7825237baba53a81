//! The settings of a queue before it is built.

use std::marker::PhantomData;
use std::time::Duration;

use crate::limit::{Bypass, Limit};
use crate::retry::Retry;
use crate::shown::shows;

use super::id::GroupId;

/// The settings of a queue before it is built.
#[must_use]
pub struct Builder<T> {
    /// The most deliveries of a turn.
    pub(super) quantum: u32,
    pub(super) bypass: Bypass,
    /// What happens to a message that fails.
    pub(super) retry: Retry,
    pub(super) capacity: Limit,
    /// Called for a dropped delivery.
    pub(super) on_dropped: Option<Box<dyn Fn(GroupId) + Send + Sync>>,
    of: PhantomData<fn() -> T>,
}

impl<T> Builder<T> {
    pub(super) fn new() -> Self {
        Self {
            quantum: 16,
            bypass: Bypass::default(),
            retry: Retry::default(),
            capacity: Limit::Unlimited,
            on_dropped: None,
            of: PhantomData,
        }
    }

    /// The most deliveries of a turn, 1 or more; 16 by default. After that many, the reader must
    /// receive its next turn; a bump may have to wait until then.
    pub fn quantum(mut self, quantum: u32) -> Self {
        self.quantum = quantum;
        self
    }

    /// How many times in a row the oldest eligible group of a lane may be overtaken; 64 by
    /// default.
    pub fn bypass(mut self, bypass: Bypass) -> Self {
        self.bypass = bypass;
        self
    }

    /// How many messages the queue holds at most, including those in flight and given back; no
    /// limit by default. A full queue refuses a [`send`](super::Conversation::send) at once,
    /// also from its own handlers; [`send_wait`](super::Conversation::send_wait) waits for
    /// room. Ends, errors and timers of [dialogs](crate::dialog) need no room. A group that
    /// fills the queue blocks all others, unless groups or lanes have
    /// [capacities](super::Conversation::set_capacity) of their own. 0 lets nothing in, as it
    /// does for those.
    pub fn capacity(mut self, capacity: impl Into<Limit>) -> Self {
        self.capacity = capacity.into();
        self
    }

    /// How many failed deliveries of a message [poison](super::Queue::poisoned) its group; 5 by
    /// default.
    pub fn attempts(mut self, attempts: impl Into<Limit>) -> Self {
        self.retry.attempts = attempts.into();
        self
    }

    /// A group whose delivery was not completed pauses for `first`, after the next failure of
    /// the same message for twice as long, and so on, at most for `most`; no pause by default.
    /// Other groups go on; the tier of the group waits.
    ///
    /// **Something must keep the time, or no pause ends** and `receive` waits for ever. A
    /// [`Ticker`](crate::ticker::Ticker) measures a pause from the failure. With your own calls of
    /// [`Queue::advance`](super::Queue::advance) a pause is measured from the time passed last,
    /// and ends when you pass its end: call often, or pauses are too short.
    pub fn back_off(mut self, first: Duration, most: Duration) -> Self {
        (self.retry.first, self.retry.most) = (first, most);
        self
    }

    /// Calls `callback` when a delivery is dropped outside of a panic, neither completed nor
    /// explicitly given back; usually a `complete` was forgotten. Use it to log this, or to
    /// panic in a test. The message has gone back; [`Counts::dropped`](super::Counts::dropped)
    /// counts the same drops, also without a callback.
    pub fn on_dropped(mut self, callback: impl Fn(GroupId) + Send + Sync + 'static) -> Self {
        self.on_dropped = Some(Box::new(callback));
        self
    }
}

shows! {
    [T] Builder<T>, |builder|
    quantum: builder.quantum, bypass: builder.bypass, retry: builder.retry,
    capacity: builder.capacity
}
