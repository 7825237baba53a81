//! Waits for room: of a send, or to keep it for a later message.

use crate::group::CLOSED;
use crate::shown::shows;
use crate::wait::Wait;

use super::bounds::{Granted, admit, bound_of};
use super::handles::Conversation;
use super::refuse::{SendError, SendReason};
use super::sending::{SendGranted, Sending, Steps};

/// The conversation that sends a message, and its tier, if one was set.
type On<'a, T> = (Option<u32>, &'a Conversation<T>);

/// The wait for room for `M`, one message or several, on a conversation.
pub(super) type ToSend<'a, T, M> = Sending<'a, On<'a, T>, M, Result<(), SendError<M>>>;

impl<T> Conversation<T> {
    /// Waits for room in the group, then in its lane, then in the queue, and sends the message
    /// as soon as it has all three. The tier is that of the group's last message at that
    /// moment, or the one set with [`in_tier`](Wait::in_tier).
    ///
    /// Waiting sends are served in the order in which they began to wait for this room: one that
    /// still waits for its group keeps no place in the queue. An immediate [`send`](Self::send) is
    /// refused as long as waiters want the room.
    ///
    /// ```
    /// # use conversant::limit::Limit;
    /// # use conversant::queue::{Queue, SendReason};
    /// let queue = Queue::builder().capacity(Limit::AtMost(1)).build()?;
    /// let conversation = queue.lane(1, Limit::Unlimited)?.conversation()?;
    /// conversation.send("first")?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| conversation.send_wait("second").wait());
    ///     for expected in ["first", "second"] {
    ///         let mut turn = queue.receive().wait()?;
    ///         assert_eq!(turn.next().expect("its first").complete(), expected);
    ///     }
    ///     Ok::<(), conversant::queue::NoMore>(())
    /// })?;
    ///
    /// conversation.send("third")?;
    /// let turn = queue.receive().wait()?;
    /// let own = conversation.send_wait("fourth").wait().unwrap_err();
    /// assert_eq!((own.message, own.reason), ("fourth", SendReason::OwnQueue));
    /// # drop(turn);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Handlers
    ///
    /// The room may depend on a thread that has received a turn of this queue, while that turn or a
    /// delivery of it lives; or that looks at a message. Turns that it claimed together count
    /// before they begin. If such a thread would have to block in [`wait()`](Wait::wait), the wait
    /// returns the message as [`OwnQueue`](super::SendReason::OwnQueue). A turn or delivery counts
    /// for the thread that received it, and a detached one for that which detached it. If you move
    /// it to another thread, that thread gets no error: it blocks, for ever if such threads hold
    /// all the room. So may a thread that sends in the destructor of a thread-local: by then at
    /// most the queue that it received from last is known. A wait with a deadline, or of a task,
    /// waits in either case.
    ///
    /// # Cancel safety
    ///
    /// A dropped wait has sent nothing: its message is dropped, and room granted to it goes to the
    /// next. If you do not want to lose the message, by a drop or by
    /// [`wait_timeout`](Wait::wait_timeout), use [`into_message`](Wait::into_message) or
    /// [`or_return_after`](Wait::or_return_after); in a task, put the time-out on a reference:
    ///
    /// ```
    /// # use conversant::queue::Queue;
    /// # use std::time::Duration;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    /// # runtime.block_on(async {
    /// let queue = Queue::builder().capacity(1).build()?;
    /// let orders = queue.lane(1, 8)?.conversation()?;
    /// orders.send("first")?;
    /// let mut sending = orders.send_wait("second");
    /// let timed_out = tokio::time::timeout(Duration::from_millis(1), &mut sending).await;
    /// assert!(timed_out.is_err());
    /// assert_eq!(sending.into_message(), Some("second"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A wait that is granted room and never polled keeps its own room, and no more.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message: if the queue is closed, before or meanwhile; if the
    /// [tier goes down](super::SendReason::TierGoesDown) by then; or by the rule for handlers
    /// above.
    ///
    /// # Cost
    ///
    /// Like [`send`](Self::send) if there is room.
    pub fn send_wait(&self, message: T) -> Wait<ToSend<'_, T, T>> {
        self.when_there_is_room(1, message, |(tier, by), message, granted| {
            let to = (&*by.pin, tier);
            let sent = by.pin.queue().send_granted(to, [message], granted, ());
            sent.map_err(SendError::single)
        })
    }

    /// Like [`send_wait`](Self::send_wait), for several messages as one, with no message of
    /// others between them. The iterator runs at once.
    ///
    /// # Errors
    ///
    /// Like [`send_wait`](Self::send_wait), with all the messages; and
    /// [`AboveCapacity`](super::SendReason::AboveCapacity) if they exceed a capacity of the queue,
    /// the lane or the group that is not 0: at once, or when such a capacity is next to be asked.
    pub fn send_all_wait(
        &self,
        messages: impl IntoIterator<Item = T>,
    ) -> Wait<ToSend<'_, T, Vec<T>>> {
        let messages = Vec::from_iter(messages);
        self.when_there_is_room(messages.len(), messages, |(tier, by), message, granted| {
            let to = (&*by.pin, tier);
            by.pin.queue().send_granted(to, message, granted, ())
        })
    }

    fn when_there_is_room<'a, M>(
        &'a self,
        messages: usize,
        message: M,
        send: SendGranted<'a, On<'a, T>, M, Result<(), SendError<M>>>,
    ) -> Wait<ToSend<'a, T, M>> {
        let capacity = &self.pin.queue().capacity;
        let give_back = |message, reason| Err(SendError { message, reason });
        let mut steps = Steps::new(send, give_back);
        steps.bound = |(_, to), which| bound_of(&to.pin, which);
        Sending::wait(capacity, messages, ((None, self), message), steps)
    }
}

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
