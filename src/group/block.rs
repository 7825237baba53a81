//! A block of messages on the heap: places, and behind them a head with their number.
//!
//! The number of a place is the distance from it to the head: the first place has the largest
//! number, and the last has 1. To read or write a place, the head's address and the place's number
//! are enough. The head itself is not touched: its cache line may be another processor's.

#![allow(unsafe_code)]

use std::alloc::{self, Layout};
use std::mem::{MaybeUninit, size_of};
use std::ptr;

use super::magazines::{self, BYTES, Unit};

/// After this many blocks' worth of places, further blocks are larger.
const SHALLOW: u32 = 16;

/// Where the memory of a block comes from.
enum Memory {
    /// From the magazines, of the size with this number.
    Pooled(usize),
    /// From the allocator.
    Own(Layout),
}

/// A block, at its head. The address has four low bits that are free.
#[repr(C, align(16))]
pub(super) struct Block<T> {
    /// The next in a circle of blocks.
    pub(super) next: *mut Block<T>,
    /// How many places it has.
    pub(super) places: u8,
    /// The place of its first message, while the fifo does not keep that itself.
    pub(super) first: u8,
    /// Whether it was linked behind another.
    linked: bool,
    /// In the last block: how many places the blocks before it have.
    before: u32,
    /// Aligns the block as a message.
    _messages: [MaybeUninit<T>; 0],
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
    /// Messages in each further block.
    const MANY: u8 = match Self::fit(BYTES[2]) {
        ..2 => 2,
        many => many,
    };
    /// Messages in each block behind many others.
    const DEEP: u8 = match Self::fit(BYTES[3]) {
        ..8 => 4 * Self::MANY,
        many => many,
    };

    /// How many messages fit into a block of so many bytes.
    const fn fit(bytes: usize) -> u8 {
        let fit = match size_of::<T>() {
            _ if align_of::<T>() > align_of::<Unit>() => 0,
            0 => usize::MAX,
            size => (bytes - size_of::<Self>()) / size,
        };
        if fit > u8::MAX as usize {
            u8::MAX
        } else {
            fit as u8
        }
    }

    /// Whether the block is larger than an idle group keeps.
    pub(super) fn is_large(&self) -> bool {
        self.places > Self::FEW
    }

    /// Whether an idle group's largest block would have been too small: for what was put into this
    /// block, of which `room` places are free.
    pub(super) fn is_needed(&self, room: u8) -> bool {
        self.linked || self.places - room > Self::FEW
    }

    /// The number of the memory size that has exactly so many places, if there is one.
    #[inline]
    const fn size(places: u8) -> Option<usize> {
        let mut size = 0;
        // A sanitizer must see each use of freed memory.
        while size < BYTES.len() && !cfg!(unpooled) {
            if places == Self::fit(BYTES[size]) {
                return Some(size);
            }
            size += 1;
        }
        None
    }

    /// The memory of a block with so many places, and where its head is.
    #[inline]
    fn memory(places: u8) -> (Memory, usize) {
        if let Some(size) = Self::size(places) {
            return (Memory::Pooled(size), BYTES[size] - size_of::<Self>());
        }
        let messages = Layout::array::<T>(places.into());
        let whole = messages.and_then(|messages| messages.extend(Layout::new::<Self>()));
        let (layout, to_head) = whole.expect("a block fits the memory");
        (Memory::Own(layout), to_head)
    }

    /// A block without messages, in a circle of its own.
    fn new(places: u8) -> *mut Self {
        let (memory, to_head) = Self::memory(places);
        let start: *mut u8 = match memory {
            Memory::Pooled(size) => Box::into_raw(magazines::get(size)).cast(),
            Memory::Own(layout) => {
                // SAFETY: the head alone makes the size more than nothing.
                let start = unsafe { alloc::alloc(layout) };
                if start.is_null() {
                    alloc::handle_alloc_error(layout);
                }
                start
            }
        };
        let block = start.wrapping_add(to_head).cast::<Self>();
        let head = Self {
            next: block,
            places,
            first: places,
            linked: false,
            before: 0,
            _messages: [],
        };
        // SAFETY: the memory has the size and the alignment of a block, with its head there.
        unsafe { block.write(head) };
        block
    }

    /// # Safety
    ///
    /// It is a block, its messages are gone, and nobody refers to it.
    pub(super) unsafe fn free(block: *mut Self) {
        // SAFETY: it is a block, and was allocated so for so many places.
        unsafe {
            let (memory, to_head) = Self::memory((*block).places);
            let start = block.byte_sub(to_head);
            match memory {
                Memory::Pooled(size) => {
                    let units = magazines::units(size);
                    let memory = ptr::slice_from_raw_parts_mut(start.cast(), units);
                    magazines::put(size, Box::from_raw(memory));
                }
                Memory::Own(layout) => alloc::dealloc(start.cast(), layout),
            }
        }
    }

    /// A block for the first messages, of which `more` follow at once. It is small unless `large`
    /// is set or many follow.
    pub(super) fn first(more: usize, large: bool) -> *mut Self {
        Self::new(match more {
            0 if !large => Self::FIRST,
            _ if !large && more < Self::FEW.into() => Self::FEW,
            _ => Self::MANY,
        })
    }

    /// Makes room in the block, which is full and the only one. Moves its `waiting` messages to its
    /// first places, or into a block of the next size, which replaces it. Returns `None`, and has
    /// changed nothing, if that would move most of a large block. It leaves at least as many places
    /// free as it moves messages, so a message that is put in costs at most one move on average.
    ///
    /// # Safety
    ///
    /// It is a block, with so many messages in its last places.
    pub(super) unsafe fn make_room(block: *mut Self, waiting: u8) -> Option<*mut Self> {
        // SAFETY: both are blocks; what waits has room in either, and is moved once.
        unsafe {
            let places = (*block).places;
            let to = match places {
                _ if waiting <= places / 2 => block,
                _ if places < Self::FEW => Self::new(Self::FEW),
                _ if places < Self::MANY => Self::new(Self::MANY),
                _ => return None,
            };
            let (from, place) = (Self::at(block, waiting), Self::at(to, (*to).places));
            ptr::copy(from, place, waiting.into());
            if to != block {
                Self::free(block);
            }
            (*to).first = (*to).places;
            Some(to)
        }
    }

    /// Links a new block behind the last of a circle, which is full.
    ///
    /// # Safety
    ///
    /// It is a block.
    pub(super) unsafe fn link(last: *mut Self) -> *mut Self {
        // SAFETY: both are there.
        unsafe {
            let before = (*last).before.saturating_add((*last).places.into());
            let shallow = before < SHALLOW * u32::from(Self::MANY);
            let block = Self::new(if shallow { Self::MANY } else { Self::DEEP });
            (*block).linked = true;
            (*block).before = before;
            (*block).next = (*last).next;
            (*last).next = block;
            block
        }
    }

    /// Frees the first block of a circle, which is empty and not the last.
    ///
    /// # Safety
    ///
    /// They are these blocks, and nobody else refers to the first.
    pub(super) unsafe fn unlink(first: *mut Self, last: *mut Self) {
        // SAFETY: both are there.
        unsafe {
            (*last).before = (*last).before.saturating_sub((*first).places.into());
            (*last).next = (*first).next;
            Self::free(first);
        }
    }

    /// The place of this number.
    ///
    /// # Safety
    ///
    /// It is a block with so many places.
    #[inline]
    pub(super) unsafe fn at(block: *mut Self, place: u8) -> *mut T {
        // SAFETY: so many places lie right before the head.
        unsafe { block.cast::<T>().sub(place.into()) }
    }
}
