//! The counts of the open tier in one word: one compare-and-swap enters or leaves it.
//!
//! ```text
//!   63      32 31       18 17       4   3     2      1       0
//!  +----------+-----------+----------+----+------+-------+------+
//!  |   tier   |  inside   | outside  |    | MORE | DRAIN | SLOW |
//!  +----------+-----------+----------+----+------+-------+------+
//! ```
//!
//! `outside` counts the tickets that have joined the open tier and not entered. MORE: other tiers
//! have tickets too. DRAIN: one of these tiers is lower. SLOW: the counts are in the state, under
//! the lock. Nothing is open if both counts are zero.
//!
//! Who may change what:
//! - without the lock, while SLOW is not set: the counts, unless lowering one closes the tier and
//!   MORE is set; a join opens its tier if nothing is open;
//! - with the lock: all else, including MORE, DRAIN and SLOW. The lock's owner sets SLOW, changes
//!   the state, and writes what the state says (`pass_on` does so by one compare-and-swap).
//!
//! Memory ordering: a leave is Release and pairs with the Acquire of every later enter. Changes
//! without the lock are read-modify-writes, which continue its release sequence; a thread that
//! writes under the lock has read by an Acquire and writes by a Release.

use crate::sync::{AtomicU64, Ordering, model_size};
use crate::tiers::Tiers;

const SLOW: u64 = 1;
const DRAIN: u64 = 1 << 1;
const MORE: u64 = 1 << 2;
const OUTSIDE: u64 = 1 << 4;
const INSIDE: u64 = 1 << 18;
const COUNT: u64 = (1 << 14) - 1;
const TIER: u32 = 32;

/// The most that each of the two counts can be here; more is counted in the state.
pub(super) const MOST: u64 = model_size(COUNT as usize, 2) as u64;

/// The value of the word at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits(u64);

/// The result of an attempt without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Fast {
    Done,
    /// It is not possible now.
    NotNow,
    /// It must be done under the lock.
    Slow,
}

impl Bits {
    /// The value for this state: SLOW alone if the counts do not fit.
    fn of(tiers: &Tiers) -> Self {
        let Some(tier) = tiers.open() else {
            return Bits(0);
        };
        let (outside, inside) = (tiers.waiting(), tiers.running());
        if outside > MOST || inside > MOST {
            return Bits(SLOW);
        }
        let drain = if tiers.draining() { DRAIN } else { 0 };
        let more = if tiers.others().next().is_some() {
            MORE
        } else {
            0
        };
        let counts = (outside * OUTSIDE) | (inside * INSIDE);
        Bits((u64::from(tier) << TIER) | counts | more | drain)
    }

    /// Updates the counts in the state, unless they are there already.
    pub(super) fn update(self, tiers: &mut Tiers) {
        if !self.has(SLOW) {
            tiers.recount(self.tier(), self.outside(), self.inside());
        }
    }

    #[inline]
    pub(super) fn tier(self) -> u32 {
        (self.0 >> TIER) as u32
    }

    #[inline]
    fn outside(self) -> u64 {
        (self.0 / OUTSIDE) & COUNT
    }

    #[inline]
    fn inside(self) -> u64 {
        (self.0 / INSIDE) & COUNT
    }

    #[inline]
    fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    #[inline]
    fn is_empty(self) -> bool {
        self.outside() == 0 && self.inside() == 0
    }

    /// Whether this tier is known to be open.
    #[inline]
    fn is_open(self, tier: u32) -> bool {
        !self.has(SLOW) && self.tier() == tier && !self.is_empty()
    }

    /// Whether a ticket of this tier may enter, as far as the word tells.
    #[inline]
    pub(super) fn admits(self, tier: u32) -> bool {
        self.is_open(tier) && !self.has(DRAIN)
    }

    /// The value after a count went down, unless that closes the tier and others have tickets.
    #[inline]
    fn lowered(self) -> Result<Self, Fast> {
        let closes = self.inside() == 0 && (self.outside() == 0 || self.has(DRAIN));
        if closes && self.has(MORE) {
            Err(Fast::Slow)
        } else {
            Ok(self)
        }
    }

    #[inline]
    fn joined(self, tier: u32) -> Result<Self, Fast> {
        if self.has(SLOW) {
            Err(Fast::Slow)
        } else if self.is_empty() {
            Ok(Bits((u64::from(tier) << TIER) | OUTSIDE))
        } else if self.tier() == tier && self.outside() < MOST {
            Ok(Bits(self.0 + OUTSIDE))
        } else {
            Err(Fast::Slow)
        }
    }

    #[inline]
    fn entered(self, tier: u32) -> Result<Self, Fast> {
        if self.has(SLOW) || self.inside() == MOST {
            Err(Fast::Slow)
        } else if self.admits(tier) {
            Ok(Bits(self.0 - OUTSIDE + INSIDE))
        } else {
            Err(Fast::NotNow)
        }
    }

