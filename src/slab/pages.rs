//! Values that never move, in pages that are freed when they are empty.
//!
//! State: a page is one block of memory, aligned to its size, so that a value's address gives its
//! page. The page's header says which slots are free, and which values are listed. All pages of one
//! [`Pages`] share a list of the pages with a free slot, under a lock that is held for a few steps.
//!
//! Invariants, under that lock:
//! 1. `pages` holds all pages, and `open` those with a free slot, by number.
//! 2. A page without a value is freed, unless it is the only open one and comes before all gaps.
//! 3. `gaps` has the numbers below `top` that no page has and that are not used up. If the last
//!    number below `top` is among them, it is worn. A new page takes the first gap, or else `top`.
//! 4. A pair of index and generation is issued once. A slot increments its generation when its
//!    value goes, and is retired where that would wrap. When a page is freed, the largest of its
//!    generations becomes the first of the next page with its number: it stands in `gaps`, or the
//!    number is from `top` on, and `floor` is at least as high. A number whose first generation
//!    would be the last one is used up.
//! 5. The generation of a slot in use does not change.
//!
//! Wear: a number that has used half of its generations stays in `gaps`, and so do the gaps below
//! it. So `floor` leaves the other half to all numbers from `top` on: each of the 2^25 numbers
//! lasts for 2^31 values or more.

#![allow(unsafe_code)]

use std::alloc::{self, Layout};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::mem::{align_of, size_of};
use std::num::NonZeroU32;
use std::ptr::NonNull;

use super::{Key, WORN};
use crate::sync::{Arc, Mutex};

/// Bytes of a page.
const PAGE: usize = 8 << 10;
const LAYOUT: Layout = match Layout::from_size_align(PAGE, PAGE) {
    Ok(layout) => layout,
    Err(_) => panic!("a page has a size"),
};
/// How many indices belong to a page; a page has no more slots than that.
const INDICES: usize = Bits::BITS as usize;
const MOST_PAGES: u32 = u32::MAX / INDICES as u32;

/// One bit for each slot.
type Bits = u128;

/// The head of a page. Its cells change under the lock.
struct Header<S> {
    shared: Arc<Mutex<Shared<S>>>,
    /// What the owner of the values wants to find from any of them.
    context: *const (),
    number: u32,
    /// For each slot: the generation of its value, or of the next one.
    generations: [Cell<NonZeroU32>; INDICES],
    used: Cell<Bits>,
    free: Cell<Bits>,
    listed: Cell<Bits>,
}

type Page<S> = NonNull<Header<S>>;

struct Shared<S> {
    pages: BTreeMap<u32, Page<S>>,
    open: BTreeMap<u32, Page<S>>,
    /// No page has this number or a higher one.
    top: u32,
    /// With the first generation of the next page of each.
    gaps: BTreeMap<u32, NonZeroU32>,
    /// The first generation of a page with a number from `top` on.
    floor: NonZeroU32,
    /// The `Pages` were dropped.
    closed: bool,
}

// SAFETY: pages belong to whoever has the lock, and their values are `Send`.
unsafe impl<S: Send> Send for Shared<S> {}

/// The offset of the first slot.
const fn start<S>() -> usize {
    assert!(align_of::<S>() <= PAGE / 4);
    size_of::<Header<S>>().next_multiple_of(align_of::<S>())
}

/// How many slots a page has.
const fn slots<S>() -> usize {
    let slots = (PAGE - start::<S>()) / size_of::<S>();
    assert!(slots > 0);
    if slots < INDICES { slots } else { INDICES }
}

fn page_of<S>(value: NonNull<S>) -> Page<S> {
    let page = value.as_ptr().map_addr(|at| at & !(PAGE - 1));
    // SAFETY: pages do not lie at address 0.
    unsafe { NonNull::new_unchecked(page.cast()) }
}

fn slot_of<S>(value: NonNull<S>) -> usize {
    ((value.addr().get() & (PAGE - 1)) - start::<S>()) / size_of::<S>()
}

/// # Safety
///
/// The page is there, and has such a slot.
unsafe fn value_at<S>(page: Page<S>, slot: usize) -> NonNull<S> {
    // SAFETY: the slots of a page lie in its memory.
    unsafe { page.byte_add(start::<S>()).cast::<S>().add(slot) }
}

