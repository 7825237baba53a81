//! Putting a thread to sleep until its waker is woken.
//!
//! It never uses `std::thread::park`, because that token belongs to the user: if a poll or a waker
//! of the user's parks, it would consume our wake-up, or we would consume the user's.
//!
//! State: one byte.
//!
//! ```text
//!            wake                      wake (and notify)
//!   EMPTY ----------> TOKEN <---------------------------- ASLEEP
//!     ^                 |                                   ^ |
//!     +---- take -------+                                   | | deadline
//!     +-----------------------------------------------------|-+
//!     +------------------ sleep ----------------------------+
//! ```
//!
//! Protocol: one thread owns a parker while it waits; any thread may wake it. The owner polls,
//! takes the token or sleeps until there is one, and polls again. A token left over from before
//! costs the owner one extra poll, no more.
//!
//! Invariants:
//! 1. Only the owner takes tokens and falls asleep.
//! 2. The owner sets ASLEEP with the mutex locked, and waiting unlocks the mutex. A waker that
//!    finds ASLEEP locks the mutex before it notifies, so it cannot notify before the owner waits.
//! 3. A token is never overwritten unseen: every step of the owner is a read-modify-write, and
//!    falling asleep succeeds only from EMPTY.
//! 4. A thread's parker is out of its cache while in use: a wait nested in another on the same
//!    thread's stack has one of its own.
//!
//! Memory ordering: the swap to TOKEN is Release. It pairs with the owner's Acquire swap or
//! compare-and-swap that takes the token: the poll after a wake sees what was done before the wake.
//! Later wakes are read-modify-writes, which continue the release sequence, so the owner
//! synchronizes with all of them. A waker needs to see nothing of the owner but ASLEEP; the rest
//! goes through the mutex.

use std::cell::Cell;
use std::task::{Context, Wake, Waker};
use std::time::Instant;

use super::pause::BACK_OFF;
use crate::sync::{AtomicU8, Condition, Ordering, Tally, WakeArc, per_thread, spin_loop};

const EMPTY: u8 = 0;
const TOKEN: u8 = 1;
const ASLEEP: u8 = 2;

static WAKEUPS: Tally = Tally::new();

/// How many times a thread blocked in this crate has come out of its sleep, for any reason.
///
/// It counts from the start of the process. While it does not change, nothing polls. It orders
/// nothing and may lag behind.
#[must_use]
pub fn wakeups() -> u64 {
    WAKEUPS.get()
}

#[derive(Debug)]
pub(crate) struct Parker {
    state: AtomicU8,
    condition: Condition,
}

impl Parker {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU8::new(EMPTY),
            condition: Condition::new(),
        }
    }

    /// Takes the token if there is one.
    pub(super) fn take(&self) -> bool {
        // Acquire: pairs with the Release in `wake_by_ref`.
        self.state.swap(EMPTY, Ordering::Acquire) == TOKEN
    }

    /// Takes the token if it comes within [`BACK_OFF`], about what a sleep costs.
    pub(super) fn spin(&self) -> bool {
        if BACK_OFF.is_zero() {
            return self.take();
        }
        let start = Instant::now();
        loop {
            for _ in 0..16 {
                // Relaxed: only a hint; `take` synchronizes.
                if self.state.load(Ordering::Relaxed) == TOKEN {
                    return self.take();
                }
                spin_loop();
            }
            if start.elapsed() >= BACK_OFF {
                return false;
            }
        }
    }

    /// Takes the token, and sleeps until there is one or the deadline has passed. Returns false if
    /// the deadline has passed, even if there is a token: the caller tries once more in any case,
    /// and wake-ups that lead to nothing cannot keep it beyond its deadline.
    pub(crate) fn sleep_until(&self, deadline: Option<Instant>) -> bool {
        let woken = self.spin() || self.sleep(deadline);
        woken && deadline.is_none_or(|deadline| Instant::now() < deadline)
    }

    /// Sleeps until there is a token, and takes it; false if there is none at the deadline.
    pub(super) fn sleep(&self, deadline: Option<Instant>) -> bool {
        let mut guard = self.condition.lock();
        // Relaxed: a waker that reads ASLEEP locks the mutex, too. A failure acquires nothing from
        // the token here; `take` synchronizes.
        let (relaxed, state) = (Ordering::Relaxed, &self.state);
        let fell = state.compare_exchange(EMPTY, ASLEEP, relaxed, relaxed);
        if fell.is_err() {
            return self.take();
        }
        loop {
            let (again, late) = self.condition.wait(guard, deadline);
            guard = again;
            WAKEUPS.count();
            // If there is no token the thread stays asleep: a notification may be spurious.
            // Acquire: pairs with the Release in `wake_by_ref`.
            let woken = state.compare_exchange(TOKEN, EMPTY, Ordering::Acquire, relaxed);
            if woken.is_ok() {
                return true;
            }
            if late {
                // Sets EMPTY, or takes a token that has come since, which counts.
                return self.take();
            }
        }
    }
}

impl Wake for Parker {
    fn wake(self: WakeArc<Self>) {
        self.wake_by_ref();
    }

    /// Leaves a token, and notifies the owner if it is asleep.
    fn wake_by_ref(self: &WakeArc<Self>) {
        // Release: pairs with the Acquire in `take` and `sleep`.
        if self.state.swap(TOKEN, Ordering::Release) == ASLEEP {
            drop(self.condition.lock());
            self.condition.notify_one();
        }
    }
}

/// A parker and its waker, made once per thread.
type Cached = (WakeArc<Parker>, Waker);

per_thread! {
    static CACHE: Cell<Option<Cached>> = const { Cell::new(None) };
}

/// Lends the calling thread's parker for one wait. If that wait unwinds, the next one makes a new
/// parker.
pub(crate) fn with_parker<R>(wait: impl FnOnce(&Parker, &mut Context<'_>) -> R) -> R {
    // The cache is not accessible while the thread's locals are destroyed.
    let cached = CACHE.try_with(Cell::take).ok().flatten();
    let cached = cached.unwrap_or_else(|| {
        let parker = WakeArc::new(Parker::new());
        let waker = Waker::from(WakeArc::clone(&parker));
        (parker, waker)
    });
    let (parker, waker) = &cached;
    // A token may be left over from an earlier wait; nothing depends on it.
    parker.take();
    let result = wait(parker, &mut Context::from_waker(waker));
    // The parker of the outer wait replaces that of an inner one.
    let _ = CACHE.try_with(move |cache| cache.set(Some(cached)));
    result
}
