//! How many bytes of heap the calling thread holds, for tests that memory is given back. This is
//! the allocator of the crate's own test binary; safe code cannot ask a library for the number.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

pub(crate) fn held_by_this_thread() -> isize {
    HELD.with(Cell::get)
}

std::thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

struct Counted;

#[global_allocator]
static COUNTED: Counted = Counted;

fn add(bytes: isize) {
    // Constant and without drop: using it allocates nothing.
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
}

// SAFETY: every call goes to `System` unchanged; counting neither allocates nor
// unwinds. (`alloc_zeroed` and `realloc` are the default ones, over these.)
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller's contract is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: the block came from `System` in `alloc`.
        unsafe { System.dealloc(block, layout) }
    }
}
