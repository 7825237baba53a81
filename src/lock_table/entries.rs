//! The entries of one shard: each in a slot, in a chain of those whose hashes end alike.
//!
//! A slot is used again without a block of its own; who remembers where its entry stood finds it
//! there, without a look along the chain. One stands in front of the slots, and in no chain: where
//! a shard has one entry, as most have, all that comes and goes with it is on one cache line,
//! beside that of the lock, if names have at most eight bytes. On one line with the lock it would
//! be taken away by those who wait for that.
//!
//! Invariants:
//! 1. A slot with an entry is in the chain of its hash, every other in the list of the free, once.
//! 2. A stamp is given once, and where there is no entry there is none: so an id whose stamp its
//!    slot does not have is of an entry that stands elsewhere, or is gone.
//! 3. There are at least as many chains as slots; their number is a power of two.

use std::cmp::Ordering;
use std::mem;

use super::holders::Holders;
use super::name::{Gone, Name};
use crate::modes::Mode;
use crate::slab::Key;

/// So many slots stay, once they are there, while few of them are used.
const FEW: usize = 4;
/// The end of a chain.
const END: u32 = u32::MAX;
/// The one in front of the slots.
const FRONT: u32 = END - 1;
/// What a free slot has.
const NO_STAMP: u64 = 0;

/// `born` begins a cache line, after the shard's lock and what goes before it here.
#[repr(C)]
pub(super) struct Entries<K> {
    chains: Vec<u32>,
    slots: Vec<Entry<K>>,
    free: u32,
    /// How many entries there ever were.
    born: u64,
    front: Entry<K>,
    /// How many stand in slots.
    len: usize,
}

/// What changes with a first and last holder comes first.
#[repr(C)]
pub(super) struct Entry<K> {
    pub(super) id: NodeId,
    pub(super) name: Name<K>,
    /// Its node in the wait table, while somebody waits for it.
    pub(super) busy: Option<Key>,
    /// Empty while it is busy.
    pub(super) holders: Holders,
    next: u32,
}

/// One entry, and never another one: finds it without the user's `Eq`.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeId {
    stamp: u64,
    /// Half of its hash, and where it stood when it was made. In two words, as what is written in
    /// small parts and read whole has to wait.
    place: u64,
}

impl NodeId {
    #[inline]
    const fn new(hash: u64, stamp: u64, slot: u32) -> Self {
        let place = hash << 32 | slot as u64;
        Self { stamp, place }
    }

    /// The lower half of its hash: all that is looked at in here.
    #[inline]
    pub(super) fn hash(self) -> u64 {
        self.place >> 32
    }

    #[inline]
    fn slot(self) -> u32 {
        self.place as u32
    }
}

impl<K> Entry<K> {
    /// None.
    const fn new() -> Self {
        Self {
            id: NodeId::new(0, NO_STAMP, 0),
            name: Name::None,
            holders: Holders::new(),
            busy: None,
            next: END,
        }
    }

    #[inline]
    fn is_free(&self) -> bool {
        self.id.stamp == NO_STAMP
    }

    /// Begins, held by one.
    #[inline(always)]
    fn begin(&mut self, id: NodeId, name: K, owner: Key, mode: Mode) {
        self.id = id;
        self.name = Name::Own(name);
        self.holders.set_first(owner, mode);
    }

    /// Ends, and leaves its name.
    #[inline(always)]
    fn end(&mut self) -> Name<K> {
        debug_assert!(self.holders.is_empty() && self.busy.is_none());
        self.id.stamp = NO_STAMP;
        mem::replace(&mut self.name, Name::None)
    }

    #[inline]
    pub(super) fn is(&self, hash: u64, key: &K) -> bool
    where
        K: Eq,
    {
        self.id.hash() == hash & u64::from(u32::MAX) && self.name.is(key)
    }

    /// Whether an owner can have it in this mode, and nobody waits.
    #[inline]
    pub(super) fn has_room(&self, owner: Key, mode: Mode) -> bool {
        self.busy.is_none() && self.holders.fit(owner, mode)
    }
}

impl PartialEq for NodeId {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.stamp == other.stamp && self.hash() == other.hash()
    }
}

impl Eq for NodeId {}

impl PartialOrd for NodeId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NodeId {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.stamp, self.hash()).cmp(&(other.stamp, other.hash()))
    }
}

