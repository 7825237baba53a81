//! The wait for room, and then the send, or a permit kept for one.
//!
//! Invariant: what is to be sent stays in its wait until nothing of the user's can panic
//! any more: so neither an error nor a panic loses it, or the room that it was given.

use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use crate::group::Admitted;
use crate::semaphore::{Acquire, Semaphore, TryAcquireError};
use crate::shown::shows;
use crate::wait::{Op, Ticket, Wait, sealed};

use super::bounds::{Admission, Bound, bound_of};
use super::capacity::{Capacity, Permits, number};
use super::handles::Conversation;
use super::refuse::{SendError, SendReason};

/// A wait for room for a message `M`, or several, on a conversation or by key; or for
/// what else stands in a queue. `O` is what it is sent by, `R` what comes of it.
pub struct Sending<'a, O, M, R> {
    /// `None` once it is sent or given back.
    pending: Option<Pending<'a, O, M>>,
    capacity: &'a Capacity,
    permits: usize,
    /// `None` where there is always room, and once it has its permits.
    request: Option<Acquire<&'a Semaphore>>,
    /// What it waits for before the queue.
    admission: Admission<O>,
    finish: Finish<'a, O, M, R>,
    /// How it is sent before it was ever in line, if its permits must be taken by that.
    pub(crate) send_now: Option<SendNow<'a, O, M, R>>,
    /// Told how the wait goes: true if it is to give up, as one that waits for itself.
    pub(crate) on_pause: fn(&O, Pause<'_>) -> bool,
    asleep: bool,
}

/// How a wait for room goes.
pub(crate) enum Pause<'a> {
    /// It waits: whatever has come free and was not given back is given back now.
    Waits,
    /// Its thread is about to sleep without a deadline, until this waker is woken; its place
    /// in line.
    Sleeps(Ticket, &'a Waker),
    /// That is over.
    Over,
}

/// What is to be sent.
pub(crate) struct Pending<'a, O, M> {
    pub(crate) by: O,
    pub(crate) message: M,
    /// Its permits of the queue, or why it is not sent.
    pub(crate) permits: Result<Permits<'a>, SendReason>,
}

/// Sends what is pending, with its permits of the queue and those of its group and lane; or
/// gives it back, for a reason. [Takes](taken) it out when nothing of the user's can panic.
pub(crate) type Finish<'a, O, M, R> = fn(&mut Option<Pending<'a, O, M>>, &mut Admitted) -> R;

/// What was pending.
#[inline]
pub(crate) fn taken<P>(pending: &mut Option<P>) -> P {
    pending.take().expect(HERE)
}

/// Takes a permit, and sends what is pending; leaves it where it is if there is no room.
pub(crate) type SendNow<'a, O, M, R> = fn(&mut Option<Pending<'a, O, M>>) -> Option<R>;

/// The conversation on which a message goes; with its tier, if one is said.
type On<'a, T> = (Option<u32>, &'a Conversation<T>);

/// The wait for room of `M`, one message or several, on a conversation.
type ToSend<'a, T, M> = Sending<'a, On<'a, T>, M, Result<(), SendError<M>>>;

/// The wait of [`Conversation::send_wait`].
pub type SendWait<'a, T> = ToSend<'a, T, T>;

/// The wait of [`Conversation::send_all_wait`].
pub type SendAllWait<'a, T> = ToSend<'a, T, Vec<T>>;

shows!(impl<O, M, R> Sending<'_, O, M, R>, |sending| permits: sending.permits);

impl<T> Conversation<T> {
    /// Sends a message as soon as there is room for it in the group, its lane and the queue,
    /// for which it waits one after the other; in the tier of the group's last message
    /// then, or of that which [`in_tier`](Wait::in_tier) says.
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
    /// [`give_back_after`](Wait::give_back_after) give it back; in a task, time out a
    /// reference:
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
    /// One that is told that there is room and never polled keeps its own room, and no more.
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
        self.when_there_is_room(1, message, |pending, admitted| {
            let Pending {
                by,
                message,
                permits,
            } = taken(pending);
            let (queue, to) = (by.1.pin.queue(), (&*by.1.pin, by.0));
            queue.send_one_permitted(to, message, permits, admitted, ())
        })
    }

    /// As [`send_wait`](Self::send_wait), for several messages as one, with
    /// nothing of others in between. The iterator is run at once.
    ///
    /// # Errors
    ///
    /// As [`send_wait`](Self::send_wait), with all the messages; and at once if
    /// they are more than the queue's capacity.
    pub fn send_all_wait(&self, messages: impl IntoIterator<Item = T>) -> Wait<SendAllWait<'_, T>> {
        let messages = Vec::from_iter(messages);
        self.when_there_is_room(messages.len(), messages, |pending, admitted| {
            let Pending {
                by,
                message,
                permits,
            } = taken(pending);
            let (queue, to) = (by.1.pin.queue(), (&*by.1.pin, by.0));
            queue.send_permitted(to, message, permits, Some(admitted), ())
        })
    }

    fn when_there_is_room<'a, M>(
        &'a self,
        messages: usize,
        message: M,
        send: Finish<'a, On<'a, T>, M, Result<(), SendError<M>>>,
    ) -> Wait<ToSend<'a, T, M>> {
        let capacity = &self.pin.queue().capacity;
        let wait = Sending::wait(capacity, messages, ((None, self), message), send);
        wait.within(|(_, to), which| bound_of(&to.pin, which))
    }
}

