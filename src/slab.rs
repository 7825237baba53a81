//! Slots behind copyable keys that a stale key never opens again.
//!
//! # State
//!
//! Slots stand in chunks of [`CHUNK`]; a key's index is `place * CHUNK + slot`, where a place is a
//! position in the directory. Every chunk threads its own free slots. One list links, through the
//! directory, all places that can take a value: chunks with a free slot at its front, vacant places
//! at its back. One empty chunk is kept aside as a spare, so that a value which comes and goes at
//! the edge of a chunk does not allocate each time.
//!
//! # Invariants
//!
//! 1. A pair of index and generation is issued once. A slot counts its generation up when its value
//!    leaves and is retired where that would wrap; a new chunk starts at `floor`, which lies above
//!    every generation of every chunk freed before it.
//! 2. A place is linked exactly if it is a chunk with a free slot and at least one value, or vacant
//!    and at or above `base`.
//! 3. At most one chunk is empty: the spare. It has a free slot and is not linked.
//! 4. Without a value, nothing is allocated but a chunk at the first place.
//!
//! # Wear
//!
//! Free slots are taken last in, first out, which keeps them warm; but every 65,536th generation a
//! slot goes to the end of its chunk's list, so the slots of a busy chunk wear evenly and its
//! generations last for about 2^40 values. A chunk that is freed when more than half of them are
//! used up would push `floor` towards the end; instead all places used so far are given up and the
//! generations begin again at places never used (`base`).

use std::fmt;
use std::num::NonZeroU32;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// Slots in one chunk.
pub const CHUNK: usize = 256;

const SHIFT: u32 = CHUNK.trailing_zeros();
const MASK: u32 = CHUNK as u32 - 1;
/// Places that can be used; the last one is left out, so that no index is `u32::MAX`.
const PLACES: u32 = u32::MAX >> SHIFT;
const NONE: u32 = u32::MAX;
const NO_SLOT: u16 = u16::MAX;
/// Generations between two moves of a slot to the end of its chunk's free list.
const WARM: u32 = 1 << 16;
/// A chunk freed with a generation at or above this one ends the use of all places so far.
const WORN: u32 = u32::MAX / 2;

/// Names one value of a [`Slab`], for as long as the value is in it.
///
/// Its `Debug` form is `index#generation`. `Option<Key>` is as small as `Key`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    index: u32,
    generation: NonZeroU32,
}

impl Key {
    /// The slot's number: dense, reused, never `u32::MAX`.
    #[inline]
    pub fn index(self) -> u32 {
        self.index
    }

    /// Tells apart the values that use one slot in turn; never 0.
    #[inline]
    pub fn generation(self) -> u32 {
        self.generation.get()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.index, self.generation)
    }
}

struct Slot<T> {
    value: Option<T>,
    /// Of the value that is here, or of the next one.
    generation: NonZeroU32,
    /// The next free slot of the chunk, while this one is free.
    next: u16,
}

enum Body<T> {
    Chunk(Box<[Slot<T>; CHUNK]>),
    /// No chunk; can take one.
    Vacant,
    /// No chunk, and never one again.
    GivenUp,
}

struct Place<T> {
    body: Body<T>,
    prev: u32,
    next: u32,
    /// The chunk's largest generation issued, or 0.
    highest: u32,
    live: u16,
    first_free: u16,
    last_free: u16,
}

/// Values in numbered slots, each addressed by a [`Key`] that no later value ever matches.
///
/// Inserting, looking up and removing are O(1) amortised. Chunks without a value are freed, all but
/// one; an empty slab holds at most one chunk of memory. At most `256 * (2^24 - 1)` values fit.
/// The slab never drops a value itself except when it is dropped.
pub struct Slab<T> {
    places: Vec<Place<T>>,
    /// The number of the first entry of `places`; moves only while there is none.
    first: u32,
    /// Places below this one take no new chunk.
    base: u32,
    /// No place at or above this one was ever used.
    top: u32,
    /// The first generation of the next new chunk.
    floor: NonZeroU32,
    head: u32,
    tail: u32,
    spare: u32,
    chunks: u32,
    len: usize,
}

impl<T> Slab<T> {
    /// An empty slab; allocates nothing.
    pub const fn new() -> Self {
        Self::starting_at(0, NonZeroU32::MIN)
    }

    /// An empty slab whose first chunk stands at `place` and begins with `generation`.
    const fn starting_at(place: u32, generation: NonZeroU32) -> Self {
        Slab {
            places: Vec::new(),
            first: place,
            base: place,
            top: place,
            floor: generation,
            head: NONE,
            tail: NONE,
            spare: NONE,
            chunks: 0,
            len: 0,
        }
    }

    /// The number of values.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no value.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts a value into a free slot.
    ///
    /// # Panics
    ///
    /// If no slot is left, see [`try_insert`](Self::try_insert).
    #[inline]
    pub fn insert(&mut self, value: T) -> Key {
        match self.try_insert(value) {
            Ok(key) => key,
            Err(_) => panic!("the slab has no slot left"),
        }
    }

    /// Puts in a value that knows its key.
    ///
    /// # Panics
    ///
    /// If no slot is left, see [`try_insert`](Self::try_insert).
    pub fn insert_with(&mut self, value: impl FnOnce(Key) -> T) -> Key {
        let mut value = Some(value);
        let make = |key| value.take().map(|value| value(key));
        match self.try_insert_with(make) {
            Some(key) => key,
            None => panic!("the slab has no slot left"),
        }
    }

