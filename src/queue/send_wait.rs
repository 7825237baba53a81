//! The wait for room, and then the send.

use std::fmt;
use std::task::{Context, Poll};

use crate::wait::{Op, Wait, look_twice, sealed};

use super::handles::Conversation;
use super::parcel::{All, Load, One, Parcel};
use super::refuse::{GivesBack, SendError};
use super::room;

/// The wait of [`Conversation::send_wait`].
pub type SendWait<'a, T> = Sending<'a, T, One<T>>;

/// The wait of [`Conversation::send_all_wait`].
pub type SendAllWait<'a, T> = Sending<'a, T, All<T>>;

/// A wait for room for `M`: [`One`] message, or [`All`] of several.
pub struct Sending<'a, T, M> {
    conversation: &'a Conversation<T>,
    parcel: Parcel<M>,
}

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
    /// message back as [`SendReason::OwnQueue`](super::SendReason::OwnQueue) where it would have to wait.
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
        Sending::wait(
            self,
            One {
                message,
                tier: None,
            },
        )
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
        Sending::wait(self, All(messages.into_iter().collect()))
    }
}

impl<'a, T, M> Sending<'a, T, M> {
    fn wait(conversation: &'a Conversation<T>, load: M) -> Wait<Self>
    where
        Self: Op,
    {
        let (load, ticket) = (Some(load), None);
        let parcel = Parcel { load, ticket };
        Wait::new(Self {
            conversation,
            parcel,
        })
    }
}

impl<T, M> sealed::Sealed for Sending<'_, T, M> {}

// Nothing in it is ever pinned.
impl<T, M> Unpin for Sending<'_, T, M> {}

impl<T, M: Load<T>> Op for Sending<'_, T, M> {
    type Output = Result<(), SendError<M::Message>>;

    /// Where there is always room, it is what an immediate send is.
    fn at_once(&mut self) -> Option<Self::Output> {
        let unlimited = !self.conversation.shared.bounded;
        let load = self.parcel.load.take_if(|_| unlimited)?;
        Some(self.conversation.send_load(load))
    }

    /// For a thread that waits without a deadline: the rule of handlers.
    fn attempt(&mut self) -> Option<Self::Output> {
        let Self {
            conversation,
            parcel,
        } = self;
        let conversation = *conversation;
        let sent = conversation.shared.with_state(|state| {
            let looked = parcel.look(conversation, state);
            looked.or_else(|| room::refuse_own(state, &mut parcel.ticket).map(Err))
        });
        sent.map(|sent| parcel.result(sent))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(sent) = self.at_once() {
            return Poll::Ready(sent);
        }
        let Self {
            conversation,
            parcel,
        } = self;
        let conversation = *conversation;
        let sent = look_twice(cx, |current, spare| {
            conversation.shared.with_state(|state| {
                if let Some(sent) = parcel.look(conversation, state) {
                    return Some(Poll::Ready(sent));
                }
                let stands = parcel.stand(conversation, state, (current, spare));
                stands.then_some(Poll::Pending)
            })
        });
        sent.map(|sent| parcel.result(sent))
    }

    fn cancel(&mut self) {
        let ticket = &mut self.parcel.ticket;
        self.conversation
            .shared
            .with_state(|state| room::leave(state, ticket));
    }
}

impl<T, M: Load<T>> GivesBack for Sending<'_, T, M> {
    type Message = M::Message;

    fn take_back(&mut self) -> Option<M::Message> {
        self.parcel.load.take().map(Load::into_message)
    }
}

impl<T> Wait<Sending<'_, T, One<T>>> {
    /// Sends it in this tier. See [`Conversation::send_in`].
    pub fn in_tier(mut self, tier: u32) -> Self {
        if let Some(load) = &mut self.op_mut().parcel.load {
            load.tier = Some(tier);
        }
        self
    }
}

impl<T, M> fmt::Debug for Sending<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending")
            .field("in_line", &self.parcel.ticket.is_some())
            .finish_non_exhaustive()
    }
}

/// A wait keeps its messages to itself: they must be `Send` to go with it to
/// another thread, and `Sync` only for it to be shared between threads.
const _: () = {
    const fn send<W: Send>() {}
    const fn send_and_sync<W: Send + Sync>() {}

    /// Stands for any message that is `Send` and no more.
    type OnlySend = std::cell::Cell<u8>;

    send::<Wait<SendWait<'_, OnlySend>>>();
    send::<Wait<SendAllWait<'_, OnlySend>>>();
    send_and_sync::<Wait<SendWait<'_, u8>>>();
    send_and_sync::<Wait<SendAllWait<'_, u8>>>();
};
