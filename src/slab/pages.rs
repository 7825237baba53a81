//! Values that stay where they are, in pages that go when nothing is in them.
//!
//! State: a page is one block of memory, aligned to its size, so that a value's
//! address tells its page. Its header says which slots are free, and which
//! values are listed. All pages of one [`Pages`] share a list of those with a
//! free slot, under a lock that is held for a few steps.
//!
//! Invariants, under that lock:
//! 1. `open` holds the pages with a free slot; a page knows its place there.
//! 2. A page without a value goes, unless it is the only open one.
//! 3. A pair of index and generation is issued once: a slot counts up when its
//!    value goes, and is retired where that would wrap; a new page begins with
//!    `floor`, which is above all generations of the pages that went. Before
//!    that wears out, the generations begin again at numbers never used.

#![allow(unsafe_code)]

use std::alloc::{self, Layout};
use std::collections::BTreeMap;
use std::mem::{align_of, size_of};
use std::num::NonZeroU32;
use std::ptr::NonNull;

use super::Key;
use crate::sync::{Arc, Mutex, UnsafeCell};

/// Bytes of a page.
const PAGE: usize = 16 << 10;
const LAYOUT: Layout = match Layout::from_size_align(PAGE, PAGE) {
    Ok(layout) => layout,
    Err(_) => panic!("a page has a size"),
};
/// Indices that belong to a page; it has no more slots.
const INDICES: usize = 256;
const MOST_PAGES: u32 = u32::MAX / INDICES as u32;
/// A page freed with such a generation ends the use of all numbers so far.
const WORN: u32 = u32::MAX / 2;

/// One bit for each slot.
type Bits = [u64; INDICES / 64];

struct Header<S> {
    shared: Arc<Mutex<Shared<S>>>,
    number: u32,
    /// Under the lock.
    slots: UnsafeCell<Slots>,
}

struct Slots {
    used: u32,
    /// Where the page stands in `open`.
    place: u32,
    free: Bits,
    listed: Bits,
}

type Page<S> = NonNull<Header<S>>;

struct Shared<S> {
    pages: BTreeMap<u32, Page<S>>,
    open: Vec<Page<S>>,
    /// Pages below it are not made any more.
    base: u32,
    /// No page from here on was ever made.
    top: u32,
    floor: NonZeroU32,
    /// The `Pages` are gone.
    closed: bool,
}

// SAFETY: pages belong to whoever has the lock, and their values are `Send`.
unsafe impl<S: Send> Send for Shared<S> {}

/// Where the generations of the slots begin.
const fn generations<S>() -> usize {
    size_of::<Header<S>>().next_multiple_of(4)
}

/// How many slots a page has.
const fn slots<S>() -> usize {
    let room = PAGE - generations::<S>() - align_of::<S>();
    let slots = room / (size_of::<S>() + size_of::<NonZeroU32>());
    assert!(slots > 0 && align_of::<S>() <= PAGE / 4);
    if slots < INDICES { slots } else { INDICES }
}

