mod pages;

use super::{CHUNK, Key, NO_SLOT, Place, Slab, Slot, WORN};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

std::thread_local! {
    static VISITED: Cell<u64> = const { Cell::new(0) };
}

/// How many slots this thread has visited in sequence: for tests that an operation does not search
/// a slab.
pub(crate) fn slots_visited() -> u64 {
    VISITED.get()
}

pub(super) fn visited() {
    VISITED.set(VISITED.get() + 1);
}

/// A slab whose generations begin with this one.
fn slab_at<T>(generation: u32) -> Slab<T> {
    let mut slab = Slab::new();
    slab.floor = NonZeroU32::new(generation).unwrap();
    slab
}

impl<T> Slab<T> {
    /// Whether the value that `key` names is still there.
    pub(crate) fn contains(&self, key: Key) -> bool {
        self.get(key).is_some()
    }

    /// Checks the numbered invariants of `slab.rs` that the state shows.
    fn check(&self) {
        let (mut empty, mut len) = (Vec::new(), 0);
        for (number, place) in self.places.iter().enumerate() {
            let listed = self.open.contains(&(number as u32));
            let Some(chunk) = &place.chunk else {
                assert!(!listed && (number >= self.vacant || !place.can_take_a_chunk()));
                continue;
            };
            let slots = || chunk.iter();
            assert_eq!(listed, place.first_free != NO_SLOT, "place {number}");
            let live = slots().filter(|slot| slot.value.is_some()).count();
            assert_eq!(live, place.live as usize);
            len += live;
            assert!(slots().all(|slot| slot.generation >= place.floor));
            let last = |slot: &Slot<T>| slot.generation == NonZeroU32::MAX;
            assert!(slots().all(|slot| slot.value.is_none() || !last(slot)));
            let mut free = place.first_free;
            let mut threaded = 0;
            while free != NO_SLOT {
                assert!(chunk[free as usize].value.is_none());
                (free, threaded) = (chunk[free as usize].next, threaded + 1);
            }
            let retired = slots().filter(|slot| last(slot)).count();
            assert_eq!(live + threaded + retired, CHUNK);
            if live == 0 {
                empty.push(number);
            }
        }
        assert_eq!(len, self.len);
        assert!(empty.is_empty() || empty == [self.spare]);
        let listed = self.places.iter().filter(|place| place.chunk.is_some());
        let listed = listed.filter(|place| place.first_free != NO_SLOT);
        assert_eq!(listed.count(), self.open.len());
        let forgotten = |place: &Place<T>| place.chunk.is_none() && place.floor < WORN;
        assert!(self.places.last().is_none_or(|last| !forgotten(last)));
        if self.len == 0 {
            let bound = self.places.iter().position(Place::can_take_a_chunk);
            assert!(empty.is_empty() || bound.is_none_or(|vacant| empty[0] < vacant));
            assert!(self.places.capacity() <= 2 * self.places.len());
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Insert,
    Fill(u16),
    Remove(prop::sample::Index),
    Empty(u16),
    Clear,
    Stale(prop::sample::Index),
    Write(prop::sample::Index),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        30 => Just(Op::Insert),
        30 => any::<prop::sample::Index>().prop_map(Op::Remove),
        4 => (1u16..600).prop_map(Op::Fill),
        4 => (1u16..700).prop_map(Op::Empty),
        1 => Just(Op::Clear),
        20 => any::<prop::sample::Index>().prop_map(Op::Stale),
        10 => any::<prop::sample::Index>().prop_map(Op::Write),
    ];
    prop::collection::vec(op, 1..600)
}

/// The slab, a map of what must be in it, and a list of all keys that are gone.
struct Pair {
    slab: Slab<u64>,
    model: HashMap<Key, u64>,
    keys: Vec<Key>,
    gone: Vec<Key>,
    issued: HashSet<Key>,
    next: u64,
}

impl Pair {
    fn new(slab: Slab<u64>) -> Self {
        Pair {
            slab,
            model: HashMap::new(),
            keys: Vec::new(),
            gone: Vec::new(),
            issued: HashSet::new(),
            next: 0,
        }
    }

    fn insert(&mut self) {
        self.next += 1;
        let key = self.slab.insert(self.next);
        assert!(self.issued.insert(key), "{key:?} was issued twice");
        self.model.insert(key, self.next);
        self.keys.push(key);
    }

