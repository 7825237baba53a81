//! Dialogs: two endpoints that talk, each through a queue of its own side.
//!
//! What one endpoint sends waits in the other's queue, in a group, like any
//! message: readers receive it in a turn, in the order in which it was sent,
//! and complete it. Each [`Received`] event says which [endpoint] it came to,
//! so that the answer goes back on the dialog that asked.
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
//! // A reader of the back end, that knows no dialog.
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
//! // The back end sees the end, and lets go of it: nothing is left. In a task:
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
//! # How a dialog ends
//!
//! Each side ends once, in one of two ways. From then on it sends nothing, nothing
//! is sent to it, and all that waits for it is dropped. What is in flight can be
//! completed; given back, it is dropped. An event that its reader sends into a queue
//! again may outlast its side.
//!
//! | way | what the peer sees |
//! |---|---|
//! | [`end`](EndpointRef::end) | all that was sent to it, and then [`Event::End`] |
//! | [`end_with`](EndpointRef::end_with) | [`Event::Error`], before all that waits for it; what waits can be received after that |
//!
//! Dropping an [`Endpoint`] is the first: what was said has been said, and the
//! peer hears that nothing follows. While the thread is panicking it is an error
//! with the code [`Fault::GONE`], because then what was said may be half of it.
//!
//! The side that is told of the other's end can still receive what was sent to
//! it, and its timers, but cannot send. It has ended itself when it says so, or
//! when the event of the end or error is dropped: [`complete`] hands that out,
//! and who holds it holds the side open. So a reader that takes no notice of
//! ends leaks nothing, and neither does a queue that is dropped.
//!
//! When both sides have ended nothing of the dialog is left but what is in
//! flight; [`Dialogs::len`] does not count it, and a group of its own goes with
//! its last delivery.
//!
//! [`complete`]: crate::queue::Delivery::complete
//!
//! # When the peer is gone
//!
//! - Its side has ended: [`Refused::PeerEnded`].
//! - Its queue is closed: [`Refused::Closed`]. Ends, errors and timers still
//!   go into a closed queue while its readers drain it.
//! - Its queue is dropped: its side has ended with an error of the code
//!   [`Fault::GONE`], which this side receives.
//!
//! An [`EndpointRef`] outlives its dialog, and then gives errors; it never
//! names another dialog.
//!
//! # Order and limits
//!
//! Events of one side are in its group in the order in which they were sent,
//! but for errors, which come before all others of their group; several errors
//! in a group that dialogs share keep their order. What was received before an
//! error came, and is given back, follows it. An error is in tier 0 of its
//! lane, whatever the group's last tier. Ends, errors and timers do not ask for
//! the queue's capacity, so that it can be exceeded by them: for each side by
//! one end or error, and the timers that wait.
//!
//! # Memory ordering
//!
//! That of the queue: what was done before an event was sent is seen by whoever
//! receives it.
//!
//! # Panics and re-entry
//!
//! No code of the user's runs under a lock of a dialog: messages are dropped,
//! and wakers woken, after it, and may call dialogs and queues. A waker that
//! panics stops nobody. If the drop of a message panics, what the call was for is
//! done, and the panic goes on.
//!
//! # Cost
//!
//! A send takes the lock of its dialog, which nobody else wants, and is a send
//! of the queue. Ends and timers are events of the queue each. An end costs the
//! same whatever waits in its side's group for others. Where something waits for
//! the side too, it looks at all that waits in the group, under the queue's policy
//! lock; what stays is moved to another place the first time. Where several
//! deliveries of a group are out at once, or several senders meet, or a send was
//! refused, it may do so for nothing.

mod endpoint;
mod event;
mod hub;
#[cfg(all(test, loom))]
mod model;
mod panics;
mod refuse;
mod side;
mod side_group;
mod talk;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::time::Duration;

// As in the queue's observers: shared ownership and no more.
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
    /// None yet, at time 0.
    #[must_use]
    pub fn new() -> Self {
        Self {
            hub: Arc::new(Hub::new()),
        }
    }

    /// A dialog between a side here and one there, each in a group of its own
    /// or in a [related](SideGroup) one.
    ///
    /// What this returns owns the near side. Nobody owns the far one: its
    /// readers speak for it, through the events that they receive, and when
    /// they let go of the end or error it has ended too.
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

    /// Tells the time, since an origin of the caller's choice; each endpoint
    /// whose [timer](EndpointRef::set_timer) is due receives an
    /// [`Event::Timer`]. Gives the time at which to call it again; nothing if
    /// no timer is set. An earlier time than the last changes nothing. A
    /// [`Ticker`](crate::ticker::Ticker) does it by itself.
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
