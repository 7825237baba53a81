//! Numbered slots in one block, each a link in up to two chains.
//!
//! State: a vector of slots. A free slot names the next free one. Each chain is
//! a ring of neighbours that begins and ends at [`NONE`], so that its two ends
//! need no case of their own.
//!
//! Invariants:
//! 1. A free slot is in no chain. Who takes an entry out has unlinked it.
//! 2. Nothing but growing allocates, and a growing vector doubles.
//! 3. Without an entry, a block of more than [`KEPT`] slots is given back.

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// How many slots an empty list keeps at most.
pub(super) const KEPT: usize = 8;

/// Which of the two chains.
#[derive(Clone, Copy, Debug)]
pub(super) enum Chain {
    /// All who stand in line.
    Line,
    /// Those who have not been notified.
    Waiting,
}

#[derive(Clone, Copy)]
struct Links {
    prev: u32,
    next: u32,
}

impl Links {
    const NONE: Self = Self {
        prev: NONE,
        next: NONE,
    };
}

struct Slot<E> {
    entry: Option<E>,
    links: [Links; 2],
    /// The next free slot, while this one is free.
    next_free: u32,
}

pub(super) struct Slots<E> {
    slots: Vec<Slot<E>>,
    /// Of each chain, `next` is its first and `prev` its last slot.
    ends: [Links; 2],
    first_free: u32,
    len: u32,
}

impl<E> Slots<E> {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            ends: [Links::NONE; 2],
            first_free: NONE,
            len: 0,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn get(&self, at: u32) -> Option<&E> {
        self.slots.get(at as usize)?.entry.as_ref()
    }

    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut E> {
        self.slots.get_mut(at as usize)?.entry.as_mut()
    }

    /// Puts an entry into a free slot, in no chain.
    pub(super) fn insert(&mut self, entry: E) -> u32 {
        let free = self.first_free;
        if let Some(slot) = self.slots.get_mut(free as usize) {
            self.first_free = slot.next_free;
            slot.entry = Some(entry);
            self.len += 1;
            return free;
        }
        let at = self.slots.len();
        assert!(at < NONE as usize, "too many wait in one line");
        self.slots.push(Slot {
            entry: Some(entry),
            links: [Links::NONE; 2],
            next_free: NONE,
        });
        self.len += 1;
        at as u32
    }

    /// Takes an entry out, by invariants 1 and 3.
    pub(super) fn remove(&mut self, at: u32) -> Option<E> {
        let slot = self.slots.get_mut(at as usize)?;
        let entry = slot.entry.take()?;
        slot.next_free = self.first_free;
        self.first_free = at;
        self.len -= 1;
        if self.len == 0 && self.slots.capacity() > KEPT {
            *self = Self::new();
        }
        Some(entry)
    }

    /// Who stands behind this one, or first if this is [`NONE`].
    #[inline]
    pub(super) fn next(&self, chain: Chain, at: u32) -> u32 {
        self.links(chain, at).next
    }

    /// Who stands before this one, or last if this is [`NONE`].
    #[inline]
    pub(super) fn prev(&self, chain: Chain, at: u32) -> u32 {
        self.links(chain, at).prev
    }

    /// Puts `at` behind `prev`, or in front of all if that is [`NONE`].
    pub(super) fn link(&mut self, chain: Chain, prev: u32, at: u32) {
        let next = self.next(chain, prev);
        *self.links_mut(chain, at) = Links { prev, next };
        self.links_mut(chain, prev).next = at;
        self.links_mut(chain, next).prev = at;
    }

    pub(super) fn unlink(&mut self, chain: Chain, at: u32) {
        let Links { prev, next } = self.links(chain, at);
        self.links_mut(chain, prev).next = next;
        self.links_mut(chain, next).prev = prev;
    }

    /// The slots of a chain, from its first on.
    pub(super) fn chain(&self, chain: Chain) -> impl Iterator<Item = u32> {
        let mut at = NONE;
        std::iter::from_fn(move || {
            at = self.next(chain, at);
            (at != NONE).then_some(at)
        })
        .fuse()
    }

    #[inline]
    fn links(&self, chain: Chain, at: u32) -> Links {
        match at {
            NONE => self.ends[chain as usize],
            at => self.slots[at as usize].links[chain as usize],
        }
    }

    #[inline]
    fn links_mut(&mut self, chain: Chain, at: u32) -> &mut Links {
        match at {
            NONE => &mut self.ends[chain as usize],
            at => &mut self.slots[at as usize].links[chain as usize],
        }
    }
}
