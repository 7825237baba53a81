//! The key of each group.
//!
//! State: a copy of the key of each group; none until somebody asks for a key.
//!
//! Invariants:
//! 1. Once `complete`, this has the key of each group in the maps: a key is added under the
//!    lock of its shard, and removed after it has left the map.
//! 2. An insertion that saw no table had its shard's lock before the call that fills the
//!    tables.

use std::collections::HashMap;

use crate::queue::GroupKey;
use crate::sync::{AtomicBool, Mutex, OnceLock, Ordering, model_size};

const TABLES: usize = model_size(16, 1);

type Table<K> = Mutex<HashMap<GroupKey, K>>;

/// How a key is copied.
type CopyKey<K> = fn(&K) -> K;

type Tables<K> = (Box<[Table<K>]>, CopyKey<K>);

/// See the [module](self).
pub(super) struct Names<K> {
    tables: OnceLock<Tables<K>>,
    complete: AtomicBool,
}

impl<K> Names<K> {
    pub(super) fn new() -> Self {
        Self {
            tables: OnceLock::new(),
            complete: AtomicBool::new(false),
        }
    }

    /// Under the lock of the group's shard.
    #[inline]
    pub(super) fn add(&self, group: GroupKey, key: &K) {
        if let Some((table, copy)) = self.table(group) {
            table.lock().insert(group, copy(key));
        }
    }

    pub(super) fn remove(&self, groups: impl Iterator<Item = GroupKey>) {
        for group in groups {
            if let Some((table, _)) = self.table(group) {
                let mut table = table.lock();
                table.remove(&group);
                if table.is_empty() {
                    *table = HashMap::new();
                }
            }
        }
    }

    fn table(&self, group: GroupKey) -> Option<(&Table<K>, CopyKey<K>)> {
        let (tables, copy) = self.tables.get()?;
        let table = tables.get(group.0.index() as usize % tables.len())?;
        Some((table, *copy))
    }
}

impl<K: Copy> Names<K> {
    /// Makes the tables if there are none. Whether they must be filled.
    pub(super) fn open(&self) -> bool {
        let tables = || (0..TABLES).map(|_| Mutex::new(HashMap::new())).collect();
        self.tables.get_or_init(|| (tables(), |key| *key));
        // Acquire: pairs with the release in `filled`.
        !self.complete.load(Ordering::Acquire)
    }

    /// Notes that the tables are filled.
    pub(super) fn filled(&self) {
        // Release: pairs with the acquire in `open`.
        self.complete.store(true, Ordering::Release);
    }

    pub(super) fn key_of(&self, group: GroupKey) -> Option<K> {
        self.table(group)?.0.lock().get(&group).copied()
    }
}
