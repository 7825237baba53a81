//! The directory of a slab: which places hold chunks, which can take a value, when memory goes back.

use super::{Body, CHUNK, NO_SLOT, NONE, PLACES, Place, Slab, Slot, WARM, WORN};
use std::num::NonZeroU32;

/// Directories up to this many places are not shrunk while they are in use.
const SMALL: usize = 8;

impl<T> Place<T> {
    const fn vacant() -> Self {
        Place {
            body: Body::Vacant,
            prev: NONE,
            next: NONE,
            highest: 0,
            live: 0,
            first_free: NO_SLOT,
            last_free: NO_SLOT,
        }
    }

    /// Threads a slot whose value has left into the free list: in front while it is warm.
    pub(super) fn free(&mut self, at: u16) {
        let Body::Chunk(slots) = &mut self.body else {
            return;
        };
        let to_end = slots[at as usize].generation.get() % WARM == 0;
        if self.first_free == NO_SLOT {
            slots[at as usize].next = NO_SLOT;
            (self.first_free, self.last_free) = (at, at);
        } else if to_end {
            slots[at as usize].next = NO_SLOT;
            slots[self.last_free as usize].next = at;
            self.last_free = at;
        } else {
            slots[at as usize].next = self.first_free;
            self.first_free = at;
        }
    }
}

fn new_chunk<T>(generation: NonZeroU32) -> Box<[Slot<T>; CHUNK]> {
    let slots: Box<[Slot<T>]> = (1..=CHUNK as u16)
        .map(|next| Slot {
            value: None,
            generation,
            next: if next as usize == CHUNK {
                NO_SLOT
            } else {
                next
            },
        })
        .collect();
    match slots.try_into() {
        Ok(slots) => slots,
        Err(_) => unreachable!("one slot for each number below CHUNK"),
    }
}

impl<T> Slab<T> {
    /// A linked chunk with a free slot: one in use, else the spare, else a new one.
    #[inline]
    pub(super) fn place_with_room(&mut self) -> Option<u32> {
        if self.head != NONE && matches!(self.at(self.head).body, Body::Chunk(_)) {
            return Some(self.head);
        }
        self.open_another()
    }

    #[cold]
    fn open_another(&mut self) -> Option<u32> {
        if self.spare != NONE {
            let number = std::mem::replace(&mut self.spare, NONE);
            self.link_front(number);
            return Some(number);
        }
        let number = if self.head != NONE {
            self.head
        } else {
            let number = self.first + self.places.len() as u32;
            if number >= PLACES {
                return None;
            }
            self.places.push(Place::vacant());
            self.top = self.top.max(number + 1);
            self.link_front(number);
            number
        };
        let floor = self.floor;
        let place = self.at(number);
        place.body = Body::Chunk(new_chunk(floor));
        place.highest = 0;
        (place.first_free, place.last_free) = (0, CHUNK as u16 - 1);
        self.chunks += 1;
        Some(number)
    }

    /// A chunk has lost its last value: it becomes the spare, or it or the spare is freed.
    #[cold]
    pub(super) fn emptied(&mut self, number: u32, all_retired: bool) {
        if !all_retired {
            self.unlink(number);
        }
        if all_retired || number < self.base {
            self.free_chunk(number);
        } else if self.spare == NONE {
            self.spare = number;
        } else {
            // The lower one stays, so that the directory can become shorter.
            let higher = number.max(self.spare);
            self.spare = number.min(self.spare);
            self.free_chunk(higher);
        }
        // An empty slab keeps a spare only where the directory then ends with it.
        let stays = self.spare == self.first && self.spare >= self.base;
        if self.len == 0 && self.spare != NONE && !stays {
            let spare = std::mem::replace(&mut self.spare, NONE);
            self.free_chunk(spare);
        }
        self.trim();
    }

    /// Frees a chunk that is empty and not linked.
    fn free_chunk(&mut self, number: u32) {
        let base = self.base;
        let place = self.at(number);
        let highest = place.highest;
        place.body = if number < base {
            Body::GivenUp
        } else {
            Body::Vacant
        };
        place.first_free = NO_SLOT;
        place.last_free = NO_SLOT;
        self.chunks -= 1;
        if number < base {
            return;
        }
        self.link_back(number);
        if highest >= WORN {
            self.give_up_places();
        } else {
            // Never 0: `highest` is below `WORN`.
            self.floor = self.floor.max(NonZeroU32::MIN.saturating_add(highest));
        }
    }

