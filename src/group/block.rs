//! A block of messages on the heap: a ring.
//!
//! Invariant: it holds `len` messages from `head` on, around its end. Its
//! capacity is a power of two.

#![allow(unsafe_code)]

use std::alloc::{self, Layout};
use std::mem::{MaybeUninit, offset_of, replace};
use std::ptr;

use super::magazines::{self, BYTES, Unit};

/// The most messages in a block.
const MOST: usize = 128;
/// From so many blocks on, further ones are larger.
const SHALLOW: u8 = 16;

/// Its address has four low bits that are free.
#[repr(C, align(16))]
pub(super) struct Block<T> {
    /// The next in a circle of blocks.
    pub(super) next: *mut Block<T>,
    /// The capacity less 1.
    mask: u8,
    /// Counts on; `mask` makes a place of it.
    head: u8,
    pub(super) len: u8,
    /// How many blocks were linked before it since the first stood alone.
    depth: u8,
    items: [MaybeUninit<T>; 0],
}

impl<T> Block<T> {
    /// Messages in a first block.
    const FIRST: u8 = match Self::fit(BYTES[0]) {
        0 => Self::FEW,
        first => first,
    };
    /// Messages in the largest block that an idle group keeps.
    const FEW: u8 = match Self::fit(BYTES[1]) {
        ..2 => Self::MANY,
        few => few,
    };
    /// Messages in each further one.
    const MANY: u8 = match Self::fit(BYTES[2]) {
        ..2 => 2,
        many => many,
    };
    /// Messages in each behind [`SHALLOW`] others.
    const DEEP: u8 = match Self::fit(BYTES[3]) {
        ..8 => 4 * Self::MANY,
        many => many,
    };

