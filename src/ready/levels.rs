//! Which entry of an array comes first, where several levels stand in it: a
//! list of positions for each level, linked through the entries.

/// Where the list of one level begins and ends.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    first: u64,
    last: u64,
}

/// The lists of all levels.
#[derive(Debug)]
pub(super) struct Levels {
    /// A bit for each word of `bits` that is not zero.
    summary: u8,
    /// A bit for each level whose list is not empty.
    bits: [u64; 4],
    /// By level.
    ends: [Ends; 256],
}

impl Default for Levels {
    fn default() -> Self {
        Self {
            summary: 0,
            bits: [0; 4],
            ends: [Ends::default(); 256],
        }
    }
}

impl Levels {
    fn has(&self, level: u8) -> bool {
        self.bits[usize::from(level >> 6)] & 1 << (level & 63) != 0
    }

    /// Puts a position last, and says behind which.
    pub(super) fn push(&mut self, level: u8, at: u64) -> Option<u64> {
        let ends = &mut self.ends[usize::from(level)];
        let before = std::mem::replace(&mut ends.last, at);
        if self.has(level) {
            return Some(before);
        }
        self.ends[usize::from(level)].first = at;
        let word = usize::from(level >> 6);
        self.bits[word] |= 1 << (level & 63);
        self.summary |= 1 << word;
        None
    }

    /// The highest level that is not empty, and its first position.
    pub(super) fn first(&self) -> Option<(u8, u64)> {
        let word = 7_u32.checked_sub(self.summary.leading_zeros())?;
        let bit = 63 - self.bits[word as usize].leading_zeros();
        let level = (word * 64 + bit) as u8;
        Some((level, self.ends[usize::from(level)].first))
    }

    /// If a position is the first of its level, the one that many after it is
    /// now; with 0 there is none.
    pub(super) fn pop(&mut self, level: u8, at: u64, step: u32) {
        let is_some = self.has(level);
        let ends = &mut self.ends[usize::from(level)];
        if !is_some || ends.first != at {
            return;
        }
        ends.first += u64::from(step);
        if step == 0 {
            let word = usize::from(level >> 6);
            self.bits[word] &= !(1 << (level & 63));
            if self.bits[word] == 0 {
                self.summary &= !(1 << word);
            }
        }
    }
}
