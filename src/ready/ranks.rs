//! A set of ranks.
//!
//! Invariants: `used` has a bit for each word that is not 0; `len` is the number of bits in the
//! words.

use super::entry::RANKS;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Ranks {
    words: [u64; RANKS / 64],
    used: u8,
    pub(super) len: u16,
}

impl Ranks {
    /// Adds a rank that is not in the set.
    #[inline]
    pub(super) fn add(&mut self, rank: u16) {
        self.words[usize::from(rank / 64)] |= 1 << (rank % 64);
        self.used |= 1 << (rank / 64);
        self.len += 1;
    }

    /// Removes a rank that is in the set.
    #[inline]
    pub(super) fn remove(&mut self, rank: u16) {
        let word = &mut self.words[usize::from(rank / 64)];
        *word &= !(1 << (rank % 64));
        if *word == 0 {
            self.used &= !(1 << (rank / 64));
        }
        self.len -= 1;
    }

    /// The highest rank in the set, found in two steps.
    #[inline]
    pub(super) fn highest(&self) -> Option<u16> {
        let word = self.used.checked_ilog2()?;
        let rank = self.words[word as usize].checked_ilog2()?;
        Some((word * 64 + rank) as u16)
    }

    /// Calls `f` for each rank, as long as it returns true.
    #[inline]
    pub(super) fn each(&self, mut f: impl FnMut(u16) -> bool) {
        let mut used = self.used;
        while used != 0 {
            let at = used.trailing_zeros() as u16;
            let mut word = self.words[usize::from(at)];
            while word != 0 {
                if !f(at * 64 + word.trailing_zeros() as u16) {
                    return;
                }
                word &= word - 1;
            }
            used &= used - 1;
        }
    }
}
