//! A gate that lets the tiers of a piece of work through one after the other.
//!
//! A caller with work in a tier joins it, enters when it is open, and leaves by dropping its
//! ticket. When the last ticket of a tier is gone, the next tier opens.
//!
//! ```
//! use conversant::gate::TierGate;
//!
//! let gate = TierGate::new();
//! let (mut load, mut sum) = (gate.join(1), gate.join(2));
//! std::thread::scope(|scope| {
//!     // In a task: `sum.enter().await`.
//!     scope.spawn(move || sum.enter().wait());
//!     load.enter().wait();
//!     // The sum sees all that is loaded here.
//!     drop(load);
//! });
//! ```

// State: the counts of the open tier in one word (`word`); under one lock (`state`), how many
// tickets each tier has (`tiers`), and the waiters of each tier.
//
// Protocol: a ticket is outstanding from `join` on. It enters if its tier is open and does not
// drain, otherwise it waits. Joining, entering and leaving the open tier is one compare-and-swap of
// the word, unless that opens another tier or lets somebody in. All else is done under the lock:
// its owner takes the counts out of the word, so that all others need the lock, and puts them back.
// A thread that opens a tier, or ends its draining, notifies all waiters of that tier, and does not
// wait for them. The last to leave a tier enters the next in the same step if it has a ticket for
// it (`Ticket::leave_for`).
//
// A thread watches the word for about two microseconds before it enters the queue: the next tier
// may open by then, and a notification costs the last leaver more than all its tickets do.
//
// Invariants:
// 1. Once the lock is released, nobody waits unnotified in a tier that may start tasks.
// 2. The queue of a tier exists only while somebody waits in it.
// 3. A ticket counts as inside from the moment at which it finds its tier open until it is dropped.
//    A notification alone holds nothing.
// 4. The counts of the open tier are in the word, or with SLOW under the lock. Which tier is open,
//    if another has tickets too, and whether it drains, changes only under the lock. So a ticket
//    that finds under the lock that it must wait is found by the thread that opens its tier.
// 5. SLOW is set before the state is changed, and cleared only by writing what the state says. A
//    panic in between leaves the counts in the state: the gate is slower, not wrong.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use self::word::{Fast, Word};
use crate::shown::shows;
use crate::sync::Arc;
use crate::tiers::Tiers;
use crate::wait::{Guarded, Op, Wait, Waiters};

mod enter;
#[cfg(all(test, loom))]
mod model;
mod snapshot;
mod state;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod word;

use self::enter::Enter;
pub use self::snapshot::{Counts, Snapshot};

/// Lets tickets of the lowest tier enter together, and those of the next when they have left.
///
/// # The rule
///
/// A ticket is *outstanding* until it is dropped. One tier is open. It stays open until none of its
/// tickets is inside, and either none of them is outstanding or a lower tier has an outstanding
/// ticket. Then the lowest tier with an outstanding ticket opens; tiers without one are skipped.
/// While a lower tier has an outstanding ticket, nobody new enters the open tier. So
///
/// - nobody enters before every ticket of every lower tier that had joined is gone;
/// - tickets of one tier are inside together, in any number;
/// - a late ticket for a lower tier waits for those inside to leave, and for tiers lower still;
/// - tickets that keep joining a lower tier keep a higher one out for ever. No bound covers that.
///
/// Tier numbers may be reused at once.
///
/// A tier without tickets is over. Where more is to come, as from a source whose windows are tiers,
/// keep a ticket in the tier, and join the next one before you drop it. A ticket need not enter.
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
/// For work without an end, count the tiers up. Here each restart waits for the requests before it,
/// and the requests after it wait for the restart:
///
/// ```
/// # use conversant::gate::TierGate;
/// use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
///
/// let (gate, restarts) = (TierGate::new(), AtomicU32::new(0));
/// let request = || gate.join(2 * restarts.load(SeqCst));
/// let mut before = request();
/// assert!(before.try_enter());
/// let mut restart = gate.join(2 * restarts.fetch_add(1, SeqCst) + 1);
/// let mut after = request();
/// assert!(!restart.try_enter() && !after.try_enter());
/// drop(before);
/// assert!(restart.try_enter() && !after.try_enter());
/// drop(restart);
/// assert!(after.try_enter());
/// ```
///
/// # Cost
///
/// Joining, entering and leaving the open tier is one compare-and-swap of one word each. The last
/// to leave a tier takes a short lock, and so does a join of another tier. Opening a tier is
/// O(waiters in it). A tier that comes or goes between others moves those: with t tiers
/// outstanding, up to t / 2 entries of 16 bytes. With more than 16,383 tickets of the open tier
/// outside or inside, every operation takes the lock. A tier in which nobody waits costs nothing.
/// Clones are handles to the same gate.
///
/// All workers write the one word: a worker uses one ticket for several small tasks of a tier.
///
/// # Memory ordering
///
/// What was done before a ticket was dropped happens before what is done after a later one entered.
#[derive(Clone)]
pub struct TierGate {
    shared: Arc<Shared>,
}

