//! The wait for room, and then the send.
//!
//! Invariant: what is to be sent stays in its wait until it is in the queue, so
//! that no error loses it.

use std::fmt;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::semaphore::{Acquire, AcquireError, TryAcquireError};
use crate::wait::{Op, Wait, sealed};

use super::capacity::{Capacity, Permits};
use super::handles::Conversation;
use super::refuse::{SendError, SendReason};

/// What is to be sent once there is room for it.
pub trait Pending: sealed::Sealed {
    /// What comes back if it is not sent.
    type Message;

    /// Sends it, with its permits.
    #[doc(hidden)]
    fn send(self, permits: Permits<'_>) -> Result<(), SendError<Self::Message>>;

    #[doc(hidden)]
    fn into_message(self) -> Self::Message;

    /// Whether it is refused for good, queue or not.
    #[doc(hidden)]
    fn has_ended(&self) -> bool {
        false
    }
}

/// One message of a conversation, in a tier of its own or in that of the last.
pub struct One<'a, T> {
    conversation: &'a Conversation<T>,
    tier: Option<u32>,
    message: T,
}

/// Several messages of a conversation: all or none.
pub struct All<'a, T> {
    conversation: &'a Conversation<T>,
    messages: Vec<T>,
}

impl<T> sealed::Sealed for One<'_, T> {}
impl<T> sealed::Sealed for All<'_, T> {}

impl<T> Pending for One<'_, T> {
    type Message = T;

    fn send(self, permits: Permits<'_>) -> Result<(), SendError<T>> {
        self.conversation
            .send_one(self.tier, self.message, permits, ())
    }

    fn into_message(self) -> T {
        self.message
    }

    fn has_ended(&self) -> bool {
        self.conversation.refuses()
    }
}

impl<T> Pending for All<'_, T> {
    type Message = Vec<T>;

    fn send(self, permits: Permits<'_>) -> Result<(), SendError<Vec<T>>> {
        self.conversation.send_several(self.messages, permits)
    }

    fn into_message(self) -> Vec<T> {
        self.messages
    }

    fn has_ended(&self) -> bool {
        self.conversation.refuses()
    }
}

/// A wait for room for what is to be sent: [`One`] message, or [`All`] of
/// several, or one [by key](crate::keyed::ByKey).
pub struct Sending<'a, P> {
    /// `None` once it is sent or given back.
    pending: Option<P>,
    capacity: &'a Capacity,
    /// `None` where there is always room.
    request: Option<Acquire<'a>>,
}

/// The wait of [`Conversation::send_wait`].
pub type SendWait<'a, T> = Sending<'a, One<'a, T>>;

/// The wait of [`Conversation::send_all_wait`].
pub type SendAllWait<'a, T> = Sending<'a, All<'a, T>>;

impl<T> Conversation<T> {
    /// Sends a message as soon as the queue has room for it, in the tier of the
    /// group's last message then; [`in_tier`](Wait::in_tier) says another.
    ///
    /// Sends that wait are served in the order in which they began to: none is
    /// overtaken, neither by another nor by an immediate [`send`](Self::send),
    /// which is refused as long as those in line want the room. One is woken
    /// for each message that there is room for. A queue without a capacity
    /// always has room.
    ///
    /// ```
    /// use conversant::limit::Limit;
    /// use conversant::queue::{Queue, SendReason};
    ///
    /// let queue = Queue::builder().capacity(Limit::AtMost(1)).build()?;
    /// let conversation = queue.lane(1, Limit::Unlimited)?.conversation()?;
    /// conversation.send("first")?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| conversation.send_wait("second").wait());
    ///     for expected in ["first", "second"] {
    ///         let mut turn = queue.receive().wait()?;
    ///         assert_eq!(turn.next().expect("its first").complete(), expected);
    ///     }
    ///     Ok::<(), conversant::error::Closed>(())
    /// })?;
    ///
    /// conversation.send("third")?;
    /// let mut turn = queue.receive().wait()?;
    /// let delivery = turn.next().expect("its first");
    /// let own = conversation.send_wait("fourth").wait().unwrap_err();
    /// assert_eq!((own.message, own.reason), ("fourth", SendReason::OwnQueue));
    /// # drop(delivery);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Handlers
    ///
    /// A thread for which a turn or delivery of this very queue is live may be
    /// the one on which the room depends: its [`wait()`](Wait::wait) gives the
    /// message back as [`SendReason::OwnQueue`] where it would have to wait.
    /// The thread meant is the one that received the turn, or took the turn
    /// of the delivery, for as long as either lives, wherever it is moved to.
    /// Two things follow from that. A thread that hands its deliveries to
    /// others and then sends is refused though they may finish them. A thread
    /// that was handed a delivery waits, and waits for ever if all the room is
    /// held by such threads. A wait with a deadline, or of a task, waits in
    /// either case.
    ///
    /// # Cancel safety
    ///
    /// A wait that is dropped has sent nothing; its place in line, or the room
    /// that was promised to it, goes to the next; the message is dropped with
    /// it. [`into_message`](Wait::into_message) cancels and gives it back, and
    /// so does [`give_back_after`](Wait::give_back_after) where
    /// [`wait_timeout`](Wait::wait_timeout) would drop it. One that is told
    /// that there is room and never polled keeps its own room from the others,
    /// and no more.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message if the queue is closed or the
    /// conversation has ended, before or meanwhile; if an earlier message of
    /// the group is outstanding in a higher tier by then; and by the rule above.
    ///
    /// # Cost
    ///
    /// As [`send`](Self::send) where there is room. To end the conversation
    /// costs a look at all sends in line.
    pub fn send_wait(&self, message: T) -> Wait<SendWait<'_, T>> {
        let one = One {
            conversation: self,
            tier: None,
            message,
        };
        Sending::wait(&self.shared.capacity, self.owner(), 1, one)
    }

    /// As [`send_wait`](Self::send_wait), for several messages as one, with
    /// nothing of others in between: it waits until there is room for all of
    /// them. The iterator is run at once.
    ///
    /// # Errors
    ///
    /// As [`send_wait`](Self::send_wait), with all the messages; and at once if
    /// they are more than the queue's capacity.
    pub fn send_all_wait(&self, messages: impl IntoIterator<Item = T>) -> Wait<SendAllWait<'_, T>> {
        let all = All {
            conversation: self,
            messages: messages.into_iter().collect(),
        };
        let places = all.messages.len();
        Sending::wait(&self.shared.capacity, self.owner(), places, all)
    }
}

