//! Memory for blocks, so that the allocator is hardly ever called.
//!
//! The sending thread needs a block, and the reading thread frees it. So each thread has up to two
//! magazines of each size in one array. Full magazines go from thread to thread through a depot,
//! which moves 32 blocks, or 4 large ones, with one lock.
//!
//! A magazine is an array of pointers, so a block that another processor has used is not touched
//! until there is something to write into it.
//!
//! Invariant: `out` is the number of blocks that threads hold, in use or in their magazines.
//!
//! Bounds: the depot of a size holds at most as many blocks as threads hold, and 8 magazines more.
//! A thread has at most two full magazines of each size, until it ends. So memory of a burst is
//! given back.
//!
//! Source: J. Bonwick and J. Adams, "Magazines and Vmem", USENIX 2001.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use crate::sync::{UnmodelledMutex, unmodelled_per_thread};

/// Full magazines that are kept even if no thread holds a block.
const SPARE: usize = 8;

/// The sizes of memory, by number: for a first block, for the largest block that an idle group
/// keeps, for a further block, and for a block behind many others.
pub(super) const BYTES: [usize; 4] = [32, 64, 208, 1552];
/// In tests each test has a size of its own, so that no other takes from its depot.
const SIZES: usize = BYTES.len() + if cfg!(test) { 4 } else { 0 };

/// The unit in which memory is counted.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub(super) struct Unit(#[expect(dead_code)] [u8; 16]);

/// Memory for a block.
pub(super) type Memory = Box<[MaybeUninit<Unit>]>;

type Magazine = Vec<Memory>;

/// Full magazines of a size, for all threads.
pub(super) struct Depot {
    pub(super) full: Vec<Magazine>,
    pub(super) out: usize,
}

static DEPOTS: [UnmodelledMutex<Depot>; SIZES] =
    [const { UnmodelledMutex::new(Depot::NEW) }; SIZES];

/// The magazines of one thread, by size.
struct Magazines([Magazine; SIZES]);

unmodelled_per_thread! {
    static MINE: RefCell<Magazines> = const { RefCell::new(Magazines([const { Vec::new() }; SIZES])) };
}

/// How many units memory of this size has.
#[inline]
pub(super) fn units(size: usize) -> usize {
    BYTES.get(size).map_or(1, |bytes| bytes / size_of::<Unit>())
}

/// How many blocks a full magazine has.
#[inline]
fn full(size: usize) -> usize {
    if size == BYTES.len() - 1 { 4 } else { 32 }
}

pub(super) fn depot(size: usize) -> &'static UnmodelledMutex<Depot> {
    &DEPOTS[size]
}

/// Memory of this size.
#[inline]
pub(super) fn get(size: usize) -> Memory {
    let kept = MINE.try_with(|mine| {
        let mine = &mut mine.borrow_mut().0[size];
        mine.pop().or_else(|| reload(mine, size))
    });
    // A thread that ends has no magazines any more.
    let kept = kept.unwrap_or_else(|_| {
        depot(size).lock().out += 1;
        None
    });
    kept.unwrap_or_else(|| Box::new_uninit_slice(units(size)))
}

/// Gives memory of this size back.
#[inline]
pub(super) fn put(size: usize, memory: Memory) {
    let kept = MINE.try_with(|mine| {
        let mine = &mut mine.borrow_mut().0[size];
        if mine.len() == 2 * full(size) {
            unload(mine, size);
        }
        mine.push(memory);
    });
    if kept.is_err() {
        count_out(size, 1);
    }
}

/// So many blocks are no longer held by threads.
fn count_out(size: usize, blocks: usize) {
    let excess = depot(size).lock().count_out(blocks, full(size));
    drop(excess);
}

#[cold]
#[inline(never)]
fn reload(mine: &mut Magazine, size: usize) -> Option<Memory> {
    mine.append(&mut depot(size).lock().take());
    mine.pop()
}

#[cold]
#[inline(never)]
fn unload(mine: &mut Magazine, size: usize) {
    let magazine = mine.split_off(full(size));
    let excess = depot(size).lock().put(magazine, full(size));
    drop(excess);
}

impl Depot {
    const NEW: Self = Self {
        full: Vec::new(),
        out: 0,
    };

    /// A full magazine; or an empty one, and the caller allocates one block.
    fn take(&mut self) -> Magazine {
        let magazine = self.full.pop().unwrap_or_default();
        self.out += magazine.len().max(1);
        magazine
    }

    /// Takes in a magazine of `full` blocks, and returns the magazines that are too many now.
    fn put(&mut self, magazine: Magazine, full: usize) -> Vec<Magazine> {
        self.full.push(magazine);
        self.count_out(full, full)
    }

    /// So many blocks are no longer held by threads. Returns the magazines that are too many now.
    fn count_out(&mut self, blocks: usize, full: usize) -> Vec<Magazine> {
        self.out -= blocks;
        let most = SPARE + self.out / full;
        let excess = self.full.split_off(most.min(self.full.len()));
        if self.full.capacity() > 4 * most {
            self.full.shrink_to(2 * most);
        }
        excess
    }
}

impl Drop for Magazines {
    fn drop(&mut self) {
        for (size, mine) in self.0.iter().enumerate() {
            count_out(size, mine.len());
        }
    }
}