/// A place in a tier: outstanding from [`TierGate::join`] until it is dropped, on any thread.
/// It belongs to no thread: a ticket that a supervisor keeps holds its tier even if the worker
/// died. It has a handle to its gate, or a reference.
///
/// Dropping it leaves the gate, or cancels if it has not entered: neither ever stalls the gate.
#[must_use = "a ticket that is dropped has left"]
pub struct Ticket<G: Borrow<TierGate> = TierGate> {
    gate: G,
    tier: u32,
    entered: bool,
    /// It has left already.
    gone: bool,
    /// Kept here and not in the wait, because a wait may be forgotten.
    position: Option<crate::wait::Ticket>,
}

struct Shared {
    word: Word,
    state: Guarded<State>,
}

/// The counts come first, on the cache line of the lock.
#[repr(C)]
struct State {
    /// The counts of the open tier are current here only if the word says SLOW.
    tiers: Tiers,
    waits: BTreeMap<u32, Waiters<()>>,
}

impl TierGate {
    /// A gate without tickets.
    #[must_use]
    pub fn new() -> Self {
        let state = State {
            tiers: Tiers::new(),
            waits: BTreeMap::new(),
        };
        Self {
            shared: Arc::new(Shared {
                word: Word::new(),
                state: Guarded::new(state),
            }),
        }
    }

    /// Adds a ticket to this tier, outstanding from now on.
    /// Never waits for a tier: tickets join in the order of the calls.
    pub fn join(&self, tier: u32) -> Ticket {
        Ticket::join(self.clone(), tier)
    }

    /// [`join`](Self::join) without a handle of the ticket's own.
    /// It saves an increment and a decrement of a count that all handles share.
    pub fn join_ref(&self, tier: u32) -> Ticket<&Self> {
        Ticket::join(self, tier)
    }
}

impl<G: Borrow<TierGate>> Ticket<G> {
    fn join(gate: G, tier: u32) -> Self {
        let shared = &gate.borrow().shared;
        if shared.word.join(tier) != Fast::Done {
            shared.join_locked(tier);
        }
        Ticket {
            gate,
            tier,
            entered: false,
            gone: false,
            position: None,
        }
    }

    #[inline]
    fn shared(&self) -> &Shared {
        &self.gate.borrow().shared
    }

    /// The tier of this ticket.
    #[must_use]
    pub fn tier(&self) -> u32 {
        self.tier
    }

    /// Whether it has entered.
    #[must_use]
    pub fn entered(&self) -> bool {
        self.entered
    }

    /// Waits until its tier is open, and enters. The wait ends at once if it has entered already.
    ///
    /// # Cancel safety
    ///
    /// A wait that is dropped or times out changes nothing: the ticket stays outstanding and can
    /// try again.
    pub fn enter(&mut self) -> Wait<impl Op<Output = ()>> {
        Wait::new(Enter { ticket: self })
    }

    /// Enters if its tier is open and does not drain. Returns whether it is inside now.
    #[inline]
    #[must_use = "whether it has entered"]
    pub fn try_enter(&mut self) -> bool {
        if self.enter_fast() == Fast::Slow {
            self.enter_locked(None);
        }
        self.entered
    }

    /// Drops this ticket and enters with `next`, in one step if possible.
    /// Nobody sees the gate in between. Returns whether `next` is inside now; if not, it can
    /// [`enter`](Self::enter).
    ///
    /// ```
    /// use conversant::gate::TierGate;
    ///
    /// let gate = TierGate::new();
    /// let (mut first, mut second) = (gate.join(1), gate.join(2));
    /// assert!(first.try_enter() && !second.try_enter());
    /// assert!(first.leave_for(&mut second));
    /// ```
    #[must_use = "whether the next has entered"]
    pub fn leave_for(mut self, next: &mut Self) -> bool {
        let passes = self.entered && !next.entered && std::ptr::eq(self.shared(), next.shared());
        if passes {
            self.gone = true;
            let same = self.tier == next.tier;
            let fast = match same {
                true => self.shared().word.relieve(),
                false => self.shared().word.leave(),
            };
            next.entered = match fast {
                Fast::Done => same,
                _ => self.shared().leave_locked(self.tier, Some(next.tier)),
            };
            if next.entered {
                next.stop_waiting();
            }
        }
        drop(self);
        next.try_enter()
    }

    /// Enters by the word alone, if that is possible and it has not entered.
    #[inline]
    fn enter_fast(&mut self) -> Fast {
        if self.entered {
            return Fast::Done;
        }
        let fast = self.shared().word.enter(self.tier);
        if fast == Fast::Done {
            self.entered = true;
            self.stop_waiting();
        }
        fast
    }

    #[inline]
    fn stop_waiting(&mut self) {
        if self.position.is_some() {
            let mut state = self.gate.borrow().shared.state.lock();
            state.stop_waiting(self.tier, &mut self.position);
        }
    }
}

impl<G: Borrow<TierGate>> Drop for Ticket<G> {
    #[inline]
    fn drop(&mut self) {
        self.stop_waiting();
        if self.gone {
            return;
        }
        if self.entered {
            if self.shared().word.leave() != Fast::Done {
                self.shared().leave_locked(self.tier, None);
            }
        } else if self.shared().word.cancel(self.tier) != Fast::Done {
            self.shared().cancel_locked(self.tier);
        }
    }
}

impl Default for TierGate {
    fn default() -> Self {
        Self::new()
    }
}

shows! {
    TierGate, |this|;
    if counts: this.shared.state.try_lock().as_mut().map(|state| state.counts(&this.shared.word))
}

shows!([G: Borrow<TierGate>] Ticket<G>, |this| tier: this.tier, entered: this.entered);
