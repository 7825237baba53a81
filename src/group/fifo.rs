//! Messages in order: 24 bytes while one waits, 12 to 16 bytes a message of 12
//! when many do.
//!
//! State: the first message stands in the value itself if it is small, the rest
//! in blocks on the heap, each a ring. While there is one block it grows by
//! moving to a larger one; from [`MOST`] on blocks are linked, so that nothing
//! is moved any more and what was consumed is given back block by block.
//!
//! Invariants:
//! 1. `tail` is null, or the last of a circle of blocks linked by `next`, whose
//!    first is `tail.next`. Its three lowest bits say whether `first` holds a
//!    message, which is then the first of all, whether the blocks do, and
//!    whether they are more than an idle group keeps.
//! 2. A block without messages is the only one.

#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, align_of, size_of};
use std::ptr::{self, NonNull};

use super::block::Block;

/// Messages in the first block.
const FEWEST: u16 = 2;
/// Messages in a block that is not moved to a larger one.
const MOST: u16 = 64;
/// Messages of the largest block that an idle group keeps.
const KEPT: u16 = 4;

/// In `tail`: `first` holds a message.
const FIRST: usize = 1;
/// In `tail`: the blocks hold messages.
const MORE: usize = 2;
/// In `tail`: there are more blocks, or larger ones, than an idle group keeps.
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

    #[inline]
    fn set_first(&mut self, message: T) {
        debug_assert!(Self::INLINE && !self.has(FIRST));
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
            self.set_first(message);
        } else {
            self.push_block(message);
        }
    }

    #[inline]
    fn push_block(&mut self, message: T) {
        match self.blocks() {
            // SAFETY: the block is there.
            Some(tail) if unsafe { tail.as_ref() }.has_room() => self.push_last(tail, message),
            _ => self.push_grown(message),
        }
    }

    #[inline(never)]
    fn push_grown(&mut self, message: T) {
        let tail = self.make_room();
        self.push_last(tail, message);
    }

    /// Puts a message into the last block, which has room.
    #[inline]
    fn push_last(&mut self, tail: NonNull<Block<T>>, message: T) {
        if !self.has(MORE) {
            self.set(MORE);
        }
        // SAFETY: the last block has room for one more.
        unsafe { Block::push(tail.as_ptr(), message) };
    }

    /// Makes room for so many more at once, where one block can hold them.
    pub(super) fn reserve(&mut self, more: usize) {
        let first = usize::from(Self::INLINE && self.is_empty());
        let more = more.saturating_sub(first).min(MOST.into()) as u16;
        let tail = self.blocks().map_or(ptr::null_mut(), NonNull::as_ptr);
        let (len, cap) = match tail.is_null() {
            true => (0, 0),
            // SAFETY: the block is there.
            false => unsafe { ((*tail).len, (*tail).cap) },
        };
        let wanted = (len + more).next_power_of_two().clamp(FEWEST, MOST);
        if more == 0 || wanted <= cap {
            return;
        }
        let larger = match tail.is_null() {
            true => Block::new(wanted),
            // SAFETY: a block below the largest size is the only one.
            false => unsafe { Block::grow(tail, wanted) },
        };
        self.replace_blocks(larger);
    }

    /// A last block with room.
    fn make_room(&mut self) -> NonNull<Block<T>> {
        // SAFETY: the block is there.
        let largest = |tail: &NonNull<Block<T>>| unsafe { tail.as_ref() }.cap == MOST;
        match self.blocks().filter(largest).map(NonNull::as_ptr) {
            // SAFETY: the blocks are there; a new one is linked in behind the last.
            Some(tail) => unsafe {
                let new = Block::new(MOST);
                (*new).next = (*tail).next;
                (*tail).next = new;
                self.replace_blocks(new);
            },
            None => self.reserve(1),
        }
        self.blocks().expect("it is there now")
    }

    /// The last block is another one now, or none.
    fn replace_blocks(&mut self, tail: *mut Block<T>) {
        // SAFETY: the block is there, if there is one.
        let large = !tail.is_null() && unsafe { (*tail).cap > KEPT };
        self.clear(LARGE);
        self.set_blocks(tail);
        if large {
            self.set(LARGE);
        }
    }

    /// Puts a message first.
    pub(super) fn push_front(&mut self, message: T) {
        if Self::INLINE && !self.has(FIRST) {
            return self.set_first(message);
        }
        let mut second = message;
        if self.has(FIRST) {
            // SAFETY: the place holds a message.
            second = unsafe { self.first_at().replace(second) };
        }
        let Some(tail) = self.blocks().map(NonNull::as_ptr) else {
            return self.push_block(second);
        };
        self.set(MORE);
        // SAFETY: the blocks are there. The message goes before the first of the
        // first block, or into a new one before that.
        unsafe {
            let mut head = (*tail).next;
            if (*head).len == (*head).cap {
                if head == tail && (*tail).cap < MOST {
                    head = Block::grow(tail, (*tail).cap * 2);
                    self.replace_blocks(head);
                } else {
                    let new = Block::new(MOST);
                    (*new).next = head;
                    (*tail).next = new;
                    head = new;
                }
            }
            Block::push_front(head, second);
        }
    }

    /// Takes the first message out.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if Self::INLINE && self.has(FIRST) {
            self.clear(FIRST);
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
        if self.has(LARGE) {
            self.free_block();
        }
    }

    /// Frees the only block, if it is empty.
    #[inline(never)]
    fn free_block(&mut self) {
        let Some(tail) = self.blocks().map(NonNull::as_ptr) else {
            return;
        };
        // SAFETY: an empty block is the only one, and nobody else knows it.
        unsafe {
            if (*tail).len == 0 {
                Block::free(tail);
                self.replace_blocks(ptr::null_mut());
            }
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

impl<T> fmt::Debug for Fifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fifo").field("len", &self.len()).finish()
    }
}
