//! What is to be sent as one, while it waits for room.
//!
//! Invariant: it stays here until it is in the queue, so that neither an error
//! nor a waker that panics loses it.

use std::task::Waker;

use crate::error::TierGoesDown;
use crate::wait::{Session, Ticket, sealed};

use super::handles::Conversation;
use super::refuse::{SendError, SendReason};
use super::room::{self, Asks};
use super::shared::Books;

/// One message, and its tier.
#[derive(Debug)]
pub struct One<T> {
    message: T,
    pub(super) tier: Option<u32>,
}

/// Several messages, with nothing of others in between.
#[derive(Debug)]
pub struct All<T>(pub(super) Vec<T>);

/// What is to be sent, and where it stands.
pub(super) struct Parcel<M> {
    /// `None` once it is sent or given back.
    pub(super) load: Option<M>,
    pub(super) ticket: Option<Ticket>,
}

/// What is sent as one: [`One`] or [`All`].
pub trait Load<T>: sealed::Sealed + Sized {
    /// As what it comes back.
    type Message;

    /// How many messages.
    #[doc(hidden)]
    fn places(&self) -> usize;

    /// Sends it at once.
    #[doc(hidden)]
    fn send(self, on: &Conversation<T>) -> Result<(), SendError<Self::Message>>;

    /// Sends each of them.
    #[doc(hidden)]
    fn put(self, send: &mut Sink<'_, T>) -> Result<(), (TierGoesDown, Self)>;

    #[doc(hidden)]
    fn into_message(self) -> Self::Message;
}

/// Sends one message, in a tier.
type Sink<'a, T> = dyn FnMut(Option<u32>, T) -> Result<(), (TierGoesDown, T)> + 'a;

impl<T> sealed::Sealed for One<T> {}
impl<T> sealed::Sealed for All<T> {}

impl<T> Load<T> for One<T> {
    type Message = T;

    fn places(&self) -> usize {
        1
    }

    fn send(self, on: &Conversation<T>) -> Result<(), SendError<T>> {
        match self.tier {
            None => on.send(self.message),
            Some(tier) => on.send_in(tier, self.message),
        }
    }

    fn put(self, send: &mut Sink<'_, T>) -> Result<(), (TierGoesDown, Self)> {
        let Self { message, tier } = self;
        let sent = send(tier, message);
        sent.map_err(|(down, message)| (down, Self { message, tier }))
    }

    fn into_message(self) -> T {
        self.message
    }
}

impl<T> Load<T> for All<T> {
    type Message = Vec<T>;

    fn places(&self) -> usize {
        self.0.len()
    }

    fn send(self, on: &Conversation<T>) -> Result<(), SendError<Vec<T>>> {
        on.send_all(self.0)
    }

    fn put(self, send: &mut Sink<'_, T>) -> Result<(), (TierGoesDown, Self)> {
        for message in self.0 {
            let sent = send(None, message);
            debug_assert!(sent.is_ok(), "the last tier does not go down");
        }
        Ok(())
    }

    fn into_message(self) -> Vec<T> {
        self.0
    }
}

impl<T> One<T> {
    pub(super) fn new(message: T) -> Self {
        let tier = None;
        Self { message, tier }
    }
}

impl<M> Parcel<M> {
    /// Sends if there is room, or refuses for good; `None` if it has to wait.
    pub(super) fn look<T>(
        &mut self,
        conversation: &Conversation<T>,
        books: &mut Session<'_, Books<T>>,
    ) -> Option<Result<(), SendReason>>
    where
        M: Load<T>,
    {
        let Some(load) = &self.load else {
            return Some(Ok(()));
        };
        let refusal = conversation.refusal(books, load.places());
        if let Err(reason) = room::admit(books, &mut self.ticket, refusal)? {
            return Some(Err(reason));
        }
        let mut send = |tier, message| {
            let sent = books.backlog.send(conversation.key(), tier, None, message);
            sent.map(drop)
        };
        let put = self.load.take()?.put(&mut send);
        Some(put.map_err(|(down, load)| {
            self.load = Some(load);
            SendReason::TierGoesDown(down)
        }))
    }

    /// As `Waiters::stand`, in the line for room.
    pub(super) fn stand<T>(
        &mut self,
        conversation: &Conversation<T>,
        books: &mut Books<T>,
        (current, spare): (&Waker, &mut Option<Waker>),
    ) -> bool
    where
        M: Load<T>,
    {
        let asks = Asks {
            places: self.load.as_ref().map_or(0, Load::places) as u64,
            sender: Some(conversation.sender()),
        };
        books.room.stand(&mut self.ticket, asks, current, spare)
    }

    /// What came of it, with what was not sent.
    pub(super) fn result<T>(
        &mut self,
        sent: Result<(), SendReason>,
    ) -> Result<(), SendError<M::Message>>
    where
        M: Load<T>,
    {
        let Err(reason) = sent else {
            return Ok(());
        };
        let load = self.load.take().expect("what was refused is there");
        let message = load.into_message();
        Err(SendError { message, reason })
    }
}