/// The key of a value.
///
/// # Safety
///
/// The value is in a page, and stays there.
pub(crate) unsafe fn key_of<S>(value: NonNull<S>) -> Key {
    // SAFETY: the page of a value is there.
    let page = unsafe { page_of(value).as_ref() };
    let slot = slot_of(value);
    Key {
        index: page.number * INDICES as u32 + slot as u32,
        // Without the lock, by invariant 5.
        generation: page.generations[slot].get(),
    }
}

/// The context that was given with the first value of this value's page.
///
/// # Safety
///
/// The value is in a page.
#[inline]
pub(crate) unsafe fn context_of<S>(value: NonNull<S>) -> *const () {
    // SAFETY: the page of a value is there.
    unsafe { page_of(value).as_ref().context }
}

/// Drops a value in place, and frees its slot.
///
/// # Safety
///
/// The value is in a page, and nobody refers to it any more.
pub(crate) unsafe fn remove<S>(value: NonNull<S>) {
    let page = page_of(value);
    // SAFETY: by the caller's promise the value is ours; its page is there until
    // its slot is free, which is done under the lock of the pages.
    unsafe {
        value.drop_in_place();
        let shared = Arc::clone(&page.as_ref().shared);
        shared.lock().free(page, slot_of(value));
    }
}

impl<S> Shared<S> {
    /// Marks a slot free; then its page may be freed, by invariant 2.
    ///
    /// # Safety
    ///
    /// The slot was in use, and its value is gone.
    unsafe fn free(&mut self, page: Page<S>, slot: usize) {
        // SAFETY: a page is there while a slot is in use.
        let header = unsafe { page.as_ref() };
        let (generation, mask) = (&header.generations[slot], 1 << slot);
        let next = generation.get().checked_add(1);
        generation.set(next.unwrap_or(NonZeroU32::MAX));
        header.listed.set(header.listed.get() & !mask);
        header.used.set(header.used.get() & !mask);
        if next.is_some() {
            if header.free.get() == 0 {
                self.open.insert(header.number, page);
            }
            header.free.set(header.free.get() | mask);
        }
        let gap = self.gaps.first_key_value();
        let is_lowest = gap.is_none_or(|(&gap, _)| header.number < gap);
        let is_spare = header.free.get() != 0 && self.open.len() == 1 && is_lowest;
        if header.used.get() == 0 && (self.closed || !is_spare) {
            // SAFETY: as above.
            unsafe { self.free_page(page) };
        }
    }

    /// # Safety
    ///
    /// The page is there, and has no value.
    unsafe fn free_page(&mut self, page: Page<S>) {
        // SAFETY: by the caller's promise.
        let header = unsafe { page.as_ref() };
        let number = header.number;
        self.open.remove(&number);
        self.pages.remove(&number);
        let generations = header.generations.iter().map(Cell::get);
        let first = generations.fold(NonZeroU32::MIN, NonZeroU32::max);
        if first < NonZeroU32::MAX {
            self.gaps.insert(number, first);
        }
        // SAFETY: nobody knows the page any more. The header was made with it.
        unsafe {
            page.drop_in_place();
            alloc::dealloc(page.as_ptr().cast(), LAYOUT);
        }
        while let Some(last) = self.gaps.last_entry()
            && *last.key() + 1 == self.top
            && *last.get() < WORN
        {
            self.floor = self.floor.max(last.remove());
            self.top -= 1;
        }
    }

    /// The listed value with this key.
    fn get(&self, key: Key) -> Option<NonNull<S>> {
        let page = *self.pages.get(&(key.index / INDICES as u32))?;
        let slot = key.index as usize % INDICES;
        // SAFETY: the lock is held, and known pages are there.
        let header = unsafe { page.as_ref() };
        let listed = header.listed.get() >> slot & 1 != 0;
        let same = listed && header.generations[slot].get() == key.generation;
        // SAFETY: as above, and what is listed is in a slot.
        same.then(|| unsafe { value_at(page, slot) })
    }

