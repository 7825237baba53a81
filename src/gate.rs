//! A gate that lets the tiers of a piece of work through one after the other.
//!
//! State: which tier is open and what is outstanding ([`tiers`](crate::tiers)), and for each tier
//! those who wait to enter, all under one short lock.
//!
//! Protocol: a ticket is outstanding from `join`; it enters if its tier is open and does not drain,
//! else it waits. Whoever opens a tier, or ends its draining, tells all who wait in it to look, and
//! does not wait for them.
//!
//! Invariants:
//! 1. Once the lock is let go, nobody waits un-notified in a tier that may start tasks.
//! 2. The list of a tier is there only while somebody waits in it.
//! 3. A ticket counts as running from the poll that finds its tier startable until it is dropped; a
//!    notification alone holds nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::task::{Context, Poll};

use crate::sync::Arc;
use crate::tiers::Tiers;
use crate::wait::{Guarded, Op, Session, Wait, Waiters, WakeBatch, sealed};

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// Lets tickets of the lowest tier enter together, and those of the next when they have left.
///
/// # The rule
///
/// A ticket is *outstanding* until it is dropped. One tier is open. It stays open until none of its
/// tickets is inside and either none of it is outstanding or a lower tier has one; then the lowest
/// outstanding tier opens, whichever it is: empty ones are passed over. While a lower tier is
/// outstanding, nobody new enters the open one. So
///
/// - nobody enters before every ticket of every lower tier that had joined is gone;
/// - tickets of one tier are inside together, in any number;
/// - a late ticket for a lower tier waits for those inside to leave, and for nothing else;
/// - tickets that keep joining a lower tier keep a higher one out for ever. No bound covers that.
///
/// Tier numbers may be used again at once.
///
/// ```
/// use conversant::gate::TierGate;
///
/// let gate = TierGate::new();
/// let (mut first, mut second, mut last) = (gate.join(100), gate.join(100), gate.join(300));
/// first.enter().wait();
/// assert!(second.try_enter() && !last.try_enter());
/// drop((first, second));
/// last.enter().wait();
/// ```
///
/// # Cost
///
/// Each operation takes one short lock; opening a tier is O(waiters in it) besides. A tier that
/// nobody waits in costs nothing. Clones are handles to the same gate.
///
/// # Memory ordering
///
/// What was done before a ticket was dropped happens before what is done after a later one entered.
#[derive(Clone)]
pub struct TierGate {
    shared: Arc<Shared>,
}

/// A place in a tier: outstanding from [`TierGate::join`] until it is dropped, wherever that is. It
/// belongs to no thread: one that is kept by a supervisor holds its tier although the worker died.
///
/// Dropping it leaves the gate, or cancels if it has not entered: neither ever stalls the gate.
#[must_use = "a ticket that is dropped has left"]
pub struct Ticket {
    shared: Arc<Shared>,
    tier: u32,
    entered: bool,
    /// Here and not in the wait, which may be forgotten.
    place: Option<crate::wait::Ticket>,
}

/// The wait of [`Ticket::enter`].
#[derive(Debug)]
pub struct Enter<'a> {
    ticket: &'a mut Ticket,
}

/// What a gate looks like at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateView {
    /// The open tier, if anything is outstanding.
    pub open: Option<u32>,
    /// Whether nobody new enters it because a lower tier has an outstanding ticket.
    pub draining: bool,
    /// How many tickets are inside.
    pub inside: u64,
    /// The outstanding tickets of each tier, the open one first, then ascending.
    pub outstanding: Vec<(u32, u64)>,
    /// How many waits to enter there are, in all tiers.
    pub waiting: usize,
}

struct Shared {
    state: Guarded<State>,
}

struct State {
    tiers: Tiers,
    lines: BTreeMap<u32, Waiters<()>>,
}

impl TierGate {
    /// A gate without tickets.
    #[must_use]
    pub fn new() -> Self {
        let state = State {
            tiers: Tiers::new(),
            lines: BTreeMap::new(),
        };
        Self {
            shared: Arc::new(Shared {
                state: Guarded::new(state),
            }),
        }
    }

    /// One more ticket of this tier is outstanding from now on. Never blocks: tickets join in the
    /// order of the calls.
    pub fn join(&self, tier: u32) -> Ticket {
        self.shared.event(|state| {
            let _ = state.tiers.arrive(tier);
        });
        Ticket {
            shared: self.shared.clone(),
            tier,
            entered: false,
            place: None,
        }
    }

    /// What it looks like now.
    #[must_use]
    pub fn snapshot(&self) -> GateView {
        let state = self.shared.state.lock();
        GateView {
            open: state.tiers.open(),
            draining: state.tiers.draining(),
            inside: state.tiers.running(),
            outstanding: state.tiers.iter().collect(),
            waiting: state.lines.values().map(Waiters::len).sum(),
        }
    }
}