    /// Puts a value into a free slot.
    ///
    /// # Errors
    ///
    /// The value, if no slot is left: `256 * (2^24 - 1)` values are there, or that many slots are in
    /// use or given up because their generations ran out (which takes more than 2^39 values each
    /// time).
    #[inline]
    pub fn try_insert(&mut self, value: T) -> Result<Key, T> {
        let mut value = Some(value);
        let key = self.try_insert_with(|_| value.take());
        match (key, value) {
            (Some(key), _) => Ok(key),
            (None, Some(value)) => Err(value),
            (None, None) => unreachable!("a value is put in or comes back"),
        }
    }

    #[inline]
    fn try_insert_with(&mut self, make: impl FnOnce(Key) -> Option<T>) -> Option<Key> {
        let number = self.place_with_room()?;
        let place = &mut self.places[(number - self.first) as usize];
        let Body::Chunk(slots) = &mut place.body else {
            unreachable!("a place with room is a chunk");
        };
        let at = place.first_free;
        let slot = &mut slots[at as usize];
        let key = Key {
            index: number << SHIFT | u32::from(at),
            generation: slot.generation,
        };
        slot.value = make(key);
        place.first_free = slot.next;
        place.live += 1;
        place.highest = place.highest.max(slot.generation.get());
        self.len += 1;
        if place.first_free == NO_SLOT {
            place.last_free = NO_SLOT;
            self.unlink(number);
        }
        Some(key)
    }

    /// Takes a value out, or nothing if the key is stale.
    #[inline]
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let number = key.index >> SHIFT;
        let at = (key.index & MASK) as u16;
        let place = self
            .places
            .get_mut(number.wrapping_sub(self.first) as usize)?;
        let Body::Chunk(slots) = &mut place.body else {
            return None;
        };
        let slot = &mut slots[at as usize];
        if slot.generation != key.generation {
            return None;
        }
        let value = slot.value.take()?;
        let was_full = place.first_free == NO_SLOT;
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            place.free(at);
        }
        place.live -= 1;
        self.len -= 1;
        let (live, full) = (place.live, place.first_free == NO_SLOT);
        if was_full && !full {
            self.link_front(number);
        }
        if live == 0 {
            self.emptied(number, full);
        }
        Some(value)
    }

    /// The value that `key` names, if it is still there.
    #[inline]
    pub fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slot(key.index)?;
        if slot.generation == key.generation {
            slot.value.as_ref()
        } else {
            None
        }
    }

    /// The value that `key` names, if it is still there.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slot_mut(key.index)?;
        if slot.generation == key.generation {
            slot.value.as_mut()
        } else {
            None
        }
    }

    /// Whether the value that `key` names is still there.
    #[inline]
    pub fn contains(&self, key: Key) -> bool {
        self.get(key).is_some()
    }

    /// The value in a slot, whatever its generation: for callers that know the slot to be pinned.
    #[inline]
    pub fn by_index(&self, index: u32) -> Option<&T> {
        self.slot(index)?.value.as_ref()
    }

    /// The value in a slot, whatever its generation: for callers that know the slot to be pinned.
    #[inline]
    pub fn by_index_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slot_mut(index)?.value.as_mut()
    }

    /// The key of the value in a slot, if one is there.
    #[inline]
    pub fn key_at(&self, index: u32) -> Option<Key> {
        let slot = self.slot(index)?;
        slot.value.is_some().then_some(Key {
            index,
            generation: slot.generation,
        })
    }

    /// The key of the value in a slot, and the value, to change it.
    #[inline]
    pub fn entry_at(&mut self, index: u32) -> Option<(Key, &mut T)> {
        let slot = self.slot_mut(index)?;
        let generation = slot.generation;
        Some((Key { index, generation }, slot.value.as_mut()?))
    }

    /// All values with their keys, by ascending index. Visits every slot of every chunk.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        (self.first..)
            .zip(&self.places)
            .flat_map(|(number, place)| {
                let slots: &[Slot<T>] = match &place.body {
                    Body::Chunk(slots) => &slots[..],
                    Body::Vacant | Body::GivenUp => &[],
                };
                (number << SHIFT..).zip(slots).filter_map(|(index, slot)| {
                    let value = slot.value.as_ref()?;
                    Some((
                        Key {
                            index,
                            generation: slot.generation,
                        },
                        value,
                    ))
                })
            })
    }

    /// The bytes of heap memory that the slab itself holds, without what the values own.
    pub fn heap_bytes(&self) -> usize {
        self.chunks as usize * size_of::<[Slot<T>; CHUNK]>()
            + self.places.capacity() * size_of::<Place<T>>()
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        let at = (index >> SHIFT).wrapping_sub(self.first);
        match &self.places.get(at as usize)?.body {
            Body::Chunk(slots) => Some(&slots[(index & MASK) as usize]),
            Body::Vacant | Body::GivenUp => None,
        }
    }

    #[inline]
    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<T>> {
        let at = (index >> SHIFT).wrapping_sub(self.first);
        match &mut self.places.get_mut(at as usize)?.body {
            Body::Chunk(slots) => Some(&mut slots[(index & MASK) as usize]),
            Body::Vacant | Body::GivenUp => None,
        }
    }
}

pub(crate) mod pages;
mod places;

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