    /// Takes no new chunk at any place used so far, and begins anew with the generations.
    fn give_up_places(&mut self) {
        while self.tail != NONE && matches!(self.at(self.tail).body, Body::Vacant) {
            let number = self.tail;
            self.unlink(number);
            self.at(number).body = Body::GivenUp;
        }
        self.base = self.top;
        self.floor = NonZeroU32::MIN;
        // The directory's end is where the next place is added: it must be at `base`.
        while self.first + (self.places.len() as u32) < self.base {
            self.places.push(Place {
                body: Body::GivenUp,
                ..Place::vacant()
            });
        }
    }

    /// Shortens the directory by the places at its end that hold no chunk.
    fn trim(&mut self) {
        if self.chunks == 0 {
            self.places = Vec::new();
            self.first = self.base;
            (self.head, self.tail) = (NONE, NONE);
            return;
        }
        while let Some(Place {
            body: Body::Vacant, ..
        }) = self.places.last()
        {
            let number = self.first + self.places.len() as u32 - 1;
            self.unlink(number);
            self.places.pop();
        }
        let (len, capacity) = (self.places.len(), self.places.capacity());
        if self.len == 0 {
            self.places.shrink_to_fit();
        } else if capacity > SMALL && len * 4 <= capacity {
            self.places.shrink_to((len * 2).max(SMALL));
        }
    }

    fn at(&mut self, number: u32) -> &mut Place<T> {
        &mut self.places[(number - self.first) as usize]
    }

    pub(super) fn link_front(&mut self, number: u32) {
        let head = std::mem::replace(&mut self.head, number);
        let place = self.at(number);
        (place.prev, place.next) = (NONE, head);
        match head {
            NONE => self.tail = number,
            head => self.at(head).prev = number,
        }
    }

    fn link_back(&mut self, number: u32) {
        let tail = std::mem::replace(&mut self.tail, number);
        let place = self.at(number);
        (place.prev, place.next) = (tail, NONE);
        match tail {
            NONE => self.head = number,
            tail => self.at(tail).next = number,
        }
    }

    pub(super) fn unlink(&mut self, number: u32) {
        let place = self.at(number);
        let (prev, next) = (place.prev, place.next);
        (place.prev, place.next) = (NONE, NONE);
        match prev {
            NONE => self.head = next,
            prev => self.at(prev).next = next,
        }
        match next {
            NONE => self.tail = prev,
            next => self.at(next).prev = prev,
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl<T> Slab<T> {
    /// Checks the numbered invariants of the file header that can be seen from the state.
    pub(super) fn check(&self) {
        let mut linked = vec![false; self.places.len()];
        let (mut at, mut prev, mut vacant_seen) = (self.head, NONE, false);
        while at != NONE {
            let entry = (at - self.first) as usize;
            let place = &self.places[entry];
            assert_eq!(place.prev, prev);
            let vacant = matches!(place.body, Body::Vacant);
            assert!(vacant || !vacant_seen, "chunks before vacant places");
            vacant_seen |= vacant;
            linked[entry] = true;
            (prev, at) = (at, place.next);
        }
        assert_eq!(self.tail, prev);
        let (mut chunks, mut len) = (0, 0);
        for (number, (place, linked)) in (self.first..).zip(self.places.iter().zip(linked)) {
            let expected = match &place.body {
                Body::Vacant => {
                    assert!(number >= self.base);
                    true
                }
                Body::GivenUp => false,
                Body::Chunk(slots) => {
                    chunks += 1;
                    let live = slots.iter().filter(|slot| slot.value.is_some()).count();
                    assert_eq!(live, place.live as usize);
                    len += live;
                    assert!(live > 0 || self.spare == number);
                    assert!(slots.iter().all(|slot| {
                        slot.value.is_none() || slot.generation.get() <= place.highest
                    }));
                    live > 0 && place.first_free != NO_SLOT
                }
            };
            assert_eq!(linked, expected, "place {number}");
        }
        assert_eq!((chunks, len), (self.chunks, self.len));
        assert!(self.len > 0 || self.chunks <= 1 && self.places.capacity() <= 1);
    }
}
