//! The key of each group, for those who keep keys.
//!
//! Invariant: this has the key of each group in the maps: a key is added under the lock of its
//! shard, and removed after it has left the map. No user code runs under a lock: keys are
//! copied before and after it, and dropped after it.

use std::collections::HashMap;

use crate::queue::GroupKey;
// Only for shared ownership: it synchronizes nothing.
use crate::sync::{Mutex, WakeArc as Arc, model_size};

const TABLES: usize = model_size(16, 1);

/// [`Tables`] of keys that can be copied. Other keys need not be.
pub(super) trait Names<K>: Send + Sync {
    fn copy(&self, key: &K) -> Arc<K>;

    fn add(&self, group: GroupKey, key: Arc<K>);

    /// The keys that were removed, to be dropped under no lock.
    fn remove(&self, groups: &mut dyn Iterator<Item = GroupKey>) -> Vec<Arc<K>>;

    fn key_of(&self, group: GroupKey) -> Option<Arc<K>>;
}

type Table<K> = Mutex<HashMap<GroupKey, Arc<K>>>;

/// See the [module](self).
pub(super) struct Tables<K>([Table<K>; TABLES]);

impl<K> Tables<K> {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(HashMap::new())))
    }

    fn of(&self, group: GroupKey) -> &Table<K> {
        &self.0[group.0.index() as usize % self.0.len()]
    }
}

impl<K: Clone + Send + Sync> Names<K> for Tables<K> {
    fn copy(&self, key: &K) -> Arc<K> {
        Arc::new(key.clone())
    }

    fn add(&self, group: GroupKey, key: Arc<K>) {
        self.of(group).lock().insert(group, key);
    }

    fn remove(&self, groups: &mut dyn Iterator<Item = GroupKey>) -> Vec<Arc<K>> {
        let mut removed = Vec::new();
        for group in groups {
            let mut table = self.of(group).lock();
            removed.extend(table.remove(&group));
            if table.is_empty() {
                *table = HashMap::new();
            }
        }
        removed
    }

    fn key_of(&self, group: GroupKey) -> Option<Arc<K>> {
        self.of(group).lock().get(&group).cloned()
    }
}
