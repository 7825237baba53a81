//! The stripes of a hot lock: IS and one more mode, taken in a cache line of the thread's own.
//!
//! State: which mode that is, the *wide* one, IX or S; in each stripe, how many holders of it and
//! of IS are counted there, and a mark.
//!
//! ```text
//!   63          32 31          1    0
//!  +--------------+-------------+--------+
//!  |     wide     |     IS      | MARKED |
//!  +--------------+-------------+--------+
//! ```
//!
//! Protocol: a claim for one of the two modes counts itself in its stripe, and checks whether the
//! stripes are still open. If so it holds the mode; if not it takes itself out again and uses the
//! word. A claim for another mode shuts the stripes, under the lock, and reads all of them. What it
//! finds there is held, like what the word says, and only becomes less while the stripes are shut.
//! It marks each stripe that is not empty. A thread that leaves a marked stripe, even without ever
//! having held the mode, serves the queue. Once all stripes have been seen empty, everything is
//! counted in the word. This lasts until the two modes have been released from the word a number of
//! times with no other mode in between: the last of these releases serves the queue, and that opens
//! the stripes if possible.
//!
//! Memory ordering: taking and shutting each write, and then read what the other writes:
//!
//! ```text
//!   weak                                strong
//!   stripe: fetch_add, SeqCst  (w1)     word: CAS, OPEN cleared       (s1)
//!                                       fence(SeqCst)                 (s2)
//!   word: load, SeqCst         (w2)     stripe: load                  (s3)
//! ```
//!
//! w1, w2 and s2 are in the one total order of SeqCst operations, w1 before w2. If s3 misses w1, it
//! reads what comes before w1 in the stripe, so s2 is before w1 in that order. If w2 misses s1, it
//! reads what comes before s1 in the word, so w2 is before s2. Both cannot be: the weak claim is
//! seen, or it finds the stripes shut, or opened again where nobody holds or wants another mode.
//! With any of w1, w2 and s2 weaker, both reads could miss both writes, and IX would be held
//! together with X. A fence between w1 and w2 would do as well, but cost more: on x86 a
//! read-modify-write is one already.
//!
//! The model does not know the order of SeqCst loads and read-modify-writes, only that of fences.
//! There a fence stands between w1 and w2 (`sync::model_fence`), and the model shows that without
//! that fence, or without s2, IX is held together with X. That w1 and w2 suffice in its place rests
//! on the argument above.
//!
//! - Leaving a stripe is Release and pairs with the Acquire of s3: a thread that finds the stripe
//!   empty sees what was done in it. All writes are read-modify-writes, so they continue the
//!   release sequence of each leave.
//! - w2 is also an Acquire, and pairs with the Release of the other mode's release, whose sequence
//!   continues through the write that opened the stripes: what was done under that mode is seen in
//!   the stripe.
//! - Marking and leaving change one word, the stripe. If the leave comes first, marking finds the
//!   holder gone; if the mark comes first, leaving sees it.

use super::claim::Elsewhere;
use crate::modes::Mode;
use crate::sync::{
    Apart, AtomicU32, AtomicU64, Ordering, fence, model_fence, model_size, thread_number,
};
use crate::turnstile::Released;

const MARKED: u64 = 1;
const IS: u64 = 1 << 1;
const WIDE: u64 = 1 << 32;

/// The count at which a stripe is full.
/// It is so far below what fits that claims that find it full, and leave again, cannot make it
/// wrap.
const FULL: u64 = 1 << 30;

/// The most stripes there may be.
const MOST: usize = 1024;

pub(super) struct Stripes {
    all: Box<[Apart<AtomicU64>]>,
    wide: Mode,
    /// Releases of IS and the wide mode from the word since one of another; some may be missed.
    weak: AtomicU32,
}

/// After so many releases the stripes are opened again: shutting them costs about as much.
pub(super) const PATIENCE: u32 = model_size(16, 1) as u32;

const fn one(mode: Mode) -> u64 {
    match mode {
        Mode::Is => IS,
        _ => WIDE,
    }
}

/// How many hold IS and the wide mode in a stripe.
const fn counts(value: u64) -> [u64; 2] {
    [value % WIDE / IS, value / WIDE]
}

