//! One dialog: what its sides may send, and how they end.
//!
//! State: each side's timer under one small mutex, and whether the side has ended, which changes
//! under it; and each side's conversation, through which the peer sends into its queue.
//!
//! Protocol: a call that puts an event into a queue takes the dialog's lock and decides. Then it
//! takes the queue's lock, puts the event in its place, releases the dialog's lock and then the
//! queue's, and wakes. Lock order: dialog, then queue or hub. A side that ends tells the peer, and
//! then takes its own waiting messages out of its queue.
//!
//! Invariants:
//! 1. Nothing is put to a side that has ended, so when it leaves it takes out all that will ever
//!    wait for it.
//! 2. A side that has left its queue receives nothing that is given back: its mark is set before it
//!    takes the queue's lock to leave, and read under that lock (`is_wanted`).
//! 3. If a side has not ended but its peer has, an end or error for it waits or is in flight. The
//!    side ends when that event is dropped.
//! 4. A timer that is set in the hub is stored here. One that is stored here is set in the hub, or
//!    its `ring` is under way.
//! 5. All that was put to a side stands in its group within its `reach`.

use crate::error::Stale;
use crate::group::Reach;
use crate::queue::{Observer, Side as QueueSide};
use crate::sync::{AtomicBool, Mutex, Ordering, WakeArc as Arc, unique};
use crate::timers::Timer;
use crate::wait::Panics;

use super::event::{Event, Fault};
use super::hub::Hub;
use super::refuse::Refused;
use super::side::{EndpointRef, Received, Side, Talk};
use super::side_group::SideGroup;

impl<M: Send + 'static> Talk<M> {
    /// A new dialog: its near side.
    pub(super) fn begin(
        hub: &Arc<Hub<EndpointRef<M>>>,
        [near, far]: [SideGroup<'_, M>; 2],
    ) -> Result<EndpointRef<M>, Refused> {
        let queue = |side: SideGroup<'_, M>| {
            let conversation = side.conversation()?;
            Ok::<_, Refused>(QueueSide::new(conversation, Received::is_wanted))
        };
        let queues = [queue(near)?, queue(far)?];
        let fresh = Side {
            timer: None,
            reach: Reach::NONE,
        };
        let talk = Self {
            number: unique(),
            hub: hub.clone(),
            queues,
            ended: [AtomicBool::new(false), AtomicBool::new(false)],
            sides: Mutex::new([fresh; 2]),
        };
        hub.live.fetch_add(1, Ordering::Relaxed);
        Ok(EndpointRef::new(Arc::new(talk), 0))
    }
}

impl<M: Send + 'static> EndpointRef<M> {
    /// Registers the side with its queue, which tells it when the queue is dropped.
    pub(super) fn watch_queue(&self) {
        if !self.queue().join(&Arc::new(self.clone())) {
            // The queue was dropped just now: the other side receives an error.
            self.gone();
        } else if self.talk.has_ended(self.side) {
            // The side has ended just now, when it may have had no observer to unregister.
            self.queue().part();
        }
    }

    /// Ends the side; the peer receives `last`.
    pub(super) fn end_by(&self, last: Event<M>) -> Result<(), Stale> {
        let (talk, peer) = (&self.talk, self.opposite());
        let mut sides = self.lock_live()?;
        // Relaxed: see `has_ended`.
        talk.ended[self.side].store(true, Ordering::Relaxed);
        let reach = sides[self.side].reach;
        if let Some(timer) = sides[self.side].timer.take() {
            talk.hub.cancel(timer);
        }
        let told = !talk.has_ended(peer.side);

        // Each step is done even if a waker or a drop in another step panics.
        let mut panics = Panics::default();
        let (mut refused, mut taken) = (None, Vec::new());
        panics.contain(|| {
            if told {
                let error = matches!(last, Event::Error(_));
                let note = move |place| sides[peer.side].reach.extend(place);
                let last = Received::last(peer.clone(), last);
                refused = peer.queue().put(last, error, note).err();
            } else {
                talk.hub.live.fetch_sub(1, Ordering::Relaxed);
                drop(sides);
            }
        });
        panics.contain(|| taken = self.queue().leave(reach));
        // Dropping an event that the queue refused ends the peer's side.
        panics.contain(|| drop(refused));
        for message in taken {
            panics.contain(|| drop(message));
        }
        panics.resume();
        Ok(())
    }

    /// A timer was due. It may have been replaced or cancelled meanwhile.
    pub(super) fn ring(&self, timer: Timer) {
        let mut sides = self.talk.sides.lock();
        let mine = &mut sides[self.side];
        if mine.timer == Some(timer) {
            mine.timer = None;
            let event = Received::plain(self.clone(), Event::Timer);
            let note = move |place| sides[self.side].reach.extend(place);
            drop(self.queue().put(event, false, note));
        }
    }
}

impl<M: Send + 'static> Observer for EndpointRef<M> {
    /// The queue of this side was dropped.
    fn gone(&self) {
        let fault = Fault::gone("the queue of the peer was dropped");
        // Stale is fine: the side had ended before.
        _ = self.end_by(Event::Error(fault));
    }
}
