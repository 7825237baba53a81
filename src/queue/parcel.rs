//! What is to be sent as one, while it waits for room.
//!
//! Invariant: it stays here until it is in the queue, so that no error loses
//! it.

use std::task::Waker;

use crate::wait::{Session, Ticket, sealed};

use super::handles::Conversation;
use super::refuse::{SendError, SendReason};
use super::room::{self, Asks};
use super::state::State;

/// One message, in a tier of its own or in that of the last.
#[derive(Debug)]
pub struct One<T> {
    pub(crate) message: T,
    pub(crate) tier: Option<u32>,
}

/// Several messages: all or none.
#[derive(Debug)]
pub struct All<T>(pub(super) Vec<T>);

/// What is sent as one.
pub trait Load<T>: sealed::Sealed + Sized {
    /// What comes back if it is not sent.
    type Message;

    #[doc(hidden)]
    fn places(&self) -> usize;

    #[doc(hidden)]
    fn tier(&self) -> Option<u32> {
        None
    }

    #[doc(hidden)]
    fn each(self, put: impl FnMut(T));

    #[doc(hidden)]
    fn into_message(self) -> Self::Message;
}

impl<T> sealed::Sealed for One<T> {}
impl<T> sealed::Sealed for All<T> {}

impl<T> Load<T> for One<T> {
    type Message = T;

    fn places(&self) -> usize {
        1
    }

    fn tier(&self) -> Option<u32> {
        self.tier
    }

    fn each(self, mut put: impl FnMut(T)) {
        put(self.message);
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

    fn each(self, put: impl FnMut(T)) {
        self.0.into_iter().for_each(put);
    }

    fn into_message(self) -> Vec<T> {
        self.0
    }
}

/// A load and its place in the line for room.
pub(super) struct Parcel<M> {
    /// `None` once it is sent or given back.
    pub(super) load: Option<M>,
    pub(super) ticket: Option<Ticket>,
}

impl<M> Parcel<M> {
    /// Sends if there is room, or refuses for good; `None` if it has to wait.
    pub(super) fn look<T>(
        &mut self,
        conversation: &Conversation<T>,
        state: &mut Session<'_, State<T>>,
    ) -> Option<Result<(), SendReason>>
    where
        M: Load<T>,
    {
        let Some(load) = &self.load else {
            return Some(Ok(()));
        };
        let refusal = conversation.refusal(state, load.places());
        if let Err(reason) = room::admit(state, &mut self.ticket, refusal)? {
            return Some(Err(reason));
        }
        let put = conversation
            .shared
            .put(state, &conversation.group, self.load.take()?);
        Some(put.map_err(|(down, load)| {
            self.load = Some(load);
            SendReason::TierGoesDown(down)
        }))
    }

    /// As `Waiters::stand`, in the line for room.
    pub(super) fn stand<T>(
        &mut self,
        conversation: &Conversation<T>,
        state: &mut State<T>,
        (current, spare): (&Waker, &mut Option<Waker>),
    ) -> bool
    where
        M: Load<T>,
    {
        let asks = Asks {
            places: self.load.as_ref().map_or(0, Load::places) as u64,
            sender: Some(conversation.sender()),
        };
        state.room.stand(&mut self.ticket, asks, current, spare)
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
