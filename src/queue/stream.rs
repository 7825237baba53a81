//! A queue as a stream of turns, a conversation as a sink: with the feature `futures`.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::{FusedStream, Stream};
use futures_sink::Sink;

use crate::wait::Wait;

use super::Queue;
use super::handles::Conversation;
use super::receive::Receive;
use super::refuse::{SendError, SendReason};
use super::send_wait::{Reserve, Reserved};
use super::turn::Turn;

/// The turns of a queue, one after the other. See [`Queue::turns`].
#[must_use = "a stream does nothing until it is polled"]
pub struct TurnStream<'q, T> {
    queue: &'q Queue<T>,
    receive: Option<Wait<Receive<'q, T>>>,
    ended: bool,
}

impl<T> Queue<T> {
    /// The queue as a stream: each item is what [`receive`](Self::receive) gives next.
    /// It ends when a receive would give [`NoMore`](super::NoMore).
    ///
    /// It receives when it is polled, one turn at a time, and takes none ahead: dropping
    /// it loses nothing, and passes a wake-up on.
    ///
    /// ```
    /// # use conversant::limit::Limit;
    /// # use conversant::queue::Queue;
    /// use futures_util::StreamExt;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let queue = Queue::new();
    /// let lane = queue.lane(1, Limit::Unlimited)?;
    /// lane.conversation()?.send("to anna")?;
    /// lane.conversation()?.send("to bert")?;
    /// queue.close();
    /// let mut turns = queue.turns();
    /// while let Some(mut turn) = turns.next().await {
    ///     while let Some(delivery) = turn.next() {
    ///         println!("{}", delivery.complete());
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn turns(&self) -> TurnStream<'_, T> {
        TurnStream {
            queue: self,
            receive: None,
            ended: false,
        }
    }
}

impl<'q, T> Stream for TurnStream<'q, T> {
    type Item = Turn<'q, T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Turn<'q, T>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let queue = self.queue;
        let receive = self.receive.get_or_insert_with(|| queue.receive());
        let received = ready!(Pin::new(receive).poll(cx));
        self.receive = None;
        self.ended = received.is_err();
        Poll::Ready(received.ok())
    }
}

impl<T> FusedStream for TurnStream<'_, T> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

/// A conversation to which messages are sent as the queue has room. See
/// [`Conversation::sink`].
#[must_use = "a sink does nothing until it is polled"]
pub struct SendSink<'a, T> {
    conversation: &'a Conversation<T>,
    room: Room<'a, T>,
}

enum Room<'a, T> {
    Unasked,
    Asked(Wait<Reserve<'a, T>>),
    Given(Reserved<'a, T>),
}

impl<T> Conversation<T> {
    /// The conversation as a sink. It is ready when there is room in the queue, which it
    /// then [keeps](Self::reserve) until a message is sent or the sink dropped. A message
    /// is in the queue at once: flushing and closing do nothing, and never wait.
    ///
    /// What is sent without a word that the sink is ready may be refused as
    /// [`Full`](SendReason::Full).
    ///
    /// ```
    /// # use conversant::limit::Limit;
    /// # use conversant::queue::Queue;
    /// use futures_util::{SinkExt, stream};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let queue = Queue::new();
    /// let anna = queue.lane(1, Limit::Unlimited)?.conversation()?;
    /// anna.sink().send_all(&mut stream::iter([Ok("one"), Ok("two")])).await?;
    /// assert_eq!(queue.snapshot().waiting, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sink(&self) -> SendSink<'_, T> {
        SendSink {
            conversation: self,
            room: Room::Unasked,
        }
    }
}

/// The error has the message, if there is one yet.
impl<T> Sink<T> for SendSink<'_, T> {
    type Error = SendError<Option<T>>;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let conversation = self.conversation;
        if let Room::Unasked = self.room {
            self.room = Room::Asked(conversation.reserve());
        }
        let Room::Asked(asked) = &mut self.room else {
            return Poll::Ready(Ok(()));
        };
        let reserved = ready!(Pin::new(asked).poll(cx));
        self.room = Room::Unasked;
        self.room = Room::Given(reserved.map_err(|error| refused(None, error.reason))?);
        Poll::Ready(Ok(()))
    }

    fn start_send(mut self: Pin<&mut Self>, message: T) -> Result<(), Self::Error> {
        let sent = match std::mem::replace(&mut self.room, Room::Unasked) {
            Room::Given(reserved) => reserved.send(message),
            Room::Unasked | Room::Asked(_) => self.conversation.send(message),
        };
        sent.map_err(|error| refused(Some(error.message), error.reason))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }
}

fn refused<T>(message: Option<T>, reason: SendReason) -> SendError<Option<T>> {
    SendError { message, reason }
}

impl<T> fmt::Debug for TurnStream<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("TurnStream");
        out.field("ended", &self.ended).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for SendSink<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("SendSink");
        let is_ready = matches!(self.room, Room::Given(_));
        out.field("is_ready", &is_ready).finish_non_exhaustive()
    }
}