impl Stripes {
    /// `wide` must be compatible with IS and with itself.
    pub(super) fn new(stripes: usize, wide: Mode) -> Self {
        let stripes = stripes.clamp(1, MOST).next_power_of_two();
        let all = (0..stripes).map(|_| Apart(AtomicU64::new(0))).collect();
        let weak = AtomicU32::new(0);
        Self { all, wide, weak }
    }

    pub(super) fn wide(&self) -> Mode {
        self.wide
    }

    /// Whether this mode may be taken in a stripe.
    #[inline]
    pub(super) fn take(&self, mode: Mode) -> bool {
        mode == Mode::Is || mode == self.wide
    }

    /// The stripe of the calling thread.
    #[inline]
    pub(super) fn own(&self) -> u32 {
        // At most `MOST`: it fits.
        (thread_number() as usize & (self.all.len() - 1)) as u32
    }

    /// Whether the stripes should be opened after a release of `mode` from the word.
    pub(super) fn are_wanted(&self, mode: Mode) -> bool {
        // Relaxed, and lossy: only the cost depends on it.
        let seen = self.weak.load(Ordering::Relaxed);
        let weak = if self.take(mode) { seen + 1 } else { 0 };
        if weak < PATIENCE {
            if weak != seen {
                self.weak.store(weak, Ordering::Relaxed);
            }
            return false;
        }
        self.weak.store(0, Ordering::Relaxed);
        true
    }

    /// Counts a holder in; false if the stripe is full.
    /// The claim holds the mode if this is true and the stripes are still open. If not, it must
    /// leave.
    #[inline]
    #[must_use]
    pub(super) fn enter(&self, stripe: u32, mode: Mode) -> bool {
        // SeqCst: w1 of the header.
        let before = self.all[stripe as usize]
            .0
            .fetch_add(one(mode), Ordering::SeqCst);
        model_fence();
        counts(before).into_iter().all(|count| count < FULL)
    }

    #[inline]
    pub(super) fn leave(&self, stripe: u32, mode: Mode) -> Released {
        self.change(stripe, one(mode))
    }

    /// Turns a holder of the wide mode there into one of IS.
    pub(super) fn weaken(&self, stripe: u32) -> Released {
        self.change(stripe, WIDE - IS)
    }

    /// Whether to serve: somebody waits for a thread that leaves a marked stripe.
    #[inline]
    fn change(&self, stripe: u32, less: u64) -> Released {
        // Release: pairs with the Acquire of `held_and_marked`.
        let before = self.all[stripe as usize]
            .0
            .fetch_sub(less, Ordering::Release);
        if before & MARKED == 0 {
            Released::Done
        } else {
            Released::Serve
        }
    }

    /// Under the lock: the stripes have just been shut.
    pub(super) fn after_shutting() {
        fence(Ordering::SeqCst);
    }

    /// Under the lock, with the stripes shut: what is held here or has spilled.
    /// Those that hold a mode here will serve the queue when they leave.
    pub(super) fn held_and_marked(&self, spill: Elsewhere) -> Elsewhere {
        self.sum(spill, |stripe| {
            // Acquire: s3 of the header, and pairs with the Release of `change`.
            let seen = stripe.load(Ordering::Acquire);
            if seen & !MARKED == 0 {
                return seen;
            }
            // Acquire: as above.
            stripe.fetch_or(MARKED, Ordering::Acquire)
        })
    }

    /// What is held here or has spilled, for people to read.
    pub(super) fn held(&self, spill: Elsewhere) -> Elsewhere {
        self.sum(spill, |stripe| stripe.load(Ordering::Relaxed))
    }

    fn sum(&self, mut sum: Elsewhere, read: impl Fn(&AtomicU64) -> u64) -> Elsewhere {
        for Apart(stripe) in &self.all {
            let [is, wide] = counts(read(stripe));
            sum.0[Mode::Is as usize] += is;
            sum.0[self.wide as usize] += wide;
        }
        sum
    }

    /// Under the lock: nobody waits for any holder to leave.
    pub(super) fn unmark(&self) {
        for Apart(stripe) in &self.all {
            // Relaxed: a mark that is gone, or still seen, orders nothing.
            if stripe.load(Ordering::Relaxed) & MARKED != 0 {
                stripe.fetch_and(!MARKED, Ordering::Relaxed);
            }
        }
    }
}
