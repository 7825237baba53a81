//! Slots behind copyable keys: a stale key never opens a slot again.
//!
//! State: slots are in chunks of [`CHUNK`]. A key's index is `place * CHUNK + slot`, where a place
//! is a position in the directory. Each chunk links its own free slots, last in, first out, so that
//! recently used slots are reused while they are in the cache.
//!
//! Invariants:
//! 1. A pair of index and generation is issued once. A slot increments its generation when its
//!    value leaves, and is retired at the last one. When a chunk is freed, the largest generation
//!    of its slots, which none of them has issued, becomes the `floor` of the next chunk at that
//!    place. A place whose floor is the last generation is used up.
//! 2. `open` lists the places of chunks with a free slot.
//! 3. At most one chunk is empty, and then it is at `spare`. So a value that comes and goes at the
//!    boundary of a chunk does not allocate each time.
//! 4. Every place below `vacant` has a chunk or is used up.
//! 5. Without a value nothing is allocated, except a chunk at the first place that can take one,
//!    and the directory up to the last worn place.
//!
//! Wear: places without a chunk at the end of the directory are forgotten, and the slab's `floor`
//! rises to at least theirs. Places at half of their generations or more are remembered, at 16
//! bytes each. So each of the 2^24 places lasts for 2^31 values or more.

use std::fmt;
use std::num::NonZeroU32;

use crate::shown::pad;

mod pages;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod tests;

pub(crate) use pages::{Pages, context_of, key_of, remove};

/// The index that no slot has.
pub const NO_INDEX: u32 = u32::MAX;
/// Slots in one chunk.
pub const CHUNK: usize = 256;

const SHIFT: u32 = CHUNK.trailing_zeros();
const MASK: u32 = CHUNK as u32 - 1;
/// How many places can be used; the last one is left out, for [`NO_INDEX`].
const PLACES: usize = (u32::MAX >> SHIFT) as usize;
const NO_SLOT: u16 = u16::MAX;
/// A place with this floor or a higher one is not forgotten; nor is the number of such a page.
const WORN: NonZeroU32 = NonZeroU32::new(u32::MAX / 2).unwrap();
/// Capacity that is not worth giving back while the slab is in use.
const SMALL: usize = 8;

/// Names one value of a [`Slab`], for as long as the value is in it.
///
/// Its `Debug` form is `index#generation`. `Option<Key>` is as small as `Key`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    index: u32,
    generation: NonZeroU32,
}

impl Key {
    /// The key as a number that is not 0.
    #[inline]
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation.get()) << 32 | u64::from(self.index)
    }

    /// The key that gave these bits; `None` if the upper half is 0, which no key gives.
    #[inline]
    pub fn from_bits(bits: u64) -> Option<Self> {
        let generation = NonZeroU32::new((bits >> 32) as u32)?;
        let index = bits as u32;
        Some(Self { index, generation })
    }

    /// The slot's number: dense, reused, never [`NO_INDEX`].
    #[inline]
    pub fn index(self) -> u32 {
        self.index
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        pad(f, format_args!("{}#{}", self.index, self.generation))
    }
}

/// As its `Debug` form.
#[cfg(feature = "serde")]
impl serde::Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{self:?}"))
    }
}

struct Slot<T> {
    value: Option<T>,
    /// The generation of the value here, or of the next one. The last generation is never issued.
    generation: NonZeroU32,
    /// The next free slot of the chunk, while this one is free.
    next: u16,
}

struct Place<T> {
    chunk: Option<Box<[Slot<T>; CHUNK]>>,
    /// The first generation of the chunk, or of the next one.
    floor: NonZeroU32,
    live: u16,
    first_free: u16,
}

impl<T> Place<T> {
    fn can_take_a_chunk(&self) -> bool {
        self.chunk.is_none() && self.floor < NonZeroU32::MAX
    }
}

/// Values in numbered slots, each addressed by a [`Key`] that no later value ever matches.
///
/// Inserting, looking up and removing are O(1) amortized, except that freeing a chunk searches the
/// list of chunks with a free slot. Chunks without a value are freed, all but one. At most `256 *
/// (2^24 - 1)` values fit. The slab never drops a value itself except when it is dropped.
pub struct Slab<T> {
    places: Vec<Place<T>>,
    open: Vec<u32>,
    vacant: usize,
    spare: usize,
    /// The first generation at places that are not in the directory.
    floor: NonZeroU32,
    len: usize,
}

