//! The wait for room, and then the send.
//!
//! Invariant: what is to be sent stays in its wait until it is in the queue, so
//! that no error loses it.

use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::semaphore::{Acquire, TryAcquireError};
use crate::wait::{Op, Wait, sealed};

use super::capacity::{Capacity, Permits, number};
use super::handles::Conversation;
use super::refuse::{SendError, SendReason};

/// What is to be sent once there is room for it.
pub trait Pending: sealed::Sealed {
    /// What comes back if it is not sent.
    type Message;
    /// What comes of it: nothing, where a message was sent.
    type Sent;
    /// What says why it was not sent, with the message.
    type Refused: From<SendError<Self::Message>>;

    /// Sends it, with its permits.
    #[doc(hidden)]
    fn send(self, permits: Permits<'_>) -> Result<Self::Sent, Self::Refused>;

    #[doc(hidden)]
    fn into_message(self) -> Self::Message;

    /// It waits for room: whatever has come free and was not given back is given back now.
    #[doc(hidden)]
    fn waits(&self) {}
}

/// What is to be sent on a conversation: `M` is one message `T`, or a `Vec` of
/// several, all or none.
pub struct ToSend<'a, T, M> {
    conversation: &'a Conversation<T>,
    tier: Option<u32>,
    message: M,
}

impl<T, M> sealed::Sealed for ToSend<'_, T, M> {}

impl<T> Pending for ToSend<'_, T, T> {
    type Message = T;
    type Sent = ();
    type Refused = SendError<T>;

    fn send(self, permits: Permits<'_>) -> Result<(), SendError<T>> {
        let pin = &self.conversation.pin;
        let to = (&**pin, self.tier);
        let sent = pin
            .queue()
            .send_quietly(to, self.message, Some(permits), ());
        sent.map(|posted| pin.queue().posted(posted))
    }

    fn into_message(self) -> T {
        self.message
    }
}

impl<T> Pending for ToSend<'_, T, Vec<T>> {
    type Message = Vec<T>;
    type Sent = ();
    type Refused = SendError<Vec<T>>;

    fn send(self, permits: Permits<'_>) -> Result<(), SendError<Vec<T>>> {
        self.conversation.send_several(self.message, permits)
    }

    fn into_message(self) -> Vec<T> {
        self.message
    }
}

/// A wait for room for what is to be sent, on a conversation or
/// [by key](crate::keyed::ByKey).
pub struct Sending<'a, P> {
    /// `None` once it is sent or given back.
    pub(crate) pending: Option<P>,
    capacity: &'a Capacity,
    permits: usize,
    /// `None` where there is always room.
    request: Option<Acquire<'a>>,
}

/// The wait of [`Conversation::send_wait`].
pub type SendWait<'a, T> = Sending<'a, ToSend<'a, T, T>>;

/// The wait of [`Conversation::send_all_wait`].
pub type SendAllWait<'a, T> = Sending<'a, ToSend<'a, T, Vec<T>>>;

impl<T> Conversation<T> {
    /// Sends a message as soon as the queue has room for it, in the tier of the
    /// group's last message then; [`in_tier`](Wait::in_tier) says another.
    ///
    /// Sends that wait are served in the order in which they began to; an
    /// immediate [`send`](Self::send) is refused as long as those in line want
    /// the room.
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
    /// The room may depend on a thread that has received a turn of this very
    /// queue, while that turn or a delivery of it lives: where such a thread's
    /// [`wait()`](Wait::wait) would have to wait, it gives the message back as
    /// [`SendReason::OwnQueue`]. Moving the turn or the delivery to another thread
    /// does not change whose it is: that other thread waits, for ever if such threads
    /// hold all the room. A wait with a deadline, or of a task, waits in either case.
    ///
    /// # Cancel safety
    ///
    /// A wait that is dropped has sent nothing: the message is dropped, and room
    /// that was promised to it goes to the next. Where a drop or
    /// [`wait_timeout`](Wait::wait_timeout) would lose the message,
    /// [`into_message`](Wait::into_message) and
    /// [`give_back_after`](Wait::give_back_after) give it back. One that is told
    /// that there is room and never polled keeps its own room, and no more.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message if the queue is closed, before or meanwhile;
    /// if an earlier message of the group is outstanding in a higher tier by
    /// then; and by the rule above.
    ///
    /// # Cost
    ///
    /// As [`send`](Self::send) where there is room.
    pub fn send_wait(&self, message: T) -> Wait<SendWait<'_, T>> {
        self.wait_to_send(1, message)
    }

    /// As [`send_wait`](Self::send_wait), for several messages as one, with
    /// nothing of others in between. The iterator is run at once.
    ///
    /// # Errors
    ///
    /// As [`send_wait`](Self::send_wait), with all the messages; and at once if
    /// they are more than the queue's capacity.
    pub fn send_all_wait(&self, messages: impl IntoIterator<Item = T>) -> Wait<SendAllWait<'_, T>> {
        let messages: Vec<T> = messages.into_iter().collect();
        self.wait_to_send(messages.len(), messages)
    }

    fn wait_to_send<M>(&self, permits: usize, message: M) -> Wait<Sending<'_, ToSend<'_, T, M>>>
    where
        for<'a> ToSend<'a, T, M>: Pending,
    {
        let pending = ToSend {
            conversation: self,
            tier: None,
            message,
        };
        Sending::wait(&self.pin.queue().capacity, permits, pending)
    }
}

