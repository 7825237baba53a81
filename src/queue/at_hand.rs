//! Permits of a large capacity that threads keep at hand, so that not each
//! message of each thread changes the same word.
//!
//! State: a few words, each for some threads: how many permits are there, or
//! that it is shut.
//!
//! Protocol: a thread takes from its word, and gives back to it. An empty one
//! takes a chunk from the semaphore, a full one gives a chunk back. Who finds too little
//! in the semaphore shuts all words, and has what was there given back:
//! so nothing is refused for what a word has. A shut word passes its threads on to the
//! semaphore, until that has plenty again and nobody waits there.
//!
//! Invariants:
//! 1. What a word has is neither out nor available in the semaphore.
//! 2. While somebody waits for permits all words are shut, or about to be by who
//!    waits, or by who opened one.
//!
//! The second is the race of two: who waits writes that it does (s1), and then looks
//! at the words (s2); who opens a word writes that (o1), and then looks whether
//! somebody waits (o2). Between each two stands a fence, so that one of them sees the other.
//!
//! Memory ordering: giving back is Release and taking Acquire, on the words as on
//! the semaphore; what moves between them is both.

use crate::semaphore::{Semaphore, TryAcquireError};
use crate::sync::{Apart, AtomicU32, Ordering, fence, model_size, thread_number};
use crate::turnstile::Turnstile;

const WORDS: usize = model_size(8, 1);
/// Permits that move at once. A word has fewer than two chunks.
const CHUNK: u32 = model_size(32, 1) as u32;
/// Smaller capacities have none at hand: all words have less than a quarter.
const LEAST: u32 = model_size(2048, 1) as u32;

const SHUT: u32 = u32::MAX;

/// See the [module](self).
pub(super) struct AtHand {
    words: [Apart<AtomicU32>; WORDS],
    /// So many available permits are plenty.
    plenty: u32,
}

impl AtHand {
    /// For a capacity that is large enough. All words are shut.
    pub(super) fn of(capacity: u32) -> Option<Box<Self>> {
        let word = |_| Apart(AtomicU32::new(SHUT));
        let made = || Self {
            words: std::array::from_fn(word),
            plenty: capacity.div_ceil(2),
        };
        (capacity >= LEAST).then(|| Box::new(made()))
    }

    /// How many all have.
    pub(super) fn count(&self) -> i64 {
        // Relaxed: out of date when it is read.
        let words = self.words.iter().map(|word| word.0.load(Ordering::Relaxed));
        words.filter(|&have| have != SHUT).map(i64::from).sum()
    }

    /// That of the calling thread.
    #[inline]
    fn word(&self) -> &AtomicU32 {
        &self.words[thread_number() as usize % self.words.len()].0
    }

    /// Takes permits from the thread's word or the semaphore.
    #[inline]
    pub(super) fn take(&self, permits: &Semaphore, n: u32) -> Result<(), TryAcquireError> {
        let word = self.word();
        let left = |have| match have {
            SHUT => None,
            _ => u32::checked_sub(have, n),
        };
        // Relaxed: what is taken is acquired by the exchange.
        match word.fetch_update(Ordering::Acquire, Ordering::Relaxed, left) {
            Ok(_) => Ok(()),
            Err(have) => self.take_from(permits, word, have, n),
        }
    }

    #[inline(never)]
    fn take_from(
        &self,
        permits: &Semaphore,
        word: &AtomicU32,
        have: u32,
        n: u32,
    ) -> Result<(), TryAcquireError> {
        let serve = if have == SHUT || n > CHUNK || !permits.take(CHUNK) {
            permits.try_now(n)?;
            have == SHUT && self.open(permits, word)
        } else {
            self.put_to(permits, word, CHUNK - n)
        };
        if serve {
            permits.serve();
        }
        Ok(())
    }

    /// Permits come back to the thread's word or the semaphore. Under a lock:
    /// whether who waits must be served after it.
    #[inline]
    #[must_use]
    pub(super) fn put(&self, permits: &Semaphore, n: u32) -> bool {
        self.put_to(permits, self.word(), n)
    }

    #[inline]
    fn put_to(&self, permits: &Semaphore, word: &AtomicU32, n: u32) -> bool {
        let spills = |have| have + n >= 2 * CHUNK;
        let put = |have| match have {
            SHUT => None,
            _ if n > CHUNK => None,
            _ if spills(have) => Some(have + n - CHUNK),
            _ => Some(have + n),
        };
        // Acquire: what spills goes on with what was done under it.
        match word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, put) {
            Ok(had) => spills(had) && permits.put(CHUNK),
            Err(_) => permits.put(n) || self.open(permits, word),
        }
    }

    /// Opens a shut word if there is plenty. Whether who waits must be served.
    #[must_use]
    fn open(&self, permits: &Semaphore, word: &AtomicU32) -> bool {
        if !permits.is_free(self.plenty.into()) {
            return false;
        }
        // Relaxed: o1 of the header; the fence orders it.
        let opened = word.compare_exchange(SHUT, 0, Ordering::Relaxed, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // o2
        opened.is_ok() && !permits.is_free(i64::MIN) && shut(permits, word)
    }

    /// Who found too little, or waits since (s1 of the header), has all words
    /// shut: whether any had something.
    pub(super) fn shut(&self, permits: &Semaphore) -> bool {
        fence(Ordering::SeqCst);
        // s2
        let open = |word: &&Apart<AtomicU32>| word.0.load(Ordering::Relaxed) != SHUT;
        let open = self.words.iter().filter(open);
        let mut found = false;
        for word in open {
            found = true;
            if shut(permits, &word.0) {
                permits.serve();
            }
        }
        found
    }
}

/// Shuts a word: whether who waits must be served with what it had.
#[must_use]
fn shut(permits: &Semaphore, word: &AtomicU32) -> bool {
    match word.swap(SHUT, Ordering::AcqRel) {
        0 | SHUT => false,
        had => permits.put(had),
    }
}
