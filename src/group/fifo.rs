//! Messages in order: 24 bytes while one waits, 13 to 16 bytes a message of 12
//! when many do.
//!
//! State: the first message stands in the value itself if it is small, the rest
//! in blocks on the heap, each a ring: first in one that grows twice, unless many come
//! at once, then in larger ones that are linked behind it. So nothing is moved more than
//! twice, and what was consumed is given back block by block.
//!
//! Invariants:
//! 1. `tail` is null, or the last of a circle of blocks linked by `next`, whose
//!    first is `tail.next`. Its four lowest bits say whether `first` holds a
//!    message, which is then the first of all, whether the blocks do,
//!    whether they are more than an idle group keeps, and whether `first` knows
//!    the first block.
//! 2. A block without messages is the only one.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::{MaybeUninit, align_of, size_of};
use std::ptr;

use super::block::Block;
use super::prefetch;

/// In `tail`: `first` holds a message.
const FIRST: usize = 1;
/// In `tail`: the blocks hold messages.
const MORE: usize = 2;
/// In `tail`: there are more blocks, or a larger one, than an idle group keeps.
/// This saves a look at the blocks, which are on another cache line.
const LARGE: usize = 4;
/// In `tail`: `first` holds the address of the first block, which holds a message. So
/// whoever takes one does not touch the last block, whose cache line senders change.
const HEAD: usize = 8;
const BITS: usize = FIRST | MORE | LARGE | HEAD;

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

    /// The last block, if there is one.
    #[inline]
    fn last(&self) -> *mut Block<T> {
        self.tail.map_addr(|tail| tail & !BITS)
    }

    /// The first block, which holds a message, where `first` holds none.
    ///
    /// # Safety
    ///
    /// The blocks hold messages.
    #[inline]
    unsafe fn head(&mut self) -> *mut Block<T> {
        let known: *mut *mut Block<T> = self.first.as_mut_ptr().cast();
        // SAFETY: an address fits into `first`, which holds nothing else; by invariant 1
        // the last block is there.
        unsafe {
            if !self.has(HEAD) {
                known.write((*self.last()).next);
                self.set(HEAD);
            }
            known.read()
        }
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
        self.clear(HEAD);
        self.set(FIRST);
    }

    /// Whether there is no message.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.has(FIRST | MORE)
    }

    /// Puts a message last.
    #[inline]
    pub(super) fn push(&mut self, message: T) {
        self.push_before(message, 0);
    }

    /// Puts a message last, behind which so many more come at once.
    #[inline]
    fn push_before(&mut self, message: T, more: usize) {
        let last = self.last();
        // SAFETY: by invariant 1 there is a last block.
        if self.has(MORE) && unsafe { (*last).has_room() } {
            // SAFETY: as above, and it has room.
            unsafe { Block::push(last, message) };
        } else if Self::INLINE && !self.has(FIRST | MORE) {
            self.put_first(message);
        } else {
            self.push_further(message, more);
        }
    }

    /// Puts messages last.
    pub(super) fn push_all(&mut self, mut messages: Vec<T>) {
        let (from, len, mut put) = (messages.as_ptr(), messages.len(), 0);
        // SAFETY: each message is moved out once, and the `Vec` holds none any more. By
        // invariant 1 there is a last block where it is used.
        unsafe {
            messages.set_len(0);
            while put < len {
                self.push_before(from.add(put).read(), len - put - 1);
                put += 1;
                if self.has(MORE) {
                    put += Block::push_many(self.last(), from.add(put), len - put);
                }
            }
        }
    }

    /// Puts a message into the only block, if that is empty, or into a new one.
    #[inline(never)]
    fn push_further(&mut self, message: T, more: usize) {
        let mut last = self.last();
        // SAFETY: the last block is there, or null; an empty one has room.
        unsafe {
            if last.is_null() || self.has(MORE) {
                last = Block::another(last, more);
                let alone = (*last).next == last;
                if alone {
                    // Another may have been the first.
                    self.clear(HEAD);
                }
                if !alone || (*last).is_large() {
                    self.set(LARGE);
                }
                let bits = self.tail.addr() & BITS;
                self.tail = last.map_addr(|last| last | bits);
            }
            Block::push(last, message);
        }
        self.set(MORE);
    }

    /// Takes the first message out.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if Self::INLINE && self.has(FIRST) {
            self.clear(FIRST);
            let last = self.last();
            if !last.is_null() {
                prefetch::to_read(last);
            }
            // SAFETY: the place held a message; it is taken out once.
            return Some(unsafe { self.first_at().read() });
        }
        if !self.has(MORE) {
            return None;
        }
        Some(self.pop_block())
    }

    /// Moves the first messages to the end of `out`, up to so many.
    pub(super) fn pop_many(&mut self, most: usize, out: &mut Vec<T>) {
        let most = most + out.len();
        if most > out.len() && Self::INLINE && self.has(FIRST) {
            out.extend(self.pop());
        }
        while most > out.len() && self.has(MORE) {
            // SAFETY: by invariant 1 the blocks are there.
            unsafe {
                let block = self.head();
                Block::pop_many(block, most - out.len(), out);
                if (*block).len == 0 {
                    self.emptied(block);
                }
            }
        }
    }

    /// Takes the first message out of the blocks, which hold one.
    #[inline]
    fn pop_block(&mut self) -> T {
        // SAFETY: by invariant 1 the blocks are there; the first holds a message. What is
        // read is counted out; a block that is empty and not the only one is
        // unlinked and freed.
        unsafe {
            let block = self.head();
            let message = Block::pop(block);
            if (*block).len == 0 {
                self.emptied(block);
            }
            message
        }
    }

    /// The first block has become empty: it goes unless it is the only one.
    #[inline(never)]
    fn emptied(&mut self, block: *mut Block<T>) {
        let tail = self.last();
        if block == tail {
            return self.clear(MORE | HEAD);
        }
        // SAFETY: the blocks are there; nobody else knows the one that goes.
        unsafe {
            (*tail).next = (*block).next;
            self.clear(HEAD);
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
        let tail = std::mem::replace(&mut self.tail, ptr::null_mut());
        let block = tail.map_addr(|tail| tail & !BITS);
        if !block.is_null() {
            // SAFETY: an empty block is the only one, and nobody else knows it.
            unsafe { Block::free(block) };
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
