//! The wait for room, and then the send, or room kept for one.
//!
//! Invariant: what is to be sent stays in its wait, with the room that it was given, until
//! nothing of the user's can panic any more.

use std::mem::take;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use crate::semaphore::{Acquire, TryAcquireError};
use crate::shown::shows;
use crate::wait::{Op, Ticket, Wait, sealed};

use super::bounds::{Admission, Bound, Granted, bound_of};
use super::capacity::{Capacity, Permits, number};
use super::handles::Conversation;
use super::refuse::{SendError, SendReason};

/// A wait for room for a message `M`, or several, on a conversation or by key; or for
/// what else stands in a queue. `O` is what it is sent by, `R` what comes of it.
pub struct Sending<'a, O, M, R> {
    /// What it is sent by, and what is to be sent; `None` once it is sent or given back.
    pending: Option<(O, M)>,
    capacity: &'a Capacity,
    messages: usize,
    /// `None` where there is always room, and once it has its permits.
    request: Option<Acquire<'a>>,
    permits: Permits<'a>,
    /// What it waits for before the queue.
    admission: Admission,
    steps: Steps<'a, O, M, R>,
    asleep: bool,
}

/// How something is sent that waits for room.
pub(crate) struct Steps<'a, O, M, R> {
    /// The capacities of a group and a lane in which it needs room.
    pub(crate) bound: Bound<O>,
    /// If its permits are taken by the send itself: sends it before it was ever in line, or
    /// gives it back where there is no room.
    pub(crate) at_once: Option<SendAtOnce<O, M, R>>,
    /// Before it is sent: what may panic.
    pub(crate) prepare: fn(&mut O),
    /// Sends it with its room, or gives it back for a reason.
    pub(crate) send: SendGranted<'a, O, M, R>,
    /// Told how the wait goes: true if it is to give up, as one that waits for itself.
    pub(crate) on_pause: fn(&O, Pause<'_>) -> bool,
}

type SendAtOnce<O, M, R> = fn(O, M) -> Result<R, (O, M)>;

pub(crate) type SendGranted<'a, O, M, R> = fn(O, M, Result<Granted<'a>, SendReason>) -> R;

impl<'a, O, M, R> Steps<'a, O, M, R> {
    /// One step.
    pub(crate) fn new(send: SendGranted<'a, O, M, R>) -> Self {
        Self {
            bound: |_, _| None,
            at_once: None,
            prepare: |_| (),
            send,
            on_pause: |_, _| false,
        }
    }
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

/// The conversation on which a message goes; with its tier, if one is said.
type On<'a, T> = (Option<u32>, &'a Conversation<T>);

/// The wait for room of `M`, one message or several, on a conversation.
type ToSend<'a, T, M> = Sending<'a, On<'a, T>, M, Result<(), SendError<M>>>;

/// The wait of [`Conversation::send_wait`].
pub type SendWait<'a, T> = ToSend<'a, T, T>;

/// The wait of [`Conversation::send_all_wait`].
pub type SendAllWait<'a, T> = ToSend<'a, T, Vec<T>>;

shows!(impl<O, M, R> Sending<'_, O, M, R>, |sending| messages: sending.messages);

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
        self.when_there_is_room(1, message, |(tier, by), message, granted| {
            let to = (&*by.pin, tier);
            match granted {
                Ok(granted) => by.pin.queue().send_one_granted(to, message, granted, ()),
                Err(reason) => Err(SendError { message, reason }),
            }
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
        self.when_there_is_room(messages.len(), messages, |(tier, by), message, granted| {
            let to = (&*by.pin, tier);
            match granted {
                Ok(granted) => by.pin.queue().send_granted(to, message, granted, ()),
                Err(reason) => Err(SendError { message, reason }),
            }
        })
    }

    fn when_there_is_room<'a, M>(
        &'a self,
        messages: usize,
        message: M,
        send: SendGranted<'a, On<'a, T>, M, Result<(), SendError<M>>>,
    ) -> Wait<ToSend<'a, T, M>> {
        let capacity = &self.pin.queue().capacity;
        let mut steps = Steps::new(send);
        steps.bound = |(_, to), which| bound_of(&to.pin, which);
        Sending::wait(capacity, messages, ((None, self), message), steps)
    }
}

