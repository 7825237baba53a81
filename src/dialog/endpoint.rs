//! The two ways to hold a side of a dialog: to own it, or to speak for it.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use crate::error::Stale;
use crate::queue::{Conversation, GroupId};
use crate::sync::{WakeArc as Arc, panicking};

use super::event::{Event, Fault, Received};
use super::refuse::{BeginError, SendError};
use super::talk::Talk;

/// Names one side of one dialog, for ever: no other is ever called the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId {
    dialog: u64,
    side: usize,
}

impl EndpointId {
    /// The number of its dialog, the same at both sides.
    #[must_use]
    pub fn dialog(self) -> u64 {
        self.dialog
    }
}

/// How far a side has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Both sides may send.
    Open,
    /// The peer has ended: this side may receive what was sent to it.
    PeerEnded,
    /// This side takes nothing more, and ends after what waits. It may send.
    Draining,
    /// This side has ended.
    Ended,
}

/// One side of a dialog, without owning it: what an event says it came to.
///
/// Clones name the same side. When the side has ended they give errors.
pub struct EndpointRef<M: Send + 'static> {
    talk: Arc<Talk<M>>,
    side: usize,
}

impl<M: Send + 'static> EndpointRef<M> {
    pub(super) fn new(talk: Arc<Talk<M>>, side: usize) -> Self {
        Self { talk, side }
    }

    /// The other side.
    pub(super) fn opposite(&self) -> Self {
        Self::new(self.talk.clone(), 1 - self.side)
    }

    /// Whether it receives nothing any more. Asked under its queue's lock.
    pub(super) fn has_left(&self) -> bool {
        self.talk.has_left(self.side)
    }

    /// A conversation in the same group.
    pub(super) fn beside(&self) -> Result<Conversation<Received<M>>, BeginError> {
        self.talk.beside(self.side)?.ok_or(BeginError::Stale)
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> EndpointId {
        EndpointId {
            dialog: self.talk.number,
            side: self.side,
        }
    }

    /// Where this side's events wait: to bump, or to receive from by name. When
    /// the side has ended it may be a stale name.
    #[must_use]
    pub fn group(&self) -> GroupId {
        self.talk.group(self.side)
    }

    /// Where what this side sends waits, in the peer's queue.
    #[must_use]
    pub fn peer_group(&self) -> GroupId {
        self.talk.group(1 - self.side)
    }

    /// How far it has come. It may have gone on when this returns.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.talk.standing(self.side)
    }

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

impl<M: Send + 'static> Clone for EndpointRef<M> {
    fn clone(&self) -> Self {
        Self::new(self.talk.clone(), self.side)
    }
}

/// The same side of the same dialog.
impl<M: Send + 'static> PartialEq for EndpointRef<M> {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl<M: Send + 'static> Eq for EndpointRef<M> {}

impl<M: Send + 'static> fmt::Debug for EndpointRef<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EndpointRef").field(&self.id()).finish()
    }
}

/// One side of a dialog, owned: when this is dropped the side ends, as by
/// [`end`](EndpointRef::end), and in a panic with the error
/// [`Fault::GONE`].
///
/// It does all that an [`EndpointRef`] does.
#[must_use = "dropping an endpoint ends its side of the dialog"]
pub struct Endpoint<M: Send + 'static> {
    /// `None` once detached.
    owned: Option<EndpointRef<M>>,
}

impl<M: Send + 'static> Endpoint<M> {
    pub(super) fn own(endpoint: EndpointRef<M>) -> Self {
        Self {
            owned: Some(endpoint),
        }
    }

    /// Gives the side up without ending it. It ends when somebody says so, or
    /// when its end or error is dropped by its reader.
    pub fn detach(mut self) -> EndpointRef<M> {
        self.owned.take().expect(OWNED)
    }
}

const OWNED: &str = "an endpoint owns its side until it is detached";

impl<M: Send + 'static> Deref for Endpoint<M> {
    type Target = EndpointRef<M>;

    fn deref(&self) -> &EndpointRef<M> {
        self.owned.as_ref().expect(OWNED)
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

impl<M: Send + 'static> fmt::Debug for Endpoint<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.id()).finish()
    }
}