    fn remove(&mut self, at: usize) {
        let key = self.keys.swap_remove(at);
        assert_eq!(self.slab.remove(key), self.model.remove(&key));
        assert_eq!(self.slab.remove(key), None);
        self.gone.push(key);
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Insert => self.insert(),
            Op::Fill(n) => (0..n).for_each(|_| self.insert()),
            Op::Remove(_) | Op::Write(_) if self.keys.is_empty() => {}
            Op::Remove(at) => self.remove(at.index(self.keys.len())),
            Op::Empty(n) => {
                // In order of insertion, so that whole chunks become empty.
                self.keys.sort_by_key(|key| std::cmp::Reverse(key.index()));
                (0..(n as usize).min(self.keys.len()))
                    .for_each(|_| self.remove(self.keys.len() - 1));
            }
            Op::Clear => (0..self.keys.len()).for_each(|_| self.remove(0)),
            Op::Stale(_) if self.gone.is_empty() => {}
            Op::Stale(at) => {
                let key = self.gone[at.index(self.gone.len())];
                assert_eq!(self.slab.get(key), None);
                assert_eq!(self.slab.get_mut(key), None);
                assert!(!self.slab.contains(key));
                assert_eq!(self.slab.remove(key), None);
                assert_ne!(self.slab.key_at(key.index()), Some(key));
                let there = self.slab.entry_at(key.index()).map(|(there, _)| there);
                assert_eq!(there, self.slab.key_at(key.index()));
            }
            Op::Write(at) => {
                let key = self.keys[at.index(self.keys.len())];
                self.next += 1;
                *self.slab.get_mut(key).unwrap() = self.next;
                assert_eq!(self.slab.by_index(key.index()), Some(&self.next));
                assert_eq!(
                    self.slab.by_index_mut(key.index()).copied(),
                    Some(self.next)
                );
                assert_eq!(self.slab.key_at(key.index()), Some(key));
                let entry = self.slab.entry_at(key.index());
                assert_eq!(
                    entry.map(|(key, value)| (key, *value)),
                    Some((key, self.next))
                );
                self.model.insert(key, self.next);
            }
        }
    }

