//! Messages in order: 25 bytes while one waits, 13 to 16 bytes a message of 12
//! when many do.
//!
//! State: the first message is in the value itself if it is small, the rest are in blocks on the
//! heap. The first block grows twice, unless many messages come at once or a large block was needed
//! before. Further blocks are linked behind it. Consumed memory is given back block by block.
//!
//! To put a message in or to take one out touches this value and the message's place. The head of a
//! block, on another cache line, is touched only where the block begins and ends.
//!
//! Invariants:
//! 1. `tail` has the last of a circle of blocks, linked by `next`, or none. The first block is the
//!    last one's `next`.
//! 2. If [`FIRST`] is set, `first` holds a message, the first of all.
//! 3. [`MORE`] is set exactly if the blocks hold messages. The messages fill all places from the
//!    first message to the end, except the last `room` places of the last block. Each block holds
//!    some.
//! 4. Without [`MORE`] there is at most one block, and `room` is 0.
//! 5. With [`MORE`] and [`HEAD`], `first` holds a [`Known`]. Without [`HEAD`] the block has the
//!    place of its first message.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::{MaybeUninit, align_of, size_of};
use std::ptr;

use super::block::Block;
use super::prefetch;
use super::tail::{FIRST, HEAD, Known, LARGE, MORE, Tail};

/// Messages in order; see the [module](self). Packed, so that more of a group fits on its line.
#[repr(C, packed)]
pub(super) struct Fifo<T> {
    pub(super) tail: Tail<T>,
    first: MaybeUninit<[u64; 2]>,
    /// How many places of the last block are free.
    room: u8,
    _messages: PhantomData<T>,
}

// SAFETY: it owns its messages, and nothing in it is tied to a thread.
unsafe impl<T: Send> Send for Fifo<T> {}

impl<T> Fifo<T> {
    /// Whether a message fits into the value itself.
    const INLINE: bool = size_of::<T>() <= 16 && align_of::<T>() <= 8;

    pub(super) const fn new() -> Self {
        Self {
            tail: Tail::none(),
            first: MaybeUninit::uninit(),
            room: 0,
            _messages: PhantomData,
        }
    }

    /// Where the first message of the blocks is. From now on `first` holds that.
    ///
    /// # Safety
    ///
    /// The blocks hold messages, and `first` none.
    #[inline]
    unsafe fn known(&mut self) -> &mut Known<T> {
        let known = self.place_of::<Known<T>>();
        // SAFETY: `first` has room for it, and holds nothing else; by invariant 1 the blocks are
        // there.
        unsafe {
            if !self.tail.has(HEAD) {
                let block = (*self.tail.block()).next;
                let place = (*block).first;
                known.write(Known { block, place });
                self.tail.set(HEAD);
                if place != (*block).places {
                    (*block).first = (*block).places;
                }
            }
            &mut *known
        }
    }

    /// A place in the value itself.
    #[inline]
    fn place_of<U>(&mut self) -> *mut U {
        (&raw mut self.first).cast()
    }

    /// The place behind the last message of a block. Only with [`LARGE`] are there other blocks.
    #[inline]
    fn end_of(&self, block: *mut Block<T>) -> u8 {
        match self.tail.has(LARGE) && block != self.tail.block() {
            true => 0,
            false => self.room,
        }
    }

    /// Whether the value itself has a place for the first message.
    #[inline]
    pub(super) fn has_place(&self) -> bool {
        Self::INLINE && !self.tail.has(FIRST)
    }

    /// Puts a message first, in the value itself.
    pub(super) fn put_first(&mut self, message: T) {
        assert!(self.has_place());
        if self.tail.has(MORE) && self.tail.has(HEAD) {
            // SAFETY: by invariant 1 the block is there.
            unsafe {
                let known = self.known();
                (*known.block).first = known.place;
            }
            self.tail.clear(HEAD);
        }
        // SAFETY: there is a place, and `first` knows nothing.
        unsafe { self.write_first(message) };
    }