    fn new_page(&mut self, shared: &Arc<Mutex<Self>>, context: *const ()) -> Page<S> {
        let gap = self.gaps.pop_first();
        let (number, first) = gap.unwrap_or((self.top, self.floor));
        assert!(number < MOST_PAGES, "there are too many values");
        self.top = self.top.max(number + 1);
        let header = Header {
            shared: Arc::clone(shared),
            context,
            number,
            generations: std::array::from_fn(|_| Cell::new(first)),
            used: Cell::new(0),
            free: Cell::new(Bits::MAX >> (INDICES - slots::<S>())),
            listed: Cell::new(0),
        };
        // SAFETY: the layout has a size; the header is written into fresh memory
        // that has room for it.
        let page = unsafe {
            let Some(page) = NonNull::new(alloc::alloc(LAYOUT).cast::<Header<S>>()) else {
                alloc::handle_alloc_error(LAYOUT)
            };
            page.write(header);
            page
        };
        self.pages.insert(number, page);
        self.open.insert(number, page);
        page
    }
}

/// Values in pages.
pub(crate) struct Pages<S>(Arc<Mutex<Shared<S>>>);

impl<S> Pages<S> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Shared {
            pages: BTreeMap::new(),
            open: BTreeMap::new(),
            top: 0,
            gaps: BTreeMap::new(),
            floor: NonZeroU32::MIN,
            closed: false,
        })))
    }

    /// Makes pages at the end begin with this generation.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn wear_out(&self, floor: NonZeroU32) {
        self.0.lock().floor = floor;
    }

    /// Puts a value into a free slot of the first open page, and lists it. A new page gets this
    /// context.
    pub(crate) fn insert(&self, value: S, context: *const ()) -> NonNull<S> {
        let mut shared = self.0.lock();
        let page = match shared.open.first_key_value() {
            Some((_, &page)) => page,
            None => shared.new_page(&self.0, context),
        };
        // SAFETY: the lock is held, and an open page is there.
        let header = unsafe { page.as_ref() };
        let slot = header.free.get().trailing_zeros();
        let mask = 1 << slot;
        header.free.set(header.free.get() & !mask);
        header.used.set(header.used.get() | mask);
        header.listed.set(header.listed.get() | mask);
        if header.free.get() == 0 {
            shared.open.pop_first();
        }
        // SAFETY: as above, and its slot was free.
        unsafe {
            let place = value_at(page, slot as usize);
            place.write(value);
            place
        }
    }

    /// Removes a value from the list; false if it was not listed.
    ///
    /// # Safety
    ///
    /// The value is in a page.
    pub(crate) unsafe fn unlist(&self, value: NonNull<S>) -> bool {
        let mask = 1 << slot_of(value);
        // SAFETY: the page of a value is there.
        let header = unsafe { page_of(value).as_ref() };
        assert!(
            Arc::ptr_eq(&header.shared, &self.0),
            "a value of these pages"
        );
        let _shared = self.0.lock();
        let listed = header.listed.get();
        header.listed.set(listed & !mask);
        listed & mask != 0
    }

    /// What `f` gives for the listed value with this key, which stays listed meanwhile. The lock is
    /// held: `f` must not wait, and must not use the pages.
    pub(crate) fn with<R>(&self, key: Key, f: impl FnOnce(NonNull<S>) -> R) -> Option<R> {
        let shared = self.0.lock();
        shared.get(key).map(f)
    }

    /// The listed values from this index on, in the order of their indices: at least `most`, if
    /// there are as many, and less than a page more.
    pub(crate) fn listed(&self, first: u32, most: usize) -> Vec<NonNull<S>> {
        let shared = self.0.lock();
        let mut found = Vec::new();
        for (&number, &page) in shared.pages.range(first / INDICES as u32..) {
            if found.len() >= most {
                break;
            }
            // SAFETY: as in `get`.
            let listed = unsafe { page.as_ref() }.listed.get();
            let from = first.saturating_sub(number * INDICES as u32) as usize;
            let slots = (from..INDICES).filter(|slot| listed >> slot & 1 != 0);
            // SAFETY: as in `get`.
            found.extend(slots.map(|slot| unsafe { value_at(page, slot) }));
        }
        found
    }
}

impl<S> Drop for Pages<S> {
    fn drop(&mut self) {
        let mut shared = self.0.lock();
        shared.closed = true;
        // SAFETY: the lock is held, and known pages are there.
        let is_empty = |page: &&Page<S>| unsafe { page.as_ref() }.used.get() == 0;
        if let Some(&page) = shared.open.values().find(is_empty) {
            // SAFETY: as above; it has no value.
            unsafe { shared.free_page(page) };
        }
    }
}
