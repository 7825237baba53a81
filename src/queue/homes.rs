//! Who keeps groups by a key, and is told when one of them has ended; and who
//! has a side of a dialog here, and is told when the queue is gone.
//!
//! Where a group ends, the event that ended it leaves a [`Farewell`], which the
//! session drops under no lock; it names the group, so that a keeper which has
//! another one by then under the same key does not mistake it.

use std::collections::BTreeMap;

use crate::backlog::Home;
use crate::dispatch::GroupKey;
// Shared ownership and no more: nothing is synchronized by it, and loom's
// cannot point to a trait.
use crate::sync::WakeArc as Arc;

/// Keeps groups, by key or for a dialog.
pub(crate) trait Forget: Send + Sync {
    /// The group that stood at `place` has ended. Called under no lock.
    fn forget(&self, place: u64, group: GroupKey);

    /// The queue was dropped. Called once, under no lock.
    fn gone(&self) {}
}

/// The keepers of a queue's groups.
#[derive(Default)]
pub(super) struct Homes {
    keepers: BTreeMap<u64, Arc<dyn Forget>>,
    last: u64,
}

impl Homes {
    /// One more keeper, and its number from now on.
    pub(super) fn add(&mut self, keeper: Arc<dyn Forget>) -> u64 {
        self.last += 1;
        self.keepers.insert(self.last, keeper);
        self.last
    }

    /// A keeper that is told nothing any more.
    pub(super) fn remove(&mut self, number: u64) -> Option<Arc<dyn Forget>> {
        let keeper = self.keepers.remove(&number);
        if self.keepers.is_empty() {
            // An emptied tree would keep its root's block.
            self.keepers = BTreeMap::new();
        }
        keeper
    }

    /// What tells each keeper that the queue is gone, when it is dropped.
    pub(super) fn all_gone(&self) -> Vec<Gone> {
        self.keepers.values().cloned().map(Gone).collect()
    }

    /// What tells the keeper of a group that has ended, when it is dropped.
    pub(super) fn farewell(&self, home: Home, group: GroupKey) -> Option<Farewell> {
        let keeper = self.keepers.get(&home.number)?.clone();
        let place = home.place;
        Some(Farewell {
            keeper,
            place,
            group,
        })
    }
}

pub(super) struct Farewell {
    keeper: Arc<dyn Forget>,
    place: u64,
    group: GroupKey,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        self.keeper.forget(self.place, self.group);
    }
}

pub(super) struct Gone(Arc<dyn Forget>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.gone();
    }
}
