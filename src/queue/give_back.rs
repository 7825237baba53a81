//! Waits that hold a message of the user's: it can be had back.

use std::time::{Duration, Instant};

use crate::wait::{Op, Wait};

use super::refuse::{SendError, SendReason};

/// A wait to send.
pub trait GivesBack: Op<Output = Result<(), SendError<Self::Message>>> {
    /// What is to be sent.
    type Message;

    /// Takes it out, if it was not sent nor given back.
    #[doc(hidden)]
    fn take_back(&mut self) -> Option<Self::Message>;
}

/// What a wait to send has beyond other waits.
impl<O: GivesBack> Wait<O> {
    /// Gives up, and gives back what was not sent; nothing if it was sent, or
    /// given back before.
    pub fn into_message(mut self) -> Option<O::Message> {
        self.cancel();
        self.op_mut().take_back()
    }

    /// As [`wait_timeout`](Wait::wait_timeout), but that the message comes back
    /// when the time is up.
    ///
    /// # Errors
    ///
    /// As the wait itself, and [`SendReason::TimedOut`].
    pub fn give_back_after(self, timeout: Duration) -> Result<(), SendError<O::Message>> {
        // The clock is read only by a wait that must wait.
        self.give_back(|| Instant::now().checked_add(timeout))
    }

    /// As [`wait_deadline`](Wait::wait_deadline), but that the message comes
    /// back when the time has come.
    ///
    /// # Errors
    ///
    /// As the wait itself, and [`SendReason::TimedOut`].
    pub fn give_back_at(self, deadline: Instant) -> Result<(), SendError<O::Message>> {
        self.give_back(|| Some(deadline))
    }

    fn give_back(
        mut self,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Result<(), SendError<O::Message>> {
        self.wait_at_most(deadline).unwrap_or_else(|_| {
            let message = self.op_mut().take_back();
            Err(SendError {
                message: message.expect("what has not been sent is there"),
                reason: SendReason::TimedOut,
            })
        })
    }
}
