//! What an endpoint does: it sends, ends, and has a timer.

use std::time::Duration;

use crate::error::Stale;
use crate::queue::SendError;
use crate::sync::panicking;
use crate::wait::WakeBatch;

use super::event::{Event, Fault};
use super::refuse::Refused;
use super::side::{Endpoint, EndpointRef, Received};

impl<M: Send + 'static> EndpointRef<M> {
    /// Sends a message to the peer. Never waits for anybody.
    ///
    /// What happened before the send is visible to the receiver of the message.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message, if this side or the peer has ended, or
    /// the peer's queue is closed or full.
    pub fn send(&self, message: M) -> Result<(), SendError<M, Refused>> {
        let (peer, to) = (self.opposite(), 1 - self.side);
        let mut sides = self.talk.sides.lock();
        if let Some(reason) = self.refusal() {
            return Err(SendError { message, reason });
        }
        let event = Received::plain(peer, Event::Message(message));
        let note = move |place| sides[to].reach.extend(place);
        let sent = self.talk.queues[to].send_holding(event, note);
        sent.map_err(|refused| SendError {
            message: match refused.message.event {
                Event::Message(message) => message,
                _ => unreachable!("what was refused is what was sent"),
            },
            reason: Refused::by_queue(refused.reason),
        })
    }

    /// Ends this side: the peer receives what was sent to it, and then an
    /// [`Event::End`]. What waits to be received by this side is dropped.
    ///
    /// # Errors
    ///
    /// [`Stale`] if this side has ended; nothing has changed.
    pub fn end(&self) -> Result<(), Stale> {
        self.end_by(Event::End)
    }

    /// Ends this side with an error, which the peer receives before all that
    /// waits for it. What waits to be received by this side is dropped.
    ///
    /// # Errors
    ///
    /// [`Stale`] if this side has ended; nothing has changed.
    pub fn end_with(&self, fault: Fault) -> Result<(), Stale> {
        self.end_by(Event::Error(fault))
    }

    /// Sets the side's timer, due `after` the latest time told to
    /// [`advance`](super::Dialogs::advance); with a [`Ticker`](crate::ticker::Ticker), after now.
    /// Then the side receives an [`Event::Timer`], behind what waits by then. This replaces an
    /// earlier timer; the end of the side removes it.
    ///
    /// # Errors
    ///
    /// [`Stale`] if this side has ended.
    pub fn set_timer(&self, after: Duration) -> Result<(), Stale> {
        let hub = &self.talk.hub;
        // Fired when the lock is released.
        let mut wakes = WakeBatch::new();
        let mut sides = self.lock_live()?;
        let timer = hub.set_after(after, self.clone(), &mut wakes);
        if let Some(earlier) = sides[self.side].timer.replace(timer) {
            hub.cancel(earlier);
        }
        Ok(())
    }

    /// Cancels the timer; false if none was set, or it was due.
    ///
    /// # Errors
    ///
    /// [`Stale`] if this side has ended.
    pub fn clear_timer(&self) -> Result<bool, Stale> {
        let mut sides = self.lock_live()?;
        let timer = sides[self.side].timer.take();
        if let Some(timer) = timer {
            self.talk.hub.cancel(timer);
        }
        Ok(timer.is_some())
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