impl Ticket {
    /// Its tier.
    #[must_use]
    pub fn tier(&self) -> u32 {
        self.tier
    }

    /// Whether it has entered.
    #[must_use]
    pub fn entered(&self) -> bool {
        self.entered
    }

    /// Waits until its tier is open, and enters. Gives its result at once if it has entered already.
    ///
    /// # Cancel safety
    ///
    /// A wait that is dropped or times out changes nothing: the ticket stays outstanding and can try
    /// again.
    pub fn enter(&mut self) -> Wait<Enter<'_>> {
        Wait::new(Enter { ticket: self })
    }

    /// Enters if its tier is open and does not drain; whether it is inside now.
    #[must_use = "whether it has entered"]
    pub fn try_enter(&mut self) -> bool {
        if !self.entered {
            let mut session = self.shared.state.lock();
            if session.try_start(self.tier) {
                self.entered = true;
                session.leave_line(self.tier, &mut self.place);
            }
        }
        self.entered
    }

    fn leave_line(&mut self) {
        if self.place.is_some() {
            self.shared
                .state
                .lock()
                .leave_line(self.tier, &mut self.place);
        }
    }
}

impl Shared {
    /// One event, and then the wake-ups that follow from it.
    fn event(&self, f: impl FnOnce(&mut State)) {
        let mut event = Event(self.state.lock());
        f(event.0.parts().0);
        loop {
            let (state, wakes) = event.0.parts();
            if state.admit(wakes, true) {
                return;
            }
            event.0.flush();
        }
    }
}

/// Wakes all who must be also if a waker panics meanwhile.
struct Event<'a>(Session<'a, State>);

impl Drop for Event<'_> {
    fn drop(&mut self) {
        let (state, wakes) = self.0.parts();
        state.admit(wakes, false);
    }
}

impl State {
    /// Enters a ticket, if its tier takes one.
    fn try_start(&mut self, tier: u32) -> bool {
        let startable = self.tiers.startable(tier);
        if startable {
            self.tiers.start(tier);
        }
        startable
    }

    /// Tells those who wait in the open tier, by invariant 1; false if the batch is full first.
    fn admit(&mut self, wakes: &mut WakeBatch, bounded: bool) -> bool {
        let Some(tier) = self.tiers.open().filter(|_| !self.tiers.draining()) else {
            return true;
        };
        let Some(line) = self.lines.get_mut(&tier) else {
            return true;
        };
        while line.waiting() > 0 {
            if bounded && wakes.is_full() {
                return false;
            }
            line.notify_next(wakes);
        }
        true
    }

    fn drop_line(&mut self, tier: u32) {
        if self.lines.get(&tier).is_some_and(Waiters::is_empty) {
            self.lines.remove(&tier);
        }
        if self.lines.is_empty() {
            // An emptied map keeps its last node.
            self.lines = BTreeMap::new();
        }
    }
}

impl Session<'_, State> {
    /// Takes a waiter out of the line; nobody else needs its notification.
    fn leave_line(&mut self, tier: u32, place: &mut Option<crate::wait::Ticket>) {
        let line = self.lines.get_mut(&tier);
        let removed = place
            .take()
            .zip(line)
            .and_then(|(place, line)| line.remove(place));
        self.drop_line(tier);
        self.discard_waker(removed.and_then(|removed| removed.waker));
    }
}

impl sealed::Sealed for Enter<'_> {}

impl Op for Enter<'_> {
    type Output = ();

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.ticket.try_enter() {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        let Ticket {
            shared,
            tier,
            entered,
            place,
        } = &mut *self.ticket;
        let mut session = shared.state.lock();
        if session.try_start(*tier) {
            *entered = true;
            session.leave_line(*tier, place);
            session.discard_waker(Some(waker));
            return Poll::Ready(());
        }
        let line = session.lines.entry(*tier).or_default();
        let old = match *place {
            Some(place) => line.rewait(place, waker),
            None => {
                *place = Some(line.register((), waker));
                None
            }
        };
        session.discard_waker(old);
        Poll::Pending
    }

    fn cancel(&mut self) {
        self.ticket.leave_line();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.leave_line();
        let (tier, entered) = (self.tier, self.entered);
        self.shared.event(|state| {
            let _ = match entered {
                true => state.tiers.finish(tier),
                false => state.tiers.leave(tier),
            };
        });
    }
}

impl Default for TierGate {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TierGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("TierGate");
        if let Some(session) = self.shared.state.try_lock() {
            debug.field("tiers", &session.tiers);
        }
        debug.finish_non_exhaustive()
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("tier", &self.tier)
            .field("entered", &self.entered)
            .finish_non_exhaustive()
    }
}