impl<'a, O, M, R> Sending<'a, O, M, R> {
    pub(crate) fn wait(
        capacity: &'a Capacity,
        permits: usize,
        (by, message): (O, M),
        finish: Finish<'a, O, M, R>,
    ) -> Wait<Self> {
        let semaphore = capacity.permits();
        let permits_so_far = Ok(Permits(None));
        Wait::new(Self {
            pending: Some(Pending {
                by,
                message,
                permits: permits_so_far,
            }),
            capacity,
            permits,
            request: semaphore.map(|semaphore| Semaphore::request(semaphore, number(permits))),
            admission: Admission::new(),
            finish,
            send_now: None,
            on_pause: |_, _| false,
            asleep: false,
        })
    }

    /// It has its permits, or is given back.
    fn finish(&mut self, permits: Result<Permits<'a>, SendReason>) -> R {
        self.unblock();
        self.pending.as_mut().expect(HERE).permits = permits;
        self.request = None;
        (self.finish)(&mut self.pending, &mut self.admission.admitted)
    }

    /// It leaves the line, if it is in it, and gives the message back.
    fn leave(&mut self, reason: SendReason) -> R {
        self.cancel();
        self.finish(Err(reason))
    }
}

const HERE: &str = "what has not been sent is here";

impl<O, M, R> sealed::Sealed for Sending<'_, O, M, R> {}

// Nothing in it is ever pinned.
impl<O, M, R> Unpin for Sending<'_, O, M, R> {}

impl<O, M, R> Op for Sending<'_, O, M, R> {
    type Output = R;

    fn at_once(&mut self) -> Option<Self::Output> {
        if self.admission.may_wait(self.capacity) {
            return None;
        }
        if let Some(send) = self.send_now {
            return send(&mut self.pending);
        }
        let permits = self.capacity.take(self.permits).ok()?;
        Some(self.finish(Ok(permits)))
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
        if self.admission.may_wait(self.capacity) {
            return None;
        }
        if let Some(send) = self.send_now {
            let free = self.capacity.permits()?.is_free(1);
            return free.then(|| send(&mut self.pending)).flatten();
        }
        let permit = self.request.as_mut()?.attempt()?.ok()?;
        Some(self.finish(Ok(Permits(Some(permit)))))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.admission.may_wait(self.capacity)
            && let Some(Pending { by, .. }) = &mut self.pending
            && let Err(reason) = ready!(self.admission.poll(cx, by, self.permits))
        {
            return Poll::Ready(self.leave(reason));
        }
        self.admission.is_over();
        if let Some(send) = self.send_now.take()
            && let Some(sent) = send(&mut self.pending)
        {
            return Poll::Ready(sent);
        }
        let Some(request) = &mut self.request else {
            return Poll::Ready((self.finish)(
                &mut self.pending,
                &mut self.admission.admitted,
            ));
        };
        match request.poll(cx) {
            Poll::Ready(Ok(permit)) => Poll::Ready(self.finish(Ok(Permits(Some(permit))))),
            Poll::Ready(Err(error)) => Poll::Ready(self.leave(TryAcquireError::from(error).into())),
            Poll::Pending => {
                self.capacity.waited_for();
                let pending = self.pending.as_ref();
                match pending.is_some_and(|one| (self.on_pause)(&one.by, Pause::Waits)) {
                    true => Poll::Ready(self.leave(SendReason::OwnQueue)),
                    false => Poll::Pending,
                }
            }
        }
    }

    fn cancel(&mut self) {
        if let Some(request) = &mut self.request {
            request.cancel();
        }
        self.admission.cancel();
    }

    fn block(&mut self, waker: &Waker) {
        let ticket = self.request.as_ref().and_then(Acquire::ticket);
        if let (Some(Pending { by, .. }), Some(ticket)) = (&self.pending, ticket) {
            self.asleep = true;
            (self.on_pause)(by, Pause::Sleeps(ticket, waker));
        }
    }

    #[inline]
    fn unblock(&mut self) {
        if std::mem::take(&mut self.asleep)
            && let Some(Pending { by, .. }) = &self.pending
        {
            (self.on_pause)(by, Pause::Over);
        }
    }
}

impl<O, M, R> Wait<Sending<'_, O, M, R>> {
    /// It waits for room in a group and its lane first.
    pub(crate) fn within(mut self, bound: Bound<O>) -> Self {
        self.op_mut().admission.bound = Some(bound);
        self
    }

    /// Gives up, and gives back what was not sent; nothing if it was sent, or
    /// given back before.
    pub fn into_message(mut self) -> Option<M> {
        self.cancel();
        Some(self.op_mut().pending.take()?.message)
    }

    /// As [`wait_timeout`](Wait::wait_timeout), but the message comes back.
    ///
    /// # Errors
    ///
    /// As the wait itself, and [`SendReason::TimedOut`].
    pub fn give_back_after(self, timeout: Duration) -> R {
        // The clock is read only by a wait that must wait.
        self.give_back(|| Instant::now().checked_add(timeout))
    }

    /// As [`wait_deadline`](Wait::wait_deadline), but the message comes back.
    ///
    /// # Errors
    ///
    /// As the wait itself, and [`SendReason::TimedOut`].
    pub fn give_back_at(self, deadline: Instant) -> R {
        self.give_back(|| Some(deadline))
    }

    fn give_back(mut self, deadline: impl FnOnce() -> Option<Instant>) -> R {
        let sent = self.wait_at_most(deadline);
        sent.unwrap_or_else(|_| self.op_mut().leave(SendReason::TimedOut))
    }
}

impl<O, M, R> Wait<Sending<'_, (Option<u32>, O), M, R>> {
    /// Sends it in this tier. See [`Conversation::send_in`].
    pub fn in_tier(mut self, tier: u32) -> Self {
        if let Some(pending) = &mut self.op_mut().pending {
            pending.by.0 = Some(tier);
        }
        self
    }
}
