mod pages;

use super::{CHUNK, Key, NONE, PLACES, Slab, WARM, WORN};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

fn slab_at<T>(place: u32, generation: u32) -> Slab<T> {
    Slab::starting_at(place, NonZeroU32::new(generation).unwrap())
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

/// The slab beside a map of what must be in it and a list of all keys that are gone.
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
        assert_eq!(self.slab.is_empty(), self.model.is_empty());
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
        start in prop_oneof![u32::MAX - 3..=u32::MAX, WORN - 3..=WORN + 1],
    ) {
        let mut pair = Pair::new(slab_at(0, start));
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
    let mut slab = slab_at(0, 3);
    let keys: Vec<Key> = (0..8).map(|n| slab.insert(n)).collect();
    assert_eq!(format!("{:?}", keys[7]), "7#3");
    assert_eq!((keys[7].index(), keys[7].generation()), (7, 3));
    assert_eq!(size_of::<Option<Key>>(), 8);
    assert!(keys.is_sorted());
}

#[test]
fn a_slot_whose_generation_would_wrap_is_retired() {
    let mut slab = slab_at(0, u32::MAX - 1);
    let pin = slab.insert(0);
    let mut uses = HashMap::new();
    // Each slot but the pinned one has two generations, and then the chunk is used up.
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
    let mut slab = slab_at(5, u32::MAX);
    let old: Vec<Key> = (0..CHUNK).map(|n| slab.insert(n)).collect();
    for &key in &old {
        slab.remove(key).unwrap();
        slab.check();
    }
    assert_eq!(slab.heap_bytes(), 0);
    let key = slab.insert(7);
    assert_eq!((key.index() >> 8, key.generation()), (6, 1));
    assert!(old.iter().all(|&key| !slab.contains(key)));
}

#[test]
fn worn_places_are_given_up_while_other_chunks_live() {
    let mut slab = slab_at(0, WORN);
    let keys: Vec<Key> = (0..4 * CHUNK).map(|n| slab.insert(n)).collect();
    // Chunk 1 becomes the spare, chunk 2 is freed as worn; 0 and 3 stay full.
    for &key in &keys[CHUNK..3 * CHUNK] {
        slab.remove(key).unwrap();
        slab.check();
    }
    let more: Vec<Key> = (0..2 * CHUNK).map(|n| slab.insert(n)).collect();
    assert!(
        more[..CHUNK]
            .iter()
            .all(|key| key.index() >> 8 == 1 && key.generation() > WORN)
    );
    assert!(
        more[CHUNK..]
            .iter()
            .all(|key| key.index() >> 8 == 4 && key.generation() == 1)
    );
    for key in keys[..CHUNK].iter().chain(&keys[3 * CHUNK..]).chain(&more) {
        slab.remove(*key).unwrap();
        slab.check();
    }
    assert_eq!(slab.insert(1).index() >> 8, 4);
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
    // Only the last chunk stays: the directory is as long as before, all else is given back.
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
    assert!(slab.places.len() <= 2 && slab.places.capacity() <= 16);
}

#[test]
fn an_element_at_the_edge_of_a_chunk_does_not_allocate_each_time() {
    let mut slab = Slab::new();
    (0..CHUNK).for_each(|n| assert_eq!(slab.insert(n).index(), n as u32));
    let first = slab.insert(0);
    slab.remove(first).unwrap();
    let bytes = slab.heap_bytes();
    for n in 0..1000 {
        let key = slab.insert(n);
        // A chunk made anew would start with every slot at one and the same generation.
        assert_eq!(
            (key.index(), key.generation()),
            (first.index(), n as u32 + 2)
        );
        assert_eq!(slab.heap_bytes(), bytes);
        slab.remove(key).unwrap();
    }
}

#[test]
fn a_busy_chunk_wears_evenly() {
    let mut slab = Slab::new();
    let mut most = 0;
    for n in 0..20 * WARM {
        let key = slab.insert(n);
        most = most.max(key.generation());
        slab.remove(key).unwrap();
    }
    assert!(most <= WARM, "{most}");
    assert_eq!(
        slab.heap_bytes() / size_of::<[super::Slot<u32>; CHUNK]>(),
        1
    );
}

#[test]
fn a_full_slab_hands_the_value_back() {
    let mut slab = slab_at(PLACES - 1, 1);
    for n in 0..CHUNK {
        assert_ne!(slab.insert(n.to_string()).index(), NONE);
    }
    assert_eq!(
        slab.try_insert("one more".to_string()),
        Err("one more".to_string())
    );
    slab.check();
    let key = slab.iter().next().unwrap().0;
    slab.remove(key).unwrap();
    assert!(slab.try_insert("room again".to_string()).is_ok());
}

#[test]
#[should_panic(expected = "no slot left")]
fn insert_panics_when_full() {
    slab_at(PLACES, 1).insert(());
}