    #[inline]
    fn left(self) -> Result<Self, Fast> {
        if self.has(SLOW) {
            Err(Fast::Slow)
        } else {
            Bits(self.0 - INSIDE).lowered()
        }
    }

    #[inline]
    fn cancelled(self, tier: u32) -> Result<Self, Fast> {
        if self.is_open(tier) {
            Bits(self.0 - OUTSIDE).lowered()
        } else {
            Err(Fast::Slow)
        }
    }

    /// One ticket leaves, and another of the same tier enters.
    #[inline]
    fn relieved(self) -> Result<Self, Fast> {
        if self.has(SLOW | DRAIN) {
            Err(Fast::Slow)
        } else {
            Ok(Bits(self.0 - OUTSIDE))
        }
    }
}

/// The word, on a cache line of its own: threads that watch it must not slow down the lock's owner.
#[repr(align(128))]
pub(super) struct Word(AtomicU64);

impl Word {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Relaxed: a thread that acts on the value does so by a compare-and-swap, or under the lock.
    #[inline]
    pub(super) fn load(&self) -> Bits {
        Bits(self.0.load(Ordering::Relaxed))
    }

    #[inline]
    fn update(&self, success: Ordering, change: impl Fn(Bits) -> Result<Bits, Fast>) -> Fast {
        let mut now = self.load();
        loop {
            let next = match change(now) {
                Ok(next) => next,
                Err(not) => return not,
            };
            let exchanged = self
                .0
                .compare_exchange_weak(now.0, next.0, success, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return Fast::Done,
                Err(other) => now = Bits(other),
            }
        }
    }

    /// One more ticket joins.
    #[inline]
    pub(super) fn join(&self, tier: u32) -> Fast {
        // Relaxed: it publishes nothing, and continues the release sequences of others.
        self.update(Ordering::Relaxed, |bits| bits.joined(tier))
    }

    /// A ticket that is outside enters.
    #[inline]
    pub(super) fn enter(&self, tier: u32) -> Fast {
        // Acquire: pairs with the Release of `leave`, `relieve` and `give`.
        self.update(Ordering::Acquire, |bits| bits.entered(tier))
    }

    /// A ticket that is inside leaves.
    #[inline]
    pub(super) fn leave(&self) -> Fast {
        // Release: pairs with the Acquire of `enter`, `relieve` and `take`.
        self.update(Ordering::Release, Bits::left)
    }

    /// A ticket that is outside is dropped.
    #[inline]
    pub(super) fn cancel(&self, tier: u32) -> Fast {
        // Release: as in `leave`.
        self.update(Ordering::Release, |bits| bits.cancelled(tier))
    }

    /// A ticket that is inside leaves, and one of the same tier that is outside enters.
    #[inline]
    pub(super) fn relieve(&self) -> Fast {
        // Both: it is a leave and an enter.
        self.update(Ordering::AcqRel, Bits::relieved)
    }

    /// Under the lock: whether one more ticket of this tier changes nothing in the word.
    /// It is above the open tier, or below it while that drains already. MORE is set, SLOW is not.
    pub(super) fn is_unaffected_by(&self, tier: u32) -> bool {
        let bits = self.load();
        let above = tier > bits.tier() || bits.has(DRAIN) && tier != bits.tier();
        above && bits.has(MORE) && !bits.has(SLOW)
    }

    /// Under the lock: the last ticket of the open tier leaves, and the next tier opens.
    /// That has `count` tickets, of which one enters or none. Returns the value before, or `None`
    /// if it is not the last ticket, the word changed meanwhile, or the count does not fit.
    pub(super) fn pass_on(&self, tier: u32, count: u64, more: bool, enters: bool) -> Option<Bits> {
        let before = self.load();
        let last = before.inside() == 1 && before.outside() == 0 && !before.has(SLOW);
        if !last || count > MOST {
            return None;
        }
        let one_inside = if enters { INSIDE - OUTSIDE } else { 0 };
        let more = if more { MORE } else { 0 };
        let next = ((u64::from(tier) << TIER) | (count * OUTSIDE) | more) + one_inside;
        // Both: it is a leave, and an enter for the one ticket and for those that the lock's owner
        // notifies.
        self.0
            .compare_exchange(before.0, next, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
            .then_some(before)
    }

    /// Under the lock: from now on the counts are in the state, and only there.
    pub(super) fn take(&self, tiers: &mut Tiers) {
        // Acquire: pairs with the Release of `leave`, for the tickets that the lock's owner lets
        // in.
        let bits = Bits(self.0.fetch_or(SLOW, Ordering::Acquire));
        bits.update(tiers);
    }

    /// Under the lock: puts the counts back into the word, if they fit.
    pub(super) fn give(&self, tiers: &Tiers) {
        // Release: passes on what `take` acquired, and the leave or enter that is now in the state.
        self.0.store(Bits::of(tiers).0, Ordering::Release);
    }
}
