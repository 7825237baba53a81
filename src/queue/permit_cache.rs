//! The permits of a capacity. If the capacity is large, threads cache permits, so that not
//! every message changes the same word.
//!
//! State: a semaphore with one permit for each message that there is room for; and a few words,
//! each shared by some threads. A word has a number of permits, or is shut.
//!
//! Protocol: a thread takes from its word and gives back to it. An empty word takes a chunk
//! from the semaphore, a full one gives a chunk back. A thread that finds too few permits in
//! the semaphore shuts all words, which returns their permits to the semaphore: so nothing is
//! refused while a word has enough. Permits that move between a word and the semaphore are in
//! neither, and another thread may be refused meanwhile. A shut word sends its threads to the
//! semaphore, until the semaphore has plenty again and nobody waits there.
//!
//! Invariants:
//! 1. Permits in a word are neither out nor available in the semaphore.
//! 2. While somebody waits for permits, or there is a debt, all words are shut or about to be
//!    shut, by the waiter or debtor, or by the thread that opened a word.
//!
//! Invariant 2 rests on a race of two. The waiter registers itself, or the debtor makes the debt
//! (s1), then looks at the words (s2). The opener opens a word (o1), then looks for waiters and
//! a debt (o2). Each has a fence between its two steps, so at least one sees the other.
//!
//! Memory ordering: giving back is Release, taking is Acquire, on the words as on the
//! semaphore; moving a chunk is both.

use crate::limit::Bypass;
use crate::semaphore::{AcquireError, Semaphore};
use crate::sync::{Apart, AtomicU32, Ordering, fence, model_size, thread_number};

const WORDS: usize = model_size(8, 1);
/// Permits that move at once. A word has fewer than two chunks.
const CHUNK: u32 = model_size(32, 1) as u32;
/// Smaller capacities have no cache: all words together have less than a quarter of this.
pub(super) const LEAST: u32 = model_size(2048, 1) as u32;

const SHUT: u32 = u32::MAX;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct PermitCache {
    permits: Apart<Semaphore>,
    /// All shut at first; `None` if the capacity is small.
    words: Option<Box<[Apart<AtomicU32>; WORDS]>>,
    /// Words may be opened while this many permits are available.
    plenty: u32,
}

impl PermitCache {
    /// Capacities from `least` on have a cache.
    pub(super) fn new(capacity: u32, least: u32) -> Self {
        let word = |_| Apart(AtomicU32::new(SHUT));
        let words = || Box::new(std::array::from_fn(word));
        Self {
            permits: Apart(Semaphore::const_new(capacity).with_bypass(Bypass::AtMost(0))),
            words: (capacity >= least).then(words),
            plenty: capacity.div_ceil(2),
        }
    }

    #[inline]
    pub(super) fn permits(&self) -> &Semaphore {
        &self.permits.0
    }

    /// Free permits, including those in words. May be out of date when it is returned.
    pub(super) fn available(&self) -> i64 {
        // Relaxed: may be out of date anyway.
        let have = self.words().map(|word| word.load(Ordering::Relaxed));
        let cached = have.filter(|&have| have != SHUT).map(i64::from);
        self.permits().available() + cached.sum::<i64>()
    }

    fn words(&self) -> impl Iterator<Item = &AtomicU32> {
        let words = self.words.as_deref().into_iter().flatten();
        words.map(|word| &word.0)
    }

    #[inline]
    fn word(&self, thread: u64) -> Option<&AtomicU32> {
        let words = self.words.as_ref()?;
        Some(&words[thread as usize % words.len()].0)
    }

    /// Takes a permit if one is free and no waiter wants it. Allowed under a lock.
    #[inline(never)]
    pub(super) fn take_one(&self) -> bool {
        let Some(word) = self.word(thread_number()) else {
            return self.permits().take(1);
        };
        match Self::take_of(word, 1) {
            Ok(_) => true,
            // Not if the word would have to be opened: then waiters may have to be served.
            Err(SHUT) => !self.permits().is_free(self.plenty.into()) && self.permits().take(1),
            Err(_) => false,
        }
    }

