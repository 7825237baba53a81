//! One dialog: who may say what, and what follows.
//!
//! State: how far each side has come, and its timer, under one small mutex; and
//! each side's conversation, which is the peer's way into its queue.
//!
//! ```text
//!   Open ----> Draining ----> Ended      each side for itself
//!     |                         ^
//!     +-------------------------+
//! ```
//!
//! Protocol: what puts an event into a queue takes the dialog's lock, decides,
//! takes the queue's, puts the event in its place, releases the dialog's and
//! then the queue's, and wakes. Lock order: dialog, then queue or hub. Who ends
//! tells the peer so, and then takes its own waiting messages out of its queue.
//!
//! Invariants:
//! 1. Nothing is put to a side that has ended, and no message to one that is
//!    draining: so what a side takes out when it leaves is all there will be.
//! 2. A side that has left receives nothing that is given back: its mark is set
//!    and read under its queue's lock (`is_wanted`).
//! 3. A side that has not ended and whose peer has, or that is draining, has an
//!    end or error waiting or in flight; with that it ends.
//! 4. A timer is noted here exactly while it is set in the hub or on its way.
//! 5. What was put to a side stands in its group within its `reach`.

use std::time::Duration;

use crate::error::Stale;
use crate::group::Reach;
use crate::queue::Observer;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, WakeArc as Arc, unique};
use crate::timers::Timer;
use crate::wait::WakeBatch;

use super::event::{Event, Fault};
use super::hub::Hub;
use super::panics::Panics;
use super::refuse::{BeginError, Refused, SendError};
use super::side::{EndpointRef, Phase, PutTo, Received, Side, State, Talk, TalkSide};
use super::side_group::SideGroup;