    /// # Safety
    ///
    /// There is a place, and `first` knows nothing.
    #[inline]
    unsafe fn write_first(&mut self, message: T) {
        // SAFETY: the place is large enough, and holds nothing.
        unsafe { self.place_of::<T>().write_unaligned(message) };
        self.tail.set(FIRST);
    }

    /// Whether there is no message.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.tail.has(FIRST | MORE)
    }

    /// Puts a message last.
    #[inline]
    pub(super) fn push(&mut self, message: T) {
        self.push_before(message, 0);
    }

    /// Puts a message last; `more` messages follow at once.
    #[inline]
    fn push_before(&mut self, message: T, more: usize) {
        if self.room > 0 {
            // SAFETY: the last block has room.
            unsafe { self.put_last(message) };
        } else if Self::INLINE && !self.tail.has(FIRST | MORE) {
            // SAFETY: `first` holds nothing, and knows nothing as nothing is in the blocks.
            unsafe { self.write_first(message) };
        } else {
            self.push_further(message, more);
        }
    }

    /// # Safety
    ///
    /// There is a last block, and has room.
    #[inline]
    unsafe fn put_last(&mut self, message: T) {
        // SAFETY: its last `room` places hold nothing.
        unsafe { Block::at(self.tail.block(), self.room).write(message) };
        self.room -= 1;
    }

    /// Puts messages last.
    pub(super) fn push_all(&mut self, mut messages: Vec<T>) {
        let (from, len, mut put) = (messages.as_ptr(), messages.len(), 0);
        // SAFETY: each message is moved out once, and the `Vec` holds none any more. Where the
        // blocks hold messages, the last `room` places of the last one are free.
        unsafe {
            messages.set_len(0);
            while put < len {
                self.push_before(from.add(put).read(), len - put - 1);
                put += 1;
                if self.tail.has(MORE) {
                    let n = (len - put).min(self.room.into());
                    let place = Block::at(self.tail.block(), self.room);
                    ptr::copy_nonoverlapping(from.add(put), place, n);
                    self.room -= n as u8;
                    put += n;
                }
            }
        }
    }

    /// Puts a message into the only block if that is empty; otherwise makes room for it.
    #[inline(never)]
    fn push_further(&mut self, message: T, more: usize) {
        let last = self.tail.block();
        if self.tail.has(MORE) || last.is_null() {
            self.make_room(more);
        } else {
            self.tail.clear(HEAD);
            // SAFETY: the last block is there, and empty.
            self.room = unsafe { (*last).places };
        }
        // SAFETY: the last block has room now.
        unsafe { self.put_last(message) };
        self.tail.set(MORE);
    }

    /// Makes room where there is no block, or none in the last one; `more` messages follow the next.
    #[inline(never)]
    fn make_room(&mut self, more: usize) {
        let last = self.tail.block();
        // SAFETY: the last block is there if the blocks hold messages, and full.
        unsafe {
            if !self.tail.has(MORE) {
                self.use_block(Block::first(more, self.tail.has(HEAD)), 0);
                self.tail.clear(HEAD);
            } else if !self.widen(last) {
                self.use_block(Block::link(last), 0);
                self.tail.set(LARGE);
            }
        }
    }

    /// Makes room in the last block, which is full, if it is the only one and that costs little.
    ///
    /// # Safety
    ///
    /// It is the last block, and the blocks hold messages.
    unsafe fn widen(&mut self, last: *mut Block<T>) -> bool {
        // SAFETY: the block is there. If it is the only one, its messages fill all places from the
        // first one's on, as it is full.
        unsafe {
            if (*last).next != last {
                return false;
            }
            let waiting = match self.tail.has(HEAD) {
                true => self.known().place,
                false => (*last).first,
            };
            let Some(block) = Block::make_room(last, waiting) else {
                return false;
            };
            self.tail.clear(HEAD);
            self.use_block(block, waiting);
            true
        }
    }

    /// Makes this block the last one, with `waiting` messages in its first places.
    ///
    /// # Safety
    ///
    /// It is the last block of the circle, or alone.
    unsafe fn use_block(&mut self, block: *mut Block<T>, waiting: u8) {
        self.tail.replace(block);
        // SAFETY: it is a block.
        unsafe {
            self.room = (*block).places - waiting;
            if (*block).is_large() {
                self.tail.set(LARGE);
            }
        }
    }

    /// Takes the first message out.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if Self::INLINE && self.tail.has(FIRST) {
            self.tail.clear(FIRST);
            let last = self.tail.block();
            if !last.is_null() {
                // The next message may be there, before the head.
                prefetch::to_read(last.wrapping_byte_sub(64));
            }
            // SAFETY: the place held a message; it is taken out once.
            return Some(unsafe { self.place_of::<T>().read_unaligned() });
        }
        if !self.tail.has(MORE) {
            return None;
        }
        // SAFETY: the blocks hold messages, and `first` none; the first is read once.
        unsafe {
            let known = self.known();
            let (block, place) = (known.block, known.place);
            known.place = place - 1;
            if place - 1 != self.end_of(block) {
                return Some(Block::at(block, place).read());
            }
            Some(self.pop_last(block))
        }
    }

    /// Takes out the last message of the first block, which is already counted as taken.
    ///
    /// # Safety
    ///
    /// It is the first block.
    #[inline(never)]
    unsafe fn pop_last(&mut self, block: *mut Block<T>) -> T {
        // SAFETY: the message stands in the last place that is in use, and is read once.
        unsafe {
            let message = Block::at(block, self.end_of(block) + 1).read();
            self.emptied(block);
            message
        }
    }

    /// Moves the first messages, at most `most`, to the end of `out`.
    pub(super) fn pop_many(&mut self, most: usize, out: &mut Vec<T>) {
        let most = most + out.len();
        if most > out.len() && Self::INLINE && self.tail.has(FIRST) {
            out.extend(self.pop());
        }
        while most > out.len() && self.tail.has(MORE) {
            // SAFETY: the blocks hold messages, and `first` none; those that are moved are counted
            // out, and there is room for them.
            unsafe {
                let known = self.known();
                let (block, place) = (known.block, known.place);
                let end = self.end_of(block);
                let n = (most - out.len()).min((place - end).into());
                out.reserve(n);
                let to = out.as_mut_ptr().add(out.len());
                ptr::copy_nonoverlapping(Block::at(block, place), to, n);
                out.set_len(out.len() + n);
                self.known().place = place - n as u8;
                if place - n as u8 == end {
                    self.emptied(block);
                }
            }
        }
    }

    /// The first block has become empty: unlinks it unless it is the only one.
    ///
    /// # Safety
    ///
    /// It is the first block.
    #[inline]
    unsafe fn emptied(&mut self, block: *mut Block<T>) {
        if self.tail.has(LARGE) {
            // SAFETY: it is the first block.
            return unsafe { self.emptied_large(block) };
        }
        self.tail.clear(MORE | HEAD);
        self.room = 0;
    }

    /// # Safety
    ///
    /// It is the first block.
    #[inline(never)]
    unsafe fn emptied_large(&mut self, block: *mut Block<T>) {
        let tail = self.tail.block();
        // SAFETY: the blocks are there; nobody else knows one that goes.
        unsafe {
            self.tail.clear(HEAD);
            if block != tail {
                return Block::unlink(block, tail);
            }
            if (*block).is_needed(self.room) {
                self.tail.set(HEAD);
            }
        }
        self.tail.clear(MORE);
        self.room = 0;
    }

    /// Gives back memory that a burst has left, if nothing waits.
    #[inline]
    pub(super) fn shrink(&mut self) {
        if self.tail.has(LARGE) && self.is_empty() {
            self.free_block();
        }
    }

    /// Frees the only block, if there is one. There are no messages.
    #[inline(never)]
    fn free_block(&mut self) {
        let block = self.tail.block();
        self.tail.clear(FIRST | MORE | LARGE);
        self.tail.replace(ptr::null_mut());
        if !block.is_null() {
            // SAFETY: an empty block is the only one, and nobody else knows it.
            unsafe { Block::free(block) };
        }
    }
}

impl<T> Drop for Fifo<T> {
    fn drop(&mut self) {
        /// Drops the remaining messages if the drop of a message panics.
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