    /// How many messages fit into a block of so many bytes: a power of two, or
    /// none.
    const fn fit(bytes: usize) -> u8 {
        let room = bytes.saturating_sub(offset_of!(Self, items));
        let fit = match size_of::<T>() {
            _ if align_of::<T>() > align_of::<Unit>() => 0,
            0 => room,
            size => room / size,
        };
        match fit {
            0 => 0,
            MOST.. => MOST as u8,
            fit => 1 << fit.ilog2(),
        }
    }

    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.len <= self.mask
    }

    /// Whether it is more than an idle group keeps.
    pub(super) fn is_large(&self) -> bool {
        self.mask >= Self::FEW
    }

    /// The size of memory for so many messages, if they fit into one.
    #[inline]
    const fn size(cap: u8) -> Option<usize> {
        let mut size = 0;
        // A sanitizer is to see each use of memory that is free.
        while size < BYTES.len() && !cfg!(unpooled) {
            if cap <= Self::fit(BYTES[size]) {
                return Some(size);
            }
            size += 1;
        }
        None
    }

    /// Of a block too large for a magazine.
    fn layout(cap: u8) -> Layout {
        let items = Layout::array::<T>(cap.into());
        let whole = items.and_then(|items| Layout::new::<Self>().extend(items));
        whole.expect("a block fits the memory").0.pad_to_align()
    }

    /// A block of its own, without messages.
    fn new(cap: u8) -> *mut Self {
        let block: *mut Self = match Self::size(cap) {
            Some(size) => Box::into_raw(magazines::get(size)).cast(),
            // SAFETY: the header alone makes the size more than nothing.
            None => unsafe { alloc::alloc(Self::layout(cap)).cast() },
        };
        if block.is_null() {
            alloc::handle_alloc_error(Self::layout(cap));
        }
        let header = Self {
            next: block,
            mask: cap - 1,
            head: 0,
            len: 0,
            depth: 0,
            items: [],
        };
        // SAFETY: it has the size and the alignment of a block.
        unsafe { block.write(header) };
        block
    }

    /// # Safety
    ///
    /// It is a block, its messages are gone, and nobody refers to it.
    pub(super) unsafe fn free(block: *mut Self) {
        // SAFETY: it is a block, and was allocated so for this capacity.
        unsafe {
            let cap = (*block).mask + 1;
            match Self::size(cap) {
                Some(size) => {
                    let units = magazines::units(size);
                    let memory = ptr::slice_from_raw_parts_mut(block.cast(), units);
                    magazines::put(size, Box::from_raw(memory));
                }
                None => alloc::dealloc(block.cast(), Self::layout(cap)),
            }
        }
    }

    /// A block with room: between the last and the first of a circle, or the only one. That
    /// is small unless so many `more` messages follow at once, and when it is full the next
    /// size, with what was in it, takes its place.
    ///
    /// # Safety
    ///
    /// `last` is a full block, or null. If the new one is alone, `last` is gone.
    pub(super) unsafe fn another(last: *mut Self, more: usize) -> *mut Self {
        if last.is_null() {
            return Self::new(match more {
                0 => Self::FIRST,
                _ if more < Self::FEW.into() => Self::FEW,
                _ => Self::MANY,
            });
        }
        // SAFETY: both are there, and what is in a small one has room in a larger one.
        unsafe {
            if (*last).next == last && (*last).mask + 1 < Self::MANY {
                let first = (*last).mask + 1 < Self::FEW;
                let block = Self::new(if first { Self::FEW } else { Self::MANY });
                for _ in 0..(*last).len {
                    Self::push(block, Self::pop(last));
                }
                Self::free(last);
                return block;
            }
            let depth = (*last).depth.saturating_add(1);
            let shallow = depth < SHALLOW;
            let block = Self::new(if shallow { Self::MANY } else { Self::DEEP });
            (*block).depth = depth;
            (*block).next = replace(&mut (*last).next, block);
            block
        }
    }

    /// The place for the `n`-th message, as `head` counts.
    ///
    /// # Safety
    ///
    /// It is a block.
    #[inline]
    unsafe fn at(block: *mut Self, n: u8) -> *mut T {
        // SAFETY: the items stand behind the header; the index is at most `mask`.
        unsafe {
            let index = n & (*block).mask;
            (&raw mut (*block).items).cast::<T>().add(index.into())
        }
    }

    /// Puts a message last.
    ///
    /// # Safety
    ///
    /// It is a block, and has room.
    #[inline]
    pub(super) unsafe fn push(block: *mut Self, message: T) {
        // SAFETY: the place behind the last message holds none.
        unsafe {
            let end = (*block).head.wrapping_add((*block).len);
            Self::at(block, end).write(message);
            (*block).len += 1;
        }
    }

    /// The places of `len` messages from the `n`-th on, as `head` counts: those up to the end
    /// of the ring, and those from its start.
    ///
    /// # Safety
    ///
    /// It is a block, and has so many places.
    #[inline]
    unsafe fn spans(block: *mut Self, n: u8, len: u8) -> [(*mut T, usize); 2] {
        // SAFETY: as for one place.
        unsafe {
            let mask = (*block).mask;
            let first = len.min(mask - (n & mask) + 1);
            let start = Self::at(block, 0);
            [
                (Self::at(block, n), first.into()),
                (start, (len - first).into()),
            ]
        }
    }

    /// Moves up to so many messages from there to the end, as far as there is room. Returns how
    /// many.
    ///
    /// # Safety
    ///
    /// It is a block, and so many messages are there.
    #[inline]
    pub(super) unsafe fn push_many(block: *mut Self, from: *const T, most: usize) -> usize {
        // SAFETY: the places behind the last message hold none, up to the capacity.
        unsafe {
            let (end, mut put) = ((*block).head.wrapping_add((*block).len), 0);
            let room = (*block).mask + 1 - (*block).len;
            let n = most.min(room.into()) as u8;
            for (place, some) in Self::spans(block, end, n) {
                ptr::copy_nonoverlapping(from.add(put), place, some);
                put += some;
            }
            (*block).len += n;
            put
        }
    }

    /// Takes the first message out.
    ///
    /// # Safety
    ///
    /// It is a block, and holds one.
    #[inline]
    pub(super) unsafe fn pop(block: *mut Self) -> T {
        // SAFETY: the message is read once, and counted out.
        unsafe {
            let message = Self::at(block, (*block).head).read();
            (*block).head = (*block).head.wrapping_add(1);
            (*block).len -= 1;
            message
        }
    }

    /// Moves the first messages to the end of `out`, up to so many.
    ///
    /// # Safety
    ///
    /// It is a block.
    #[inline]
    pub(super) unsafe fn pop_many(block: *mut Self, most: usize, out: &mut Vec<T>) {
        // SAFETY: the messages are counted out, and then moved once, to where there is room.
        unsafe {
            let (head, len) = ((*block).head, (*block).len);
            let n = most.min(len.into()) as u8;
            out.reserve(n.into());
            (*block).head = head.wrapping_add(n);
            (*block).len = len - n;
            for (place, some) in Self::spans(block, head, n) {
                let end = out.as_mut_ptr().add(out.len());
                ptr::copy_nonoverlapping(place, end, some);
                out.set_len(out.len() + some);
            }
        }
    }
}