impl<M: Send + 'static> Talk<M> {
    pub(super) fn begin(
        hub: &Arc<Hub<TalkSide<M>>>,
        [near, far]: [SideGroup<'_, M>; 2],
    ) -> Result<Arc<Self>, BeginError> {
        let talk = Self::new(hub, [near, far])?;
        talk.watch_queues();
        Ok(talk)
    }

    pub(super) fn new(
        hub: &Arc<Hub<TalkSide<M>>>,
        [near, far]: [SideGroup<'_, M>; 2],
    ) -> Result<Arc<Self>, BeginError> {
        let queues = [near.conversation()?.into(), far.conversation()?.into()];
        let fresh = Side {
            phase: Phase::Open,
            timer: None,
            observer: None,
            reach: Reach::NONE,
        };
        let talk = Arc::new(Self {
            number: unique(),
            hub: hub.clone(),
            queues,
            left: [AtomicBool::new(false), AtomicBool::new(false)],
            state: Mutex::new(State {
                sides: [fresh; 2],
                left: 0,
            }),
        });
        hub.begun();
        Ok(talk)
    }

    /// Has both queues say when they are dropped.
    pub(super) fn watch_queues(self: &Arc<Self>) {
        for side in [0, 1] {
            let observer = Arc::new(QueueObserver(self.clone(), side));
            let observer = self.queues[side].join(observer, Received::is_wanted);
            let Some(number) = observer else {
                // The queue was dropped just now: the other side receives an error.
                self.gone(side);
                continue;
            };
            let noted = |mine: &mut Side| mine.observer = Some(number);
            let noted = self.state.lock().live(side).map(noted);
            if noted.is_err() {
                // It has ended just now, and told nobody.
                self.queues[side].part(number);
            }
        }
    }

    pub(super) fn send(this: &Arc<Self>, from: usize, message: M) -> Result<(), SendError<M>> {
        let state = this.state.lock();
        if let Some(reason) = state.refusal(from) {
            return Err(SendError { message, reason });
        }
        let to = EndpointRef::new(this.clone(), 1 - from);
        let event = Received::plain(to, Event::Message(message));
        let sent = this.queues[1 - from].send_holding(event, PutTo(state, 1 - from));
        sent.map_err(|refused| SendError {
            message: match refused.message.event {
                Event::Message(message) => message,
                _ => unreachable!("what was refused is what was sent"),
            },
            reason: Refused::by_queue(refused.reason),
        })
    }

    /// Ends a side; `last` is what the peer receives of it.
    pub(super) fn end(this: &Arc<Self>, side: usize, last: Event<M>) -> Result<(), Stale> {
        let mut state = this.state.lock();
        let mine = state.live(side)?;
        mine.phase = Phase::Ended;
        let (observer, reach) = (mine.observer.take(), mine.reach);
        if let Some(timer) = mine.timer.take() {
            this.hub.cancel(timer);
        }
        let peer = state.sides[1 - side].phase;
        let error = matches!(last, Event::Error(_));
        // One that is draining has its end waiting already; an error does not
        // wait behind that.
        let told = peer == Phase::Open || peer == Phase::Draining && error;

        // Each step is taken also if a waker or a drop in another panics.
        let mut panics = Panics::default();
        let (mut refused, mut taken) = (None, Vec::new());
        panics.contain(|| {
            if told {
                refused = this.put_last(1 - side, last, error, state);
            } else {
                drop(state);
            }
        });
        panics.contain(|| taken = this.leave(side, observer, reach));
        // What nobody will receive ends the peer's side.
        panics.contain(|| drop(refused));
        for message in taken {
            panics.contain(|| drop(message));
        }
        panics.resume();
        Ok(())
    }

    /// Has a side receive what waits for it, and then an end.
    pub(super) fn drain(this: &Arc<Self>, side: usize) -> Result<(), Stale> {
        let mut state = this.state.lock();
        let peer = state.sides[1 - side].phase;
        let mine = state.live(side)?;
        if mine.phase == Phase::Open && peer != Phase::Ended {
            mine.phase = Phase::Draining;
            drop(this.put_last(side, Event::End, false, state));
        }
        Ok(())
    }

    pub(super) fn set_timer(this: &Arc<Self>, side: usize, after: Duration) -> Result<(), Stale> {
        // Fired when the lock is released.
        let mut wakes = WakeBatch::new();
        let mut state = this.state.lock();
        let mine = state.live(side)?;
        let timer = this.hub.set_after(after, (this.clone(), side), &mut wakes);
        if let Some(earlier) = mine.timer.replace(timer) {
            this.hub.cancel(earlier);
        }
        Ok(())
    }

    pub(super) fn clear_timer(&self, side: usize) -> Result<bool, Stale> {
        let mut state = self.state.lock();
        let timer = state.live(side)?.timer.take();
        if let Some(timer) = timer {
            self.hub.cancel(timer);
        }
        Ok(timer.is_some())
    }

    /// A timer was due. It may have been replaced or taken back meanwhile.
    pub(super) fn ring(self: &Arc<Self>, side: usize, timer: Timer) {
        let mut state = self.state.lock();
        let mine = &mut state.sides[side];
        if mine.timer == Some(timer) {
            mine.timer = None;
            let event = Received::plain(EndpointRef::new(self.clone(), side), Event::Timer);
            drop(self.queues[side].put(event, false, PutTo(state, side)));
        }
    }

    /// Puts the last event to a side; gives it back if nobody will receive it.
    fn put_last(
        self: &Arc<Self>,
        side: usize,
        last: Event<M>,
        first: bool,
        state: MutexGuard<'_, State>,
    ) -> Option<Received<M>> {
        let last = Received::last(EndpointRef::new(self.clone(), side), last);
        self.queues[side].put(last, first, PutTo(state, side)).err()
    }

    /// A side that has ended leaves its queue, with what waited for it.
    fn leave(&self, side: usize, observer: Option<u64>, reach: Reach) -> Vec<Received<M>> {
        // Relaxed: under the queue's lock.
        let mark = || self.left[side].store(true, Ordering::Relaxed);
        let mine = |event: &Received<M>| !event.is_wanted();
        let mut panics = Panics::default();
        let mut taken = Vec::new();
        panics.contain(|| taken = self.queues[side].leave(observer, reach, mark, mine));
        let mut state = self.state.lock();
        state.left += 1;
        let over = state.left == 2;
        drop(state);
        if over {
            self.hub.over();
        }
        panics.resume();
        taken
    }

    /// The queue of a side was dropped.
    fn gone(self: &Arc<Self>, side: usize) {
        let fault = Fault::gone("the queue of the peer was dropped");
        // Stale is fine: the side had ended before.
        _ = Self::end(self, side, Event::Error(fault));
    }
}

/// What a queue tells of itself to a side.
struct QueueObserver<M: Send + 'static>(Arc<Talk<M>>, usize);

impl<M: Send + 'static> Observer for QueueObserver<M> {
    fn gone(&self) {
        self.0.gone(self.1);
    }
}
