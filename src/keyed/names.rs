//! Which key a group is of.
//!
//! State: of each group the hash of its key, under which the key stands in its shard;
//! only once somebody has asked for a key.
//!
//! Invariants:
//! 1. Once `complete`, this has the hash of each group in the maps: one is added under
//!    the lock of its shard, and removed after it has left the map.
//! 2. An event that saw no table had its shard before whoever fills it.

use std::collections::HashMap;

use crate::queue::GroupKey;
use crate::sync::{AtomicBool, Mutex, OnceLock, Ordering, model_size};

const TABLES: usize = model_size(16, 1);

type Table = Mutex<HashMap<GroupKey, u64>>;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Names {
    tables: OnceLock<Box<[Table; TABLES]>>,
    complete: AtomicBool,
}

impl Names {
    /// There are tables from now on: whether they are to be filled first.
    pub(super) fn open(&self) -> bool {
        let table = |_| Mutex::new(HashMap::new());
        self.tables
            .get_or_init(|| Box::new(std::array::from_fn(table)));
        // Acquire: pairs with the release of who has filled them.
        !self.complete.load(Ordering::Acquire)
    }

    /// They are filled.
    pub(super) fn filled(&self) {
        // Release: pairs with the acquire in `open`.
        self.complete.store(true, Ordering::Release);
    }

    /// Under the lock of the group's shard.
    #[inline]
    pub(super) fn add(&self, group: GroupKey, hash: u64) {
        if let Some(table) = self.table(group) {
            table.lock().insert(group, hash);
        }
    }

    pub(super) fn remove(&self, groups: impl Iterator<Item = GroupKey>) {
        for group in groups {
            if let Some(table) = self.table(group) {
                let mut table = table.lock();
                table.remove(&group);
                if table.is_empty() {
                    *table = HashMap::new();
                }
            }
        }
    }

    pub(super) fn hash_of(&self, group: GroupKey) -> Option<u64> {
        self.table(group)?.lock().get(&group).copied()
    }

    fn table(&self, group: GroupKey) -> Option<&Table> {
        let tables = self.tables.get()?;
        tables.get(group.0.index() as usize % tables.len())
    }
}
