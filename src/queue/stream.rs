//! A queue as a stream of turns, a conversation as a sink; with the feature `futures`.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::{FusedStream, Stream};
use futures_sink::Sink;

use crate::wait::Wait;

use super::Queue;
use super::handles::Conversation;
use super::receive::Receiving;
use super::refuse::{SendError, SendReason};
use super::send_wait::{Reserved, Reserving};
use super::turn::Turn;

/// The turns of a queue, one after the other.
struct TurnStream<'q, T> {
    queue: &'q Queue<T>,
    /// `None` once it has ended.
    receive: Option<Wait<Receiving<'q, T, Turn<'q, T>>>>,
}

impl<T> Queue<T> {
    /// The queue as a stream: each item is what [`receive`](Self::receive) would give next. The
    /// stream ends when a receive would give [`NoMore`](super::NoMore).
    ///
    /// It receives one turn when it is polled, and none ahead: dropping it loses nothing, and
    /// passes a wake-up on. It borrows the queue. One that owns its queue can be made so:
    ///
    /// ```
    /// # use conversant::queue::{Queue, Turn};
    /// use futures_util::{Stream, stream};
    ///
    /// fn turns<T: 'static>(queue: Queue<T>) -> impl Stream<Item = Turn<'static, T>> {
    ///     stream::unfold(queue, |queue| async {
    ///         let turn = queue.receive().await.ok()?.into_owned();
    ///         Some((turn, queue))
    ///     })
    /// }
    /// ```
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
    pub fn turns(&self) -> impl FusedStream<Item = Turn<'_, T>> + Unpin {
        TurnStream {
            queue: self,
            receive: Some(self.receive_one()),
        }
    }
}

impl<'q, T> Stream for TurnStream<'q, T> {
    type Item = Turn<'q, T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Turn<'q, T>>> {
        let Some(receive) = &mut self.receive else {
            return Poll::Ready(None);
        };
        let received = ready!(Pin::new(receive).poll(cx)).ok();
        self.receive = received.as_ref().map(|_| self.queue.receive_one());
        Poll::Ready(received)
    }
}

impl<T> FusedStream for TurnStream<'_, T> {
    fn is_terminated(&self) -> bool {
        self.receive.is_none()
    }
}

/// A conversation as a sink, which sends when the queue has room.
struct SendSink<'a, T> {
    conversation: &'a Conversation<T>,
    asked: Option<Wait<Reserving<'a, T>>>,
    given: Option<Reserved<'a, T>>,
}

impl<T> Conversation<T> {
    /// The conversation as a sink. It is ready when there is room in the group, its lane and
    /// the queue, and then [keeps](Self::reserve) the room until a message is sent or the sink
    /// is dropped. A sent message is in the queue at once: flushing and closing do nothing and
    /// never wait. An error has the message, if there is one yet.
    ///
    /// A message that is sent without waiting until the sink is ready may be refused as
    /// [`Full`](SendReason::Full), [`GroupFull`](SendReason::GroupFull) or
    /// [`LaneFull`](SendReason::LaneFull).
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
    pub fn sink(&self) -> impl Sink<T, Error = SendError<Option<T>>> + Unpin {
        SendSink {
            conversation: self,
            asked: None,
            given: None,
        }
    }
}

impl<T> Sink<T> for SendSink<'_, T> {
    type Error = SendError<Option<T>>;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.given.is_none() {
            let conversation = self.conversation;
            let asked = self.asked.get_or_insert_with(|| conversation.reserve());
            let reserved = ready!(Pin::new(asked).poll(cx));
            self.asked = None;
            self.given = Some(reserved.map_err(|reason| refused(None, reason))?);
        }
        Poll::Ready(Ok(()))
    }

    fn start_send(mut self: Pin<&mut Self>, message: T) -> Result<(), Self::Error> {
        let sent = match self.given.take() {
            Some(reserved) => reserved.send(message),
            None => self.conversation.send(message),
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
