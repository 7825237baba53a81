//! A block of messages on the heap: a ring.
//!
//! Invariant: it holds `len` messages from `head` on, around its end. Its
//! capacity is a power of two.

#![allow(unsafe_code)]

use std::alloc::{self, Layout};
use std::mem::MaybeUninit;
use std::ptr;

#[repr(C)]
pub(super) struct Block<T> {
    /// The next in a circle of blocks.
    pub(super) next: *mut Block<T>,
    pub(super) cap: u16,
    /// Counts on; the place is the rest to `cap`.
    head: u16,
    pub(super) len: u16,
    items: [MaybeUninit<T>; 0],
}

impl<T> Block<T> {
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.len < self.cap
    }

    fn layout(cap: u16) -> Layout {
        let items = Layout::array::<T>(cap.into());
        let whole = items.and_then(|items| Layout::new::<Self>().extend(items));
        whole.expect("a block fits the memory").0.pad_to_align()
    }

    /// An empty block, alone in its circle.
    pub(super) fn new(cap: u16) -> *mut Self {
        let layout = Self::layout(cap);
        // SAFETY: the header alone makes the size more than nothing.
        let block = unsafe { alloc::alloc(layout) }.cast::<Self>();
        if block.is_null() {
            alloc::handle_alloc_error(layout);
        }
        let header = Self {
            next: block,
            cap,
            head: 0,
            len: 0,
            items: [],
        };
        // SAFETY: fresh memory of this layout.
        unsafe { block.write(header) };
        block
    }

    /// # Safety
    ///
    /// It is from [`new`](Self::new), holds nothing, and nobody refers to it.
    pub(super) unsafe fn free(block: *mut Self) {
        // SAFETY: it was allocated with this layout.
        unsafe { alloc::dealloc(block.cast(), Self::layout((*block).cap)) };
    }

    /// The place `n` behind the head, which may be the end.
    ///
    /// # Safety
    ///
    /// It is a block, and `n` at most its capacity.
    #[inline]
    unsafe fn at(block: *mut Self, n: u16) -> *mut T {
        // SAFETY: the items stand behind the header; the index is below `cap`.
        unsafe {
            let index = (*block).head.wrapping_add(n) & ((*block).cap - 1);
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
            Self::at(block, (*block).len).write(message);
            (*block).len += 1;
        }
    }

    /// Puts a message first.
    ///
    /// # Safety
    ///
    /// It is a block, and has room.
    pub(super) unsafe fn push_front(block: *mut Self, message: T) {
        // SAFETY: the place before the first message holds none.
        unsafe {
            (*block).head = (*block).head.wrapping_sub(1);
            (*block).len += 1;
            Self::at(block, 0).write(message);
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
            let message = Self::at(block, 0).read();
            (*block).head = (*block).head.wrapping_add(1);
            (*block).len -= 1;
            message
        }
    }

    /// The same messages in a larger block.
    ///
    /// # Safety
    ///
    /// It is a block, alone in its circle, and `larger` a power of two above its
    /// capacity; it is gone after.
    pub(super) unsafe fn grow(block: *mut Self, larger: u16) -> *mut Self {
        // SAFETY: the messages move in one or two runs into fresh memory that has
        // room for them.
        unsafe {
            let (len, cap) = ((*block).len, (*block).cap);
            let head = (*block).head & (cap - 1);
            let larger = Self::new(larger);
            let run = len.min(cap - head);
            let items = (&raw mut (*larger).items).cast::<T>();
            ptr::copy_nonoverlapping(Self::at(block, 0), items, run.into());
            let rest = (&raw mut (*block).items).cast::<T>();
            ptr::copy_nonoverlapping(rest, items.add(run.into()), (len - run).into());
            (*larger).len = len;
            Self::free(block);
            larger
        }
    }
}