/// Where the slots begin.
const fn start<S>() -> usize {
    let end = generations::<S>() + slots::<S>() * size_of::<NonZeroU32>();
    end.next_multiple_of(align_of::<S>())
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

/// # Safety
///
/// As of [`value_at`]; and the slot is not changed meanwhile.
unsafe fn generation_at<S>(page: Page<S>, slot: usize) -> NonNull<NonZeroU32> {
    // SAFETY: the generations of a page lie in its memory.
    unsafe {
        page.byte_add(generations::<S>())
            .cast::<NonZeroU32>()
            .add(slot)
    }
}

/// The key of a value.
///
/// # Safety
///
/// The value is in a page, and stays there.
pub(crate) unsafe fn key_of<S>(value: NonNull<S>) -> Key {
    let (page, slot) = (page_of(value), slot_of(value));
    // SAFETY: the page of a value is there; its number and the generation of a
    // slot in use do not change.
    unsafe {
        let number = (&raw const (*page.as_ptr()).number).read();
        Key {
            index: number * INDICES as u32 + slot as u32,
            generation: generation_at(page, slot).read(),
        }
    }
}

/// Drops a value where it is, and frees its slot.
///
/// # Safety
///
/// The value is in a page, and nobody refers to it any more.
pub(crate) unsafe fn remove<S>(value: NonNull<S>) {
    let (page, slot) = (page_of(value), slot_of(value));
    // SAFETY: by the caller's promise the value is ours; its page is there until
    // its slot is free, which is done under the lock of the pages.
    unsafe {
        value.drop_in_place();
        let shared = Arc::clone(&page.as_ref().shared);
        let gone = shared.lock().free(page, slot);
        if gone {
            free_page(page);
        }
    }
}

/// # Safety
///
/// No value is in it, and nobody knows it any more.
unsafe fn free_page<S>(page: Page<S>) {
    // SAFETY: the header was made with the page, which has this layout.
    unsafe {
        page.drop_in_place();
        alloc::dealloc(page.as_ptr().cast(), LAYOUT);
    }
}

/// The slots of a page.
///
/// # Safety
///
/// The page is there, and its `Pages` are locked.
unsafe fn with_slots<S, R>(page: Page<S>, f: impl FnOnce(&mut Slots) -> R) -> R {
    // SAFETY: by the caller's promise; nothing in here calls itself.
    unsafe { page.as_ref().slots.with_mut(|slots| f(&mut *slots)) }
}

fn bit(slot: usize) -> (usize, u64) {
    (slot / 64, 1 << (slot % 64))
}

impl<S> Shared<S> {
    /// Marks a slot free; true if its page is to be freed.
    ///
    /// # Safety
    ///
    /// The slot was in use, and its value is gone.
    unsafe fn free(&mut self, page: Page<S>, slot: usize) -> bool {
        // SAFETY: the lock is held; a page is there while a slot is in use.
        let generation = unsafe { generation_at(page, slot).as_mut() };
        let next = generation.checked_add(1);
        *generation = next.unwrap_or(*generation);
        let (word, mask) = bit(slot);
        let free = |slots: &mut Slots| {
            let was_open = slots.free != Bits::default();
            slots.listed[word] &= !mask;
            slots.used -= 1;
            if next.is_some() {
                slots.free[word] |= mask;
                if !was_open {
                    slots.place = self.open.len() as u32;
                    self.open.push(page);
                }
            }
            (slots.used == 0, slots.free != Bits::default())
        };
        // SAFETY: as above.
        let (empty, is_open) = unsafe { with_slots(page, free) };
        let goes = empty && (self.closed || !is_open || self.open.len() > 1);
        if goes {
            // SAFETY: as above.
            unsafe { self.forget(page, is_open) };
        }
        goes
    }

    /// # Safety
    ///
    /// The page is there, and has no value.
    unsafe fn forget(&mut self, page: Page<S>, is_open: bool) {
        // SAFETY: the lock is held, and open pages are there.
        unsafe {
            self.pages.remove(&page.as_ref().number);
            if is_open {
                let place = with_slots(page, |slots| slots.place);
                self.open.swap_remove(place as usize);
                if let Some(&moved) = self.open.get(place as usize) {
                    with_slots(moved, |slots| slots.place = place);
                }
            }
        }
        if self.open.capacity() > 64 && self.open.len() < self.open.capacity() / 4 {
            self.open.shrink_to(self.open.len() * 2);
        }
        for slot in 0..slots::<S>() {
            // SAFETY: as above.
            let last = unsafe { *generation_at(page, slot).as_ref() };
            self.floor = self.floor.max(last.saturating_add(1));
        }
        if self.floor.get() > WORN {
            (self.base, self.floor) = (self.top, NonZeroU32::MIN);
        }
    }

    fn new_page(&mut self, shared: &Arc<Mutex<Self>>) -> Page<S> {
        let last = self.pages.last_key_value();
        let number = last.map_or(self.base, |(&last, _)| self.base.max(last + 1));
        assert!(number < MOST_PAGES, "there are too many values");
        self.top = self.top.max(number + 1);
        let mut free = Bits::default();
        (0..slots::<S>())
            .map(bit)
            .for_each(|(word, mask)| free[word] |= mask);
        let header = Header {
            shared: Arc::clone(shared),
            number,
            slots: UnsafeCell::new(Slots {
                used: 0,
                place: self.open.len() as u32,
                free,
                listed: Bits::default(),
            }),
        };
        // SAFETY: the layout has a size; header and generations are written into
        // fresh memory that has room for them.
        let page = unsafe {
            let Some(page) = NonNull::new(alloc::alloc(LAYOUT).cast::<Header<S>>()) else {
                alloc::handle_alloc_error(LAYOUT)
            };
            page.write(header);
            for slot in 0..slots::<S>() {
                generation_at(page, slot).write(self.floor);
            }
            page
        };
        self.pages.insert(number, page);
        self.open.push(page);
        page
    }
}

/// Values in pages. See the [module](self).
pub(crate) struct Pages<S>(Arc<Mutex<Shared<S>>>);

impl<S> Pages<S> {
    /// No page.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Shared {
            pages: BTreeMap::new(),
            open: Vec::new(),
            base: 0,
            top: 0,
            floor: NonZeroU32::MIN,
            closed: false,
        })))
    }

    /// Puts a value into a free slot, and lists it.
    pub(crate) fn insert(&self, value: S) -> NonNull<S> {
        let mut shared = self.0.lock();
        let page = match shared.open.last() {
            Some(&page) => page,
            None => shared.new_page(&self.0),
        };
        let use_free = |slots: &mut Slots| {
            let word = slots.free.iter().position(|&word| word != 0);
            let word = word.expect("an open page has a free slot");
            let slot = word * 64 + slots.free[word].trailing_zeros() as usize;
            let (_, mask) = bit(slot);
            slots.free[word] &= !mask;
            slots.listed[word] |= mask;
            slots.used += 1;
            if slots.free == Bits::default() {
                shared.open.pop();
            }
            slot
        };
        // SAFETY: the lock is held, an open page is there, and its slot free.
        unsafe {
            let slot = with_slots(page, use_free);
            let place = value_at(page, slot);
            place.write(value);
            place
        }
    }

    /// Takes a value off the list; false if it was not on it.
    ///
    /// # Safety
    ///
    /// The value is in a page.
    pub(crate) unsafe fn unlist(&self, value: NonNull<S>) -> bool {
        // SAFETY: the page of a value is there.
        let own = unsafe { page_of(value).as_ref() };
        assert!(Arc::ptr_eq(&own.shared, &self.0), "a value of these pages");
        let _shared = self.0.lock();
        let (word, mask) = bit(slot_of(value));
        // SAFETY: the lock is held, and the page of a value is there.
        unsafe {
            with_slots(page_of(value), |slots| {
                let was = slots.listed[word] & mask != 0;
                slots.listed[word] &= !mask;
                was
            })
        }
    }

    /// The listed value with this key.
    pub(crate) fn get(&self, key: Key) -> Option<NonNull<S>> {
        let shared = self.0.lock();
        let page = *shared.pages.get(&(key.index / INDICES as u32))?;
        let slot = key.index as usize % INDICES;
        let (word, mask) = bit(slot);
        // SAFETY: the lock is held, and known pages are there, with these slots.
        unsafe {
            let listed = with_slots(page, |slots| slots.listed[word] & mask != 0);
            let same = listed && *generation_at(page, slot).as_ref() == key.generation;
            same.then(|| value_at(page, slot))
        }
    }

    /// All listed values, in the order of their indices.
    pub(crate) fn listed(&self) -> Vec<NonNull<S>> {
        let shared = self.0.lock();
        let mut all = Vec::new();
        for &page in shared.pages.values() {
            // SAFETY: as in `get`.
            let listed = unsafe { with_slots(page, |slots| slots.listed) };
            for slot in 0..slots::<S>() {
                let (word, mask) = bit(slot);
                if listed[word] & mask != 0 {
                    // SAFETY: as in `get`.
                    all.push(unsafe { value_at(page, slot) });
                }
            }
        }
        all
    }
}

impl<S> Drop for Pages<S> {
    fn drop(&mut self) {
        let mut shared = self.0.lock();
        shared.closed = true;
        // SAFETY: the lock is held, and pages that are known are there.
        let is_empty = |&&page: &&Page<S>| unsafe { with_slots(page, |slots| slots.used) } == 0;
        let empty = shared.open.iter().find(is_empty).copied();
        if let Some(page) = empty {
            // SAFETY: as above; it has no value, and is forgotten before it goes.
            unsafe {
                shared.forget(page, true);
                free_page(page);
            }
        }
    }
}