    fn compare(&self) {
        self.slab.check();
        assert_eq!(self.slab.len(), self.model.len());
        assert_eq!(self.slab.len() == 0, self.model.is_empty());
        let seen: HashMap<Key, u64> = self.slab.iter().map(|(key, value)| (key, *value)).collect();
        assert_eq!(seen, self.model);
        assert!(self.slab.iter().map(|(key, _)| key.index()).is_sorted());
        for &key in self.gone.iter().rev().take(50) {
            assert!(!self.slab.contains(key));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn behaves_like_a_map(ops in ops()) {
        let mut pair = Pair::new(Slab::new());
        for op in ops {
            pair.apply(op);
            pair.slab.check();
        }
        pair.compare();
    }

    #[test]
    fn behaves_like_a_map_at_the_end_of_the_generations(
        ops in ops(),
        start in prop_oneof![u32::MAX - 3..u32::MAX, WORN.get() - 3..=WORN.get() + 1],
    ) {
        let mut pair = Pair::new(slab_at(start));
        for op in ops {
            pair.apply(op);
            pair.slab.check();
        }
        pair.compare();
        pair.apply(Op::Clear);
        pair.compare();
    }
}

#[test]
fn a_key_prints_index_and_generation_and_has_a_niche() {
    let mut slab = slab_at(3);
    let keys: Vec<Key> = (0..8).map(|n| slab.insert(n)).collect();
    assert_eq!(format!("{:?}", keys[7]), "7#3");
    assert_eq!((keys[7].index(), keys[7].generation.get()), (7, 3));
    assert_eq!(size_of::<Option<Key>>(), 8);
    assert!(keys.is_sorted());
}

#[test]
fn a_slot_whose_generation_would_wrap_is_retired() {
    let mut slab = slab_at(u32::MAX - 2);
    let pin = slab.insert(0);
    slab.floor = NonZeroU32::MIN;
    let mut uses = HashMap::new();
    // Each slot except the pinned one has two generations left; then the chunk is used up.
    for n in 0..2 * (CHUNK - 1) {
        let key = slab.insert(n);
        assert_eq!(key.index() >> 8, 0);
        *uses.entry(key.index()).or_insert(0) += 1;
        assert_eq!(slab.remove(key), Some(n));
        slab.check();
    }
    assert!(uses.len() == CHUNK - 1 && uses.values().all(|&n| n == 2));
    let elsewhere = slab.insert(1);
    assert_eq!(elsewhere.index() >> 8, 1);
    assert_eq!(slab.remove(pin), Some(0));
    assert_eq!(slab.remove(elsewhere), Some(1));
    slab.check();
}

#[test]
fn a_chunk_of_retired_slots_is_freed_and_its_place_never_used_again() {
    let mut slab = slab_at(u32::MAX - 1);
    let old: Vec<Key> = (0..CHUNK).map(|n| slab.insert(n)).collect();
    slab.floor = NonZeroU32::MIN;
    for &key in &old {
        slab.remove(key).unwrap();
        slab.check();
    }
    assert!(slab.heap_bytes() <= 32);
    for n in 0..3 {
        let key = slab.insert(7);
        assert_eq!((key.index() >> 8, key.generation.get()), (1, n + 1));
        slab.remove(key);
        slab.check();
    }
    assert!(old.iter().all(|&key| !slab.contains(key)));
}

/// Worn places are used to the end, and remembered; others begin where the least worn are.
#[test]
fn worn_places_are_not_forgotten() {
    let mut slab = slab_at(WORN.get() - 1);
    let keys: Vec<Key> = (0..4 * CHUNK).map(|n| slab.insert(n)).collect();
    for &key in keys.iter().rev() {
        slab.remove(key).unwrap();
        slab.check();
    }
    // The first place still has its chunk.
    assert_eq!(slab.places.len(), 4);
    let more: Vec<Key> = (0..5 * CHUNK).map(|n| slab.insert(n)).collect();
    for (n, key) in more.iter().enumerate() {
        let worn = if n / CHUNK < 4 { 0 } else { 1 };
        assert_eq!(key.index() as usize / CHUNK, n / CHUNK);
        assert_eq!(key.generation.get(), WORN.get() - worn);
    }
    for key in more {
        slab.remove(key).unwrap();
        slab.check();
    }
}

#[test]
fn a_stale_key_never_matches_after_its_chunk_was_made_anew() {
    let mut slab = Slab::new();
    let mut all = HashSet::new();
    for _ in 0..20 {
        let keys: Vec<Key> = (0..3 * CHUNK).map(|n| slab.insert(n)).collect();
        assert!(keys.iter().all(|&key| all.insert(key)));
        assert!(keys.iter().all(|&key| slab.remove(key).is_some()));
        slab.check();
    }
    assert!(all.iter().all(|&key| !slab.contains(key)));
}

#[test]
fn memory_goes_back() {
    let mut slab = Slab::new();
    let one = {
        let key = slab.insert(0u64);
        let one = slab.heap_bytes();
        slab.remove(key);
        one
    };
    let keys: Vec<Key> = (0..1000 * CHUNK as u64).map(|n| slab.insert(n)).collect();
    assert!(slab.heap_bytes() > 900 * one);
    // Only the last chunk stays: the directory keeps its length, all else is given back.
    let (last, others) = keys.split_last().unwrap();
    others
        .iter()
        .for_each(|&key| assert!(slab.remove(key).is_some()));
    slab.check();
    assert!(
        slab.heap_bytes() < 2 * one + 64 * 1024,
        "{}",
        slab.heap_bytes()
    );
    slab.remove(*last).unwrap();
    slab.check();
    assert!(slab.heap_bytes() <= one, "{} > {one}", slab.heap_bytes());
    assert_eq!(slab.insert(1).index() >> 8, 0);
    assert!(slab.heap_bytes() <= one);
}

#[test]
fn the_directory_becomes_shorter_while_the_slab_is_in_use() {
    let mut slab = Slab::new();
    let keys: Vec<Key> = (0..1000 * CHUNK).map(|n| slab.insert(n)).collect();
    keys[1..]
        .iter()
        .rev()
        .for_each(|&key| assert!(slab.remove(key).is_some()));
    slab.check();
    assert!(slab.places.len() <= 2 && slab.places.capacity() <= 24);
    assert!(slab.open.capacity() <= 24);
}

#[test]
fn an_element_at_the_edge_of_a_chunk_is_reused_without_allocation() {
    let mut slab = Slab::new();
    (0..CHUNK).for_each(|n| assert_eq!(slab.insert(n).index(), n as u32));
    let first = slab.insert(0);
    slab.remove(first).unwrap();
    let bytes = slab.heap_bytes();
    for n in 0..1000 {
        let key = slab.insert(n);
        // In a new chunk every slot would start with the same generation.
        assert_eq!(
            (key.index(), key.generation.get()),
            (first.index(), n as u32 + 2)
        );
        assert_eq!(slab.heap_bytes(), bytes);
        slab.remove(key).unwrap();
    }
}