impl<'a, P: Pending> Sending<'a, P> {
    /// `owner`: for whom it may be refused.
    pub(crate) fn wait(
        capacity: &'a Capacity,
        owner: usize,
        places: usize,
        pending: P,
    ) -> Wait<Self> {
        Wait::new(Self {
            pending: Some(pending),
            capacity,
            request: capacity.request(owner, places),
        })
    }

    /// What is to be sent, to change it before it is.
    pub(crate) fn pending_mut(&mut self) -> Option<&mut P> {
        self.pending.as_mut()
    }

    fn send(&mut self, permits: Permits<'_>) -> Result<(), SendError<P::Message>> {
        self.pending.take().expect(HERE).send(permits)
    }

    fn refused(&mut self, reason: SendReason) -> Result<(), SendError<P::Message>> {
        let pending = self.pending.take().expect(HERE);
        let ended = pending.has_ended();
        Err(SendError {
            message: pending.into_message(),
            reason: if ended { SendReason::Ended } else { reason },
        })
    }

    /// It waits no more, and leaves the line.
    fn leave(&mut self, reason: SendReason) -> Result<(), SendError<P::Message>> {
        self.cancel();
        self.refused(reason)
    }
}

const HERE: &str = "what has not been sent is here";

impl<P> sealed::Sealed for Sending<'_, P> {}

// Nothing in it is ever pinned.
impl<P> Unpin for Sending<'_, P> {}

impl<P: Pending> Op for Sending<'_, P> {
    type Output = Result<(), SendError<P::Message>>;

    fn at_once(&mut self) -> Option<Self::Output> {
        let permit = match &mut self.request {
            Some(request) => Some(request.at_once()?.ok()?),
            None => None,
        };
        Some(self.send(Permits(permit)))
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
        let Some(request) = &mut self.request else {
            return Poll::Ready(self.send(Permits(None)));
        };
        match request.poll(cx) {
            Poll::Ready(Ok(permit)) => Poll::Ready(self.send(Permits(Some(permit)))),
            Poll::Ready(Err(error)) => Poll::Ready(self.refused(reason(error))),
            // Once it is in line: an end that it does not see finds it there.
            Poll::Pending if self.pending.as_ref().is_some_and(P::has_ended) => {
                Poll::Ready(self.leave(SendReason::Ended))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn cancel(&mut self) {
        if let Some(request) = &mut self.request {
            request.cancel();
        }
    }
}

fn reason(error: AcquireError) -> SendReason {
    TryAcquireError::from(error).into()
}

/// What a wait to send has beyond other waits.
impl<P: Pending> Wait<Sending<'_, P>> {
    /// Gives up, and gives back what was not sent; nothing if it was sent, or
    /// given back before.
    pub fn into_message(mut self) -> Option<P::Message> {
        self.cancel();
        self.op_mut().pending.take().map(P::into_message)
    }

    /// As [`wait_timeout`](Wait::wait_timeout), but that the message comes back
    /// when the time is up.
    ///
    /// # Errors
    ///
    /// As the wait itself, and [`SendReason::TimedOut`].
    pub fn give_back_after(self, timeout: Duration) -> Result<(), SendError<P::Message>> {
        // The clock is read only by a wait that must wait.
        self.give_back(|| Instant::now().checked_add(timeout))
    }

    /// As [`wait_deadline`](Wait::wait_deadline), but that the message comes
    /// back when the time has come.
    ///
    /// # Errors
    ///
    /// As the wait itself, and [`SendReason::TimedOut`].
    pub fn give_back_at(self, deadline: Instant) -> Result<(), SendError<P::Message>> {
        self.give_back(|| Some(deadline))
    }

    fn give_back(
        mut self,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Result<(), SendError<P::Message>> {
        let sent = self.wait_at_most(deadline);
        sent.unwrap_or_else(|_| {
            let pending = self.op_mut().pending.take();
            Err(SendError {
                message: pending.expect(HERE).into_message(),
                reason: SendReason::TimedOut,
            })
        })
    }
}

impl<T> Wait<SendWait<'_, T>> {
    /// Sends it in this tier. See [`Conversation::send_in`].
    pub fn in_tier(mut self, tier: u32) -> Self {
        if let Some(one) = self.op_mut().pending_mut() {
            one.tier = Some(tier);
        }
        self
    }
}

impl<P> fmt::Debug for Sending<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}
