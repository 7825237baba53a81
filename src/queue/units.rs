//! Units of caps that came back, counted together: readers share no cache line with
//! senders for them.
//!
//! State: a few words, each 0 or of one lane, with a count of its units.
//!
//! Protocol: a turn that ends gives its unit back here, with its group locked.
//! If the word was 0 it is of that lane from then on, and the unit itself goes by a
//! token. All that come after it only count, until whoever takes in a token of
//! that lane with a unit takes the word as well. Where the word is of another
//! lane, the unit goes by a token.
//!
//! Invariants:
//! 1. While a word is of a lane, a token of that lane with a unit is in the list, or
//!    will be before a group of the lane is unlocked: so no lane goes while a word
//!    is of it, and nobody sleeps over a unit.
//! 2. No unit is counted here that was in use when a cap was lowered. A lane
//!    that has more in use than its cap has its units back one by one, in the
//!    order of the list. In all others only the first matters to that order.
//!
//! Memory ordering: who counts releases what it did, and who takes the word
//! acquires it.

use crate::sync::{Apart, AtomicU64, Ordering, model_size};

const WORDS: usize = model_size(8, 1);

/// The word is of a lane: the lane's index stands above this bit, the units below.
const OPEN: u64 = 1 << 31;
const COUNT: u64 = OPEN - 1;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Units {
    words: Box<[Apart<AtomicU64>; WORDS]>,
}

impl Units {
    /// A unit of this lane comes back; true if a token has to tell.
    pub(super) fn give_back(&self, lane: u32) -> bool {
        let (word, of_lane) = self.word(lane);
        let counted = |old| match old {
            0 => Some(of_lane),
            _ if old & !COUNT == of_lane => Some(old + 1),
            _ => None,
        };
        // Relaxed: what is read is but a guess.
        let old = word.fetch_update(Ordering::Release, Ordering::Relaxed, counted);
        matches!(old, Ok(0) | Err(_))
    }

    /// The units that were counted for this lane.
    pub(super) fn take(&self, lane: u32) -> u32 {
        let (word, of_lane) = self.word(lane);
        // Relaxed: what was counted before a token was posted is seen by who
        // has the token; and nobody else takes the word from its lane.
        if word.load(Ordering::Relaxed) & !COUNT != of_lane {
            return 0;
        }
        (word.swap(0, Ordering::Acquire) & COUNT) as u32
    }

    /// The word for a lane, and what it has while it is of it, but for the count.
    #[inline]
    fn word(&self, lane: u32) -> (&AtomicU64, u64) {
        let words = &self.words;
        let word = &words[lane as usize % words.len()].0;
        (word, u64::from(lane) << 32 | OPEN)
    }
}