impl<'a, P: Pending> Sending<'a, P> {
    pub(crate) fn wait(capacity: &'a Capacity, permits: usize, pending: P) -> Wait<Self> {
        let semaphore = capacity.permits();
        Wait::new(Self {
            pending: Some(pending),
            capacity,
            permits,
            request: semaphore.map(|semaphore| semaphore.request(number(permits))),
        })
    }

    fn send(&mut self, permits: Permits<'_>) -> Result<P::Sent, P::Refused> {
        self.pending.take().expect(HERE).send(permits)
    }

    /// It leaves the line, if it is in it, and gives the message back.
    fn leave(&mut self, reason: SendReason) -> Result<P::Sent, P::Refused> {
        self.cancel();
        let message = self.pending.take().expect(HERE).into_message();
        Err(SendError { message, reason }.into())
    }
}

const HERE: &str = "what has not been sent is here";

impl<P> sealed::Sealed for Sending<'_, P> {}

// Nothing in it is ever pinned.
impl<P> Unpin for Sending<'_, P> {}

impl<P: Pending> Op for Sending<'_, P> {
    type Output = Result<P::Sent, P::Refused>;

    fn at_once(&mut self) -> Option<Self::Output> {
        let permits = self.capacity.take(self.permits).ok()?;
        Some(self.send(permits))
    }

    /// For a thread that waits without a deadline: the rule of handlers.
    fn attempt(&mut self) -> Option<Self::Output> {
        if self.capacity.is_own() {
            let mut cx = Context::from_waker(Waker::noop());
            return match self.poll(&mut cx) {
                Poll::Ready(sent) => Some(sent),
                Poll::Pending => Some(self.leave(SendReason::OwnQueue)),
            };
        }
        let permit = self.request.as_mut()?.attempt()?.ok()?;
        Some(self.send(Permits(Some(permit))))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let permit = match &mut self.request {
            Some(request) => request.poll(cx).map(|granted| granted.map(Some)),
            None => Poll::Ready(Ok(None)),
        };
        match permit {
            Poll::Ready(Ok(permit)) => Poll::Ready(self.send(Permits(permit))),
            Poll::Ready(Err(error)) => Poll::Ready(self.leave(TryAcquireError::from(error).into())),
            Poll::Pending => {
                self.capacity.waited_for();
                self.pending.iter().for_each(P::waits);
                Poll::Pending
            }
        }
    }

    fn cancel(&mut self) {
        if let Some(request) = &mut self.request {
            request.cancel();
        }
    }
}

impl<P: Pending> Wait<Sending<'_, P>> {
    /// Gives up, and gives back what was not sent; nothing if it was sent, or
    /// given back before.
    pub fn into_message(mut self) -> Option<P::Message> {
        self.cancel();
        self.op_mut().pending.take().map(P::into_message)
    }

    /// As [`wait_timeout`](Wait::wait_timeout), but the message comes back.
    ///
    /// # Errors
    ///
    /// As the wait itself, and [`SendReason::TimedOut`].
    pub fn give_back_after(self, timeout: Duration) -> Result<P::Sent, P::Refused> {
        // The clock is read only by a wait that must wait.
        self.give_back(|| Instant::now().checked_add(timeout))
    }

    /// As [`wait_deadline`](Wait::wait_deadline), but the message comes back.
    ///
    /// # Errors
    ///
    /// As the wait itself, and [`SendReason::TimedOut`].
    pub fn give_back_at(self, deadline: Instant) -> Result<P::Sent, P::Refused> {
        self.give_back(|| Some(deadline))
    }

    fn give_back(
        mut self,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Result<P::Sent, P::Refused> {
        let sent = self.wait_at_most(deadline);
        sent.unwrap_or_else(|_| self.op_mut().leave(SendReason::TimedOut))
    }
}

impl<T> Wait<SendWait<'_, T>> {
    /// Sends it in this tier. See [`Conversation::send_in`].
    pub fn in_tier(mut self, tier: u32) -> Self {
        if let Some(one) = &mut self.op_mut().pending {
            one.tier = Some(tier);
        }
        self
    }
}
