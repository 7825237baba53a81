//! Units of caps that came back, counted together, so that readers share no cache line with
//! senders for them.
//!
//! State: a few words. Each is 0, or belongs to one lane and counts its units.
//!
//! Protocol: a turn that ends gives its unit back here, with its group locked. If the word is
//! 0, it now belongs to the turn's lane, and the unit itself goes by a token. Later units of
//! the lane are only counted, until a thread takes in a token of that lane with a unit and
//! takes the word, too. If the word belongs to another lane, the unit goes by a token.
//!
//! Invariants:
//! 1. While a word belongs to a lane, a token of that lane with a unit is in the list, or will
//!    be before a group of the lane is unlocked. So no lane goes while it has a word, and
//!    nobody sleeps through a unit.
//! 2. No unit that was in use when a cap was lowered is counted here. A lane with more units in
//!    use than its cap gets them back one by one, in the order of the list. In all other lanes
//!    only the first unit matters for that order.
//!
//! Memory ordering: counting a unit releases what its turn did; taking the word acquires it.

use crate::sync::{Apart, AtomicU64, Ordering, model_size};

const WORDS: usize = model_size(8, 1);

/// The word belongs to a lane: the lane's index is above this bit, the units are below.
const OPEN: u64 = 1 << 31;
const COUNT: u64 = OPEN - 1;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Units {
    words: Box<[Apart<AtomicU64>; WORDS]>,
}

impl Units {
    /// Gives a unit of this lane back; true if a token must carry it.
    pub(super) fn give_back(&self, lane: u32) -> bool {
        let (word, of_lane) = self.word(lane);
        let counted = |old| match old {
            0 => Some(of_lane),
            _ if old & !COUNT == of_lane => Some(old + 1),
            _ => None,
        };
        // Relaxed: the value read is only a guess.
        let old = word.fetch_update(Ordering::Release, Ordering::Relaxed, counted);
        matches!(old, Ok(0) | Err(_))
    }

    /// Takes the units counted for this lane.
    pub(super) fn take(&self, lane: u32) -> u32 {
        let (word, of_lane) = self.word(lane);
        // Relaxed: what was counted before a token was posted is visible to the thread that has
        // the token; and nobody else takes the word from its lane.
        if word.load(Ordering::Relaxed) & !COUNT != of_lane {
            return 0;
        }
        (word.swap(0, Ordering::Acquire) & COUNT) as u32
    }

    /// The word for a lane, and its value while it belongs to the lane, without the count.
    #[inline]
    fn word(&self, lane: u32) -> (&AtomicU64, u64) {
        let words = &self.words;
        let word = &words[lane as usize % words.len()].0;
        (word, u64::from(lane) << 32 | OPEN)
    }
}
