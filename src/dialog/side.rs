//! The sides of a dialog: their shared state, references, owners, and the events that they receive.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::Stale;
use crate::group::Reach;
use crate::queue::{GroupId, Side as QueueSide};
use crate::shown::{says, shows};
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, WakeArc as Arc};
use crate::timers::Timer;

use super::event::Event;
use super::hub::Hub;
use super::refuse::Refused;

/// What both sides share: see `talk`.
pub(super) struct Talk<M: Send + 'static> {
    pub(super) number: u64,
    pub(super) hub: Arc<Hub<EndpointRef<M>>>,
    pub(super) queues: [QueueSide<Received<M>>; 2],
    /// Which sides have ended. Changed under the lock of `sides`; invariant 2.
    pub(super) ended: [AtomicBool; 2],
    pub(super) sides: Mutex<[Side; 2]>,
}

#[derive(Clone, Copy)]
pub(super) struct Side {
    pub(super) timer: Option<Timer>,
    /// Invariant 5.
    pub(super) reach: Reach,
}

impl<M: Send + 'static> Talk<M> {
    /// Whether a side has ended. Exact under the lock of `sides`.
    pub(super) fn has_ended(&self, side: usize) -> bool {
        // Relaxed: ordered by that lock, or by the queue's (invariant 2).
        self.ended[side].load(Ordering::Relaxed)
    }
}

// No user code runs under its lock.
impl<M: Send + 'static> UnwindSafe for Talk<M> {}
impl<M: Send + 'static> RefUnwindSafe for Talk<M> {}

/// Identifies one side of one dialog. No other side ever has the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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

says!(
    /// The dialog's number, and the side's.
    EndpointId { Self { dialog, side } => "{dialog}.{side}" }
);

/// A reference to one side of a dialog, without owning it. Each event has one.
///
/// Clones refer to the same side. When the side has ended they give errors.
pub struct EndpointRef<M: Send + 'static> {
    pub(super) talk: Arc<Talk<M>>,
    pub(super) side: usize,
}

impl<M: Send + 'static> EndpointRef<M> {
    pub(super) fn new(talk: Arc<Talk<M>>, side: usize) -> Self {
        Self { talk, side }
    }

    /// The other side.
    pub(super) fn opposite(&self) -> Self {
        Self::new(self.talk.clone(), 1 - self.side)
    }

    /// Its conversation in its own queue, into which the peer sends.
    pub(super) fn queue(&self) -> &QueueSide<Received<M>> {
        &self.talk.queues[self.side]
    }

    /// The state of both sides, if this one has not ended.
    pub(super) fn lock_live(&self) -> Result<MutexGuard<'_, [Side; 2]>, Stale> {
        let sides = self.talk.sides.lock();
        match self.talk.has_ended(self.side) {
            true => Err(Stale),
            false => Ok(sides),
        }
    }

    /// The id of this side.
    #[must_use]
    pub fn id(&self) -> EndpointId {
        EndpointId {
            dialog: self.talk.number,
            side: self.side,
        }
    }

    /// The group in which this side's events wait, to bump it or to receive from it by name. When
    /// the side has ended, the id may be stale.
    #[must_use]
    pub fn group_id(&self) -> GroupId {
        self.queue().group()
    }

    /// The group of the peer's queue in which the messages of this side wait.
    #[must_use]
    pub fn peer_group(&self) -> GroupId {
        self.talk.queues[1 - self.side].group()
    }

    /// Why this side cannot send, if one of the sides has ended: [`Refused::Ended`], or
    /// [`Refused::PeerEnded`]. After the latter it may still receive what was sent to it. The
    /// answer may be out of date when this returns.
    #[must_use]
    pub fn refusal(&self) -> Option<Refused> {
        let has_ended = |side| self.talk.has_ended(side);
        match (has_ended(self.side), has_ended(1 - self.side)) {
            (true, _) => Some(Refused::Ended),
            (false, true) => Some(Refused::PeerEnded),
            (false, false) => None,
        }
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

impl<M: Send + 'static> Hash for EndpointRef<M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

shows!([M: Send + 'static] EndpointRef<M>, |endpoint| id: endpoint.id());

/// Owns one side of a dialog. Dropping it ends the side: as by [`end`](EndpointRef::end), or in a
/// panic with the error [`Fault::GONE`](super::Fault::GONE).
///
/// It does all that an [`EndpointRef`] does.
#[must_use = "dropping an endpoint ends its side of the dialog"]
pub struct Endpoint<M: Send + 'static> {
    /// `None` once detached.
    pub(super) owned: Option<EndpointRef<M>>,
}

impl<M: Send + 'static> Endpoint<M> {
    pub(super) fn own(endpoint: EndpointRef<M>) -> Self {
        Self {
            owned: Some(endpoint),
        }
    }

    /// Gives up the ownership without ending the side. The side then ends by a call, or when its
    /// reader drops the peer's end or error.
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

shows!([M: Send + 'static] Endpoint<M>, |endpoint| id: endpoint.id());

/// An event and the endpoint that receives it. The queue of each side holds these.
///
/// An [`Event::End`] or [`Event::Error`] keeps its side open until it is dropped, and then ends it.
pub struct Received<M: Send + 'static> {
    /// What the endpoint receives.
    pub event: Event<M>,
    endpoint: EndpointRef<M>,
    /// For an end or error: ends this side when it is dropped.
    _last: Option<Endpoint<M>>,
}

impl<M: Send + 'static> Received<M> {
    /// An event that ends nothing.
    pub(super) fn plain(endpoint: EndpointRef<M>, event: Event<M>) -> Self {
        Self {
            event,
            endpoint,
            _last: None,
        }
    }

    /// The peer's end or error, which ends this side when it is dropped.
    pub(super) fn last(endpoint: EndpointRef<M>, event: Event<M>) -> Self {
        Self {
            event,
            _last: Some(Endpoint::own(endpoint.clone())),
            endpoint,
        }
    }

    /// The endpoint that receives it: to answer, to end, to tell dialogs apart.
    #[must_use]
    pub fn endpoint(&self) -> &EndpointRef<M> {
        &self.endpoint
    }

    /// Whether its side will still receive it. Called under its queue's lock.
    pub(super) fn is_wanted(&self) -> bool {
        let EndpointRef { talk, side } = &self.endpoint;
        !talk.has_ended(*side)
    }
}

/// Without the message, so that `M` need not be `Debug`.
impl<M: Send + 'static> fmt::Debug for Received<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = match self.event {
            Event::Message(_) => "Message",
            Event::End => "End",
            Event::Error(_) => "Error",
            Event::Timer => "Timer",
        };
        f.debug_struct("Received")
            .field("event", &event)
            .field("endpoint", &self.endpoint.id())
            .finish_non_exhaustive()
    }
}
