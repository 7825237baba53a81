//! The groups of some keys, by hash.
//!
//! A hash is computed once, outside; where two keys share one, they stand in
//! one bucket. So a group can be taken out by its hash and its own name,
//! without a key and without asking the user's `Eq`.
//!
//! Invariant: no bucket is empty, and memory is within a constant factor of
//! what stands here.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::dispatch::GroupKey;

/// Capacity that is not worth giving back.
const SLACK: usize = 64;

#[derive(Debug)]
pub(super) struct KeyMap<K> {
    buckets: HashMap<u64, Bucket<K>, BuildHasherDefault<AsItIs>>,
}

#[derive(Debug)]
enum Bucket<K> {
    One(K, GroupKey),
    Many(Vec<(K, GroupKey)>),
}

impl<K> KeyMap<K> {
    pub(super) fn new() -> Self {
        Self {
            buckets: HashMap::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        let lengths = self.buckets.values().map(|bucket| match bucket {
            Bucket::One(..) => 1,
            Bucket::Many(all) => all.len(),
        });
        lengths.sum()
    }

    /// Where the group of a key stands. Asks the user's `Eq`, and changes
    /// nothing.
    pub(super) fn find(&self, hash: u64, key: &K) -> Option<GroupKey>
    where
        K: Eq,
    {
        match self.buckets.get(&hash)? {
            Bucket::One(other, group) => (other == key).then_some(*group),
            Bucket::Many(all) => {
                let found = all.iter().find(|(other, _)| other == key)?;
                Some(found.1)
            }
        }
    }

    /// A key has another group now in place of one that has ended.
    pub(super) fn replace(&mut self, hash: u64, old: GroupKey, new: GroupKey) {
        let stands = match self.buckets.get_mut(&hash) {
            Some(Bucket::One(_, group)) => Some(group),
            Some(Bucket::Many(all)) => {
                let groups = all.iter_mut().map(|(_, group)| group);
                groups.into_iter().find(|group| **group == old)
            }
            None => None,
        };
        debug_assert_eq!(stands.as_deref(), Some(&old));
        if let Some(group) = stands {
            *group = new;
        }
    }

    /// A key that has none comes in.
    pub(super) fn insert(&mut self, hash: u64, key: K, group: GroupKey) {
        let bucket = match self.buckets.remove(&hash) {
            None => Bucket::One(key, group),
            Some(Bucket::One(first, its)) => Bucket::Many(vec![(first, its), (key, group)]),
            Some(Bucket::Many(mut all)) => {
                all.push((key, group));
                Bucket::Many(all)
            }
        };
        self.buckets.insert(hash, bucket);
    }

    /// Takes a group out, unless its key has another by now.
    pub(super) fn remove(&mut self, hash: u64, group: GroupKey) -> Option<K> {
        let bucket = self.buckets.remove(&hash)?;
        let (left, key) = match bucket {
            Bucket::One(key, its) if its == group => (None, Some(key)),
            Bucket::One(..) => (Some(bucket), None),
            Bucket::Many(mut all) => {
                let at = all.iter().position(|&(_, its)| its == group);
                let key = at.map(|at| all.swap_remove(at).0);
                match all.len() {
                    1 => (all.pop().map(|(key, its)| Bucket::One(key, its)), key),
                    _ => (Some(Bucket::Many(all)), key),
                }
            }
        };
        if let Some(bucket) = left {
            self.buckets.insert(hash, bucket);
        }
        self.give_memory_back();
        key
    }

    fn give_memory_back(&mut self) {
        let (len, capacity) = (self.buckets.len(), self.buckets.capacity());
        if len == 0 && capacity > SLACK {
            self.buckets = HashMap::default();
        } else if capacity > 8 * len + SLACK {
            self.buckets.shrink_to(2 * len);
        }
    }
}

/// The hash of what is a hash already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only hashes are hashed");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
