//! What a worker holds: sends that wait, and deliveries.

use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use conversant::queue::{self, Conversation, Delivery, Detached, SendError, Turn};
use conversant::wait::Wait;

use super::epoch::Tracked;
use super::ledger::Message;

/// Sends when there is room. Its message is accounted for also if the send is dropped before that,
/// or before its first poll.
pub(crate) fn send(
    tracked: Arc<Tracked>,
    message: Message,
) -> impl Future<Output = Vec<Turn<'static, Message>>> {
    let mut unsent = Unsent(Some(message));
    async move {
        if let Some(message) = unsent.0.take() {
            let wait = tracked.conversation.send_wait(message);
            if let Err(refused) = Sending(Some(wait)).await {
                refused.message.finished();
            }
        }
        Vec::new()
    }
}

struct Unsent(Option<Message>);

impl Drop for Unsent {
    fn drop(&mut self) {
        self.0.iter().for_each(Message::finished);
    }
}

/// A waiting send, given up when it is dropped.
struct Sending<'a>(Option<Wait<SendWait<'a>>>);

type SendWait<'a> = queue::Sending<
    'a,
    (Option<u32>, &'a Conversation<Message>),
    Message,
    Result<(), SendError<Message>>,
>;

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        let message = self.0.take().and_then(Wait::into_message);
        message.iter().for_each(Message::finished);
    }
}

impl Future for Sending<'_> {
    type Output = Result<(), SendError<Message>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let wait = self.0.as_mut().expect("it is not given up");
        Pin::new(wait).poll(cx)
    }
}

/// A message in flight, borrowed or detached.
pub(crate) trait InFlight: Deref<Target = Message> {
    fn complete(self);
    fn give_back(self);
}

impl InFlight for Delivery<'_, Message> {
    fn complete(self) {
        self.complete();
    }

    fn give_back(self) {
        self.give_back();
    }
}

impl InFlight for Detached<Message> {
    fn complete(self) {
        self.complete();
    }

    fn give_back(self) {
        self.give_back();
    }
}
