//! What an endpoint does: it sends, ends, and has a timer.

use std::time::Duration;

use crate::error::Stale;
use crate::sync::panicking;

use super::event::{Event, Fault};
use super::refuse::SendError;
use super::side::{Endpoint, EndpointRef, Talk};

impl<M: Send + 'static> EndpointRef<M> {
    /// Sends a message to the peer. Never waits for anybody.
    ///
    /// What was done before the send is seen by whoever receives the message.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message, if this side or the peer has ended, or
    /// the peer's queue is closed or full.
    pub fn send(&self, message: M) -> Result<(), SendError<M>> {
        Talk::send(&self.talk, self.side, message)
    }

    /// Ends this side: the peer receives what was sent to it, and then an
    /// [`Event::End`]. What waits to be received by this side is dropped.
    ///
    /// # Errors
    ///
    /// [`Stale`] if this side has ended; nothing has changed.
    pub fn end(&self) -> Result<(), Stale> {
        Talk::end(&self.talk, self.side, Event::End)
    }

    /// Ends this side with an error, which the peer receives before all that
    /// waits for it. What waits to be received by this side is dropped.
    ///
    /// # Errors
    ///
    /// [`Stale`] if this side has ended; nothing has changed.
    pub fn end_with(&self, fault: Fault) -> Result<(), Stale> {
        Talk::end(&self.talk, self.side, Event::Error(fault))
    }

    /// Ends this side when it has received what waits for it. The peer's sends
    /// are refused from now on; this side's are not, so that it can answer.
    /// Behind what waits it receives an [`Event::End`], and when that is
    /// dropped it has ended, as by [`end`](Self::end).
    ///
    /// If the peer has ended already, its end does this. A second call does
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Stale`] if this side has ended.
    pub fn end_after_drain(&self) -> Result<(), Stale> {
        Talk::drain(&self.talk, self.side)
    }

    /// Has this side receive an [`Event::Timer`] so long after the latest time
    /// told to [`Dialogs::advance`](super::Dialogs::advance), behind what waits
    /// by then. One that was set before and is not due yet is replaced; it goes
    /// when the side ends.
    ///
    /// # Errors
    ///
    /// [`Stale`] if this side has ended.
    pub fn set_timer(&self, after: Duration) -> Result<(), Stale> {
        Talk::set_timer(&self.talk, self.side, after)
    }

    /// Takes the timer back; false if none was set, or it was due.
    ///
    /// # Errors
    ///
    /// [`Stale`] if this side has ended.
    pub fn clear_timer(&self) -> Result<bool, Stale> {
        self.talk.clear_timer(self.side)
    }
}

impl<M: Send + 'static> Drop for Endpoint<M> {
    fn drop(&mut self) {
        let Some(owned) = self.owned.take() else {
            return;
        };
        // Stale is fine: it has ended already.
        _ = if panicking() {
            owned.end_with(Fault::gone("the endpoint was dropped in a panic"))
        } else {
            owned.end()
        };
    }
}
