//! Room that is reserved for a later message.

use crate::group::CLOSED;
use crate::shown::shows;
use crate::wait::Wait;

use super::bounds::{Granted, admit, bound_of};
use super::handles::Conversation;
use super::refuse::{SendError, SendReason};
use super::sending::{Sending, Steps};

/// Room for one message of a [`Conversation`], which can be sent at once. Given back if it is
/// dropped unused.
#[must_use = "dropped, the room is given back"]
pub struct Reserved<'a, T> {
    conversation: &'a Conversation<T>,
    granted: Granted<'a>,
}

pub(super) type Reserving<'a, T> =
    Sending<'a, &'a Conversation<T>, (), Result<Reserved<'a, T>, SendReason>>;

impl<T> Conversation<T> {
    /// Waits until there is room for a message in the group, its lane and the queue, and
    /// reserves it: for a message that is costly to make, or is sent where nobody can wait.
    /// Waits like [`send_wait`](Self::send_wait), with the same guarantees.
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
    /// [`SendReason`] if the queue is closed, before or meanwhile, or the calling
    /// thread may not wait for it.
    pub fn reserve(&self) -> Wait<Reserving<'_, T>> {
        let capacity = &self.pin.queue().capacity;
        let mut steps = Steps::new(
            |by: &Self, (), granted| by.keep(granted),
            |(), reason| Err(reason),
        );
        steps.bound = |to, which| bound_of(&to.pin, which);
        Sending::wait(capacity, 1, (self, ()), steps)
    }

    /// [`reserve`](Self::reserve), if there is room now that nobody waits for.
    ///
    /// # Errors
    ///
    /// [`SendReason`], if there is none.
    pub fn try_reserve(&self) -> Result<Reserved<'_, T>, SendReason> {
        let mut granted = Granted::default();
        admit((&self.pin, None), 1, &mut granted.parts)?;
        granted.permits = self.pin.queue().capacity.take(1)?;
        self.keep(granted)
    }

    /// Keeps the room, unless the queue is closed: without a capacity there are no permits that a
    /// closed queue refuses, so the group's flag must be read.
    fn keep<'a>(&'a self, granted: Granted<'a>) -> Result<Reserved<'a, T>, SendReason> {
        if self.pin.lock().flags & CLOSED != 0 {
            return Err(SendReason::Closed);
        }
        Ok(Reserved {
            conversation: self,
            granted,
        })
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
        let sent = pin
            .queue()
            .send_granted((pin, None), [message], self.granted, ());
        sent.map_err(SendError::single)
    }
}

shows!([T] Reserved<'_, T>, |_| );
