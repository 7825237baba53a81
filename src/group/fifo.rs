//! Messages in order: 24 bytes while one waits, 13 to 16 bytes a message of 12
//! when many do.
//!
//! State: the first message stands in the value itself if it is small, the rest
//! in blocks on the heap, each a ring: first in a small one, then in larger ones
//! that are linked behind it. So nothing is moved twice, and what was consumed is
//! given back block by block.
//!
//! Invariants:
//! 1. `tail` is null, or the last of a circle of blocks linked by `next`, whose
//!    first is `tail.next`. Its three lowest bits say whether `first` holds a
//!    message, which is then the first of all, whether the blocks do, and
//!    whether they are more than an idle group keeps.
//! 2. A block without messages is the only one.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::{MaybeUninit, align_of, size_of};
use std::ptr::{self, NonNull};

use super::block::Block;
use super::prefetch;

/// In `tail`: `first` holds a message.
const FIRST: usize = 1;
/// In `tail`: the blocks hold messages.
const MORE: usize = 2;
/// In `tail`: there are more blocks, or a larger one, than an idle group keeps.
/// So that it is told without a look at them, which are another line.
const LARGE: usize = 4;
const BITS: usize = FIRST | MORE | LARGE;

/// Messages in order. See the [module](self).
pub(super) struct Fifo<T> {
    tail: *mut Block<T>,
    first: MaybeUninit<[u64; 2]>,
    _messages: PhantomData<T>,
}

// SAFETY: it owns its messages, and nothing in it is tied to a thread.
unsafe impl<T: Send> Send for Fifo<T> {}

impl<T> Fifo<T> {
    /// Whether a message fits into the value itself.
    const INLINE: bool = size_of::<T>() <= 16 && align_of::<T>() <= 8;

    pub(super) const fn new() -> Self {
        Self {
            tail: ptr::null_mut(),
            first: MaybeUninit::uninit(),
            _messages: PhantomData,
        }
    }

    #[inline]
    fn has(&self, what: usize) -> bool {
        self.tail.addr() & what != 0
    }

    #[inline]
    fn set(&mut self, what: usize) {
        self.tail = self.tail.map_addr(|tail| tail | what);
    }

    #[inline]
    fn clear(&mut self, what: usize) {
        self.tail = self.tail.map_addr(|tail| tail & !what);
    }

    #[inline]
    fn blocks(&self) -> Option<NonNull<Block<T>>> {
        NonNull::new(self.tail.map_addr(|tail| tail & !BITS))
    }

    #[inline]
    fn set_blocks(&mut self, tail: *mut Block<T>) {
        let bits = self.tail.addr() & BITS;
        self.tail = tail.map_addr(|tail| tail | bits);
    }

    #[inline]
    fn first_at(&mut self) -> *mut T {
        self.first.as_mut_ptr().cast()
    }

    /// Whether the value itself has a place for the first message.
    #[inline]
    pub(super) fn has_place(&self) -> bool {
        Self::INLINE && !self.has(FIRST)
    }

    /// Puts a message first, in the value itself.
    #[inline]
    pub(super) fn put_first(&mut self, message: T) {
        assert!(self.has_place());
        // SAFETY: the place is large enough, aligned, and holds nothing.
        unsafe { self.first_at().write(message) };
        self.set(FIRST);
    }

    /// Whether there is no message.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.has(FIRST | MORE)
    }

    /// How many there are. O(blocks).
    pub(super) fn len(&self) -> u64 {
        let mut sum = u64::from(self.has(FIRST));
        let Some(tail) = self.blocks().map(NonNull::as_ptr) else {
            return sum;
        };
        // SAFETY: all blocks of the circle are there.
        unsafe {
            let mut block = tail;
            loop {
                sum += u64::from((*block).len);
                block = (*block).next;
                if block == tail {
                    return sum;
                }
            }
        }
    }

    /// Puts a message last.
    #[inline]
    pub(super) fn push(&mut self, message: T) {
        if Self::INLINE && !self.has(FIRST | MORE) {
            self.put_first(message);
        } else {
            self.push_block(message);
        }
    }

    #[inline]
    fn push_block(&mut self, message: T) {
        match self.blocks() {
            // SAFETY: the block is there, and has room for one more.
            Some(tail) if unsafe { tail.as_ref() }.has_room() => unsafe {
                Block::push(tail.as_ptr(), message);
                if !self.has(MORE) {
                    self.set(MORE);
                }
            },
            tail => self.push_grown(tail.map(NonNull::as_ptr), message),
        }
    }

    /// Puts a message behind the last block, which is full if there is one.
    #[inline(never)]
    fn push_grown(&mut self, tail: Option<*mut Block<T>>, message: T) {
        self.set(if tail.is_some() { MORE | LARGE } else { MORE });
        // SAFETY: the last block is there, and a new one has room.
        unsafe {
            let block = Block::another(tail);
            Block::push(block, message);
            self.set_blocks(block);
        }
    }

    /// Takes the first message out.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if Self::INLINE && self.has(FIRST) {
            self.clear(FIRST);
            if let Some(block) = self.blocks() {
                prefetch::to_read(block.as_ptr());
            }
            // SAFETY: the place held a message; it is taken out once.
            return Some(unsafe { self.first_at().read() });
        }
        if !self.has(MORE) {
            return None;
        }
        Some(self.pop_block())
    }

    /// Takes the first message out of the blocks, which hold one.
    #[inline]
    fn pop_block(&mut self) -> T {
        let tail = self.blocks().expect("they hold a message").as_ptr();
        // SAFETY: the blocks are there, and the first holds a message. What is
        // read is counted out; a block that is empty and not the only one is
        // unlinked and freed.
        unsafe {
            let block = (*tail).next;
            let message = Block::pop(block);
            if (*block).len == 0 {
                self.emptied(block);
            }
            message
        }
    }

    /// The first block has become empty: it goes, if it is not the only one.
    #[inline(never)]
    fn emptied(&mut self, block: *mut Block<T>) {
        let tail = self.tail.map_addr(|tail| tail & !BITS);
        if block == tail {
            return self.clear(MORE);
        }
        // SAFETY: the blocks are there; nobody else knows the one that goes.
        unsafe {
            (*tail).next = (*block).next;
            Block::free(block);
        }
    }

    /// Gives back what a burst has left, if nothing waits.
    #[inline]
    pub(super) fn shrink(&mut self) {
        if self.has(LARGE) && self.is_empty() {
            self.free_block();
        }
    }

    /// Frees the only block, which is empty, if there is one.
    #[inline(never)]
    fn free_block(&mut self) {
        if let Some(tail) = self.blocks() {
            // SAFETY: an empty block is the only one, and nobody else knows it.
            unsafe { Block::free(tail.as_ptr()) };
            self.tail = ptr::null_mut();
        }
    }
}

impl<T> Drop for Fifo<T> {
    fn drop(&mut self) {
        /// Goes on where a message's drop has panicked.
        struct Rest<'f, T>(&'f mut Fifo<T>);
        impl<T> Drop for Rest<'_, T> {
            fn drop(&mut self) {
                while let Some(message) = self.0.pop() {
                    drop(message);
                }
                self.0.free_block();
            }
        }
        let rest = Rest(self);
        while let Some(message) = rest.0.pop() {
            drop(message);
        }
    }
}
