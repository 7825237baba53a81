//! Memory for blocks, so that the allocator is hardly ever asked.
//!
//! A block is needed by the thread that sends, and free again in the thread that
//! reads. So each thread has up to two magazines of each size in one array, and full
//! ones go from thread to thread by a depot: 32 blocks, or 4 large ones, with one lock.
//!
//! A magazine is an array of pointers: a block that another processor has used is
//! not touched before there is something to write into it.
//!
//! Invariant: `out` is the number of blocks that threads have, in use or in their
//! magazines.
//!
//! Bounds: the depot of a size holds as many as threads have, and 8 magazines more; a
//! thread has at most two full ones of each size, until it ends. So a burst is given back.
//!
//! Source: J. Bonwick and J. Adams, "Magazines and Vmem", USENIX 2001.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use crate::sync::{UnmodelledMutex, unmodelled_per_thread};

/// Full magazines that are kept though nobody has a block.
const SPARE: usize = 8;

/// Memory for a first block.
#[repr(align(16))]
pub(super) struct Tiny(#[expect(dead_code)] [u8; 32]);

/// Memory for the largest block that an idle group keeps.
#[repr(align(16))]
pub(super) struct Small(#[expect(dead_code)] [u8; 64]);

/// Memory for a further block.
#[repr(align(16))]
pub(super) struct Medium(#[expect(dead_code)] [u8; 208]);

/// Memory for a block behind many others.
#[repr(align(16))]
pub(super) struct Large(#[expect(dead_code)] [u8; 1552]);

type Magazine<B> = Vec<Box<MaybeUninit<B>>>;

/// Full magazines, for all threads.
pub(super) struct Depot<B> {
    pub(super) full: Vec<Magazine<B>>,
    pub(super) out: usize,
}

/// Of one thread.
pub(super) struct Magazines<B: Pooled>(Magazine<B>);

/// Memory that comes from magazines.
pub(super) trait Pooled: Sized + 'static {
    /// Blocks of a full magazine.
    const FULL: usize;

    fn depot() -> &'static UnmodelledMutex<Depot<Self>>;

    /// With this thread's; while the thread ends, with new ones for the moment.
    fn with_magazines<R>(f: impl FnOnce(&mut Magazines<Self>) -> R) -> R;
}

macro_rules! pooled {
    ($size:ident, $full:expr) => {
        impl Pooled for $size {
            const FULL: usize = $full;

            fn depot() -> &'static UnmodelledMutex<Depot<Self>> {
                static DEPOT: UnmodelledMutex<Depot<$size>> = UnmodelledMutex::new(Depot::NEW);
                &DEPOT
            }

            #[inline]
            fn with_magazines<R>(f: impl FnOnce(&mut Magazines<Self>) -> R) -> R {
                unmodelled_per_thread! {
                    static MINE: RefCell<Magazines<$size>> = const { RefCell::new(Magazines::NEW) };
                }
                let mut f = Some(f);
                let mut once = |mine: &mut Magazines<$size>| f.take().map(|f| f(mine));
                let done = MINE.try_with(|mine| once(&mut mine.borrow_mut()));
                let done = done.unwrap_or_else(|_| once(&mut { Magazines::NEW }));
                done.expect("it is called once")
            }
        }
    };
}

pooled!(Tiny, 32);
pooled!(Small, 32);
pooled!(Medium, 32);
pooled!(Large, 4);
#[cfg(all(test, not(any(loom, shuttle))))]
pub(super) use pooled;

/// Memory for a block.
#[inline]
pub(super) fn get<B: Pooled>() -> Box<MaybeUninit<B>> {
    let old = B::with_magazines(|mine| mine.0.pop().or_else(|| mine.reload()));
    old.unwrap_or_else(Box::new_uninit)
}

/// Gives memory back.
#[inline]
pub(super) fn put<B: Pooled>(memory: Box<MaybeUninit<B>>) {
    B::with_magazines(|mine| {
        if mine.0.len() == 2 * B::FULL {
            mine.unload();
        }
        mine.0.push(memory);
    });
}

impl<B: Pooled> Depot<B> {
    pub(super) const NEW: Self = Self {
        full: Vec::new(),
        out: 0,
    };

    /// A full magazine, or nothing: then one block is to be made.
    fn take(&mut self) -> Magazine<B> {
        let magazine = self.full.pop().unwrap_or_default();
        self.out += magazine.len().max(1);
        magazine
    }

    /// Takes a full magazine in, and gives out what is too much now.
    fn put(&mut self, magazine: Magazine<B>) -> Vec<Magazine<B>> {
        self.out -= magazine.len();
        self.full.push(magazine);
        let most = SPARE + self.out / B::FULL;
        let excess = self.full.split_off(most.min(self.full.len()));
        if self.full.capacity() > 4 * most {
            self.full.shrink_to(2 * most);
        }
        excess
    }
}

impl<B: Pooled> Magazines<B> {
    pub(super) const NEW: Self = Self(Vec::new());

    #[cold]
    #[inline(never)]
    fn reload(&mut self) -> Option<Box<MaybeUninit<B>>> {
        let mut more = B::depot().lock().take();
        self.0.append(&mut more);
        self.0.pop()
    }

    #[cold]
    #[inline(never)]
    fn unload(&mut self) {
        let full = self.0.split_off(B::FULL);
        let excess = B::depot().lock().put(full);
        drop(excess);
    }
}

impl<B: Pooled> Drop for Magazines<B> {
    fn drop(&mut self) {
        B::depot().lock().out -= self.0.len();
    }
}
