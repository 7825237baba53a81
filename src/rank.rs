//! Members in order of rank: a bump band above 256 standing levels.
//!
//! A [`Slot`] is one of 512 places in the order, the highest first; within a
//! slot members stand first in, first out. A bitmap of the occupied slots
//! finds the highest one without a scan, so insert, leave and best are O(1),
//! but for members that come back under an old number (O(log n), see `fifo`).
//!
//! A rank with a single occupied slot, which is what nearly all callers have,
//! is one [`Fifo`]; the bitmap and the other slots are made on use and go when
//! the rank empties.
//!
//! Invariants:
//! 1. A slot's bit in `occupied` is set if and only if its line is not empty.
//! 2. `lines` holds one line for each bit of `known`, in slot order, so a
//!    line's index is the number of known slots below it.
//! 3. `below` says for each word how many known slots the words below it have,
//!    so that finding a line counts the bits of one word only.

use std::num::NonZeroU16;

mod fifo;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub use fifo::Fifo;

const SLOTS: usize = 512;
const WORDS: usize = SLOTS / 64;

/// The level of a group that asks for none.
pub const STANDING_LEVEL: u8 = 100;

/// A place in the order of rank; the higher is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(NonZeroU16);

impl Slot {
    /// The standing level `level`: below every bumped slot.
    pub fn standing(level: u8) -> Self {
        Self::numbered(u16::from(level))
    }

    /// Bumped to `level`: above every standing level.
    pub fn bumped(level: u8) -> Self {
        Self::numbered(256 + u16::from(level))
    }

    /// From 0. Kept as one more, so that where nobody stands takes no room.
    fn numbered(number: u16) -> Self {
        Self(NonZeroU16::MIN.saturating_add(number))
    }

    fn number(self) -> u16 {
        self.0.get() - 1
    }

    fn word(self) -> usize {
        usize::from(self.number()) / 64
    }

    fn bit(self) -> u64 {
        1 << (self.number() % 64)
    }
}

/// Members in order of slot, then of sequence number.
#[derive(Debug)]
pub struct Rank(Form);

#[derive(Debug)]
enum Form {
    One(Slot, Fifo),
    Many(Box<Levels>),
}

#[derive(Debug, Default)]
struct Levels {
    occupied: [u64; WORDS],
    known: [u64; WORDS],
    below: [u16; WORDS],
    lines: Vec<Fifo>,
}

impl Default for Rank {
    fn default() -> Self {
        Self(Form::One(Slot::standing(0), Fifo::default()))
    }
}

impl Rank {
    /// `member`, which does not stand in `slot`, joins it under `seq`.
    #[inline]
    pub fn insert(&mut self, slot: Slot, seq: u64, member: u32) {
        if let Form::One(only, line) = &mut self.0 {
            if line.is_empty() {
                *only = slot;
            }
            if *only == slot {
                return line.insert(seq, member);
            }
            let levels = Levels::of(*only, std::mem::take(line));
            self.0 = Form::Many(levels);
        }
        if let Form::Many(levels) = &mut self.0 {
            levels.line_or_new(slot).insert(seq, member);
            levels.occupied[slot.word()] |= slot.bit();
        }
    }

    /// `member`, which stood in `slot` under `seq`, left; `stands` already
    /// says so.
    #[inline]
    pub fn leave(&mut self, slot: Slot, seq: u64, member: u32, stands: impl Fn(u32, u64) -> bool) {
        match &mut self.0 {
            Form::One(only, line) => {
                debug_assert_eq!(*only, slot);
                line.leave(seq, member, stands);
            }
            Form::Many(levels) => {
                if !levels.leave(slot, seq, member, stands) {
                    *self = Self::default();
                }
            }
        }
    }

    /// The member of the highest slot that has the lowest number there;
    /// `stands(slot, member, seq)` as in [`Fifo`].
    #[inline]
    pub fn best(&mut self, mut stands: impl FnMut(Slot, u32, u64) -> bool) -> Option<u32> {
        let (slot, line) = match &mut self.0 {
            Form::One(slot, line) => (*slot, line),
            Form::Many(levels) => levels.highest_line()?,
        };
        let front = line.front(|member, seq| stands(slot, member, seq));
        front.map(|(_, member)| member)
    }
}

impl Levels {
    fn index(&self, slot: Slot) -> usize {
        let here = self.known[slot.word()] & (slot.bit() - 1);
        usize::from(self.below[slot.word()]) + here.count_ones() as usize
    }

    fn highest_line(&mut self) -> Option<(Slot, &mut Fifo)> {
        let word = self.occupied.iter().rposition(|&w| w != 0)?;
        let bit = 63 - self.occupied[word].leading_zeros();
        let slot = Slot::numbered((word * 64) as u16 + bit as u16);
        let index = self.index(slot);
        Some((slot, &mut self.lines[index]))
    }

    /// A member left; false if it was the last of all.
    fn leave(
        &mut self,
        slot: Slot,
        seq: u64,
        member: u32,
        stands: impl Fn(u32, u64) -> bool,
    ) -> bool {
        let index = self.index(slot);
        self.lines[index].leave(seq, member, stands);
        if self.lines[index].is_empty() {
            self.occupied[slot.word()] &= !slot.bit();
        }
        self.occupied != [0; WORDS]
    }

    fn line_or_new(&mut self, slot: Slot) -> &mut Fifo {
        let index = self.index(slot);
        if self.known[slot.word()] & slot.bit() == 0 {
            self.known[slot.word()] |= slot.bit();
            self.below[slot.word() + 1..]
                .iter_mut()
                .for_each(|n| *n += 1);
            self.lines.insert(index, Fifo::default());
        }
        &mut self.lines[index]
    }

    /// Only this line, of this slot.
    #[cold]
    fn of(slot: Slot, line: Fifo) -> Box<Self> {
        let mut levels = Box::new(Self::default());
        levels.occupied[slot.word()] |= slot.bit();
        *levels.line_or_new(slot) = line;
        levels
    }
}
