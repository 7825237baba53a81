//! A permit of a queue's capacity, taken before there is a message for it.

use std::fmt;

use crate::group::CLOSED;
use crate::wait::Wait;

use super::capacity::Permits;
use super::handles::Conversation;
use super::refuse::{SendError, SendReason};
use super::send_wait::Sending;

/// A permit of the queue's capacity for one message of a [`Conversation`], which
/// can then be sent at once. Dropped unused, the permit is given back.
#[must_use = "dropped, the permit is given back"]
pub struct Reserved<'a, T> {
    conversation: &'a Conversation<T>,
}

/// The wait of [`Conversation::reserve`].
pub type Reserve<'a, T> =
    Sending<'a, &'a Conversation<T>, (), Result<Reserved<'a, T>, SendError<()>>>;

impl<T> Conversation<T> {
    /// Waits until the queue has room for a message, and keeps it: for a message
    /// that is costly to make, or is sent where nobody can wait. All that is said of
    /// [`send_wait`](Self::send_wait) holds.
    ///
    /// ```
    /// use conversant::limit::Limit;
    /// use conversant::queue::Queue;
    ///
    /// let queue = Queue::builder().capacity(1).build()?;
    /// let conversation = queue.lane(1, Limit::Unlimited)?.conversation()?;
    /// let reserved = conversation.reserve().wait()?;
    /// assert!(conversation.send("no room").is_err());
    /// reserved.send("has its room")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SendError`] if the queue is closed, before or meanwhile, or the calling
    /// thread may not wait for it.
    pub fn reserve(&self) -> Wait<Reserve<'_, T>> {
        let capacity = &self.pin.queue().capacity;
        Sending::wait(capacity, 1, (self, ()), |to, message, permits| {
            let reserved = permits.and_then(|permits| to.keep(permits));
            reserved.map_err(|reason| SendError { message, reason })
        })
    }

    /// [`reserve`](Self::reserve), if there is room now that nobody waits for.
    ///
    /// # Errors
    ///
    /// [`SendReason`], if there is none.
    pub fn try_reserve(&self) -> Result<Reserved<'_, T>, SendReason> {
        self.keep(self.pin.queue().capacity.take(1)?)
    }

    /// Keeps a permit, unless there is nothing to use it for any more: a queue without a
    /// capacity has no word that says so.
    fn keep(&self, permits: Permits<'_>) -> Result<Reserved<'_, T>, SendReason> {
        if self.pin.lock().flags & CLOSED != 0 {
            return Err(SendReason::Closed);
        }
        permits.keep();
        Ok(Reserved { conversation: self })
    }
}

impl<T> Reserved<'_, T> {
    /// Sends the message, as [`Conversation::send`] would.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message, if the queue has been closed meanwhile.
    pub fn send(self, message: T) -> Result<(), SendError<T>> {
        let pin = &self.conversation.pin;
        // The permit is the message's.
        std::mem::forget(self);
        pin.queue().send_one((pin, None), message, true, ())
    }
}

impl<T> Drop for Reserved<'_, T> {
    fn drop(&mut self) {
        self.conversation.pin.queue().capacity.release(1);
    }
}

impl<T> fmt::Debug for Reserved<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserved").finish_non_exhaustive()
    }
}
