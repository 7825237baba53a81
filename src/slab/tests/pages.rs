//! Pages against a map of what was put in.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::ptr::NonNull;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::slab::{Key, Pages, WORN, key_of, remove};

type Value = Box<u64>;

#[derive(Clone, Debug)]
enum Op {
    Insert(usize),
    Remove(usize),
    Unlist(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (1..400_usize).prop_map(Op::Insert),
        (1..400_usize).prop_map(Op::Remove),
        any::<usize>().prop_map(Op::Unlist),
    ]
}

#[allow(unsafe_code)]
fn key(value: NonNull<Value>) -> Key {
    // SAFETY: the tests take out only what is in.
    unsafe { key_of(value) }
}

#[allow(unsafe_code)]
fn take_out(value: NonNull<Value>) {
    // SAFETY: each is taken out once.
    unsafe { remove(value) };
}

#[allow(unsafe_code)]
fn read(value: NonNull<Value>) -> u64 {
    // SAFETY: as in `key`.
    unsafe { **value.as_ref() }
}

/// A quarter of the usual number of cases.
fn few() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases / 4,
        failure_persistence: None,
        ..usual
    }
}

proptest! {
    #![proptest_config(few())]

    #[test]
    fn agree_with_a_map(ops in vec(op(), 1..30), seed in any::<usize>()) {
        let pages = Pages::new();
        let mut there: BTreeMap<Key, (NonNull<Value>, u64, bool)> = BTreeMap::new();
        let mut ever: Vec<Key> = Vec::new();
        let (mut number, mut pick) = (0, seed);
        for op in ops {
            match op {
                Op::Insert(n) => for _ in 0..n {
                    number += 1;
                    let value = pages.insert(Box::new(number), std::ptr::null());
                    prop_assert!(there.insert(key(value), (value, number, true)).is_none());
                    ever.push(key(value));
                },
                Op::Remove(n) => for _ in 0..n.min(there.len()) {
                    pick = pick.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let nth = there.keys().nth((pick >> 33) % there.len()).copied();
                    let (value, number, _) = there.remove(&nth.unwrap()).unwrap();
                    prop_assert_eq!(read(value), number);
                    take_out(value);
                },
                Op::Unlist(n) => if let Some(nth) = there.len().checked_sub(1) {
                    let entry = there.values_mut().nth(n % (nth + 1)).unwrap();
                    #[allow(unsafe_code)]
                    // SAFETY: it is in.
                    let was = unsafe { pages.unlist(entry.0) };
                    prop_assert_eq!(was, std::mem::replace(&mut entry.2, false));
                },
            }
            let listed = there.values().filter(|entry| entry.2);
            let listed: Vec<_> = listed.map(|entry| entry.0).collect();
            prop_assert_eq!(pages.listed(0, usize::MAX), &listed[..]);
            let from = ever.last().map_or(0, |key| key.index().saturating_sub(pick as u32 % 99));
            let later = there.iter().filter(|(key, entry)| key.index() >= from && entry.2);
            let later: Vec<_> = later.map(|(_, entry)| entry.0).collect();
            let found = pages.listed(from, 3);
            prop_assert!(found.len() >= later.len().min(3) && found.len() < 3 + 128);
            prop_assert_eq!(&found[..], &later[..found.len()]);
            for key in &ever {
                let expected = there.get(key).filter(|entry| entry.2);
                prop_assert_eq!(pages.with(*key, |value| value), expected.map(|entry| entry.0));
            }
        }
        let mut keys = ever.clone();
        keys.sort();
        keys.dedup();
        prop_assert_eq!(keys.len(), ever.len(), "no key is issued twice");
        drop(pages);
        there.into_values().for_each(|(value, ..)| take_out(value));
    }
}

fn insert(pages: &Pages<Value>, n: usize) -> Vec<NonNull<Value>> {
    let values = (0..n).map(|_| pages.insert(Box::new(0), std::ptr::null()));
    values.collect()
}

/// Repeatedly inserts one value more than fits into a page, and removes all but the newest.
#[test]
fn numbers_of_pages_that_went_are_used_again() {
    let pages = Pages::new();
    let mut newest = None;
    for _ in 0..1000 {
        let mut all = insert(&pages, 129);
        let last = all.pop().unwrap();
        all.extend(newest.replace(last));
        all.into_iter().for_each(take_out);
        let key = key(newest.unwrap());
        assert!(key.index() < 4 * 128, "{key:?}");
    }
    newest.into_iter().for_each(take_out);
}

/// Otherwise the numbers before that page would be remembered.
#[test]
fn the_page_that_stays_comes_before_all_gaps() {
    let pages = Pages::new();
    insert(&pages, 1_000).into_iter().for_each(take_out);
    let one = insert(&pages, 1)[0];
    assert!(key(one).index() < 128, "{:?}", key(one));
    take_out(one);
}

/// The generation in a key.
fn generation(key: Key) -> u32 {
    (key.to_bits() >> 32) as u32
}

/// Two numbers wear out, and are used again. Half of the generations stay to all others.
#[test]
fn a_number_wears_out_alone() {
    let pages = Pages::new();
    let mut values = insert(&pages, 128);
    let mut ever = BTreeSet::new();
    pages.wear_out(WORN);
    for round in 0..1000 {
        let all = insert(&pages, 129);
        assert!(all.iter().all(|&value| ever.insert(key(value))), "{round}");
        assert_eq!(key(all[128]).index(), 2 * 128, "{round}");
        all.into_iter().for_each(take_out);
    }
    values.extend(insert(&pages, 257));
    let last = key(values[128 + 256]);
    assert_eq!((last.index(), generation(last)), (3 * 128, WORN.get()));
    values.into_iter().for_each(take_out);
}

/// The last generation of a slot is issued too, while its page stays.
#[test]
fn a_number_is_used_up_with_its_generations() {
    let pages = Pages::new();
    pages.wear_out(NonZeroU32::new(u32::MAX - 1).unwrap());
    let mut ever = BTreeSet::new();
    for index in [0, 0, 1] {
        let one = insert(&pages, 1)[0];
        assert!(ever.insert(key(one)));
        assert_eq!(key(one).index(), index);
        take_out(one);
    }
    insert(&pages, 200).into_iter().for_each(take_out);
    let one = insert(&pages, 1)[0];
    assert_eq!(key(one).index(), 128);
    take_out(one);
}

#[test]
fn values_are_dropped_once() {
    let owner = Arc::new(());
    let pages = Pages::new();
    let all: Vec<_> = (0..1000)
        .map(|_| pages.insert(owner.clone(), std::ptr::null()))
        .collect();
    drop(pages);
    for (n, value) in all.into_iter().enumerate() {
        assert_eq!(Arc::strong_count(&owner), 1001 - n);
        #[allow(unsafe_code)]
        // SAFETY: it is in, and taken out once.
        unsafe {
            remove(value);
        }
    }
}
