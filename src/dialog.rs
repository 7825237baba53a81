//! Dialogs: two endpoints that talk, each through a queue of its own side.
//!
//! What one endpoint sends waits in the other's queue, in a group, like any message: readers
//! receive it in a turn, in the order in which it was sent, and complete it. Each [`Received`]
//! event names the [endpoint] that receives it, so the answer goes back on the same dialog.
//!
//! ```
//! use conversant::dialog::{Dialogs, Event, Received};
//! use conversant::limit::Limit;
//! use conversant::queue::Queue;
//!
//! let (front, back) = (Queue::<Received<u32>>::new(), Queue::new());
//! let asking = front.lane(1, Limit::Unlimited)?;
//! let answering = back.lane(1, Limit::Unlimited)?;
//! let dialogs = Dialogs::new();
//!
//! let dialog = dialogs.begin(&asking, &answering)?;
//! dialog.send(20)?;
//! dialog.send(21)?;
//!
//! // A reader of the back end. It need not know the dialog.
//! while let Ok(mut turn) = back.try_receive() {
//!     while let Some(delivery) = turn.next() {
//!         if let Event::Message(number) = delivery.event {
//!             delivery.endpoint().send(number * 2)?;
//!         }
//!         delivery.complete();
//!     }
//! }
//!
//! let mut answers = Vec::new();
//! while let Ok(mut turn) = front.try_receive() {
//!     while let Some(answer) = turn.next() {
//!         answers.push(answer.complete().event);
//!     }
//! }
//! assert_eq!(answers, [Event::Message(40), Event::Message(42)]);
//!
//! dialog.end()?;
//! // The back end receives the end and drops it. Then nothing is left. In a task:
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let mut turn = back.receive().await?;
//! let end = turn.next();
//! assert_eq!(end.map(|end| end.complete().event), Some(Event::End));
//! # Ok::<(), conversant::queue::NoMore>(()) })?;
//! assert!(dialogs.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [endpoint]: Received::endpoint
//!
//! To wait for the answers of one dialog, receive from its group by name:
//! `front.receive_from(dialog.group_id())`. For a single answer, a one-shot channel in the message
//! is cheaper than a dialog.
//!
//! # How a dialog ends
//!
//! Each side ends once, in one of two ways. After that it sends nothing, nothing can be sent to it,
//! and all events that wait for it are dropped. Its deliveries in flight can be completed; those
//! that are given back are dropped. An event that its reader sends into a queue again may outlast
//! its side.
//!
//! | way | what the peer sees |
//! |---|---|
//! | [`end`](EndpointRef::end) | all that was sent to it, and then [`Event::End`] |
//! | [`end_with`](EndpointRef::end_with) | [`Event::Error`], before all that waits for it; what waits can be received after that |
//!
//! Dropping an [`Endpoint`] ends its side like `end`: the peer receives all that was sent, and then
//! the end. If the thread is panicking, the drop ends the side with an error of the code
//! [`Fault::GONE`], because it may not have sent everything.
//!
//! A side whose peer has ended can still receive what was sent to it, and its timers, but it cannot
//! send. It ends in one of the same two ways, or when the event of the peer's end or error is
//! dropped. [`complete`] returns that event; the side stays open until the caller drops it. So a
//! reader that ignores ends leaks nothing, and neither does a queue that is dropped.
//!
//! When both sides have ended, only the deliveries in flight are left of the dialog.
//! [`Dialogs::len`] no longer counts the dialog. A group that was made for one side ends with its
//! last delivery.
//!
//! [`complete`]: crate::queue::Delivery::complete
//!
//! # When the peer is gone
//!
//! - Its side has ended: [`Refused::PeerEnded`].
//! - Its queue is closed: [`Refused::Closed`]. Ends, errors and timers still
//!   go into a closed queue while its readers drain it. When [only poisoned groups] are left, they
//!   go into these alone: a side in another group ends when its peer ends, and misses its timer.
//! - Its queue is dropped: its side has ended with an error of the code
//!   [`Fault::GONE`], which this side receives.
//!
//! [only poisoned groups]: crate::queue::NoMore::OnlyPoisoned
//!
//! An [`EndpointRef`] outlives its dialog. Its methods then return errors; it never names another
//! dialog.
//!
//! # Order and limits
//!
//! The events of one side are in its group in the order in which they were sent, except errors,
//! which come before all other events of their group. Several errors in a group that dialogs share
//! keep their order. If an event was received before an error came, and is given back, it follows
//! the error. An error is in tier 0 of its lane, regardless of the group's last tier. Ends, errors
//! and timers need no room, so they can exceed the queue's capacity: for each side by one end or
//! error, and by the timers that wait.
//!
//! # Memory ordering
//!
//! As in the queue: what happened before an event was sent is visible to the receiver of the event.
//!
//! # Panics and re-entry
//!
//! No user code runs under a lock of a dialog: messages are dropped and wakers woken after the lock
//! is released, and may call dialogs and queues. A waker that panics stops nobody. If the drop of a
//! message panics, the call does its work first, and then the panic continues.
//!
//! # Cost
//!
//! A send takes the lock of its dialog, which no other dialog uses, and is a send of the queue.
//! Ends, errors and timers take the queue's policy lock. If nothing waits for the ending side, the
//! cost of an end does not depend on what waits in its group for other sides. Otherwise the end
//! looks at every message that waits in the group, under the policy lock; the first time, it moves
//! the messages that stay to another place. The end may do this although nothing waits for its
//! side, if several deliveries of a group are out at once, several senders meet, or a send was
//! refused.

