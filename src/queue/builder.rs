//! What a queue is to be, before it is one.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use crate::limit::{Bypass, Limit};
use crate::retry::Retry;

use super::id::GroupId;

/// What a queue is to be.
#[must_use]
pub struct Builder<T> {
    /// The most deliveries of one turn.
    pub(super) quantum: u32,
    pub(super) bypass: Bypass,
    /// What becomes of a message that fails.
    pub(super) retry: Retry,
    pub(super) capacity: Limit,
    /// Who is told of a delivery that was dropped.
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

    /// The most deliveries of one turn, 1 or more; 16 by default. After that
    /// many the reader must look who is next; until then a bump waits.
    pub fn quantum(mut self, quantum: u32) -> Self {
        self.quantum = quantum;
        self
    }

    /// How many times in a row the oldest eligible group of a lane may be
    /// overtaken; at most 64 times by default.
    pub fn bypass(mut self, bypass: Bypass) -> Self {
        self.bypass = bypass;
        self
    }

    /// How many messages the queue holds at most, those in flight and given back
    /// counted; no limit by default. A full queue refuses what is
    /// [sent](super::Conversation::send) at once, also by its own handlers;
    /// [`send_wait`](super::Conversation::send_wait) waits for room. Ends,
    /// errors and timers of [dialogs](crate::dialog) ask for no room. One that fills it
    /// holds up all others, unless groups or lanes have
    /// [capacities](super::Conversation::set_capacity) of their own.
    pub fn capacity(mut self, capacity: impl Into<Limit>) -> Self {
        self.capacity = capacity.into();
        self
    }

    /// How often a message is delivered in vain before its group is
    /// [poisoned](super::Queue::poisoned); 5 times by default.
    pub fn attempts(mut self, attempts: impl Into<Limit>) -> Self {
        self.retry.attempts = attempts.into();
        self
    }

    /// A group whose delivery was not completed pauses for `first`, after the
    /// same message's next failure for twice that, and so on, but never for longer
    /// than `most`; by default not at all. Other groups do not wait; its tier does.
    ///
    /// Somebody has to keep the time, or no pause ends: a
    /// [`Ticker`](crate::ticker::Ticker), and then a pause counts from the failure; or calls of
    /// [`Queue::advance`](super::Queue::advance). Then it counts from the time that was told
    /// last, and ends when it is told that the pause is over: tell it often, or pauses are too
    /// short.
    pub fn back_off(mut self, first: Duration, most: Duration) -> Self {
        (self.retry.first, self.retry.most) = (first, most);
        self
    }

    /// Calls this when a delivery is dropped outside of a panic and was neither
    /// completed nor explicitly given back, most often because a `complete`
    /// was forgotten: to log it, or to panic in a test. The message has gone back;
    /// [`Counts::dropped`](super::Counts::dropped) counts such drops in any case.
    pub fn on_dropped(mut self, told: impl Fn(GroupId) + Send + Sync + 'static) -> Self {
        self.on_dropped = Some(Box::new(told));
        self
    }
}

impl<T> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("quantum", &self.quantum)
            .field("bypass", &self.bypass)
            .field("retry", &self.retry)
            .field("capacity", &self.capacity)
            .finish()
    }
}
