//! The ends of a fifo's blocks: the last block, with four bits of the fifo's state; and the first
//! message.

use std::ptr;

use super::block::Block;

/// The value itself holds the first message.
pub(super) const FIRST: usize = 1;
/// The blocks hold messages.
pub(super) const MORE: usize = 2;
/// There are more blocks, or a larger one, than an idle group keeps. This bit saves a look at the
/// blocks, which are on another cache line.
pub(super) const LARGE: usize = 4;
/// While the blocks hold messages: the value itself has the place of the first of them. Otherwise:
/// a large block was needed, so the next one is large at once.
pub(super) const HEAD: usize = 8;
const BITS: usize = FIRST | MORE | LARGE | HEAD;

/// See the [module](self).
#[repr(C, packed)]
pub(super) struct Tail<T>(*mut Block<T>);

impl<T> Tail<T> {
    /// No block and no bit.
    pub(super) const fn none() -> Self {
        Self(ptr::null_mut())
    }

    /// The last block, or null.
    #[inline]
    pub(super) fn block(&self) -> *mut Block<T> {
        let Self(tail) = *self;
        tail.map_addr(|tail| tail & !BITS)
    }

    /// Replaces the block, or sets it to null. The bits stay.
    #[inline]
    pub(super) fn replace(&mut self, block: *mut Block<T>) {
        let Self(tail) = *self;
        let bits = tail.addr() & BITS;
        self.0 = block.map_addr(|block| block | bits);
    }

    /// How many places the last block has.
    #[cfg(test)]
    #[allow(unsafe_code)]
    pub(super) fn places(&self) -> u8 {
        // SAFETY: the last block is there, or null.
        unsafe { self.block().as_ref() }.map_or(0, |last| last.places)
    }

    /// Whether one of these bits is set.
    #[inline]
    pub(super) fn has(&self, what: usize) -> bool {
        let Self(tail) = *self;
        tail.addr() & what != 0
    }

    #[inline]
    pub(super) fn set(&mut self, what: usize) {
        let Self(tail) = *self;
        self.0 = tail.map_addr(|tail| tail | what);
    }

    #[inline]
    pub(super) fn clear(&mut self, what: usize) {
        let Self(tail) = *self;
        self.0 = tail.map_addr(|tail| tail & !what);
    }
}

/// Where the first message of the blocks is. Packed, because it is stored in a packed value.
#[repr(C, packed)]
pub(super) struct Known<T> {
    pub(super) block: *mut Block<T>,
    pub(super) place: u8,
}
