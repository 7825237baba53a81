//! The map, against a list; and what it gives back.

use proptest::collection::vec;
use proptest::prelude::*;

use super::map::KeyMap;
use crate::dispatch::{Dispatch, GroupKey};
use crate::limit::{Bypass, Limit};
use crate::wait::tests::heap::held_by_this_thread;

fn groups(count: usize) -> Vec<GroupKey> {
    let mut core = Dispatch::new(Bypass::default());
    let lane = core.add_lane(1, Limit::Unlimited).unwrap();
    let group = |_| core.add_group(lane, Limit::SERIAL, 100, ()).unwrap();
    (0..count).map(group).collect()
}

/// Few hashes, so that many keys share one.
fn hash(key: u8) -> u64 {
    u64::from(key % 3)
}

#[derive(Clone, Debug)]
enum Step {
    /// The key has the next group.
    Put(u8),
    /// The n-th group ends.
    End(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..9u8).prop_map(Step::Put),
        (0..40usize).prop_map(Step::End)
    ];
    vec(step, 0..40)
}

proptest! {
    #[test]
    fn agrees_with_a_list(steps in steps()) {
        let mut fresh = groups(40).into_iter();
        let mut made = Vec::new();
        let mut map = KeyMap::new();
        let mut list: Vec<(u8, GroupKey)> = Vec::new();
        for step in steps {
            match step {
                Step::Put(key) => {
                    let new = fresh.next().unwrap();
                    made.push(new);
                    match list.iter_mut().find(|(other, _)| *other == key) {
                        Some((_, group)) => {
                            map.replace(hash(key), *group, new);
                            *group = new;
                        }
                        None => {
                            map.insert(hash(key), key, new);
                            list.push((key, new));
                        }
                    }
                }
                Step::End(n) => {
                    let Some(&group) = made.get(n) else { continue };
                    let at = list.iter().position(|&(_, its)| its == group);
                    let key = at.map(|at| list.swap_remove(at).0);
                    // One that has been replaced may be looked for anywhere.
                    for place in 0..3 {
                        let right = key.is_some_and(|key| hash(key) == place);
                        prop_assert_eq!(map.remove(place, group), key.filter(|_| right));
                    }
                }
            }
            prop_assert_eq!(map.len(), list.len());
            for key in 0..9 {
                let stands = list.iter().find(|&&(other, _)| other == key);
                prop_assert_eq!(map.find(hash(key), &key), stands.map(|&(_, group)| group));
            }
        }
    }
}

#[test]
fn a_burst_is_given_back() {
    let all = groups(10_000);
    let before = held_by_this_thread();
    let mut map = KeyMap::new();
    for (key, &group) in all.iter().enumerate() {
        map.insert(key as u64, key, group);
    }
    let burst = held_by_this_thread() - before;
    for (key, &group) in all.iter().enumerate().skip(10) {
        assert_eq!(map.remove(key as u64, group), Some(key));
    }
    assert!(held_by_this_thread() - before < burst / 50);
    for (key, &group) in all.iter().enumerate().take(10) {
        assert_eq!(map.remove(key as u64, group), Some(key));
    }
    assert!(held_by_this_thread() - before < burst / 50);
}