    /// Takes permits, unless waiters want them. Allowed under a lock; sets `serve` if waiters
    /// must be served after it.
    #[inline(never)]
    pub(super) fn take(&self, n: u32, serve: &mut bool) -> Result<(), AcquireError> {
        let Some(word) = self.word(thread_number()) else {
            return self.permits().try_now(n);
        };
        match Self::take_of(word, n) {
            Ok(_) => Ok(()),
            Err(have) => match self.take_from(word, have, n, serve) {
                Err(AcquireError::NoPermits) if self.shut(serve) => self.permits().try_now(n),
                taken => taken,
            },
        }
    }

    /// Takes a permit, free or not: what the semaphore lacks is a debt, which the words must not
    /// keep from being paid. Under a lock; returns whether waiters must be served after it.
    #[must_use]
    pub(super) fn take_past(&self) -> bool {
        let mut serve = false;
        // s1
        self.permits().acquire_past(1);
        if !self.permits().is_free(0) {
            self.shut(&mut serve);
        }
        serve
    }

    /// Takes permits from a word.
    #[inline(always)]
    fn take_of(word: &AtomicU32, n: u32) -> Result<u32, u32> {
        let left = |have| match have {
            SHUT => None,
            _ => u32::checked_sub(have, n),
        };
        // Relaxed: the compare-and-swap acquires.
        word.fetch_update(Ordering::Acquire, Ordering::Relaxed, left)
    }

    #[inline(never)]
    fn take_from(
        &self,
        word: &AtomicU32,
        have: u32,
        n: u32,
        serve: &mut bool,
    ) -> Result<(), AcquireError> {
        *serve = if have == SHUT || n > CHUNK || !self.permits().take(CHUNK) {
            self.permits().try_now(n)?;
            have == SHUT && self.open(word)
        } else {
            self.put_to(word, CHUNK - n)
        };
        Ok(())
    }

    /// Gives permits back, to the word of a thread or to the semaphore. Under a lock; returns
    /// whether waiters must be served after it.
    #[inline]
    #[must_use]
    pub(super) fn put(&self, thread: u64, n: u32) -> bool {
        match self.word(thread) {
            Some(word) => self.put_to(word, n),
            None => self.permits().put(n),
        }
    }

    #[inline]
    fn put_to(&self, word: &AtomicU32, n: u32) -> bool {
        let put = |have: u32| (n <= CHUNK && have < 2 * CHUNK - n).then(|| have + n);
        // Release: done before the permits are taken again.
        let put = word.fetch_update(Ordering::Release, Ordering::Relaxed, put);
        put.is_err() && self.spill(word, n)
    }

    /// [`put`](Self::put) if the word is shut, or gives a chunk back.
    #[inline(never)]
    fn spill(&self, word: &AtomicU32, n: u32) -> bool {
        let spills = |have| have + n >= 2 * CHUNK;
        let put = |have| match have {
            SHUT => None,
            _ if n > CHUNK => None,
            _ if spills(have) => Some(have + n - CHUNK),
            _ => Some(have + n),
        };
        // Acquire: a chunk that spills passes on what happened before its permits were given
        // back.
        match word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, put) {
            Ok(had) => spills(had) && self.permits().put(CHUNK),
            Err(_) => self.permits().put(n) || self.open(word),
        }
    }

    /// Opens a shut word if there is plenty. Returns whether waiters must be served.
    #[must_use]
    fn open(&self, word: &AtomicU32) -> bool {
        if !self.permits().is_free(self.plenty.into()) {
            return false;
        }
        // Relaxed: o1 of the header; the fence orders it.
        let opened = word.compare_exchange(SHUT, 0, Ordering::Relaxed, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // o2
        opened.is_ok() && !self.permits().is_free(0) && self.shut_word(word)
    }

    /// Shuts all words; called by a thread that found too few permits, or that has begun to wait or
    /// made a debt (s1 of the header). Returns whether any was open; sets `serve` if waiters must be
    /// served.
    #[cold]
    pub(super) fn shut(&self, serve: &mut bool) -> bool {
        fence(Ordering::SeqCst);
        // s2
        let open = |word: &&AtomicU32| word.load(Ordering::Relaxed) != SHUT;
        let mut found = false;
        for word in self.words().filter(open) {
            found = true;
            *serve |= self.shut_word(word);
        }
        found
    }

    /// Shuts a word. Returns whether its permits must be served to waiters.
    #[must_use]
    fn shut_word(&self, word: &AtomicU32) -> bool {
        match word.swap(SHUT, Ordering::AcqRel) {
            0 | SHUT => false,
            had => self.permits().put(had),
        }
    }
}