impl<K> Entries<K> {
    pub(super) const fn new() -> Self {
        Self {
            born: NO_STAMP,
            front: Entry::new(),
            chains: Vec::new(),
            slots: Vec::new(),
            free: END,
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len + usize::from(!self.front.is_free())
    }

    /// How many there is room for.
    #[cfg(all(test, not(shuttle)))]
    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry<K>> {
        let all = std::iter::once(&mut self.front).chain(&mut self.slots);
        all.filter(|entry| !entry.is_free())
    }

    /// Of those with this hash.
    #[inline]
    pub(super) fn find(
        &mut self,
        hash: u64,
        is_it: impl Fn(&Entry<K>) -> bool,
    ) -> Option<&mut Entry<K>> {
        if is_it(&self.front) {
            return Some(&mut self.front);
        }
        let slot = match self.len {
            0 => None,
            _ => self.find_slot(hash, is_it),
        };
        Some(&mut self.slots[slot? as usize])
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, id: NodeId) -> Option<&mut Entry<K>> {
        if self.front.id.stamp == id.stamp {
            return Some(&mut self.front);
        }
        let slot = self.slot(id)?;
        Some(&mut self.slots[slot as usize])
    }

    /// Of one that is not in front.
    #[inline]
    fn slot(&self, id: NodeId) -> Option<u32> {
        match self.slots.get(id.slot() as usize) {
            Some(entry) if entry.id.stamp == id.stamp => Some(id.slot()),
            _ => self.moved(id),
        }
    }

    /// Of a resource that has none.
    #[inline(always)]
    pub(super) fn insert(&mut self, hash: u64, name: K, owner: Key, mode: Mode) -> NodeId {
        self.born += 1;
        if !self.front.is_free() {
            return self.insert_in_slot(hash, name, owner, mode);
        }
        let id = NodeId::new(hash, self.born, FRONT);
        self.front.begin(id, name, owner, mode);
        id
    }

    #[inline(never)]
    fn insert_in_slot(&mut self, hash: u64, name: K, owner: Key, mode: Mode) -> NodeId {
        if self.free == END {
            self.grow();
        }
        let slot = self.free;
        let chain = chain_of(hash, &self.chains);
        let entry = &mut self.slots[slot as usize];
        let id = NodeId::new(hash, self.born, slot);
        entry.begin(id, name, owner, mode);
        self.free = mem::replace(&mut entry.next, mem::replace(&mut self.chains[chain], slot));
        self.len += 1;
        id
    }

    /// Of one that nobody holds or waits for.
    #[inline(always)]
    pub(super) fn remove(&mut self, id: NodeId, gone: &mut Gone<K>) {
        if self.front.id.stamp == id.stamp {
            gone.push(self.front.end());
        } else if let Some(slot) = self.slot(id) {
            gone.push(self.remove_from_slot(slot));
        }
    }

    #[inline(never)]
    fn remove_from_slot(&mut self, slot: u32) -> Name<K> {
        let entry = &mut self.slots[slot as usize];
        let hash = entry.id.hash();
        let name = entry.end();
        let next = mem::replace(&mut entry.next, mem::replace(&mut self.free, slot));
        let chain = chain_of(hash, &self.chains);
        if self.chains[chain] == slot {
            self.chains[chain] = next;
        } else {
            self.unlink(chain, slot, next);
        }
        self.len -= 1;
        if self.slots.len() > FEW && self.len < (self.slots.len() / 8).max(1) {
            self.shrink();
        }
        name
    }

    #[inline(never)]
    fn find_slot(&self, hash: u64, is_it: impl Fn(&Entry<K>) -> bool) -> Option<u32> {
        let mut slot = *self.chains.get(chain_of(hash, &self.chains))?;
        // There is no slot at the end.
        while let Some(entry) = self.slots.get(slot as usize) {
            if is_it(entry) {
                return Some(slot);
            }
            slot = entry.next;
        }
        None
    }

    #[cold]
    fn moved(&self, id: NodeId) -> Option<u32> {
        self.find_slot(id.hash(), |entry| entry.id == id)
    }

    #[cold]
    fn unlink(&mut self, chain: usize, slot: u32, next: u32) {
        let mut before = self.chains[chain] as usize;
        while self.slots[before].next != slot {
            before = self.slots[before].next as usize;
        }
        self.slots[before].next = next;
    }

    /// One slot more.
    #[cold]
    fn grow(&mut self) {
        let slot = self.slots.len();
        assert!(slot < FRONT as usize, "there are too many resources");
        self.slots.push(Entry::new());
        self.free = slot as u32;
        if self.chains.len() < self.slots.len() {
            self.chain_anew();
        }
    }

    /// Gives memory back: the entries move together. Where there are none, the one in front will
    /// do.
    #[cold]
    fn shrink(&mut self) {
        let room = 2 * self.len;
        let old = mem::replace(&mut self.slots, Vec::with_capacity(room));
        self.slots
            .extend(old.into_iter().filter(|entry| !entry.is_free()));
        for (slot, entry) in self.slots.iter_mut().enumerate() {
            entry.id = NodeId::new(entry.id.hash(), entry.id.stamp, slot as u32);
        }
        self.free = END;
        self.chain_anew();
    }

    /// By invariants 1 and 3; every slot but a free one at the end has an entry.
    fn chain_anew(&mut self) {
        let chains = self.slots.len().max(FEW).next_power_of_two();
        self.chains = vec![END; chains];
        for (slot, entry) in self.slots.iter_mut().enumerate() {
            if !entry.is_free() {
                let chain = chain_of(entry.id.hash(), &self.chains);
                entry.next = mem::replace(&mut self.chains[chain], slot as u32);
            }
        }
    }
}

#[inline]
fn chain_of(hash: u64, chains: &[u32]) -> usize {
    hash as usize & chains.len().wrapping_sub(1)
}