mod endpoint;
mod event;
mod hub;
#[cfg(all(test, loom))]
mod model;
mod refuse;
mod side;
mod side_group;
mod talk;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::time::Duration;

// As for the queue's observers: only for shared ownership.
use crate::due::{Dates, Timed};
use crate::shown::shows;
use crate::sync::{Ordering, WakeArc as Arc};
use crate::wait::sealed;

use hub::Hub;
use side::Talk;

pub use event::{Event, Fault};
pub use refuse::Refused;
pub use side::{Endpoint, EndpointId, EndpointRef, Received};
pub use side_group::SideGroup;

/// Dialogs with messages of one type, and their clock. See the [module](self).
///
/// Dropping it leaves its dialogs as they are; only their timers stop.
pub struct Dialogs<M: Send + 'static> {
    hub: Arc<Hub<EndpointRef<M>>>,
}

impl<M: Send + 'static> Dialogs<M> {
    /// No dialogs yet, at time 0.
    #[must_use]
    pub fn new() -> Self {
        Self {
            hub: Arc::new(Hub::new()),
        }
    }

    /// Begins a dialog. Each side has a group of its own, or is in a [related](SideGroup) one.
    ///
    /// The result owns the near side. Nobody owns the far side: its readers act for it through the
    /// events that they receive. When they drop the peer's end or error, the far side has ended
    /// too.
    ///
    /// # Errors
    ///
    /// [`Refused`] if one of the queues is closed, or the endpoint to be
    /// related to has ended and its group is gone.
    pub fn begin<'a>(
        &self,
        near: impl Into<SideGroup<'a, M>>,
        far: impl Into<SideGroup<'a, M>>,
    ) -> Result<Endpoint<M>, Refused> {
        let near = Talk::begin(&self.hub, [near.into(), far.into()])?;
        near.watch_queue();
        near.opposite().watch_queue();
        Ok(Endpoint::own(near))
    }

    /// As [`begin`](Self::begin), with both sides owned: `(near, far)`.
    ///
    /// # Errors
    ///
    /// [`Refused`] if one of the queues is closed, or the endpoint to be
    /// related to has ended and its group is gone.
    pub fn pair<'a>(
        &self,
        near: impl Into<SideGroup<'a, M>>,
        far: impl Into<SideGroup<'a, M>>,
    ) -> Result<(Endpoint<M>, Endpoint<M>), Refused> {
        let near = self.begin(near, far)?;
        let far = near.opposite();
        Ok((near, Endpoint::own(far)))
    }

    /// Tells the time, counted from an origin of the caller's choice.
    ///
    /// Each endpoint whose [timer](EndpointRef::set_timer) is due receives an [`Event::Timer`].
    /// Returns the time at which to call this again, or `None` if no timer is set. A time before
    /// the last one counts as the last one. A [`Ticker`](crate::ticker::Ticker) makes these calls.
    ///
    /// ```
    /// use conversant::dialog::{Dialogs, Event};
    /// use conversant::limit::Limit;
    /// use conversant::queue::Queue;
    /// use std::time::Duration;
    ///
    /// let queue = Queue::new();
    /// let lane = queue.lane(1, Limit::Unlimited)?;
    /// let dialogs = Dialogs::<u32>::new();
    /// let (near, _far) = dialogs.pair(&lane, &lane)?;
    /// let at = Duration::from_secs;
    /// assert_eq!(dialogs.advance(at(60)), None);
    /// near.set_timer(at(5))?;
    /// assert_eq!(dialogs.advance(at(60)), Some(at(65)));
    /// assert_eq!(dialogs.advance(at(65)), None);
    /// let rang = queue.try_receive()?.next().map(|rang| rang.complete().event);
    /// assert_eq!(rang, Some(Event::Timer));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance(&self, now: Duration) -> Option<Duration> {
        self.hub.advance(now, |side, timer| side.ring(timer))
    }

    /// How many dialogs have a side that has not ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hub.live.load(Ordering::Relaxed)
    }

    /// Whether every dialog is over.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<M: Send + 'static> sealed::Sealed for Dialogs<M> {}

impl<M: Send + 'static> Timed for Dialogs<M> {
    fn advance(&self, now: Duration) -> Option<Duration> {
        Self::advance(self, now)
    }

    fn with_dates(&self, f: &mut dyn FnMut(Option<Duration>, &mut Dates)) {
        self.hub.with_dates(f);
    }
}

impl<M: Send + 'static> Default for Dialogs<M> {
    fn default() -> Self {
        Self::new()
    }
}

shows!([M: Send + 'static] Dialogs<M>, |this| live: this.len());
