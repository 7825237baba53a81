//! Putting a thread to sleep until its waker is woken.
//!
//! It is never `std::thread::park`, whose token belongs to the user: a poll or
//! a waker of the user's that parks would eat our wake-up, or find it.
//!
//! State: one byte.
//!
//! ```text
//!            wake                      wake (and ring)
//!   EMPTY ----------> TOKEN <---------------------------- ASLEEP
//!     ^                 |                                   ^ |
//!     +---- take -------+                                   | | deadline
//!     +-----------------------------------------------------|-+
//!     +------------------ sleep ----------------------------+
//! ```
//!
//! Protocol: one thread owns a parker while it waits; anybody wakes it. The
//! owner polls, and takes the token or sleeps until there is one, then polls
//! again. A token left over costs the owner one poll too many, no more.
//!
//! Invariants:
//! 1. Only the owner takes tokens and falls asleep.
//! 2. The owner sets ASLEEP holding `bed`, and keeps it until the bell can
//!    reach it. A waker that finds ASLEEP takes `bed` before it rings: so the
//!    bell cannot ring before the owner listens.
//! 3. A token is never overwritten unseen: every step of the owner is a
//!    read-modify-write, and falling asleep succeeds only from EMPTY.
//! 4. A thread's parker is taken out of its cache while in use, so that a wait
//!    nested in another on the same thread's stack has a parker of its own.
//!
//! Memory ordering: the swap to TOKEN is Release and pairs with the owner's
//! Acquire swap or exchange that takes it: what was done before the wake is
//! seen by the poll after it. Later wakes are read-modify-writes, which
//! continue the release sequence, so the owner synchronizes with all of them.
//! A waker need see nothing of the owner's but ASLEEP itself; the rest goes
//! through `bed`.

use std::cell::Cell;
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use crate::sync::{
    AtomicU8, Condvar, Mutex, Ordering, Tally, WakeArc, model_size, per_thread, spin_loop,
};

const EMPTY: u8 = 0;
const TOKEN: u8 = 1;
const ASLEEP: u8 = 2;

/// How long a waiter looks for its token before it sleeps: about what putting a
/// thread to sleep and waking it costs. By time, since a pause instruction
/// takes from 4 to 140 cycles. The model does not spin.
const SPIN: Duration = Duration::from_nanos(model_size(2_000, 0) as u64);

static WAKEUPS: Tally = Tally::new();

pub(crate) fn wakeups() -> u64 {
    WAKEUPS.get()
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Slept {
    Woken,
    PastDeadline,
}

#[derive(Debug)]
pub(super) struct Parker {
    state: AtomicU8,
    bed: Mutex<()>,
    bell: Condvar,
}

impl Parker {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU8::new(EMPTY),
            bed: Mutex::new(()),
            bell: Condvar::new(),
        }
    }

    /// Takes the token if there is one.
    pub(super) fn take(&self) -> bool {
        // Acquire: pairs with the Release in `ring`.
        self.state.swap(EMPTY, Ordering::Acquire) == TOKEN
    }

    /// Takes the token if it comes within a moment.
    pub(super) fn spin(&self) -> bool {
        if SPIN.is_zero() {
            return self.take();
        }
        let start = Instant::now();
        loop {
            for _ in 0..16 {
                // Relaxed: only a hint, `take` synchronizes.
                if self.state.load(Ordering::Relaxed) == TOKEN {
                    return self.take();
                }
                spin_loop();
            }
            if start.elapsed() >= SPIN {
                return false;
            }
        }
    }

    /// Takes the token, asleep until there is one.
    pub(super) fn sleep(&self) {
        let mut bed = self.bed.lock();
        if !self.fall_asleep() {
            return;
        }
        loop {
            self.bell.wait(&mut bed);
            WAKEUPS.count();
            if self.was_rung() {
                return;
            }
        }
    }

    /// Takes the token, asleep until there is one or the deadline has passed.
    /// Once it has, the answer is `PastDeadline` even with a token: the caller
    /// looks once more in any case, and wakes that lead nowhere cannot keep it
    /// beyond its time.
    pub(super) fn sleep_until(&self, deadline: Instant) -> Slept {
        if (self.spin() || self.doze_until(deadline)) && Instant::now() < deadline {
            Slept::Woken
        } else {
            Slept::PastDeadline
        }
    }

    /// Takes the token, or is late: true if it was there.
    fn doze_until(&self, deadline: Instant) -> bool {
        let mut bed = self.bed.lock();
        if !self.fall_asleep() {
            return true;
        }
        loop {
            let late = self.bell.wait_until(&mut bed, deadline).timed_out();
            WAKEUPS.count();
            if self.was_rung() {
                return true;
            }
            if late {
                // EMPTY again, or a token that came since, which counts.
                return self.take();
            }
        }
    }

    /// From EMPTY to ASLEEP; false if there was a token, which is taken. `bed`
    /// is held.
    fn fall_asleep(&self) -> bool {
        // Relaxed: a waker that reads ASLEEP goes through `bed` to find us. On
        // failure nothing is read from the token here, `take` synchronizes.
        let fell = self
            .state
            .compare_exchange(EMPTY, ASLEEP, Ordering::Relaxed, Ordering::Relaxed);
        if fell.is_err() {
            self.take();
        }
        fell.is_ok()
    }

    /// Takes the token if there is one, and stays asleep if there is none: the
    /// bell may ring for nothing.
    fn was_rung(&self) -> bool {
        // Acquire: pairs with the Release in `ring`.
        self.state
            .compare_exchange(TOKEN, EMPTY, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Leaves a token, and rings if the owner is asleep.
    fn ring(&self) {
        // Release: pairs with the Acquire in `take` and `was_rung`.
        if self.state.swap(TOKEN, Ordering::Release) == ASLEEP {
            drop(self.bed.lock());
            self.bell.notify_one();
        }
    }
}

impl Wake for Parker {
    fn wake(self: WakeArc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &WakeArc<Self>) {
        self.ring();
    }
}

/// A parker and its waker, made once per thread.
struct Cached {
    parker: WakeArc<Parker>,
    waker: Waker,
}

per_thread! {
    static CACHE: Cell<Option<Cached>> = const { Cell::new(None) };
}

/// The calling thread's parker, for one wait.
///
/// It goes back to the cache on drop, also on unwind; the parker of an inner
/// wait is replaced by that of the outer one, which ends later.
pub(super) struct Seat {
    cached: Option<Cached>,
}

impl Seat {
    pub(super) fn take() -> Self {
        // The cache is out of reach while the thread's locals are destroyed.
        let cached = CACHE.try_with(Cell::take).ok().flatten();
        let cached = cached.unwrap_or_else(|| {
            let parker = WakeArc::new(Parker::new());
            let waker = Waker::from(WakeArc::clone(&parker));
            Cached { parker, waker }
        });
        // Left over from an earlier wait; nothing depends on it.
        cached.parker.take();
        Self {
            cached: Some(cached),
        }
    }

    pub(super) fn parker(&self) -> &Parker {
        &self.cached().parker
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.cached().waker)
    }

    fn cached(&self) -> &Cached {
        self.cached.as_ref().expect("present until drop")
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let cached = self.cached.take();
        // Past the thread's end it is dropped with the closure.
        let _ = CACHE.try_with(move |cache| cache.set(cached));
    }
}
