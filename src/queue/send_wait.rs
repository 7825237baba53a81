//! Sends that wait for room.

use crate::wait::Wait;

use super::bounds::bound_of;
use super::handles::Conversation;
use super::refuse::SendError;
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
    /// Waiting sends are served in the order in which they began to wait. An immediate
    /// [`send`](Self::send) is refused as long as waiters want the room.
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
    /// delivery of it lives. If such a thread would have to block in [`wait()`](Wait::wait), the
    /// wait returns the message as [`OwnQueue`](super::SendReason::OwnQueue). A turn or delivery
    /// counts for the thread that received it. If you move it to another thread, that thread gets
    /// no error: it blocks, for ever if such threads hold all the room. A wait with a deadline, or
    /// of a task, waits in either case.
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
    /// [`AboveCapacity`](super::SendReason::AboveCapacity), at once or meanwhile, if they exceed
    /// a capacity of the queue, the lane or the group that is not 0.
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