impl<T> Slab<T> {
    /// An empty slab; allocates nothing.
    pub const fn new() -> Self {
        Slab {
            places: Vec::new(),
            open: Vec::new(),
            vacant: 0,
            spare: 0,
            floor: NonZeroU32::MIN,
            len: 0,
        }
    }

    /// How many values there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Puts a value into a free slot.
    ///
    /// # Panics
    ///
    /// If no slot is left: all are in use, or retired because their generations ran out.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> Key {
        let number = match self.open.last() {
            Some(&number) => number,
            None => self.new_chunk(),
        };
        let place = &mut self.places[number as usize];
        let chunk = place.chunk.as_mut().expect("an open place has a chunk");
        let at = place.first_free;
        let slot = &mut chunk[at as usize];
        let key = Key {
            index: number << SHIFT | u32::from(at),
            generation: slot.generation,
        };
        std::mem::forget(slot.value.replace(value)); // There was none to drop.
        place.first_free = slot.next;
        place.live += 1;
        self.len += 1;
        if place.first_free == NO_SLOT {
            self.open.pop().expect("the place was open");
        }
        key
    }

    /// Takes a value out; `None` if the key is stale.
    #[inline(always)]
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.remove_if(key, |_| true)
    }

    /// As [`remove`](Self::remove), but takes nothing out unless `is_meant` returns true.
    #[inline(always)]
    pub fn remove_if(&mut self, key: Key, is_meant: impl FnOnce(&T) -> bool) -> Option<T> {
        let (number, at) = (key.index >> SHIFT, (key.index & MASK) as u16);
        let place = self.places.get_mut(number as usize)?;
        let slot = &mut place.chunk.as_mut()?[at as usize];
        if slot.generation != key.generation {
            return None;
        }
        let taken = slot.value.take_if(|value| is_meant(value))?;
        slot.generation = slot.generation.saturating_add(1);
        if slot.generation < NonZeroU32::MAX {
            if place.first_free == NO_SLOT {
                self.open.push(number);
            }
            slot.next = place.first_free;
            place.first_free = at;
        }
        (place.live, self.len) = (place.live - 1, self.len - 1);
        if place.live == 0 {
            self.emptied(number as usize);
        }
        Some(taken)
    }

    /// The value that `key` names, if it is still there.
    #[inline]
    pub fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slot(key.index)?;
        slot.value
            .as_ref()
            .filter(|_| slot.generation == key.generation)
    }

    /// As [`get`](Self::get), but mutable.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let (there, value) = self.entry_at(key.index)?;
        (there == key).then_some(value)
    }

    /// The value in a slot, of any generation: for callers that know that the slot is pinned.
    #[inline]
    pub fn by_index(&self, index: u32) -> Option<&T> {
        self.slot(index)?.value.as_ref()
    }

    /// As [`by_index`](Self::by_index), but mutable.
    #[inline]
    pub fn by_index_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slot_mut(index)?.value.as_mut()
    }

    /// The key of the value in a slot, if the slot has one.
    #[inline]
    pub fn key_at(&self, index: u32) -> Option<Key> {
        let slot = self.slot(index)?;
        let generation = slot.generation;
        slot.value.as_ref().map(|_| Key { index, generation })
    }

    /// The key of the value in a slot, and the value, mutable.
    #[inline]
    pub fn entry_at(&mut self, index: u32) -> Option<(Key, &mut T)> {
        let slot = self.slot_mut(index)?;
        let generation = slot.generation;
        Some((Key { index, generation }, slot.value.as_mut()?))
    }

    /// All values with their keys, in ascending order of index. Visits every slot of every chunk.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        let chunks = (0u32..).step_by(CHUNK).zip(&self.places);
        chunks.flat_map(|(first, place)| {
            let slots = (first..).zip(place.chunk.iter().flat_map(|chunk| chunk.iter()));
            slots.filter_map(|(index, slot)| {
                #[cfg(all(test, not(any(loom, shuttle))))]
                tests::visited();
                let generation = slot.generation;
                Some((Key { index, generation }, slot.value.as_ref()?))
            })
        })
    }

    /// The bytes of heap memory that the slab itself holds, without what the values own.
    #[cfg(test)]
    pub fn heap_bytes(&self) -> usize {
        let chunks = self.places.iter().filter(|place| place.chunk.is_some());
        chunks.count() * size_of::<[Slot<T>; CHUNK]>()
            + self.places.capacity() * size_of::<Place<T>>()
            + self.open.capacity() * size_of::<u32>()
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        let chunk = &self.places.get((index >> SHIFT) as usize)?.chunk;
        Some(&chunk.as_ref()?[(index & MASK) as usize])
    }

    #[inline]
    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<T>> {
        let chunk = &mut self.places.get_mut((index >> SHIFT) as usize)?.chunk;
        Some(&mut chunk.as_mut()?[(index & MASK) as usize])
    }

    /// Makes a chunk at the first place that can take one.
    #[cold]
    fn new_chunk(&mut self) -> u32 {
        let found = (self.vacant..self.places.len()).find(|&n| self.places[n].can_take_a_chunk());
        let number = found.unwrap_or(self.places.len());
        if number == self.places.len() {
            assert!(number < PLACES, "the slab has no slot left");
            self.places.push(Place {
                chunk: None,
                floor: self.floor,
                live: 0,
                first_free: 0,
            });
        }
        (self.vacant, self.spare) = (number + 1, number);
        let place = &mut self.places[number];
        let generation = place.floor;
        let slots: Box<[Slot<T>]> = (1..=CHUNK as u16)
            .map(|next| Slot {
                value: None,
                generation,
                next: if next < CHUNK as u16 { next } else { NO_SLOT },
            })
            .collect();
        place.chunk = slots.try_into().ok();
        place.first_free = 0;
        self.open.push(number as u32);
        number as u32
    }

    /// A chunk has lost its last value. It becomes the spare, or it or the spare is freed.
    #[cold]
    fn emptied(&mut self, number: usize) {
        if self.places[number].first_free == NO_SLOT {
            self.free_chunk(number);
        } else if self.spare != number && self.is_spare(self.spare) {
            // The lower one stays, so that the directory can shrink.
            self.free_chunk(number.max(self.spare));
            self.spare = number.min(self.spare);
        } else {
            self.spare = number;
        }
        if self.len == 0 && self.vacant < self.spare && self.is_spare(self.spare) {
            self.free_chunk(self.spare);
        }
        self.trim();
    }

    fn is_spare(&self, number: usize) -> bool {
        let place = self.places.get(number);
        place.is_some_and(|place| place.chunk.is_some() && place.live == 0)
    }

    /// Frees a chunk that is empty.
    fn free_chunk(&mut self, number: usize) {
        let open = self.open.iter().position(|&open| open == number as u32);
        open.map(|at| self.open.swap_remove(at));
        let place = &mut self.places[number];
        let chunk = place.chunk.take();
        let slots = chunk.iter().flat_map(|chunk| chunk.iter());
        place.floor = slots.fold(place.floor, |most, slot| most.max(slot.generation));
        self.vacant = self.vacant.min(number);
    }

    /// Gives back the end of the directory that holds no chunk.
    fn trim(&mut self) {
        while let Some(last) = self.places.last()
            && last.chunk.is_none()
            && last.floor < WORN
        {
            self.floor = self.floor.max(last.floor);
            self.places.pop();
        }
        self.vacant = self.vacant.min(self.places.len());
        let keep = match self.len {
            0 => self.places.len(),
            _ => 2 * self.places.len() + SMALL,
        };
        if self.places.capacity() > 2 * keep {
            self.places.shrink_to(keep);
            self.open.shrink_to(keep);
        }
    }
}

/// Gives memory back if most of it is not used: for a list that has become shorter. It keeps room
/// for `least`.
pub(crate) fn shrink<T>(list: &mut Vec<T>, least: usize) {
    if let Some(room) = less_room(list.len(), list.capacity(), least) {
        list.shrink_to(room);
    }
}

/// How much room such a list keeps, if it is to give any back.
#[inline]
pub(crate) fn less_room(len: usize, capacity: usize, least: usize) -> Option<usize> {
    let room = least.max(2 * len);
    (capacity > 2 * room).then_some(room)
}

impl<T: fmt::Debug> fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