impl<'a, O, M, R> Sending<'a, O, M, R> {
    pub(crate) fn wait(
        capacity: &'a Capacity,
        messages: usize,
        pending: (O, M),
        steps: Steps<'a, O, M, R>,
    ) -> Wait<Self> {
        let permits = capacity.permits();
        Wait::new(Self {
            pending: Some(pending),
            capacity,
            messages,
            request: permits.map(|permits| permits.request(number(messages))),
            permits: Permits::default(),
            admission: Admission::new(),
            steps,
            asleep: false,
        })
    }

    fn pending(&mut self) -> (O, M) {
        self.pending.take().expect("what has not been sent is here")
    }

    /// Sends it, if there is room now and nobody waits for it.
    fn send_at_once(&mut self, send: SendAtOnce<O, M, R>) -> Option<R> {
        let (by, message) = self.pending();
        let sent = send(by, message);
        sent.map_err(|back| self.pending = Some(back)).ok()
    }

    /// It has these permits, and all else that it needs.
    fn send_with(&mut self, permits: Permits<'a>) -> R {
        self.unblock();
        self.permits = permits;
        self.request = None;
        self.send()
    }

    fn send(&mut self) -> R {
        self.pending
            .iter_mut()
            .for_each(|(by, _)| (self.steps.prepare)(by));
        let (by, message) = self.pending();
        let granted = Granted {
            permits: take(&mut self.permits),
            parts: Some(take(&mut self.admission.admitted)),
        };
        (self.steps.send)(by, message, Ok(granted))
    }

    /// Whether it is to give up.
    fn tell(&self, pause: Pause<'_>) -> bool {
        let pending = self.pending.as_ref();
        pending.is_some_and(|(by, _)| (self.steps.on_pause)(by, pause))
    }

    /// It leaves the line, if it is in it, and gives the message back.
    fn leave(&mut self, reason: SendReason) -> R {
        self.cancel();
        self.unblock();
        let (by, message) = self.pending();
        (self.steps.send)(by, message, Err(reason))
    }
}

impl<O, M, R> sealed::Sealed for Sending<'_, O, M, R> {}

// Nothing in it is ever pinned.
impl<O, M, R> Unpin for Sending<'_, O, M, R> {}

impl<O, M, R> Op for Sending<'_, O, M, R> {
    type Output = R;

    fn at_once(&mut self) -> Option<Self::Output> {
        if self.admission.may_wait(self.capacity) {
            return None;
        }
        if let Some(send) = self.steps.at_once {
            return self.send_at_once(send);
        }
        let permits = self.capacity.take(self.messages).ok()?;
        Some(self.send_with(permits))
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
        if let Some(send) = self.steps.at_once {
            let free = self.capacity.permits()?.is_free(1);
            return free.then(|| self.send_at_once(send)).flatten();
        }
        let permit = self.request.as_mut()?.attempt()?.ok()?;
        Some(self.send_with(Permits(Some(permit))))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.admission.may_wait(self.capacity)
            && let Some((by, _)) = &mut self.pending
            && let Err(reason) = ready!(self.admission.poll(
                cx,
                |which| (self.steps.bound)(by, which),
                self.messages
            ))
        {
            return Poll::Ready(self.leave(reason));
        }
        self.admission.is_over();
        if let Some(send) = self.steps.at_once.take()
            && let Some(sent) = self.send_at_once(send)
        {
            return Poll::Ready(sent);
        }
        let Some(request) = &mut self.request else {
            return Poll::Ready(self.send());
        };
        match request.poll(cx) {
            Poll::Ready(Ok(permit)) => Poll::Ready(self.send_with(Permits(Some(permit)))),
            Poll::Ready(Err(error)) => Poll::Ready(self.leave(TryAcquireError::from(error).into())),
            Poll::Pending => {
                self.capacity.waited_for();
                match self.tell(Pause::Waits) {
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
        self.permits = Permits::default();
        self.admission.cancel();
    }

    fn block(&mut self, waker: &Waker) {
        if let Some(ticket) = self.request.as_ref().and_then(Acquire::ticket) {
            self.asleep = true;
            self.tell(Pause::Sleeps(ticket, waker));
        }
    }

    #[inline]
    fn unblock(&mut self) {
        if take(&mut self.asleep) {
            self.tell(Pause::Over);
        }
    }
}

impl<O, M, R> Wait<Sending<'_, O, M, R>> {
    /// Gives up, and gives back what was not sent; nothing if it was sent, or
    /// given back before.
    pub fn into_message(mut self) -> Option<M> {
        self.cancel();
        let (_, message) = self.op_mut().pending.take()?;
        Some(message)
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
        if let Some(((to, _), _)) = &mut self.op_mut().pending {
            *to = Some(tier);
        }
        self
    }
}
